"""Which chunks of a slice are stored, and how large they are: by listing keys, no value is read.

Where chunks are sharded a cell is a shard, which is what is stored under a key. A listing of many
keys ends early, after `_KEYS` of them, and says so.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tensorstore_py._api.begin import begin
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._index import OutputIndexMethod
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._viewer.levels import Level
from tensorstore_py.errors import MismatchError

__all__ = ["ChunkMap", "chunk_map"]

#: How many keys are looked at, and how many chunks of a slice are told of, at most.
_KEYS: Final = 500_000
_CELLS: Final = 40_000


class ChunkMap(NamedTuple):
    """What is stored of a slice.

    Attributes:
        cells: where each begins along the two dimensions, as offsets of level 0, and its bytes, -1
            if the store does not say.
        extent: of a cell, in elements of level 0.
        total: how many cells the slice has.
        keys: how many keys were looked at.
        complete: whether these are all.
    """

    cells: list[tuple[float, float, int]]
    extent: tuple[float, float]
    total: int
    keys: int
    complete: bool


class _Axis(NamedTuple):
    """A dimension of the stored array: which of the view it is, and where the view begins in it."""

    dim: int | None
    offset: int
    size: int
    origin: int


async def chunk_map(
    level: Level, rows: int | None, columns: int | None, at: tuple[int, ...]
) -> ChunkMap:
    """What is stored of a slice.

    Args:
        level: of a picture.
        rows: the dimension that is drawn downwards.
        columns: the dimension that is drawn to the right.
        at: offsets along all dimensions; those along the dimensions drawn do not matter.

    Raises:
        MismatchError: the array is not stored in chunks of its own, or is seen through a view that
            moves chunks about.
        UnsupportedError: the store cannot list its keys.
    """
    driver, place = level.store._driver, level.store.kvstore
    if not isinstance(driver, ChunkedDriver) or place is None:
        raise MismatchError("this array is not stored in chunks of its own")
    axes = _axes(level)
    drawn = (rows, columns)
    positions = _positions(level, at)
    extent = [1.0 if dim is None else _size(axes, dim) * level.factors[dim] for dim in drawn]
    size = [1.0 if dim is None else level.store.shape[dim] * level.factors[dim] for dim in drawn]
    cells: list[tuple[float, float, int]] = []
    store, path = place.store, place.path

    async def body() -> tuple[int, bool]:
        looked = 0
        async for entry in store.list(KeyRange.prefix(path)):
            if looked >= _KEYS or len(cells) >= _CELLS:
                return looked, False
            looked += 1
            cell = driver.cell_of(entry.key)
            if cell is not None and len(cell) == len(axes) and _is_in(cell, axes, positions, drawn):
                row, column = _corner(cell, axes, drawn, level)
                if _touches(row, extent[0], size[0]) and _touches(column, extent[1], size[1]):
                    cells.append((row, column, entry.size))
        return looked, True

    looked, complete = await begin(store.inline, body, None)
    return ChunkMap(cells, (extent[0], extent[1]), _count(axes, drawn, level), looked, complete)


def _axes(level: Level) -> list[_Axis]:
    """The dimensions of the stored array.

    Raises MismatchError: a view that is no rectangle of it, or has no regular chunks.
    """
    driver = level.store._driver
    layout = driver.schema.chunk_layout
    shape, origins = layout.write_chunk.shape, layout.grid_origin
    found = []
    for number, output in enumerate(level.store._transform.output):
        size = shape[number] if shape else None
        origin = (origins[number] if origins else 0) or 0
        if output.method is OutputIndexMethod.array or not size:
            raise MismatchError("chunks have no map where a view takes single positions of them")
        if output.method is OutputIndexMethod.constant:
            found.append(_Axis(None, output.offset, size, origin))
        elif output.stride == 1:
            found.append(_Axis(output.input_dimension, output.offset, size, origin))
        else:
            raise MismatchError("chunks have no map where a view takes every so many-th position")
    return found


def _positions(level: Level, at: tuple[int, ...]) -> list[int]:
    return [
        level.store.origin[dim] + int(offset / level.factors[dim]) for dim, offset in enumerate(at)
    ]


def _is_in(
    cell: tuple[int, ...],
    axes: list[_Axis],
    positions: list[int],
    drawn: tuple[int | None, int | None],
) -> bool:
    """Whether a cell is part of the slice."""
    for number, axis in zip(cell, axes, strict=True):
        if axis.dim is not None and axis.dim in drawn:
            continue
        position = axis.offset + (0 if axis.dim is None else positions[axis.dim])
        if (position - axis.origin) // axis.size != number:
            return False
    return True


def _touches(start: float, extent: float, size: float) -> bool:
    """Whether a cell shows something that the view has."""
    return start + extent > 0 and start < size


def _corner(
    cell: tuple[int, ...], axes: list[_Axis], drawn: tuple[int | None, int | None], level: Level
) -> tuple[float, float]:
    """Where a cell begins along the dimensions drawn, as offsets of level 0."""
    found = [0.0, 0.0]
    for number, axis in zip(cell, axes, strict=True):
        if axis.dim is not None and axis.dim in drawn:
            start = axis.origin + number * axis.size - axis.offset - level.store.origin[axis.dim]
            found[drawn.index(axis.dim)] = start * level.factors[axis.dim]
    return found[0], found[1]


def _size(axes: list[_Axis], dim: int) -> int:
    return next(axis.size for axis in axes if axis.dim == dim)


def _count(axes: list[_Axis], drawn: tuple[int | None, int | None], level: Level) -> int:
    total = 1
    for axis in axes:
        if axis.dim is None or axis.dim not in drawn:
            continue
        low = level.store.origin[axis.dim] + axis.offset - axis.origin
        high = low + level.store.shape[axis.dim]
        total *= max(0, -(-high // axis.size) - low // axis.size)
    return total
