"""Plans: a selection cut along a chunk grid into steps, one a chunk. Pure, no I/O.

Each axis is cut by itself into pieces; a step is one piece of every axis, so planning costs are
per axis and not per chunk, and steps are made lazily. A long axis is cut block by block whenever
its pieces are asked for, so that a plan takes no memory per chunk, however many lie in a line.
Strided axes give slices, gathered axes give sorted groups of positions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain, pairwise, product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._chunked.selection import Axis, Gathered, Strided

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from tensorstore_py._interface.chunk_grid import ChunkAxis

    Pieces: TypeAlias = "list[Piece] | LongAxis"

__all__ = ["Index", "LongAxis", "Piece", "Plan", "Step", "combined", "make_plan", "straight_step"]

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


class Step(NamedTuple):
    """One chunk's part of a read or a write.

    Attributes:
        cell: which chunk.
        inside: index of the selected elements in the chunk; gives the working view's axes.
        outside: index of the same elements in the working view.
        whole: `inside` is the entire chunk, in order.
        full: all of the chunk that lies within the array is selected.
        pieces: what the step was made of.
    """

    cell: tuple[int, ...]
    inside: tuple[Index, ...]
    outside: tuple[Index, ...]
    whole: bool
    full: bool
    pieces: tuple[Piece, ...]


class Plan:
    """All steps of one operation.

    Attributes:
        axes: what was cut.
        pieces: the pieces of each axis; a list if there are not very many.
        count: how many steps there are.
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

    def steps(self) -> Iterator[Step]:
        """The steps, lazily, in C order of the axes."""
        if self.straight:
            return self._straight_steps()
        return map(self._step, combined(self.pieces))

    def _straight_steps(self) -> Iterator[Step]:
        if not self.axes:
            # An ellipsis gives an array where an empty index would give the element.
            yield Step((), (...,), (), True, True, ())  # type: ignore[arg-type]
            return
        yield from map(straight_step, combined(self.pieces))

    def _step(self, pieces: tuple[Piece, ...]) -> Step:
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
        return Step(
            tuple(cell[dim] for dim in range(rank)),
            tuple(inside[dim] for dim in range(rank)),
            outside,
            False,
            all(piece.full for piece in pieces),
            pieces,
        )

    def _spread(self, index: Index, axis: int) -> Index:
        """`index` as an array that runs along `axis` of the open mesh."""
        if isinstance(index, slice):
            index = np.arange(index.start, index.stop, index.step or 1, dtype=np.intp)
        shape = [1] * len(self.axes)
        shape[axis] = index.size
        return index.reshape(shape)


def straight_step(pieces: tuple[Piece, ...]) -> Step:
    """The step that takes one piece of each axis of a straight plan."""
    cell, inside, outside, whole, full = zip(*pieces, strict=True)
    return Step(cell, inside, outside, False not in whole, False not in full, pieces)


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
        >>> [(step.cell, step.inside[0], step.whole) for step in plan.steps()]
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
    """Groups of positions, one for each chunk.

    Args:
        cells: the cells of each piece, an array for each dimension.
        insides: the coordinates in the chunk of all elements, an array for each dimension.
        positions: where they stand along the working view's axis.
        ends: piece `k` is of the elements from `ends[k]` to `ends[k + 1]`.
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
