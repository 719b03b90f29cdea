"""Selections of what is no stored array: one in memory, or others that reads are handed on to.

An array in memory is a chunked one with a single chunk (`read_array`, `write_array`), so indexing
means the same everywhere. A driver over other drivers cuts a selection along a grid, whose axes may
be cut anywhere (`CutAxis`), and hands on each part as a transform (`partition`); a stored array
indexes decoded chunks. Nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._chunked.plan import ChunkSlice, Index, make_plan
from tensorstore_py._chunked.selection import Axis, Selection, Strided, select
from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap
from tensorstore_py._interface.chunk_grid import ChunkAxis, RegularAxis
from tensorstore_py._interface.new_array import new_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = [
    "CutAxis",
    "Part",
    "output_box",
    "partition",
    "parts",
    "read_array",
    "shifted",
    "write_array",
]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def read_array(array: Array, transform: IndexTransform, order: str) -> Array:
    """A fresh array of what `transform` selects.

    Args:
        array: zero-origin.
        transform: to positions in `array`, its bounds resolved and inside.
        order: memory order of the result, `"C"` or `"F"`.
    """
    out = new_array(transform.input_shape, array.dtype, order)
    if not out.size:
        return out
    selection = select(transform)
    view = selection.view(out)
    for step in make_plan(selection.axes, _one_cell(array)).slices():
        view[(..., *step.outside)] = array[step.inside]
    return selection.put(view, out)


def write_array(array: Array, transform: IndexTransform, source: Array) -> None:
    """Assign `source`, broadcast to the transform's input shape, to what `transform` selects.

    Args:
        array: zero-origin and writable.
        transform: to positions in `array`, its bounds resolved and inside.
        source: of the array's type.
    """
    selection = select(transform)
    view = selection.values(np.broadcast_to(source, transform.input_shape))
    if not view.size:
        return
    for step in make_plan(selection.axes, _one_cell(array)).slices():
        array[step.inside] = view[(..., *step.outside)]


def _one_cell(array: Array) -> tuple[RegularAxis, ...]:
    return tuple(RegularAxis(extent, max(1, extent)) for extent in array.shape)


class CutAxis(ChunkAxis):
    """A dimension that is cut at given places.

    Args:
        cuts: ascending; the first is 0 and the last the extent.

    Example:
        >>> axis = CutAxis(np.array([0, 3, 4, 10]))
        >>> axis.count, axis.cell(3), axis.start(2), axis.size(2)
        (3, 1, 4, 6)
    """

    __slots__ = ("_cuts", "extent")

    def __init__(self, cuts: NDArray[np.int64]) -> None:
        self._cuts = cuts
        self.extent = int(cuts[-1])

    def cell(self, index: int) -> int:
        return int(np.searchsorted(self._cuts, index, "right")) - 1

    def cells(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self._cuts, indices, "right").astype(np.int64) - 1

    def start(self, cell: int) -> int:
        return int(self._cuts[cell])

    def starts(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._cuts[cells]

    def size(self, cell: int) -> int:
        return int(self._cuts[cell + 1] - self._cuts[cell])


class Part(NamedTuple):
    """What a selection has in one cell.

    Attributes:
        cell: the cell.
        transform: from zero-based positions in the part to coordinates of what is cut.
        outside: where the part stands in the selection's working view.
    """

    cell: tuple[int, ...]
    transform: IndexTransform
    outside: tuple[Index, ...]


def partition(
    resolved: IndexTransform, origin: Sequence[int], grid: Sequence[ChunkAxis]
) -> tuple[Selection, list[Part]]:
    """A selection, and its parts.

    Args:
        resolved: what is selected; not empty.
        origin: the least coordinates of its `output_box`.
        grid: how that box is cut, from its origin on.

    Example:
        >>> wanted = IndexTransform(input_shape=[20])[10:18:2]
        >>> _, cut = partition(wanted, [10], [CutAxis(np.array([0, 3, 7]))])
        >>> [part.transform.output[0] for part in cut]
        [OutputIndexMap(offset=10, stride=2, input_dimension=0), \
OutputIndexMap(offset=14, stride=2, input_dimension=0)]
    """
    selection = select(shifted(resolved, origin))
    return selection, list(parts(selection.axes, grid, origin))


def parts(axes: Sequence[Axis], grid: Sequence[ChunkAxis], origin: Sequence[int]) -> Iterator[Part]:
    """The parts of a selection from the origin of a grid, in coordinates; lazily.

    Example:
        >>> from tensorstore_py._chunked.selection import Strided
        >>> grid = [CutAxis(np.array([0, 3, 10]))]
        >>> [part.transform.output[0] for part in parts([Strided(0, 1, 2, 4)], grid, [5])]
        [OutputIndexMap(offset=6, stride=2, input_dimension=0), \
OutputIndexMap(offset=8, stride=2, input_dimension=0)]
    """
    for step in make_plan(axes, grid).slices():
        yield Part(step.cell, _transform(step, axes, grid, origin), step.outside)


def _transform(
    step: ChunkSlice, axes: Sequence[Axis], grid: Sequence[ChunkAxis], origin: Sequence[int]
) -> IndexTransform:
    shape: list[int] = []
    output: dict[int, OutputIndexMap] = {}
    for place, (axis, piece) in enumerate(zip(axes, step.pieces, strict=True)):
        cell, inside = piece.cell, piece.inside
        if isinstance(axis, Strided):
            assert isinstance(inside, slice)
            assert isinstance(cell, int)
            shape.append(len(range(inside.start, inside.stop, inside.step)))
            output[axis.dim] = OutputIndexMap(
                input_dimension=place,
                offset=origin[axis.dim] + grid[axis.dim].start(cell) + inside.start,
                stride=inside.step,
            )
            continue
        assert isinstance(inside, tuple)
        assert isinstance(cell, tuple)
        shape.append(len(inside[0]))
        spread = [1] * len(axes)
        spread[place] = -1
        for dim, at, indices in zip(axis.dims, cell, inside, strict=True):
            output[dim] = OutputIndexMap(
                index_array=indices.reshape(spread), offset=origin[dim] + grid[dim].start(at)
            )
    return IndexTransform(input_shape=shape, output=[output[dim] for dim in range(len(output))])


def shifted(transform: IndexTransform, origin: Sequence[int]) -> IndexTransform:
    """The transform with `origin` taken off everything it gives.

    Example:
        >>> shifted(IndexTransform(input_inclusive_min=[5], input_shape=[2]), [5]).output[0]
        OutputIndexMap(offset=-5, stride=1, input_dimension=0)
    """
    moved = [OutputIndexMap(input_dimension=dim, offset=-low) for dim, low in enumerate(origin)]
    return IndexTransform(IndexDomain(rank=len(origin)), moved)[transform]


def output_box(transform: IndexTransform) -> tuple[tuple[int, int], ...]:
    """The least and, one beyond, the greatest coordinate of each output dimension.

    Args:
        transform: of finite bounds, and not empty.

    Example:
        >>> output_box(IndexTransform(input_shape=[10])[3:9:2])
        ((3, 8),)
    """
    box = []
    for each in transform.output:
        if each.index_array is not None:
            ends = [int(each.index_array.min()), int(each.index_array.max())]
        elif each.input_dimension is not None:
            low = transform.input_origin[each.input_dimension]
            ends = [low, low + transform.input_shape[each.input_dimension] - 1]
        else:
            ends = [0]
        found = sorted(each.offset + (each.stride or 0) * end for end in ends)
        box.append((found[0], found[-1] + 1))
    return tuple(box)
