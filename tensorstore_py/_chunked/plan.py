"""Plans: a selection cut along a chunk grid into slices, one a chunk. Pure, no I/O.

Each axis is cut by itself into pieces; a slice is one piece of every axis, so planning costs are
per axis and not per chunk, and slices are made lazily. A long axis is cut block by block whenever
its pieces are asked for, so that a plan takes no memory per chunk, however many lie in a line.
Strided axes give ranges, gathered axes give sorted groups of positions.

A small rectangle is cut at once, by arithmetic (`slices_of`). A test holds the two to each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain, pairwise, product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._chunked.selection import Axis, Gathered, Rectangle, Strided

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import EllipsisType
    from typing import TypeAlias

    from numpy.typing import NDArray

    from tensorstore_py._interface.chunk_grid import ChunkAxis

    Pieces: TypeAlias = "list[Piece] | LongAxis"

__all__ = [
    "ChunkSlice",
    "Index",
    "LongAxis",
    "Piece",
    "Plan",
    "cells_of",
    "combined",
    "make_plan",
    "slices_of",
    "straight_slice",
]

Index = slice | np.ndarray[tuple[int, ...], np.dtype[np.intp]]

#: An axis of so many pieces is cut once, a longer one in blocks of so many (some 300 bytes each).
_BLOCK: Final = 1024


class Piece(NamedTuple):
    """Where one axis meets one cell (or, when gathered, one cell of each of its dimensions).

    Attributes:
        cell: the cell, or the cells of all its dimensions in order.
        inside: what is selected, relative to the chunk's start: a slice, or one array a dimension.
        outside: where that stands along the working view's axis.
        whole: the entire chunk is selected, in order.
        full: everything of the chunk that lies within the array is selected.
    """

    cell: int | tuple[int, ...]
    inside: slice | tuple[NDArray[np.int64], ...]
    outside: Index
    whole: bool
    full: bool


class ChunkSlice(NamedTuple):
    """What one request wants of, or gives to, one chunk.

    Attributes:
        cell: which chunk.
        inside: index of the selected elements in the chunk; gives the working view's axes.
        outside: index of the same elements in the working view.
        whole: `inside` is the entire chunk, in order.
        full: all of the chunk that lies within the array is selected.
        pieces: what the slice was made of; nothing in the case of a rectangle, whose `inside` has
            a number for a dimension that the view has not.
        axes: what the pieces are of, where piece `k` is not of dimension `k`.
    """

    cell: tuple[int, ...]
    inside: tuple[Index | int, ...]
    outside: tuple[Index, ...]
    whole: bool = False
    full: bool = False
    pieces: tuple[Piece, ...] = ()
    axes: Sequence[Axis] = ()

    @property
    def position(self) -> tuple[Index | EllipsisType, ...]:
        """`outside` as an index of the view, whose leading axes nothing may depend on."""
        # A rectangle has no such axes. An ellipsis would have an element that is an array itself
        # broadcast, where there is one element.
        return (..., *self.outside) if self.pieces or not self.cell else self.outside

    @property
    def of_plan(self) -> bool:
        """Whether it was cut from axes; else it is a part of a rectangle."""
        return bool(self.pieces) or not self.cell


class Plan:
    """All slices of one operation.

    Attributes:
        axes: what was cut.
        pieces: the pieces of each axis; a list if there are not very many.
        count: how many slices there are.
        straight: each axis selects along the dimension of its own number, in order.
    """

    __slots__ = ("_dims", "_mesh", "axes", "count", "pieces", "straight")

    def __init__(self, axes: Sequence[Axis], pieces: Sequence[Pieces]) -> None:
        self.axes = axes
        self.pieces = pieces
        self.count = 1
        for each in pieces:
            self.count *= len(each)
        gathered = [axis for axis in axes if isinstance(axis, Gathered)]
        self.straight = not gathered and all(
            axis.dim == dim for dim, axis in enumerate(axes) if isinstance(axis, Strided)
        )
        # NumPy keeps axes in place under a single index array; more need an open mesh.
        self._mesh = len(gathered) > 1 or any(len(axis.dims) > 1 for axis in gathered)
        self._dims = [axis.dims if isinstance(axis, Gathered) else (axis.dim,) for axis in axes]

    def slices(self) -> Iterator[ChunkSlice]:
        """The slices, lazily, in C order of the axes."""
        if self.straight:
            return self._straight_slices()
        return map(self._slice, combined(self.pieces))

    def _straight_slices(self) -> Iterator[ChunkSlice]:
        if not self.axes:
            # An ellipsis gives an array where an empty index would give the element.
            yield ChunkSlice((), (...,), (), True, True, ())  # type: ignore[arg-type]
            return
        yield from map(straight_slice, combined(self.pieces))

    def _slice(self, pieces: tuple[Piece, ...]) -> ChunkSlice:
        cell: dict[int, int] = {}
        inside: dict[int, Index] = {}
        for axis, (dims, piece) in enumerate(zip(self._dims, pieces, strict=True)):
            if isinstance(piece.cell, tuple):
                cell.update(zip(dims, piece.cell, strict=True))
                for dim, index in zip(dims, piece.inside, strict=True):  # type: ignore[arg-type]
                    inside[dim] = self._spread(index, axis) if self._mesh else index
            else:
                cell[dims[0]] = piece.cell
                straight = piece.inside
                assert isinstance(straight, slice)
                inside[dims[0]] = self._spread(straight, axis) if self._mesh else straight
        outside = tuple(
            self._spread(piece.outside, axis) if self._mesh else piece.outside
            for axis, piece in enumerate(pieces)
        )
        rank = len(cell)
        return ChunkSlice(
            tuple(cell[dim] for dim in range(rank)),
            tuple(inside[dim] for dim in range(rank)),
            outside,
            False,
            all(piece.full for piece in pieces),
            pieces,
            self.axes,
        )

    def _spread(self, index: Index, axis: int) -> Index:
        """`index` as an array that runs along `axis` of the open mesh."""
        if isinstance(index, slice):
            index = np.arange(index.start, index.stop, index.step or 1, dtype=np.intp)
        shape = [1] * len(self.axes)
        shape[axis] = index.size
        return index.reshape(shape)


def straight_slice(pieces: tuple[Piece, ...]) -> ChunkSlice:
    """The slice that takes one piece of each axis of a straight plan."""
    cell, inside, outside, whole, full = zip(*pieces, strict=True)
    return ChunkSlice(cell, inside, outside, False not in whole, False not in full, pieces)


class LongAxis(ABC):
    """The pieces of an axis that has very many: made when they are asked for, and not kept."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """How many pieces there are."""

    @abstractmethod
    def blocks(self) -> Iterator[list[Piece]]:
        """All pieces in order, some at a time; each call begins anew."""

    def __iter__(self) -> Iterator[Piece]:
        return chain.from_iterable(self.blocks())


def combined(axes: Sequence[Pieces]) -> Iterator[tuple[Piece, ...]]:
    """One piece of each axis, in C order; lazily, with a block of a long axis at a time."""
    for place, axis in enumerate(axes):
        if isinstance(axis, LongAxis):
            return _combined(axes[:place], axis, axes[place + 1 :])
    return product(*axes)


def _combined(
    before: Sequence[Pieces], axis: LongAxis, after: Sequence[Pieces]
) -> Iterator[tuple[Piece, ...]]:
    for first in product(*before):
        fixed = [[piece] for piece in first]
        for block in axis.blocks():
            yield from combined([*fixed, block, *after])


def make_plan(axes: Sequence[Axis], grid: Sequence[ChunkAxis]) -> Plan:
    """Cut `axes` along `grid`.

    Example:
        >>> from tensorstore_py._interface.chunk_grid import RegularAxis
        >>> plan = make_plan([Strided(0, 3, 1, 6)], [RegularAxis(10, 4)])
        >>> [(each.cell, each.inside[0], each.whole) for each in plan.slices()]
        [((0,), slice(3, 4, 1), False), ((1,), slice(0, 4, 1), True), ((2,), slice(0, 1, 1), False)]
    """
    return Plan(
        axes,
        [
            _cut_strided(axis, grid[axis.dim])
            if isinstance(axis, Strided)
            else _cut_gathered(axis, [grid[dim] for dim in axis.dims])
            for axis in axes
        ],
    )


def _cut_strided(axis: Strided, along: ChunkAxis) -> Pieces:
    pieces, done = _cut_from(0, axis, along)
    return pieces if done == axis.count else _LongStrided(axis, along)


def _cut_from(done: int, axis: Strided, along: ChunkAxis) -> tuple[list[Piece], int]:
    """A block of pieces that begins with the element `done`, and the element after it."""
    pieces: list[Piece] = []
    start, step, count = axis.start, axis.step, axis.count
    for _ in range(_BLOCK):
        if done >= count:
            break
        first = start + done * step
        cell = along.cell(first)
        begin = along.start(cell)
        size = along.size(cell)
        stop = min(count, done + (begin + size - first + step - 1) // step)
        taken = stop - done
        low = first - begin
        high = low + (taken - 1) * step + 1
        unbroken = low == 0 and step == 1
        pieces.append(
            Piece(
                cell,
                slice(low, high, step),
                slice(done, stop, 1),
                unbroken and taken == size,
                unbroken and taken == min(size, along.extent - begin),
            )
        )
        done = stop
    return pieces, done


class _LongStrided(LongAxis):
    __slots__ = ("_along", "_axis", "_count")

    def __init__(self, axis: Strided, along: ChunkAxis) -> None:
        self._axis = axis
        self._along = along
        self._count = along.touched(axis.start, axis.step, axis.count)

    def __len__(self) -> int:
        return self._count

    def blocks(self) -> Iterator[list[Piece]]:
        done = 0
        while done < self._axis.count:
            pieces, done = _cut_from(done, self._axis, self._along)
            yield pieces


def _cut_gathered(axis: Gathered, along: Sequence[ChunkAxis]) -> Pieces:
    if not axis.positions.size:
        return []
    cells = [each.cells(index) for each, index in zip(along, axis.indices, strict=True)]
    label = cells[0]
    for each, more in zip(along[1:], cells[1:], strict=True):
        label = label * each.count + more
    order: NDArray[np.intp] | None = None
    if np.any(label[1:] < label[:-1]):
        order = np.argsort(label, kind="stable")
        label = label[order]
    bounds = np.flatnonzero(label[1:] != label[:-1]) + 1
    insides = [
        index - each.starts(cell)
        for each, index, cell in zip(along, axis.indices, cells, strict=True)
    ]
    positions = axis.positions
    if order is not None:
        insides = [inside[order] for inside in insides]
        positions = positions[order]
        cells = [cell[order] for cell in cells]
    ends = np.concatenate(([0], bounds, [label.size]))
    gathered = _LongGathered([cell[ends[:-1]] for cell in cells], insides, positions, ends)
    return gathered if len(gathered) > _BLOCK else list(gathered)


class _LongGathered(LongAxis):
    """Groups of positions, one for each chunk: piece `k` is of elements `ends[k]` to `ends[k + 1]`.

    `cells` and `insides` have an array for each dimension: of each piece, and of each element.
    """

    __slots__ = ("_cells", "_ends", "_insides", "_positions")

    def __init__(
        self,
        cells: Sequence[NDArray[np.int64]],
        insides: Sequence[NDArray[np.int64]],
        positions: NDArray[np.intp],
        ends: NDArray[np.intp],
    ) -> None:
        self._cells = cells
        self._insides = insides
        self._positions = positions
        self._ends = ends

    def __len__(self) -> int:
        return self._ends.size - 1

    def blocks(self) -> Iterator[list[Piece]]:
        insides, positions = self._insides, self._positions
        for first in range(0, len(self), _BLOCK):
            ends = self._ends[first : first + _BLOCK + 1].tolist()
            where = zip(
                *[cell[first : first + _BLOCK].tolist() for cell in self._cells], strict=True
            )
            yield [
                Piece(cell, tuple(inside[a:b] for inside in insides), positions[a:b], False, False)
                for cell, (a, b) in zip(where, pairwise(ends), strict=True)
            ]


def cells_of(rectangle: Rectangle, chunk: Sequence[int]) -> list[tuple[int, ...]]:
    """The chunks of that shape that a rectangle meets, in the order of `slices_of`.

    Example:
        >>> cells_of(Rectangle([3, 0], [9, 4], [True, True]), [4, 4])
        [(0, 0), (1, 0), (2, 0)]
    """
    firsts = []
    single = True
    for start, stop, size in zip(rectangle.starts, rectangle.stops, chunk, strict=True):
        first = start // size
        firsts.append(first)
        single = single and stop <= (first + 1) * size
    if single:
        return [tuple(firsts)]
    lasts = [(stop - 1) // size for stop, size in zip(rectangle.stops, chunk, strict=True)]
    return list(product(*[range(low, high + 1) for low, high in zip(firsts, lasts, strict=True)]))


def slices_of(rectangle: Rectangle, chunk: Sequence[int]) -> list[ChunkSlice]:
    """A rectangle cut into slices, one for each chunk of that shape that it meets.

    Example:
        >>> for each in slices_of(Rectangle([3], [9], [True]), [4]):
        ...     print(each.cell, each.inside, each.outside)
        (0,) (slice(3, 4, 1),) (slice(0, 1, 1),)
        (1,) (slice(0, 4, 1),) (slice(1, 5, 1),)
        (2,) (slice(0, 1, 1),) (slice(5, 6, 1),)
    """
    cell: list[int] = []
    inside: list[slice | int] = []
    whole = True
    for start, stop, kept, size in zip(*rectangle, chunk, strict=True):
        first = start // size
        begin = first * size
        if stop > begin + size:
            return _slices_of_many(rectangle, chunk)
        cell.append(first)
        inside.append(slice(start - begin, stop - begin, 1) if kept else start - begin)
        whole = whole and kept and stop - start == size
    return [ChunkSlice(tuple(cell), tuple(inside), (), whole)]  # all of the view


def _slices_of_many(rectangle: Rectangle, chunk: Sequence[int]) -> list[ChunkSlice]:
    pieces: list[list[tuple[int, slice | int, slice | None, bool]]] = []
    for start, stop, kept, size in zip(*rectangle, chunk, strict=True):
        if not kept:
            pieces.append([(start // size, start % size, None, False)])
            continue
        along: list[tuple[int, slice | int, slice | None, bool]] = []
        for cell in range(start // size, (stop - 1) // size + 1):
            begin = cell * size
            low, high = max(start, begin), min(stop, begin + size)
            inside = slice(low - begin, high - begin, 1)
            along.append((cell, inside, slice(low - start, high - start, 1), high - low == size))
        pieces.append(along)
    slices = []
    for taken in product(*pieces):
        cell, inside, outside, whole = zip(*taken, strict=True)
        if None in outside:
            outside = tuple([each for each in outside if each is not None])
        slices.append(ChunkSlice(cell, inside, outside, False not in whole))
    return slices
