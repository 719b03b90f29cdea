"""Runs: neighbouring small chunks that are fetched, decoded and copied together, or the way back.

A small chunk is a block of short lines in the caller's memory, and its neighbour along the last
axis has the lines that go on where these end. A run of them is decoded to staging memory, chunk
after chunk, and copied from there in one go: longer lines, fewer calls, and fewer times that
threads hand the interpreter to each other. Only chunks that are selected from end to end along the
run's axis make runs; all others are runs of one.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._chunked.plan import LongAxis, combined, straight_slice
from tensorstore_py._runtime.buffers import staging_buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tensorstore_py._chunked.array import Array, Cell
    from tensorstore_py._chunked.plan import ChunkSlice, Index, Piece, Plan
    from tensorstore_py._interface.codec import ChunkType

__all__ = ["RUN_BYTES", "ChunkRun", "interleaved", "run_length", "runs", "runs_of", "staging"]

#: What is fetched together decodes to so much at most: it stays in a core's own cache until it is
#: copied.
RUN_BYTES: Final = 2**19

#: Fewer chunks than these are not worth the trouble, and more of them are no better.
_LEAST: Final = 2
_MOST: Final = 512


class ChunkRun(NamedTuple):
    """Neighbours along one axis of a straight plan.

    Attributes:
        before: the piece of each axis before that, the same for all chunks.
        along: the piece of each chunk along it; selected from end to end if there are several.
        after: the piece of each axis after it.
    """

    before: tuple[Piece, ...]
    along: Sequence[Piece]
    after: tuple[Piece, ...]

    @property
    def whole(self) -> bool:
        """Whether all of every chunk is selected."""
        return all(piece.whole for piece in (*self.before, self.along[0], *self.after))

    @property
    def inside(self) -> tuple[Index, ...]:
        """What is selected of each chunk."""
        return tuple([piece.inside for piece in (*self.before, self.along[0], *self.after)])  # type: ignore[misc]

    def cells(self) -> list[Cell]:
        """Which chunks."""
        before: Cell = tuple([piece.cell for piece in self.before])  # type: ignore[misc]
        after: Cell = tuple([piece.cell for piece in self.after])  # type: ignore[misc]
        return [(*before, piece.cell, *after) for piece in self.along]  # type: ignore[arg-type]

    def slices(self) -> Iterator[ChunkSlice]:
        """The same chunk by chunk."""
        for piece in self.along:
            yield straight_slice((*self.before, piece, *self.after))

    def is_in_place(self, view: Array) -> bool:
        """Whether each whole chunk is one piece of the view's memory: staging gains nothing."""
        return self.whole and bool(view[next(self.slices()).outside].flags.c_contiguous)


def run_length(plan: Plan, chunk_bytes: int) -> int:
    """How many chunks of that size a run of the plan has at most; 0 where it has no runs."""
    if not plan.straight or plan.count < _LEAST or not chunk_bytes:
        return 0
    return max(1, min(RUN_BYTES // chunk_bytes, _MOST, len(plan.pieces[_axis(plan)])))


def runs(plan: Plan, most: int) -> Iterator[ChunkRun]:
    """All slices of a straight plan as runs of at most so many chunks; lazily.

    Example:
        >>> from tensorstore_py._chunked.plan import make_plan
        >>> from tensorstore_py._chunked.selection import Strided
        >>> from tensorstore_py._interface.chunk_grid import RegularAxis
        >>> plan = make_plan([Strided(0, 1, 1, 9)], [RegularAxis(10, 2)])
        >>> [run.cells() for run in runs(plan, 2)]
        [[(0,)], [(1,), (2,)], [(3,), (4,)]]
    """
    axis = _axis(plan)
    pieces = plan.pieces[axis]
    along: Iterable[Sequence[Piece]]
    along = () if isinstance(pieces, LongAxis) else list(_stretches(pieces, most))
    after = next(combined(plan.pieces[axis + 1 :]))
    for before in combined(plan.pieces[:axis]):
        if isinstance(pieces, LongAxis):
            along = chain.from_iterable(_stretches(block, most) for block in pieces.blocks())
        for stretch in along:
            yield ChunkRun(before, stretch, after)


def runs_of(plan: Plan, slices: Iterable[ChunkSlice], most: int) -> Iterator[ChunkRun]:
    """Some slices of a straight plan, as runs of those that follow each other; lazily."""
    axis = _axis(plan)
    run: list[ChunkSlice] = []
    for each in slices:
        if run and len(run) < most and _follows(run[-1], each, axis):
            run.append(each)
            continue
        if run:
            yield _run(run, axis)
        run = [each]
    if run:
        yield _run(run, axis)


def staging(chunk: ChunkType, count: int) -> tuple[memoryview, Array]:
    """This thread's staging memory for so many chunks one after the other, and as an array of them.

    Valid until the next call here.
    """
    memory = staging_buffer(count * chunk.size_bytes)
    return memory, np.ndarray((count, *chunk.shape), chunk.dtype, memory)


def interleaved(view: Array, run: ChunkRun) -> Array:
    """The part of a working view that a run stands for, as `staging` has it: chunks first.

    It shares memory with the view. Leading axes of the view that the plan has none for stand
    before all.
    """
    along = run.along
    stretch = slice(along[0].outside.start, along[-1].outside.stop, 1)  # type: ignore[union-attr]
    part = view[(..., *[p.outside for p in run.before], stretch, *[p.outside for p in run.after])]
    free = part.ndim - len(run.before) - len(run.after) - 1
    at, count = free + len(run.before), len(along)
    shape = part.shape
    # To split an axis in two is always possible without a copy.
    split = part.reshape(*shape[:at], count, shape[at] // count, *shape[at + 1 :])
    return split.transpose(*range(free), at, *range(free, at), *range(at + 1, split.ndim))


def _axis(plan: Plan) -> int:
    """Along which axis chunks follow each other: the last one that has several."""
    axis = len(plan.pieces) - 1
    while axis > 0 and len(plan.pieces[axis]) == 1:
        axis -= 1
    return axis


def _stretches(pieces: Sequence[Piece], most: int) -> Iterator[Sequence[Piece]]:
    """Pieces that are selected from end to end together, in parts about as long as each other."""
    begin = 0
    while begin < len(pieces):
        end = begin + 1
        if pieces[begin].whole:
            while end < len(pieces) and _meet(pieces[end - 1], pieces[end]):
                end += 1
        parts = -(-(end - begin) // most)
        cuts = [begin + (end - begin) * part // parts for part in range(parts + 1)]
        for low, high in pairwise(cuts):
            yield pieces[low:high]
        begin = end


def _meet(last: Piece, first: Piece) -> bool:
    """Whether a piece goes on where another ends, and both are selected from end to end."""
    return last.whole and first.whole and last.outside.stop == first.outside.start  # type: ignore[union-attr]


def _follows(before: ChunkSlice, after: ChunkSlice, axis: int) -> bool:
    theirs, ours = before.pieces, after.pieces
    return (
        _meet(theirs[axis], ours[axis])
        and theirs[:axis] == ours[:axis]
        and theirs[axis + 1 :] == ours[axis + 1 :]
    )


def _run(slices: Sequence[ChunkSlice], axis: int) -> ChunkRun:
    pieces = slices[0].pieces
    return ChunkRun(pieces[:axis], [each.pieces[axis] for each in slices], pieces[axis + 1 :])
