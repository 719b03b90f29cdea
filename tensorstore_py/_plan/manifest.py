"""The manifest: what any number of workers know of one plan, on any store that writes on condition.

The plan is a document where the user says, `copy.json`. Beside it, below `copy.json.parts/` and the
plan's own number, is a record of each part that a worker has begun (`0017.json`), which is changed
on the condition that it is still the one that was read. What it says is the truth. A key without
content, `0017.done` or `0017.failed`, is stored after it, so that one listing tells which parts are
finished, claimed (they only have a record) and not begun (they have nothing). Records are never
deleted: so a claim, which creates a record, fails for a part that is finished.

A write whose answer is lost may have happened: so after any that failed the record is read, which
says whose it is. All methods are for the event loop; stores that block do so on other threads.
"""

from __future__ import annotations

import json
import secrets
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from tensorstore_py._hierarchy.document import parse_document
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._plan.parts import DONE, FAILED, TAKEN
from tensorstore_py._plan.record import Clock, Record
from tensorstore_py._runtime.execution import run_inline
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py._runtime.retry import DOUBTS
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStore
    from tensorstore_py._plan.parts import Parts
    from tensorstore_py._runtime.retry import Attempts

__all__ = ["AMBIGUOUS_ERRORS", "LEASE_S", "Manifest", "StoredRecord"]

T = TypeVar("T")

#: A worker that was not heard of for so long has abandoned its part. It writes three times as
#: often, so that two writes may be lost: with tasks that take a minute that is about one request
#: for each, and what a lost machine costs is a few minutes of its work.
LEASE_S: Final = 120.0

_SUFFIXES: Final = {".json": TAKEN, ".failed": FAILED, ".done": DONE}
_IDENTITY: Final = "id"

#: Errors that may pass, after which it is unknown whether a request was carried out.
AMBIGUOUS_ERRORS: Final = (AbortedError, UnavailableError, ConnectionError, TimeoutError)


class StoredRecord(NamedTuple):
    """What is stored of a part: its record, None if there is none, and the generation of it."""

    record: Record | None
    generation: bytes


