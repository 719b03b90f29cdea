"""One stored JSON document: read, kept, and changed on condition.

What was read last is kept with its generation as long as anybody in the context has the document
open, and beyond that in the cache pool; whether it will do, or the store is asked if it is still
current, is the reader's bound on staleness. A change is stored on the condition that the document
is still the one that was changed, until that holds: writers of different values lose nothing of
each other.

Documents are kept as bytes, and parsed for everyone anew: what a reader does to its values concerns
nobody else.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    SpecError,
)
from tensorstore_py.plugin.codec import describe
from tensorstore_py.plugin.driver import CachedChunk, Unset, needed_since, parse_json_text
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    UNKNOWN,
    CheckedChange,
    KeyedLock,
    ReadModifyWrite,
    RetryPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorstore_py.plugin.codec import Buffer
    from tensorstore_py.plugin.driver import Overlay
    from tensorstore_py.plugin.kvstore import ChunkCache, KvStore, KvStoreSpec

__all__ = ["Assignment", "StagedDocument", "StoredDocument", "find", "parse_pointer", "replaced"]

_ELEMENT = re.compile("0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile("~(?![01])")
_APPEND = "-"


def parse_pointer(text: str) -> tuple[str, ...]:
    """The names and positions of a pointer.

    Raises:
        SpecError: it does not begin with a slash, or has a tilde that is not `~0` or `~1`.

    Example:
        >>> parse_pointer("/a~1b/0/")
        ('a/b', '0', '')
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise SpecError(f"a JSON Pointer begins with a slash; did you mean {describe(f'/{text}')}?")
    bad = _BAD_ESCAPE.search(text)
    if bad is not None:
        raise SpecError(
            f'position {bad.start()} of {describe(text)}: a tilde in a JSON Pointer is "~0", '
            'and a slash in a name "~1"'
        )
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def find(document: object, parts: Sequence[str]) -> object:
    """The value at a pointer.

    Raises:
        NotFoundError: no such member.
        OutOfRangeError: no such element.
        FailedPreconditionError: a step into a value that has no members, or that is no position.

    Example:
        >>> find({"a": [1, {"b": 2}]}, ["a", "1", "b"])
        2
    """
    value = document
    for depth, part in enumerate(parts):
        if isinstance(value, dict):
            if part not in value:
                raise NotFoundError(f"there is no member {_text(parts, depth)}")
            value = value[part]
        elif isinstance(value, list):
            position = _position(value, parts, depth)
            if position == len(value):
                raise FailedPreconditionError(
                    f"{_text(parts, depth)} is the place behind the last element: it can be "
                    "written, not read"
                )
            value = value[position]
        else:
            raise _no_members(value, parts, depth)
    return value


def replaced(document: object, parts: Sequence[str], new: object) -> object:
    """The document with another value at a pointer; members on the way are made.

    Args:
        document: changed in place where it can be; `UNSET` if there is none yet.
        parts: the pointer.
        new: the value.

    Raises:
        OutOfRangeError: no such element.
        FailedPreconditionError: a step into a value that has no members, or that is no position.

    Example:
        >>> replaced({"a": [1]}, ["a", "-"], 2)
        {'a': [1, 2]}
        >>> replaced(Unset.UNSET, ["a", "b"], None)
        {'a': {'b': None}}
    """
    if not parts:
        return new
    root: object = {} if document is Unset.UNSET else document
    value = root
    last = len(parts) - 1
    for depth, part in enumerate(parts):
        inner: object = new if depth == last else {}
        if isinstance(value, dict):
            if depth == last:
                value[part] = new
            value = value.setdefault(part, inner)
        elif isinstance(value, list):
            position = _position(value, parts, depth)
            if position == len(value):
                value.append(inner)
            elif depth == last:
                value[position] = new
            value = value[position]
        else:
            raise _no_members(value, parts, depth)
    return root


def _position(value: list[object], parts: Sequence[str], depth: int) -> int:
    """Which element is meant; the length for the place behind the last one."""
    part = parts[depth]
    if part == _APPEND:
        return len(value)
    if not _ELEMENT.fullmatch(part):
        raise FailedPreconditionError(
            f'{_text(parts, depth)} is no position in an array of {len(value)}; write it like "0"'
        )
    if len(part) > len(str(len(value))) or int(part) >= len(value):
        raise OutOfRangeError(f"{_text(parts, depth)} is outside an array of {len(value)}")
    return int(part)


