"""What only some stores can do, and what is done for those that cannot.

Every store is a `KvStore`: `read`, `write`, `delete_range`, `list`. What its medium can do beyond
that, it says by inheriting one of the classes here and defining its methods. A caller never asks
which these are: it calls the function of the method's name, which calls the method where there is
one, and else does the same by the four operations. So each ability has one default, here; those of
`AtomicUpdate` and `update_values` are in `read_modify_write`, those of `AtomicBatch` and
`WholeRewrite` in `overlay`, where transactions store key after key without them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeAlias

from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.generation import UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.buffers import joined

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from tensorstore_py._interface.kvstore import Buffer, KvStore, ReadResult
    from tensorstore_py._interface.read_modify_write import ReadModifyWrite

    _Store = KvStore
else:
    # An ability is a `KvStore` to mypy, and a plain class when the program runs: `isinstance` with
    # a class that may have abstract methods takes half a microsecond more, for each chunk.
    _Store = object

__all__ = [
    "AtomicBatch",
    "AtomicUpdate",
    "BulkRead",
    "BulkWrite",
    "CachedRead",
    "CopiedRange",
    "DirectoryListing",
    "RangeRead",
    "Segment",
    "SegmentedWrite",
    "ServerCopy",
    "Splice",
    "WholeRewrite",
    "coalesced",
    "copy_value",
    "list_directory",
    "read_as_of",
    "read_parts",
    "read_ranges",
    "read_values",
    "splice",
    "write_segments",
    "write_values",
]


class CopiedRange:
    """Bytes `[start, stop)` of the present value, as a part of the value that replaces it.

    Example:
        >>> len(CopiedRange(3, 10))
        7
    """

    __slots__ = ("start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"CopiedRange({self.start}, {self.stop})"


#: A part of a new value.
Segment: TypeAlias = "Buffer | CopiedRange"


def coalesced(segments: Iterable[Segment]) -> list[Segment]:
    """The same segments, with neighbouring copied ranges as one, and none of these empty.

    Example:
        >>> new = [CopiedRange(0, 2), CopiedRange(2, 5), b"new", CopiedRange(5, 5)]
        >>> coalesced(new)
        [CopiedRange(0, 5), b'new']
    """
    found: list[Segment] = []
    for segment in segments:
        last = found[-1] if found else None
        if not isinstance(segment, CopiedRange):
            found.append(segment)
        elif isinstance(last, CopiedRange) and last.stop == segment.start:
            found[-1] = CopiedRange(last.start, segment.stop)
        elif len(segment):
            found.append(segment)
    return found


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
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """See the function `read_as_of`."""


class BulkWrite(_Store):
    """Changes many small values by one call."""

    @abstractmethod
    async def write_values(self, keys: Sequence[str], values: Sequence[Buffer | None]) -> None:
        """See the function `write_values`."""

    @abstractmethod
    async def update_values(
        self, keys: Sequence[str], changes: Sequence[ReadModifyWrite]
    ) -> Sequence[TimestampedStorageGeneration | Exception]:
        """See `read_modify_write.update_values`."""


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
            values: by whole key; None deletes.
            conditions: generations that must be the stored ones; of any keys.

        Returns:
            None when it is done; else the key of a condition that did not hold.
        """


class WholeRewrite(AtomicBatch):
    """Is rewritten as a whole by each change, as an archive is.

    Changes that belong together are therefore staged, see `overlay.write_group`.
    """


class AtomicUpdate(_Store):
    """Makes a read-modify-write by itself: it stages it, or excludes other writers meanwhile."""

    @abstractmethod
    async def update(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        """See `read_modify_write.update`."""


class ServerCopy(_Store):
    """Copies values without moving their bytes through this process."""

    @abstractmethod
    async def copy_to(self, key: str, target: KvStore, target_key: str) -> bool:
        """See the function `copy_value`."""


class DirectoryListing(_Store):
    """Lists one level of names without what is below."""

    @abstractmethod
    def list_directory(self, prefix: str) -> AsyncIterator[str]:
        """See the function `list_directory`."""


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

    Args:
        store: where.
        keys: whole keys.
        room: memory that values may be put in, as long as it lasts.
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
    if_not_equal: bytes | None = None,
) -> ReadResult:
    """`read` where an answer will do that was true at some time or later.

    Args:
        store: where.
        key: as for `read`.
        byte_range: as for `read`.
        staleness_bound: that time, in seconds since the epoch.
        if_not_equal: as for `read`.
    """
    if isinstance(store, CachedRead):
        return await store.read_as_of(key, byte_range, staleness_bound, if_not_equal=if_not_equal)
    return await store.read(key, byte_range, if_not_equal=if_not_equal)


async def write_values(
    store: KvStore, keys: Sequence[str], values: Sequence[Buffer | None]
) -> None:
    """Store several values, each as `write` does; after an error some may be stored.

    Args:
        store: where.
        keys: whole keys.
        values: for each, contiguous bytes as in `write`, or None to delete.
    """
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

    Args:
        store: where.
        key: the whole key.
        segments: the pieces, in their order.
        if_equal: as for `write`.
        owned: the bytes never change, so that the store may keep them by reference.
    """
    if segments is None:
        return await store.write(key, None, if_equal=if_equal)
    if isinstance(store, SegmentedWrite):
        return await store.write_segments(key, segments, if_equal=if_equal, owned=owned)
    value = segments[0] if len(segments) == 1 else joined(segments)
    return await store.write(key, value, if_equal=if_equal)


async def splice(
    store: KvStore, key: str, segments: Sequence[Segment], *, if_equal: bytes
) -> TimestampedStorageGeneration:
    """Store a value that is made of parts of the present one and of new bytes, atomically.

    For what grows at its end, such as an archive, and for what changes little.

    Args:
        store: where.
        key: the whole key.
        segments: in their order.
        if_equal: only if the stored generation is this one, and so has what is copied.

    Returns:
        As `write`.

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

    Args:
        store: from where.
        key: the whole key; it is no error if nothing is there any more.
        target: any store.
        target_key: the whole key there; what it has is replaced.

    Returns:
        Whether that was done. If not, the caller reads and writes.
    """
    return isinstance(store, ServerCopy) and await store.copy_to(key, target, target_key)


async def list_directory(store: KvStore, prefix: str) -> AsyncIterator[str]:
    """Yield what is right below a prefix, each name once, in no promised order.

    Args:
        store: where.
        prefix: ends in `/`, or is empty.

    Yields:
        The rest of a key, or its first part with the `/` after it if it has several. A key
        that is the prefix itself has no name.

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