class Manifest:
    """See the head of this file.

    `key` is the whole key of the plan's document; `stage`, of a plan of several, which one the
    parts are of; `lease_s` as `LEASE_S`.
    """

    def __init__(
        self,
        store: KvStore,
        key: str,
        parts: Parts,
        *,
        clock: Clock | None = None,
        lease_s: float = LEASE_S,
        stage: int = 0,
    ) -> None:
        self._store = store
        self._key = key
        self._prefix = ""
        self.parts = parts
        self.clock = Clock() if clock is None else clock
        self.lease_s = lease_s
        self._stage = stage

    @property
    def where(self) -> str:
        """How to name it to a person."""
        return self._store.describe_key(self._key)

    @property
    def width(self) -> int:
        """How many requests at a time the store makes good use of."""
        return self._store.width

    async def ensure(self, plan: JsonObject) -> JsonObject:
        """Store the plan, or find it there with the same `"request"`; gives what is stored.

        Raises:
            FailedPreconditionError: another plan is there.
            DataLossError: something else is there.
            UnsupportedError: the store cannot write on condition, or list.
        """
        self._check_store()
        stored = await self._read_plan()
        data = json.dumps({_IDENTITY: secrets.token_hex(6), **plan}, indent=1).encode() + b"\n"
        doubts = self._doubts("write", self._key)
        while stored is None:
            trouble: Exception | None = None
            try:
                await self._asked(lambda: self._store.write(self._key, data, if_equal=NO_VALUE))
            except AMBIGUOUS_ERRORS as error:
                trouble = error
            except UnsupportedError as error:
                raise self._unfit(str(error)) from error
            # What is stored counts, whichever process stored it.
            stored = await self._read_plan()
            if stored is None:
                await doubts.lost(error=None if trouble is None else _as_tensorstore_error(trouble))
        self._compare(stored.get("request"), json.loads(json.dumps(plan.get("request"))))
        return stored

    async def load(self) -> JsonObject:
        """The plan that is stored.

        Raises:
            NotFoundError: there is none.
            DataLossError: something else is there.
            UnsupportedError: the store cannot write, or list.
        """
        self._check_store()
        stored = await self._read_plan()
        if stored is None:
            raise NotFoundError(f"there is no plan at {self.where}; store it there first")
        return stored

    def _check_store(self) -> None:
        store = self._store
        for good, problem in (
            (store.writable, "it is read-only"),
            (store.listable, "its keys cannot be listed"),
            (not isinstance(store, Overlay), "what a transaction changes is seen by nobody else"),
        ):
            if not good:
                raise self._unfit(problem)

    def _unfit(self, problem: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self.where} cannot be a manifest: {problem}; name another place, such as a file, or "
            f"a bucket of a service with conditional writes"
        )

    async def _read_plan(self) -> JsonObject | None:
        found = await self._retried("read", lambda: self._store.read(self._key))
        if found.state != "value":
            return None
        plan = parse_document(found.value, self.where)
        identity = plan.get(_IDENTITY)
        if not isinstance(identity, str) or "/" in identity:
            identity = sha256(bytes(found.value)).hexdigest()[:12]
        below = identity if self._stage == 0 else f"{identity}-{self._stage}"
        self._prefix = f"{self._key}.parts/{below}/"
        return plan

    def _compare(self, stored: object, wanted: object) -> None:
        if not isinstance(stored, dict) or not isinstance(wanted, dict):
            if stored != wanted:
                raise DataLossError(
                    f"Error reading {self.where}: this is no plan of work; name another place"
                )
            return
        for name in sorted({*stored, *wanted}):
            if stored.get(name) != wanted.get(name):
                raise FailedPreconditionError(
                    f"the manifest {self.where} is of other work: {name} was "
                    f"{json.dumps(stored.get(name))}, and is {json.dumps(wanted.get(name))} now; "
                    "ask for the same, or delete the manifest to begin anew"
                )

    # Parts.

    def describe(self, part: int) -> str:
        """How to name a part's record to a person."""
        return self._store.describe_key(self._key_of(part, "json"))

    def _key_of(self, part: int, suffix: str) -> str:
        return f"{self._prefix}{self.parts.name(part)}.{suffix}"

    async def read(self, part: int) -> StoredRecord:
        """The record of a part.

        Raises DataLossError: something else is stored there.
        """
        key = self._key_of(part, "json")
        found = await self._retried("read", lambda: self._store.read(key))
        if found.state != "value":
            return StoredRecord(None, NO_VALUE)
        record = Record.parse(found.value, self._store.describe_key(key))
        return StoredRecord(record, found.stamp.generation)

    async def put(self, part: int, record: Record, over: bytes) -> bytes | None:
        """Store the record of a part, on the condition that no other worker did meanwhile.

        The record is another version than any before, and replaces the one of generation `over`.
        Where there should be none, the store's word is taken for it that there is one: many ask for
        the same part, and one that is ours without our knowing is found when records are looked at.
        Gives its generation; None if another worker has stored one.

        Raises:
            AbortedError, UnavailableError: the store does not answer.
            UnsupportedError: it cannot write on condition.
        """
        key, data = self._key_of(part, "json"), record.serialized()
        doubts: Attempts | None = None
        while True:
            trouble: Exception | None = None
            try:
                stamp = await self._asked(partial(self._store.write, key, data, if_equal=over))
            except AMBIGUOUS_ERRORS as error:
                trouble = error
            except UnsupportedError as error:
                raise self._unfit(str(error)) from error
            else:
                if stamp.generation != UNKNOWN:
                    return stamp.generation
                if over == NO_VALUE and doubts is None:
                    return None
            found = await self.read(part)
            if found.record is not None and found.record.owner.id == record.owner.id:
                if found.record.sequence == record.sequence:
                    return found.generation
                over = found.generation  # an earlier write of ours, whose answer was lost
            elif trouble is None or found.generation != over:
                return None
            doubts = self._doubts("write", key) if doubts is None else doubts
            await doubts.lost(error=None if trouble is None else _as_tensorstore_error(trouble))

    async def mark(self, part: int, suffix: str) -> None:
        """Have listings tell what the record says, `"done"` or `"failed"`."""
        key = self._key_of(part, suffix)
        await self._retried("write", lambda: self._store.write(key, b""))

    async def states(self, low: int, high: int) -> bytearray:
        """What is known of each of some parts: `FREE`, `TAKEN`, `FAILED` or `DONE`."""
        states = bytearray(high - low)
        name = self.parts.name
        # Names begin with a digit, and "~" is beyond all that they go on with.
        first, last = self._prefix + name(low), self._prefix + name(high - 1) + ".~"
        start, end = len(self._prefix), len(self._prefix + name(low))
        for key in await self._listed(KeyRange(encode_key(first), encode_key(last))):
            state = _SUFFIXES.get(key[end:])
            if state is not None:
                at = int(key[start:end]) - low
                if state > states[at]:  # noqa: PLR1730 - in the loop over all keys
                    states[at] = state
        return states

    async def _listed(self, key_range: KeyRange) -> list[str]:
        async def body() -> list[str]:
            return [entry.key async for entry in self._store.list(key_range)]

        return await self._retried("list", body)

    # Requests.

    async def _asked(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Ask the store.

        What blocks does so on the threads for computations: others may be busy with tasks for
        longer than a lease.
        """
        if self._store.inline:
            return await offload(False, lambda: run_inline(body()))
        return await body()

    async def _retried(self, action: str, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Ask for what may be asked for any number of times."""
        doubts: Attempts | None = None
        while True:
            try:
                return await self._asked(body)
            except AMBIGUOUS_ERRORS as error:
                doubts = self._doubts(action, self._key) if doubts is None else doubts
                await doubts.lost(error=_as_tensorstore_error(error))

    def _doubts(self, action: str, key: str) -> Attempts:
        return DOUBTS.begin(action, lambda: self._store.describe_key(key), inline=False)


def _as_tensorstore_error(error: Exception) -> TensorStoreError:
    if isinstance(error, TensorStoreError):
        return error
    typed = UnavailableError(f"the store does not answer: {error}")
    typed.__cause__ = error
    return typed