def _no_members(value: object, parts: Sequence[str], depth: int) -> FailedPreconditionError:
    where = _text(parts, depth - 1) if depth else "the document"
    return FailedPreconditionError(
        f"{where} is {describe(value)} and has no {describe(parts[depth])} in it"
    )


def _text(parts: Sequence[str], depth: int) -> str:
    """The pointer to a place on the way."""
    escaped = (part.replace("~", "~0").replace("/", "~1") for part in parts[: depth + 1])
    return describe("".join(f"/{part}" for part in escaped))


class _Latest:
    """What is known of a document, the same for all in a context who have it open."""

    __slots__ = ("__weakref__", "entry")

    def __init__(self) -> None:
        self.entry: CachedChunk | None = None


class StoredDocument:
    """Where a document is, and what is known of it.

    Args:
        where: the bound spec of the store; its path is the key.
        store: the open store.
        cache: the pool.
        recheck: when what is kept is checked again, see `ChunkedSpec.recheck_cached_data`.
    """

    def __init__(
        self, where: KvStoreSpec, store: KvStore, cache: ChunkCache, recheck: bool | str | float
    ) -> None:
        self._store = store
        self._key = where.path
        self._cache = cache
        self._recheck = recheck
        self._opened = time.time()
        scope = cache.scope(where.path, where, "json")
        self._entry = (scope, ())
        self._latest = cache.companion(scope, _Latest)
        self._gate = KeyedLock(inline=store.inline)

    def describe(self) -> str:
        """How to name the document in an error message."""
        return self._store.describe_key(self._key)

    async def read(self) -> object:
        """The document, which is the caller's own.

        Raises:
            NotFoundError: there is none; names its key.
            DataLossError: it is not JSON; names its key and the place.
        """
        known = self._known()
        if known is None or known.time < needed_since(self._recheck, self._opened):
            known = await self._refresh(known)
        if known.chunk is None:
            raise _missing(self.describe())
        return self._parsed(known)

    async def replace(self, value: object) -> None:
        """Store another document, whatever there was.

        Raises:
            SpecError: it is not JSON.
        """
        await self._write(_serialized(value), None)

    async def update(self, change: Callable[[object], object]) -> None:
        """Store what `change` makes of the document, or of `UNSET` if there is none.

        Raises:
            DataLossError: what is stored is not JSON; names its key and the place.
            SpecError: the result is not JSON.
            AbortedError: others changed it first each of the many times that it was tried.
        """
        async with self._gate.acquire(self._key):
            attempts = RetryPolicy().begin("update", self.describe, inline=self._store.inline)
            while True:
                known = await self._refresh(self._known())
                before = Unset.UNSET if known.chunk is None else self._parsed(known)
                generation = NO_VALUE if known.chunk is None else known.generation
                if await self._write(_serialized(change(before)), generation):
                    return
                await attempts.lost(generation)

    async def _write(self, data: bytes, if_equal: bytes | None) -> bool:
        stamp = await self._store.write(self._key, data, if_equal=if_equal)
        if stamp.generation == UNKNOWN:
            return False
        # whoever is reading now may have seen what was there before
        self._cache.drop(self._entry)
        self._keep(_entry(data, stamp.generation, stamp.time))
        return True

    def _known(self) -> CachedChunk | None:
        """The latest that is known, by this array or another in the context."""
        entries = (self._latest.entry, self._cache.get(self._entry))
        return max(
            (entry for entry in entries if entry is not None),
            key=lambda entry: entry.time,
            default=None,
        )

    def _keep(self, entry: CachedChunk) -> None:
        last = self._latest.entry
        if last is None or last.time <= entry.time:
            self._latest.entry = entry
        self._cache.put(self._entry, entry)

    async def _refresh(self, known: CachedChunk | None) -> CachedChunk:
        """What is stored now; that it is still what is known costs no body."""
        with self._cache.reading(self._entry):
            before = None if known is None or known.generation == UNKNOWN else known.generation
            result = await self._store.read(self._key, if_not_equal=before)
            stamp = result.stamp
            if result.state == "unspecified" and known is not None:
                found = CachedChunk(known.chunk, known.generation, max(known.time, stamp.time))
            else:
                data = bytes(result.value) if result.state == "value" else None
                found = _entry(data, stamp.generation, stamp.time)
            self._keep(found)
        return found

    async def forget(self) -> None:
        """Ask the store next time: a transaction has changed the document."""
        self._cache.drop(self._entry)
        self._latest.entry = None

    def _parsed(self, entry: CachedChunk) -> object:
        assert entry.chunk is not None
        return _parsed(entry.chunk.tobytes(), self.describe())


