"""One level down: a shard is a chunked array whose source is a part of one key.

A shard is opened by reading its index. Its chunks are then byte ranges of the same generation:
if the shard is replaced in between, `ShardChangedError` makes the reader begin again, so one
read never mixes two versions of a shard. Pure helpers turn an outer step into the inner
selection, and inner steps into few requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from tensorstore_py._chunked.array import ChunkedArray
from tensorstore_py._chunked.selection import Axis, Gathered, Strided
from tensorstore_py._chunked.source import ChunkSource
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.kept import Kept
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._interface.sharded import MISSING
from tensorstore_py._runtime.attempts import CONFLICTS
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import DataLossError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
    from types import EllipsisType
    from typing import Any

    from numpy.typing import NDArray

    from tensorstore_py._chunked.plan import Step
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._interface.sharded import Sharded
    from tensorstore_py._runtime.attempts import Attempts

__all__ = [
    "Batch",
    "OpenShard",
    "ShardChangedError",
    "batches",
    "descend",
    "descend_axes",
    "inner_array",
    "inner_grid",
    "is_worth_splicing",
    "stored_chunks",
    "unchanged",
]

T = TypeVar("T")
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: Pieces of a shard that are kept are so large at least, or it is read and written as a whole.
_LEAST_KEPT: Final = 2**16

#: Neighbouring inner chunks are fetched together up to this size, across gaps up to `_GAP`.
_BATCH_BYTES: Final = 2 * 2**20
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
    """Do something with one version of a shard, again if it is replaced meanwhile.

    Args:
        step: does it from the beginning.
        action: what is done, as a verb.
        where: names the shard.
        inline: the temperament of `step`.

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


