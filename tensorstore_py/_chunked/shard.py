"""Shards: one level down, a chunked array whose source is a part of one key.

A shard is opened by reading its index. Its inner chunks are byte ranges of the same generation:

| the shard is | a reader | a writer |
|---|---|---|
| as its index says | fetches neighbours in few requests | keeps the bytes that do not change |
| not there | fills | assembles a new one |
| replaced since its index was read | `ShardChangedError`: begins again | the same |
| shorter than its index says | `DataLossError` | the same |

So one read never mixes two versions of a shard. `ShardIndex` is the only code that knows what an
entry of an index means.
"""

from __future__ import annotations

from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import numpy as np

from tensorstore_py._chunked.array import ChunkedArray, ChunkSource
from tensorstore_py._chunked.selection import Axis, Gathered, Strided
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._interface.read_modify_write import CopiedRange
from tensorstore_py._interface.sharded import MISSING
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.retry import CONFLICTS
from tensorstore_py.errors import DataLossError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Coroutine,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from types import EllipsisType
    from typing import Any

    from numpy.typing import NDArray

    from tensorstore_py._chunked.array import Array, Cell
    from tensorstore_py._chunked.plan import ChunkSlice
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._interface.sharded import Sharded
    from tensorstore_py._runtime.retry import Attempts

__all__ = [
    "BATCH_BYTES",
    "Batch",
    "OpenShard",
    "ShardChangedError",
    "ShardIndex",
    "c_strides",
    "descend",
    "descend_axes",
    "in_groups",
    "inner_array",
    "inner_grid",
    "inner_number",
    "is_worth_splicing",
    "unchanged",
]

T = TypeVar("T")

#: Pieces of a shard that are kept are so large at least, or it is read and written as a whole.
_LEAST_KEPT: Final = 2**16

#: Neighbouring inner chunks are fetched together up to this size, across gaps up to `_GAP`.
BATCH_BYTES: Final = 2 * 2**20
_GAP_BYTES: Final = 4096


class ShardChangedError(Exception):
    """The shard's generation is not the one its index was read from."""


async def unchanged(
    step: Callable[[], Coroutine[Any, Any, T]],
    action: str,
    where: Callable[[], str],
    *,
    inline: bool,
) -> T:
    """Do a step with one version of a shard, again from the beginning if it is replaced meanwhile.

    `action` is a verb, for errors.

    Raises:
        AbortedError: it was replaced each of the many times that it was tried; names its key.
    """
    attempts: Attempts | None = None
    while True:
        try:
            return await step()
        except ShardChangedError:
            if attempts is None:
                attempts = CONFLICTS.begin(f"{action} the shard", where, inline=inline)
        await attempts.lost()


class ShardIndex:
    """Where the inner chunks of one shard are, by their C-order number.

    `entries` are `[number of inner chunks, 2]` of `(offset, size)`.
    """

    __slots__ = ("_entries", "_strides")

    def __init__(self, entries: NDArray[np.uint64], grid_shape: tuple[int, ...]) -> None:
        self._entries = entries
        self._strides = c_strides(grid_shape)

    def number(self, cell: Cell) -> int:
        """The number of an inner chunk."""
        return inner_number(cell, self._strides)

    def extent(self, number: int) -> tuple[int, int] | None:
        """`[start, stop)` of an inner chunk in the shard's bytes; None if it is not stored."""
        offset, size = self._entries[number].tolist()
        return None if offset == MISSING and size == MISSING else (offset, offset + size)

    def extents(self) -> Iterator[tuple[int, int, int]]:
        """`number, start, stop` of all inner chunks that are stored."""
        for number, (offset, size) in enumerate(self._entries.tolist()):
            if not (offset == MISSING and size == MISSING):
                yield number, offset, offset + size

    @classmethod
    def chunks_in(cls, sharded: Sharded, stored: Buffer | None) -> dict[int, Buffer]:
        """The encoded inner chunks of a whole stored shard, by their number.

        Raises:
            DataLossError: the shard is truncated, or its index is corrupt.
        """
        if stored is None:
            return {}
        data = memoryview(stored)
        try:
            start, stop = sharded.index_range().resolve(data.nbytes)
        except OutOfRangeError as error:
            raise _too_short(error) from error
        index = cls(sharded.decode_index(data[start:stop]), sharded.grid_shape)
        chunks: dict[int, Buffer] = {}
        for number, start, stop in index.extents():
            if stop > data.nbytes:
                raise DataLossError(f"shard is shorter ({data.nbytes} bytes) than its index says")
            chunks[number] = data[start:stop]
        return chunks


def _too_short(error: OutOfRangeError) -> DataLossError:
    return DataLossError(f"shard is too short for its index: {error}")