class StagedDocument:
    """A document as a transaction sees it."""

    def __init__(self, plain: StoredDocument, where: KvStoreSpec, overlay: Overlay) -> None:
        self._plain = plain
        self._key = where.path
        self._overlay = overlay

    def describe(self) -> str:
        """How to name the document in an error message."""
        return self._plain.describe()

    async def read(self) -> object:
        """As `StoredDocument.read`."""
        result = await self._overlay.read(self._key)
        if result.state != "value":
            raise _missing(self.describe())
        return _parsed(bytes(result.value), self.describe())

    async def replace(self, value: object) -> None:
        """As `StoredDocument.replace`."""
        await self._overlay.write(self._key, _serialized(value))
        self._overlay.afterwards(self._plain.forget)

    async def update(self, change: Callable[[object], object]) -> None:
        """As `StoredDocument.update`; what is stored by then is changed at the end, too.

        The change fails now, or never: if it raises, it has done nothing to the document.
        """
        update = _DocumentChange((change,), self.describe(), _Trial())
        await self._overlay.update_checked(self._key, update)
        self._overlay.afterwards(self._plain.forget)


class Assignment:
    """A value for a place of any document: as it is now, and each document gets its own.

    Args:
        parts: the pointer.
        new: the value.

    Raises:
        SpecError: it is not JSON.

    Example:
        >>> new = [1]
        >>> assign = Assignment(["a"], new)
        >>> new.append(2)
        >>> assign({})
        {'a': [1]}
    """

    def __init__(self, parts: Sequence[str], new: object) -> None:
        self._parts = parts
        self._data = _serialized([*parts, new])

    def __call__(self, document: object) -> object:
        """What `replaced` makes of it."""
        return replaced(document, self._parts, json.loads(self._data)[-1])


class _Trial:
    """A document of a generation, with the first so many of a transaction's changes made to it."""

    __slots__ = ("count", "document", "generation")

    def __init__(self) -> None:
        self.generation: bytes | None = None
        self.document: object = Unset.UNSET
        self.count = 0


class _DocumentChange(CheckedChange):
    """Changes of a document, one after the other: it is parsed once for all of them.

    Args:
        steps: the changes.
        where: how to name the document.
        trial: of the first of them.
    """

    __slots__ = ("_steps", "_trial", "_where")

    def __init__(
        self, steps: tuple[Callable[[object], object], ...], where: str, trial: _Trial
    ) -> None:
        self._steps = steps
        self._where = where
        self._trial = trial

    @property
    def checked(self) -> bytes | None:
        return self._trial.generation

    def check(self, generation: bytes, stored: Buffer | None) -> None:
        trial = self._trial
        if trial.generation != generation:
            document = self._before(stored)
            trial.generation, trial.document, trial.count = generation, document, 0
        for step in self._steps[trial.count :]:
            trial.document = step(trial.document)
            trial.count += 1

    async def apply(self, stored: Buffer | None) -> Buffer:
        document = self._before(stored)
        for step in self._steps:
            document = step(document)
        return _serialized(document)

    def _before(self, stored: Buffer | None) -> object:
        return Unset.UNSET if stored is None else _parsed(bytes(stored), self._where)

    def then(self, later: ReadModifyWrite) -> ReadModifyWrite | None:
        if isinstance(later, _DocumentChange):
            return _DocumentChange(self._steps + later._steps, self._where, self._trial)
        return super().then(later)


def _missing(where: str) -> NotFoundError:
    return NotFoundError(f"there is no document at {where}; write a value to make one")


def _parsed(data: bytes, where: str) -> object:
    try:
        return parse_json_text(data)
    except SpecError as error:
        raise DataLossError(f"Error reading {where}: {error}") from error


def _entry(data: bytes | None, generation: bytes, time_s: float) -> CachedChunk:
    chunk = None if data is None else np.frombuffer(data, np.uint8)
    return CachedChunk(chunk, generation, time_s)


def _serialized(value: object) -> bytes:
    """As the reference writes it: compact, members in the order of their names."""
    try:
        text = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode()
    except UnicodeEncodeError as error:
        raise SpecError(f"text that is not Unicode has no JSON form: {error.reason}") from None
    except ValueError:
        raise SpecError(
            "NaN and infinite numbers have no JSON form; write null or text instead"
        ) from None
