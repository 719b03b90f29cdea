"""What only some stores can do, and what is done for those that cannot.

Every store is a `KvStore`: `read`, `write`, `delete_range`, `list`. What its medium can do beyond
that, it says by inheriting one of the classes here and defining its methods. A caller never asks
which these are: it calls the function of the method's name, which calls the method where there is
one, and else does the same by the four operations. So each ability has one default, here; only
those of `AtomicBatch` and `WholeRewrite` are in `overlay`, where transactions store key after key
without them.

`conditional_update` is the optimistic loop behind `update` for all stores but those that exclude or
stage by themselves (`AtomicUpdate`), so there is one rule for how often a change is tried, how long
it waits, and how it ends. The invariant: the change is applied to what is stored and to nothing
older, once for each answer that says that it was stored.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.read_modify_write import CopiedRange, coalesced
from tensorstore_py._runtime.buffers import joined
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.metrics import counter
from tensorstore_py._runtime.retry import CONFLICTS, DOUBTS
from tensorstore_py.errors import AbortedError, ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from tensorstore_py._interface.kvstore import Buffer, KvStore, ReadResult
    from tensorstore_py._interface.read_modify_write import ReadModifyWrite, Segment, StoredValue
    from tensorstore_py._runtime.group_commit import Registered
    from tensorstore_py._runtime.retry import Attempts, RetryPolicy

    _Store = KvStore
    Storing = Callable[[], Awaitable[TimestampedStorageGeneration]]
    LoadPart = Callable[[int, int], Awaitable[Buffer]]
else:
    # An ability is a `KvStore` to mypy, and a plain class when the program runs: `isinstance` with
    # a class that may have abstract methods takes half a microsecond more, for each chunk.
    _Store = object

__all__ = [
    "AtomicBatch",
    "AtomicUpdate",
    "BulkListing",
    "BulkRead",
    "BulkWrite",
    "CachedRead",
    "DirectoryListing",
    "GroupedWrite",
    "PartedWrite",
    "RangeRead",
    "RangeReadAsOf",
    "ReferenceCopy",
    "SegmentedWrite",
    "ServerCopy",
    "ServiceReport",
    "ServiceState",
    "Splice",
    "WholeRewrite",
    "conditional_update",
    "copy_value",
    "list_directory",
    "list_keys",
    "read_as_of",
    "read_parts",
    "read_ranges",
    "read_values",
    "service_state",
    "splice",
    "update",
    "update_each",
    "update_values",
    "write_parts",
    "write_segments",
    "write_values",
]

#: How many keys of a listing are held at a time.
_PAGE: Final = 1000


_CONFLICTS = counter(
    "/tensorstore/kvstore/transaction_retries", "changes made again, as others were faster"
)


# The abilities.


class RangeRead(_Store):
    """Reads several parts of one value at once."""

    @abstractmethod
    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        """See the function `read_ranges`."""


class BulkRead(_Store):
    """Reads many small things by one call: a store whose calls cost about as much as they move."""

    @abstractmethod
    async def read_values(self, keys: Sequence[str], room: memoryview) -> Sequence[Buffer | None]:
        """See the function `read_values`."""

    @abstractmethod
    async def read_parts(
        self, key: str, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        """See the function `read_parts`."""


class CachedRead(_Store):
    """Has answers from before, such as a store behind HTTP caches."""

    @abstractmethod
    async def read_as_of(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """See the function `read_as_of`."""


class RangeReadAsOf(RangeRead, CachedRead):
    """Is both by one method: a store over another one, of whose structure it knows something."""

    @abstractmethod
    async def read_ranges_as_of(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        staleness_bound: float,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> list[ReadResult]:
        """Parts of one value as it was at `staleness_bound` or later, in s since the epoch.

        Args:
            key: of the value.
            ranges: one or more.
            staleness_bound: now, for `read` and `read_ranges`.
            if_equal: as for `read`.
            if_not_equal: as for `read`.

        Returns:
            One result for each range, all of one version of the value.
        """

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        results = await self.read_ranges_as_of(
            key, (byte_range,), time(), if_equal=if_equal, if_not_equal=if_not_equal
        )
        return results[0]

    async def read_as_of(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        results = await self.read_ranges_as_of(
            key, (byte_range,), staleness_bound, if_equal=if_equal, if_not_equal=if_not_equal
        )
        return results[0]

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        return await self.read_ranges_as_of(key, ranges, time()) if ranges else []


class BulkWrite(_Store):
    """Changes many small values by one call."""

    @abstractmethod
    async def write_values(self, keys: Sequence[str], values: Sequence[Buffer | None]) -> None:
        """See the function `write_values`."""

    @abstractmethod
    async def update_values(
        self, keys: Sequence[str], changes: Sequence[ReadModifyWrite]
    ) -> Sequence[TimestampedStorageGeneration | Exception]:
        """See the function `update_values`."""


class SegmentedWrite(_Store):
    """Stores a value that is in several pieces of memory, or that it may keep, without a copy."""

    @abstractmethod
    async def write_segments(
        self,
        key: str,
        segments: Sequence[Buffer],
        *,
        if_equal: bytes | None = None,
        owned: bool = False,
    ) -> TimestampedStorageGeneration:
        """See the function `write_segments`; here `segments` is never None."""


class PartedWrite(_Store):
    """Stores a value whose parts are made when they are sent; of stores that run on the loop."""

    @abstractmethod
    async def write_parts(
        self, key: str, size: int, load: LoadPart, part_bytes: int
    ) -> TimestampedStorageGeneration:
        """See the function `write_parts`."""


class Splice(_Store):
    """Keeps parts of a value when the rest is replaced, for less than reading and writing them."""

    @abstractmethod
    async def splice(
        self, key: str, segments: Sequence[Segment], *, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        """See the function `splice`; here copied ranges are coalesced."""


class AtomicBatch(_Store):
    """Stores several values at once."""

    @abstractmethod
    async def write_batch(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        """Store several values: either all of them or, if a condition fails, none.

        Args:
            values: by whole key; None deletes. Their memory does not change any more.
            conditions: generations that must be the stored ones; of any keys.

        Returns:
            None when it is done; else the key of a condition that did not hold.
        """


class ReferenceCopy(AtomicBatch):
    """Has values that are stored already under other keys, too, without storing them again."""

    @abstractmethod
    async def values_of(
        self, source: KvStore, key_range: KeyRange, staleness_bound: float | None
    ) -> Mapping[str, StoredValue] | None:
        """The values of a store that `write_batch` takes as they are.

        Args:
            source: any store.
            key_range: of whole keys there.
            staleness_bound: as for `read_as_of`; None: as they are now.

        Returns:
            By whole key of the source; None if they cannot be had without moving their bytes.
        """

    @abstractmethod
    async def write_batch(
        self, values: Mapping[str, Buffer | StoredValue | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        """See `AtomicBatch`; stored values are those of `values_of`."""


class GroupedWrite(_Store):
    """Stores together what waits to be written, also what has only been asked for."""

    @abstractmethod
    def register_write(
        self, key: str, value: bytes | None, if_equal: bytes | None
    ) -> Registered[TimestampedStorageGeneration] | None:
        """A write that the next commit makes, whoever begins it; called, the body waits for that.

        Arguments are those of `write`. None: `write` is to be called, which says what is wrong.
        """


class WholeRewrite(AtomicBatch):
    """Is rewritten as a whole by each change, as an archive is.

    Changes that belong together are therefore staged, see `overlay.write_group`.
    """


class AtomicUpdate(_Store):
    """Makes a read-modify-write by itself: it stages it, or excludes other writers meanwhile."""

    @abstractmethod
    async def update(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        """See the function `update`."""


class ServerCopy(_Store):
    """Copies values without moving their bytes through this process."""

    @abstractmethod
    async def copy_to(self, key: str, target: KvStore, target_key: str) -> bool:
        """See the function `copy_value`."""


class ServiceState(NamedTuple):
    """What a service says that no operation on values shows.

    Attributes:
        credentials: where credentials come from, in words and without any of them; None: requests
            are made without.
        clock_ahead_s: by how much its clock is ahead of ours, in s; None: it does not say.
        unfinished: keys of writes that were begun and not ended, whose parts are stored, and paid
            for; as many as it tells at once. None: it has no such, or does not say.
    """

    credentials: str | None = None
    clock_ahead_s: float | None = None
    unfinished: Sequence[str] | None = None


class ServiceReport(_Store):
    """Is a service with accounts and a clock of its own, and can be asked about these."""

    @abstractmethod
    async def service_state(self, prefix: str) -> ServiceState:
        """See the function `service_state`."""


class DirectoryListing(_Store):
    """Lists one level of names without what is below."""

    @abstractmethod
    def list_directory(self, prefix: str) -> AsyncIterator[str]:
        """See the function `list_directory`."""


class BulkListing(_Store):
    """Lists keys many at a time: a store that has them side by side."""

    @abstractmethod
    def list_keys(self, key_range: KeyRange, skipped: int) -> AsyncIterator[Sequence[bytes]]:
        """See the function `list_keys`."""


# The same for every store.


async def read_ranges(store: KvStore, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
    """Read several parts of one value; all results have one generation or are missing.

    Raises:
        OutOfRangeError: a byte range reaches outside the value.
    """
    if isinstance(store, RangeRead):
        return await store.read_ranges(key, ranges)
    return [await store.read(key, byte_range) for byte_range in ranges]


async def read_values(
    store: KvStore, keys: Sequence[str], room: memoryview
) -> Sequence[Buffer | None]:
    """The whole values of several keys, None where there is none; as they are found.

    Values may be put in `room`, and are good as long as that is.
    """
    if isinstance(store, BulkRead):
        return await store.read_values(keys, room)
    results = [await store.read(key) for key in keys]
    return [result.value if result.state == "value" else None for result in results]


async def read_parts(
    store: KvStore, key: str, ranges: Sequence[ByteRange], size: int
) -> Sequence[Buffer | None] | None:
    """Parts of a value that must have `size` bytes; each is None if there is no value.

    None if it has another size, or if the store cannot tell: then all of it is to be read.
    """
    if isinstance(store, BulkRead):
        return await store.read_parts(key, ranges, size)
    return None


async def read_as_of(
    store: KvStore,
    key: str,
    byte_range: ByteRange,
    staleness_bound: float,
    *,
    if_equal: bytes | None = None,
    if_not_equal: bytes | None = None,
) -> ReadResult:
    """`read` where an answer will do that was true at `staleness_bound` or later.

    That is a time in seconds since the epoch.
    """
    if isinstance(store, CachedRead):
        return await store.read_as_of(
            key, byte_range, staleness_bound, if_equal=if_equal, if_not_equal=if_not_equal
        )
    return await store.read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)


async def write_values(
    store: KvStore, keys: Sequence[str], values: Sequence[Buffer | None]
) -> None:
    """Store several values, each as `write` does; after an error some may be stored."""
    if isinstance(store, BulkWrite):
        await store.write_values(keys, values)
        return
    for key, value in zip(keys, values, strict=True):
        await store.write(key, value)


async def write_segments(
    store: KvStore,
    key: str,
    segments: Sequence[Buffer] | None,
    *,
    if_equal: bytes | None = None,
    owned: bool = False,
) -> TimestampedStorageGeneration:
    """`write` of a value that is in several pieces of memory; None deletes.

    If they are `owned`, the bytes never change, so that the store may keep them by reference.
    """
    if segments is None:
        return await store.write(key, None, if_equal=if_equal)
    if isinstance(store, SegmentedWrite):
        return await store.write_segments(key, segments, if_equal=if_equal, owned=owned)
    value = segments[0] if len(segments) == 1 else joined(segments)
    return await store.write(key, value, if_equal=if_equal)


async def write_parts(
    store: KvStore, key: str, size: int, load: LoadPart, *, part_bytes: int, most: int
) -> TimestampedStorageGeneration:
    """`write` of a value that may be larger than memory, in a task of the event loop.

    It is there whole, or not at all.

    Args:
        store: where.
        key: the whole key.
        size: of the value, in bytes.
        load: gives the bytes of a range of it, from the first up to the second number, once for
            each part or more often; two parts at a time at most.
        part_bytes: how many bytes are asked for at a time, about.
        most: how many bytes a value may have in a store that must have it whole.

    Raises:
        ResourceExhaustedError: the store must have it whole, and it is larger than that.
    """
    if isinstance(store, PartedWrite):
        return await store.write_parts(key, size, load, part_bytes)
    if size > most:
        raise ResourceExhaustedError(
            f"cannot write {store.describe_key(key)}: the store takes a value as a whole, and its "
            f"{size:,} bytes are more than the {most:,} that may be in memory; store it in smaller "
            "values, raise memory_limit, or name a store that takes values in parts (s3, file)"
        )
    whole = bytearray(size)
    for start in range(0, size, part_bytes):
        stop = min(size, start + part_bytes)
        whole[start:stop] = await load(start, stop)
    segments = [memoryview(whole)]
    return await within(
        False, store.inline, lambda: write_segments(store, key, segments, owned=True)
    )


async def splice(
    store: KvStore, key: str, segments: Sequence[Segment], *, if_equal: bytes
) -> TimestampedStorageGeneration:
    """Store a value that is made of parts of the present one and of new bytes, atomically.

    For what grows at its end, such as an archive, and for what changes little.

    What is copied is of the generation `if_equal`; the answer is that of `write`.

    Raises:
        OutOfRangeError: the present value is shorter than what is copied of it.
    """
    segments = coalesced(segments)
    if isinstance(store, Splice):
        return await store.splice(key, segments, if_equal=if_equal)
    found: list[Buffer] = []
    for segment in segments:
        if isinstance(segment, CopiedRange):
            wanted = ByteRange(segment.start, segment.stop)
            copied = await store.read(key, wanted, if_equal=if_equal)
            if copied.state != "value":
                return TimestampedStorageGeneration.now(UNKNOWN)
            found.append(copied.value)
        else:
            found.append(segment)
    return await store.write(key, joined(found), if_equal=if_equal)


async def copy_value(store: KvStore, key: str, target: KvStore, target_key: str) -> bool:
    """Copy a value without moving its bytes through here, where the medium can do that.

    It replaces what the target, any store, has; it is no error if there is no value any more. False
    if it was not done: then the caller reads and writes.
    """
    return isinstance(store, ServerCopy) and await store.copy_to(key, target, target_key)


async def service_state(store: KvStore, prefix: str) -> ServiceState | None:
    """What a service says about itself, and of unfinished writes below a prefix; None: it is none.

    Raises:
        PermissionDeniedError: there are no credentials where they should be, or they are refused.
        UnavailableError: it could not be asked.
    """
    return await store.service_state(prefix) if isinstance(store, ServiceReport) else None


async def list_directory(store: KvStore, prefix: str) -> AsyncIterator[str]:
    """Yield what is right below a prefix, each name once, in no promised order.

    The prefix ends in `/`, or is empty. A name is the rest of a key, or its first part with the `/`
    after it if it has several; a key that is the prefix itself has none.

    Raises:
        UnsupportedError: the store cannot list its keys.
    """
    if isinstance(store, DirectoryListing):
        async for name in store.list_directory(prefix):
            yield name
        return
    seen = set()
    async for entry in store.list(KeyRange.prefix(prefix)):
        first, slash, _ = entry.key[len(prefix) :].partition("/")
        name = first + slash
        if name and name not in seen:
            seen.add(name)
            yield name


async def list_keys(
    store: KvStore, key_range: KeyRange, skipped: int = 0
) -> AsyncIterator[Sequence[bytes]]:
    """Yield the keys of a range as `list` does, several at a time, without their first bytes.

    About a thousand at a time at most, at least one, each without as many bytes as are `skipped`.

    Raises:
        UnsupportedError: the store cannot list its keys.
    """
    if isinstance(store, BulkListing):
        async for keys in store.list_keys(key_range, skipped):
            yield keys
        return
    page: list[bytes] = []
    async for entry in store.list(key_range):
        page.append(encode_key(entry.key)[skipped:])
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page


async def update(
    store: KvStore, key: str, change: ReadModifyWrite, *, assume_missing: bool = False
) -> TimestampedStorageGeneration:
    """Change a value, however often others change it meanwhile.

    Arguments and errors are those of `conditional_update`.
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
        _CONFLICTS.note(1)
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