class OpenShard(ChunkSource):
    """A shard whose index has been read: the source of its inner chunks.

    Attributes:
        generation: the store's stamp of what the index is of.
    """

    __slots__ = ("_cell", "_index", "_outer", "_strides", "generation", "inline", "width")

    def __init__(
        self,
        outer: ChunkSource,
        cell: Cell,
        generation: bytes,
        index: NDArray[np.uint64],
        grid_shape: tuple[int, ...],
    ) -> None:
        self._outer = outer
        self._cell = cell
        self.generation = generation
        self._index = index
        self._strides = c_strides(grid_shape)
        self.inline = outer.inline
        self.width = outer.width

    @classmethod
    async def open(cls, outer: ChunkSource, cell: Cell, sharded: Sharded) -> OpenShard | None:
        """Read the index of the shard at `cell`; None if there is no shard.

        Raises:
            DataLossError: the index is truncated or corrupt.
        """
        try:
            result = await outer.read(cell, sharded.index_range())
        except OutOfRangeError as error:
            raise DataLossError(f"shard is too short for its index: {error}") from error
        if result.state == "missing":
            return None
        index = sharded.decode_index(result.value)
        return cls(outer, cell, result.stamp.generation, index, sharded.grid_shape)

    def extent_of(self, cell: Cell) -> tuple[int, int] | None:
        """`[start, stop)` of an inner chunk in the shard's bytes; None if it is not stored."""
        number = 0
        for position, stride in zip(cell, self._strides, strict=True):
            number += position * stride
        offset, size = self._index[number].tolist()
        if offset == MISSING and size == MISSING:
            return None
        return offset, offset + size

    async def fetch(self, start: int, stop: int) -> Buffer:
        """Bytes `[start, stop)` of the shard.

        Raises:
            ShardChangedError: it was replaced or deleted since its index was read.
            DataLossError: it is shorter than its index says.
        """
        try:
            result = await self._outer.read(
                self._cell, ByteRange(start, stop), if_equal=self.generation
            )
        except OutOfRangeError as error:
            raise DataLossError(f"shard is shorter than its index says: {error}") from error
        if result.state != "value":
            raise ShardChangedError
        return result.value

    def all_in_place(self, but: Collection[int]) -> dict[int, Kept]:
        """Where the encoded inner chunks are, by their number, without those with some numbers."""
        return {
            number: Kept(offset, offset + size)
            for number, (offset, size) in enumerate(self._index.tolist())
            if number not in but and not (offset == MISSING and size == MISSING)
        }

    async def all_but(self, numbers: Collection[int]) -> dict[int, Buffer]:
        """The encoded inner chunks by their number, without a byte of those with `numbers`.

        Raises:
            ShardChangedError, DataLossError: as `fetch`.
        """
        return await self._fetch_all(self.all_in_place(numbers))

    async def some(self, numbers: Collection[int]) -> dict[int, Buffer]:
        """The encoded inner chunks with these numbers, if they are stored.

        Raises:
            ShardChangedError, DataLossError: as `fetch`.
        """
        places = {}
        for number in numbers:
            offset, size = self._index[number].tolist()
            if not (offset == MISSING and size == MISSING):
                places[number] = Kept(offset, offset + size)
        return await self._fetch_all(places)

    async def _fetch_all(self, places: Mapping[int, Kept]) -> dict[int, Buffer]:
        wanted = sorted((place.start, place.stop, number) for number, place in places.items())
        runs: list[list[tuple[int, int, int]]] = []
        end = -1
        for start, stop, number in wanted:
            if start > end:
                runs.append([])
            end = max(end, stop)
            runs[-1].append((start, stop, number))
        chunks: dict[int, Buffer] = {}

        async def fetch(run: list[tuple[int, int, int]]) -> None:
            first = run[0][0]
            data = memoryview(await self.fetch(first, max(stop for _, stop, _ in run)))
            for start, stop, number in run:
                chunks[number] = data[start - first : stop - first]

        await fan_out(self.inline, runs, fetch, count=len(runs), width=self.width)
        return chunks

    async def read(
        self,
        cell: Cell,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        extent = self.extent_of(cell)
        if extent is None:
            return ReadResult("missing")
        first, last = extent
        start, stop = byte_range.resolve(last - first)
        return ReadResult("value", await self.fetch(first + start, first + stop))

    def describe(self, cell: Cell) -> str:
        return f"inner chunk {cell} of shard {self._outer.describe(self._cell)}"


class InCell(Protocol):
    """Something that is about one chunk."""

    @property
    def cell(self) -> Cell:
        """Which chunk."""


C = TypeVar("C", bound=InCell)


class Batch(NamedTuple, Generic[C]):
    """Inner chunks that are fetched in one request: `[start, stop)` of the shard's bytes."""

    start: int
    stop: int
    members: list[tuple[C, int, int]]


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides of a C-ordered array."""
    strides = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def inner_grid(sharded: Sharded) -> tuple[RegularAxis, ...]:
    """The grid of inner chunks within one shard."""
    inner = sharded.inner.chunk.shape
    return tuple(
        RegularAxis(count * size, size)
        for count, size in zip(sharded.grid_shape, inner, strict=True)
    )


def inner_array(outer: ChunkedArray, sharded: Sharded, source: ChunkSource) -> ChunkedArray:
    """The shard as a chunked array, with the policies of the array it belongs to."""
    grid = inner_grid(sharded)
    return ChunkedArray(
        source, grid, sharded.inner, outer.fill_missing, outer.store_fill, outer.limits
    )


def descend_axes(axes: Sequence[Axis], step: Step) -> list[Axis]:
    """The part of a selection that falls into one chunk, relative to the chunk's start."""
    below: list[Axis] = []
    for axis, piece in zip(axes, step.pieces, strict=True):
        inside, outside = piece.inside, piece.outside
        if isinstance(axis, Strided) and isinstance(inside, slice) and isinstance(outside, slice):
            below.append(Strided(axis.dim, inside.start, inside.step, outside.stop - outside.start))
        elif isinstance(axis, Gathered) and isinstance(inside, tuple):
            assert isinstance(outside, np.ndarray)
            below.append(Gathered(axis.dims, inside, outside))
    return below


def descend(axes: Sequence[Axis], step: Step, view: Array) -> tuple[list[Axis], Array]:
    """`descend_axes`, and the part of the working view that it stands for.

    The view stays whole along gathered axes: their positions keep counting in it.
    """
    part = [
        piece.outside if isinstance(piece.outside, slice) else slice(None) for piece in step.pieces
    ]
    index: tuple[slice | EllipsisType, ...] = (..., *part)
    return descend_axes(axes, step), view[index]


def batches(shard: OpenShard, steps: Iterable[C]) -> tuple[list[Batch[C]], list[C]]:
    """Group inner steps into few requests, and name those whose chunks are not stored."""
    stored = []
    missing = []
    for step in steps:
        extent = shard.extent_of(step.cell)
        if extent is None:
            missing.append(step)
        else:
            stored.append((step, *extent))
    stored.sort(key=lambda member: member[1])
    grouped: list[Batch[C]] = []
    for member in stored:
        _, start, stop = member
        last = grouped[-1] if grouped else None
        near = last is not None and start - last.stop <= _GAP_BYTES
        if last is None or not near or stop - last.start > _BATCH_BYTES:
            grouped.append(Batch(start, stop, [member]))
        else:
            last.members.append(member)
            grouped[-1] = Batch(last.start, max(stop, last.stop), last.members)
    return grouped, missing


def is_worth_splicing(kept: Collection[Kept]) -> bool:
    """Whether what is kept, in the order of the new shard, is in few pieces."""
    pieces = size = end = 0
    for part in kept:
        pieces += part.start != end or not pieces
        end = part.stop
        size += end - part.start
    return pieces > 0 and size >= pieces * _LEAST_KEPT


def stored_chunks(sharded: Sharded, stored: Buffer | None) -> dict[int, Buffer]:
    """The encoded inner chunks of a stored shard, by their number."""
    if stored is None:
        return {}
    data = memoryview(stored)
    try:
        start, stop = sharded.index_range().resolve(data.nbytes)
    except OutOfRangeError as error:
        raise DataLossError(f"shard is too short for its index: {error}") from error
    chunks: dict[int, Buffer] = {}
    for number, (offset, size) in enumerate(sharded.decode_index(data[start:stop]).tolist()):
        if offset == MISSING and size == MISSING:
            continue
        if offset + size > data.nbytes:
            raise DataLossError(f"shard is shorter ({data.nbytes} bytes) than its index says")
        chunks[number] = data[offset : offset + size]
    return chunks