W = TypeVar("W")
M = TypeVar("M")


class Batch(NamedTuple, Generic[M]):
    """Inner chunks that are fetched in one request: `[start, stop)` of the shard's bytes."""

    start: int
    stop: int
    members: list[tuple[M, int, int]]

    def values(self, data: Buffer) -> list[Buffer]:
        """The bytes of each member, of those of the batch."""
        view = memoryview(data)
        return [view[start - self.start : stop - self.start] for _, start, stop in self.members]


class OpenShard(ChunkSource):
    """A shard whose index has been read: the source of its inner chunks.

    Attributes:
        generation: the store's stamp of what the index is of.
        index: where its inner chunks are.
    """

    __slots__ = ("_cell", "_outer", "generation", "index", "inline", "width")

    def __init__(
        self,
        outer: ChunkSource,
        cell: Cell,
        generation: bytes,
        entries: NDArray[np.uint64],
        grid_shape: tuple[int, ...],
    ) -> None:
        self._outer = outer
        self._cell = cell
        self.generation = generation
        self.index = ShardIndex(entries, grid_shape)
        self.inline = outer.inline
        self.width = outer.width

    @staticmethod
    async def read_index(
        outer: ChunkSource, cell: Cell, sharded: Sharded, known: bytes | None = None
    ) -> tuple[ReadResult, NDArray[np.uint64] | None]:
        """Read the index of the shard at `cell`: what the store says, and the entries if there are.

        Nothing is read if the generation `known` is still stored.

        Raises:
            DataLossError: the index is truncated or corrupt.
        """
        try:
            result = await outer.read(cell, sharded.index_range(), if_not_equal=known)
        except OutOfRangeError as error:
            raise _too_short(error) from error
        return result, sharded.decode_index(result.value) if result.state == "value" else None

    @classmethod
    async def open(cls, outer: ChunkSource, cell: Cell, sharded: Sharded) -> OpenShard | None:
        """Read the index of the shard at `cell`; None if there is no shard.

        Raises:
            DataLossError: as `read_index`.
        """
        result, entries = await cls.read_index(outer, cell, sharded)
        if entries is None:
            return None
        return cls(outer, cell, result.stamp.generation, entries, sharded.grid_shape)

    async def fetch(self, start: int, stop: int) -> Buffer:
        """Bytes `[start, stop)` of the shard.

        Raises:
            ShardChangedError: it was replaced or deleted since its index was read.
            DataLossError: it is shorter than its index says.
        """
        (value,) = await self.fetch_several([ByteRange(start, stop)])
        return value

    async def fetch_several(self, ranges: Sequence[ByteRange]) -> list[Buffer]:
        """The same for several ranges, by one call where the store can.

        Raises:
            ShardChangedError, DataLossError: as `fetch`.
        """
        try:
            results = await self._outer.ranges(self._cell, ranges, self.generation)
        except OutOfRangeError as error:
            raise DataLossError(f"shard is shorter than its index says: {error}") from error
        if any(result.state != "value" for result in results):
            raise ShardChangedError
        return [result.value for result in results]

    def batches(
        self, wanted: Iterable[tuple[Cell, W]]
    ) -> tuple[list[Batch[tuple[Cell, W]]], list[tuple[Cell, W]]]:
        """Group inner chunks into few requests, and name those that are not stored.

        Each comes with what is wanted of it.
        """
        extent_of, number_of = self.index.extent, self.index.number
        stored, missing = [], []
        for each in wanted:
            extent = extent_of(number_of(each[0]))
            if extent is None:
                missing.append(each)
            else:
                stored.append((each, *extent))
        return _grouped(stored, _GAP_BYTES, BATCH_BYTES), missing

    def in_place(self, but: Collection[int]) -> dict[int, CopiedRange]:
        """Where the encoded inner chunks are, by their number, without those with some numbers."""
        return {
            number: CopiedRange(start, stop)
            for number, start, stop in self.index.extents()
            if number not in but
        }

    async def all_but(self, numbers: Collection[int]) -> dict[int, Buffer]:
        """The encoded inner chunks by their number, without a byte of those with `numbers`.

        Raises:
            ShardChangedError, DataLossError: as `fetch`.
        """
        return await self._fetch_all(self.in_place(numbers))

    async def some(self, numbers: Collection[int]) -> dict[int, Buffer]:
        """The encoded inner chunks with these numbers, if they are stored.

        Raises:
            ShardChangedError, DataLossError: as `fetch`.
        """
        extents = [(number, self.index.extent(number)) for number in numbers]
        return await self._fetch_all(
            {number: CopiedRange(*extent) for number, extent in extents if extent is not None}
        )

    async def _fetch_all(self, places: Mapping[int, CopiedRange]) -> dict[int, Buffer]:
        chunks: dict[int, Buffer] = {}

        async def fetch(batch: Batch[int]) -> None:
            values = batch.values(await self.fetch(batch.start, batch.stop))
            for (number, _, _), value in zip(batch.members, values, strict=True):
                chunks[number] = value

        # Not a byte is fetched that is not kept, and what is kept has to be held in any case.
        batches = _grouped([(number, at.start, at.stop) for number, at in places.items()], 0, None)
        await fan_out(self.inline, batches, fetch, count=len(batches), width=self.width)
        return chunks

    async def read(
        self,
        cell: Cell,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        extent = self.index.extent(self.index.number(cell))
        if extent is None:
            return ReadResult("missing")
        first, last = extent
        start, stop = byte_range.resolve(last - first)
        return ReadResult("value", await self.fetch(first + start, first + stop))

    def describe(self, cell: Cell) -> str:
        return f"inner chunk {cell} of shard {self._outer.describe(self._cell)}"


def _grouped(stored: list[tuple[M, int, int]], gap: int, most: int | None) -> list[Batch[M]]:
    """Ranges in batches: across gaps of so many bytes, up to a size."""
    stored.sort(key=lambda member: member[1])
    grouped: list[Batch[M]] = []
    for member in stored:
        _, start, stop = member
        last = grouped[-1] if grouped else None
        if (
            last is None
            or start - last.stop > gap
            or (most is not None and stop - last.start > most)
        ):
            grouped.append(Batch(start, stop, [member]))
        else:
            last.members.append(member)
            grouped[-1] = Batch(last.start, max(stop, last.stop), last.members)
    return grouped


def in_groups(batches: Sequence[Batch[M]], most: int) -> list[list[Batch[M]]]:
    """Neighbouring batches of up to so many bytes together; a larger one is by itself."""
    groups: list[list[Batch[M]]] = []
    size = 0
    for batch in batches:
        length = batch.stop - batch.start
        if not groups or size + length > most:
            groups.append([])
            size = 0
        groups[-1].append(batch)
        size += length
    return groups


@lru_cache
def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides of a C-ordered array."""
    strides = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def inner_number(cell: Cell, strides: tuple[int, ...]) -> int:
    """The C-order number of an inner chunk."""
    return sum(map(mul, cell, strides))


def inner_grid(sharded: Sharded) -> tuple[RegularAxis, ...]:
    """The grid of inner chunks within one shard."""
    inner = sharded.inner.chunk.shape
    return tuple(
        RegularAxis(count * size, size)
        for count, size in zip(sharded.grid_shape, inner, strict=True)
    )


def inner_array(
    outer: ChunkedArray,
    sharded: Sharded,
    source: ChunkSource,
    grid: tuple[RegularAxis, ...] | None = None,
) -> ChunkedArray:
    """The shard as a chunked array, with the policies of the array it belongs to."""
    grid = inner_grid(sharded) if grid is None else grid
    return ChunkedArray(
        source, grid, sharded.inner, outer.fill_missing, outer.store_fill, outer.limits
    )


def descend_axes(each: ChunkSlice) -> list[Axis]:
    """What is selected of one chunk, as axes relative to the chunk's start."""
    below: list[Axis] = []
    for number, piece in enumerate(each.pieces):
        inside, outside = piece.inside, piece.outside
        axis = each.axes[number] if each.axes else None
        if isinstance(axis, Gathered):
            assert isinstance(inside, tuple)
            assert isinstance(outside, np.ndarray)
            below.append(Gathered(axis.dims, inside, outside))
        else:
            assert isinstance(inside, slice)
            assert isinstance(outside, slice)
            dim = number if axis is None else axis.dim
            below.append(Strided(dim, inside.start, inside.step, outside.stop - outside.start))
    return below


def descend(each: ChunkSlice, view: Array) -> tuple[list[Axis], Array]:
    """`descend_axes`, and the part of the working view that it stands for.

    The view stays whole along gathered axes: their positions keep counting in it.
    """
    part = [
        piece.outside if isinstance(piece.outside, slice) else slice(None) for piece in each.pieces
    ]
    index: tuple[slice | EllipsisType, ...] = (..., *part)
    return descend_axes(each), view[index]


def is_worth_splicing(kept: Collection[CopiedRange]) -> bool:
    """Whether what is kept, in the order of the new shard, is in few pieces."""
    pieces = size = end = 0
    for part in kept:
        pieces += part.start != end or not pieces
        end = part.stop
        size += end - part.start
    return pieces > 0 and size >= pieces * _LEAST_KEPT
