"""Changes of one stored value that can be made again, and the one loop that makes them.

A `ReadModifyWrite` is what conditional writes repeat until no other writer was faster, what several
writers of one value merge into one, and what a transaction keeps until it is committed. Applying
one changes nothing but its result, so that it can be applied any number of times.

`update` makes one. `conditional_update` is the optimistic loop behind it for all stores but those
that exclude or stage by themselves (`AtomicUpdate`), so there is one rule for how often a change is
tried, how long it waits, and how it ends. The invariant: the change is applied to what is stored
and to nothing older, once for each answer that says that it was stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING

from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.store_abilities import (
    AtomicUpdate,
    BulkWrite,
    Splice,
    splice,
    write_segments,
)
from tensorstore_py._runtime.retry import CONFLICTS, DOUBTS
from tensorstore_py.errors import AbortedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer, KvStore
    from tensorstore_py._interface.store_abilities import Segment
    from tensorstore_py._runtime.retry import Attempts, RetryPolicy

    Storing = Callable[[], Awaitable[TimestampedStorageGeneration]]

__all__ = [
    "ReadModifyWrite",
    "Replace",
    "conditional_update",
    "merged",
    "update",
    "update_each",
    "update_values",
]


class ReadModifyWrite(ABC):
    """A change of one value.

    Attributes:
        replaces: what is stored does not matter, and need not be read.
    """

    __slots__ = ()
    replaces: bool = False

    @abstractmethod
    async def apply(self, stored: Buffer | None) -> Buffer | None:
        """The new value; None deletes it.

        Args:
            stored: the present value; None if there is none.

        Raises:
            DataLossError: it cannot be changed because it is corrupt; names its key.
        """

    async def parts(self, stored: Buffer | None) -> Sequence[Buffer] | None:
        """As `apply`, in segments that need not be one piece of memory to be stored."""
        value = await self.apply(stored)
        return None if value is None else (value,)

    async def parts_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Buffer] | None]:
        """The new value of a key in view of what is stored; override it to read less.

        Returns:
            The generation that it was made from, and the value in segments.
        """
        result = await store.read(key)
        if result.state != "value":
            return NO_VALUE, await self.parts(None)
        return result.stamp.generation, await self.parts(result.value)

    async def splice_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Segment] | None]:
        """As `parts_in`, for a store that can keep parts of a value by itself (`Splice`)."""
        return await self.parts_in(store, key)

    def kept(self) -> ReadModifyWrite:
        """The same change, without a reference to memory that its maker may change."""
        return self

    def then(self, later: ReadModifyWrite) -> ReadModifyWrite | None:
        """Both as one change, if they know each other; else None."""
        return later if later.replaces else None


class Replace(ReadModifyWrite):
    """Store a value, whatever is there.

    Args:
        value: what to store; None to delete.

    Example:
        >>> Replace(b"1").then(Replace(b"2")).value
        b'2'
    """

    __slots__ = ("value",)
    replaces = True

    def __init__(self, value: Buffer | None) -> None:
        self.value = value

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        return self.value

    def kept(self) -> Replace:
        return self if self.value is None else Replace(bytes(self.value))


class _Sequence(ReadModifyWrite):
    """Changes that do not know each other, one after the other."""

    __slots__ = ("replaces", "steps")

    def __init__(self, steps: Sequence[ReadModifyWrite]) -> None:
        self.steps = list(steps)
        self.replaces = self.steps[0].replaces

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        for step in self.steps:
            stored = await step.apply(stored)
        return stored

    def kept(self) -> ReadModifyWrite:
        return _Sequence([step.kept() for step in self.steps])

    def then(self, later: ReadModifyWrite) -> ReadModifyWrite:
        if later.replaces:
            return later
        last = self.steps[-1].then(later)
        if last is None:
            return _Sequence([*self.steps, later])
        return _Sequence([*self.steps[:-1], last])


def merged(changes: Sequence[ReadModifyWrite]) -> ReadModifyWrite:
    """One change that does what they do in turn.

    Args:
        changes: at least one.
    """
    whole = changes[0]
    for change in changes[1:]:
        whole = whole.then(change) or _Sequence([whole, change])
    return whole


async def update(
    store: KvStore, key: str, change: ReadModifyWrite, *, assume_missing: bool = False
) -> TimestampedStorageGeneration:
    """Change a value, however often others change it meanwhile.

    Args:
        store: where.
        key: the whole key.
        change: what to make of the present value.
        assume_missing: as for `conditional_update`.

    Returns:
        The new stamp.

    Raises:
        AbortedError: others changed it first each of the many times that it was tried.
        UnavailableError: it was refused again and again although nothing had changed.
    """
    if isinstance(store, AtomicUpdate):
        return await store.update(key, change)
    return await conditional_update(store, key, change, assume_missing=assume_missing)


async def update_values(
    store: KvStore, keys: Sequence[str], changes: Sequence[ReadModifyWrite]
) -> Sequence[TimestampedStorageGeneration | Exception]:
    """`update` of several keys, each for itself; what failed has its error in place of a stamp."""
    if isinstance(store, BulkWrite):
        return await store.update_values(keys, changes)
    return await update_each(store, keys, changes)


async def update_each(
    store: KvStore, keys: Sequence[str], changes: Sequence[ReadModifyWrite]
) -> list[TimestampedStorageGeneration | Exception]:
    """`update_values` where that is one `update` after the other."""
    outcomes: list[TimestampedStorageGeneration | Exception] = []
    for key, change in zip(keys, changes, strict=True):
        try:
            outcomes.append(await update(store, key, change))
        except Exception as error:  # noqa: BLE001 - it is that key's
            outcomes.append(error)
    return outcomes


async def conditional_update(
    store: KvStore,
    key: str,
    change: ReadModifyWrite,
    policy: RetryPolicy = CONFLICTS,
    *,
    assume_missing: bool = False,
) -> TimestampedStorageGeneration:
    """Change a value on the condition that no other writer did since it was read, until that holds.

    Args:
        store: where.
        key: the whole key.
        change: what to make of the present value.
        policy: how often to try, and how long to wait in between.
        assume_missing: most likely nothing is stored, so the first attempt reads nothing and
            stores on the condition that this is so.

    Returns:
        The new stamp.

    Raises:
        AbortedError: others changed it first, as often as the policy allows; or the store could not
            say, several times, whether it was changed. Says how often it was tried.
        UnavailableError: the store refused again and again although nothing had changed.
    """
    where = partial(store.describe_key, key)
    attempts: Attempts | None = None
    doubts: Attempts | None = None
    while True:
        if assume_missing:
            segments = await change.parts(None)
            before, store_it = NO_VALUE, _storing(store, key, segments, if_equal=NO_VALUE)
        else:
            before, store_it = await _look(store, key, change)
        try:
            stamp = await store_it()
        except AbortedError as error:
            # What may have been made can be made again, since it is applied to what is there now.
            if doubts is None:
                doubts = DOUBTS.begin("update", where, inline=store.inline)
            await doubts.lost(error=error)
            continue
        if stamp.generation != UNKNOWN:
            return stamp
        if assume_missing:
            assume_missing = False  # it was a guess, and so no attempt that was lost
            continue
        if attempts is None:
            attempts = policy.begin("update", where, inline=store.inline)
        await attempts.lost(before)


def _storing(
    store: KvStore, key: str, segments: Sequence[Buffer] | None, *, if_equal: bytes | None = None
) -> Storing:
    return partial(write_segments, store, key, segments, if_equal=if_equal)


async def _look(store: KvStore, key: str, change: ReadModifyWrite) -> tuple[bytes, Storing]:
    """What the change rests on, and what stores its result on condition of that."""
    if change.replaces:
        return UNKNOWN, _storing(store, key, await change.parts(None))
    if not isinstance(store, Splice):
        before, parts = await change.parts_in(store, key)
        return before, _storing(store, key, parts, if_equal=before)
    before, mixed = await change.splice_in(store, key)
    if mixed is None:
        return before, partial(store.write, key, None, if_equal=before)
    return before, partial(splice, store, key, mixed, if_equal=before)
