import numpy as np
import pytest

from tensorstore_py._chunked.parts import CutAxis, output_box, parts, shifted
from tensorstore_py._chunked.selection import select
from tensorstore_py._index import IndexTransform, d

GRID = (CutAxis(np.array([0, 3, 4, 10])), CutAxis(np.array([0, 5, 12])))
DATA = np.arange(120).reshape(10, 12)


def whole():
    return IndexTransform(input_shape=[10, 12])


def test_an_axis_is_cut_anywhere():
    axis = GRID[0]
    assert axis.extent == 10
    assert [axis.cell(place) for place in range(10)] == [0, 0, 0, 1, 2, 2, 2, 2, 2, 2]
    assert axis.cells(np.arange(10)).tolist() == [axis.cell(place) for place in range(10)]
    assert axis.starts(np.array([2, 0])).tolist() == [axis.start(2), axis.start(0)] == [4, 0]
    assert [axis.size(cell) for cell in range(axis.count)] == [3, 1, 6]


@pytest.mark.parametrize(
    "transform",
    [
        whole(),
        whole()[2:9:3, 4:6],
        whole()[8:2:-1],
        whole()[5],
        whole()[[7, 0, 3, 3], 2:],
        whole()[[1, 5], [4, 9]],
        whole().oindex[[9, 1, 5], [11, 0]],
        whole().vindex[[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        whole()[d[0, 1].diagonal],
        whole()[None, 3, ..., None],
        IndexTransform(input_shape=[2, 3], output=whole()[5, 5].output),
    ],
    ids=repr,
)
def test_the_parts_make_up_the_whole(transform):
    selection = select(transform)
    out = np.full(transform.input_shape, -1)
    view = selection.view(out)
    seen = set()
    for part in parts(selection.axes, GRID):
        assert part.cell not in seen
        seen.add(part.cell)
        rows, columns = (_coordinates(part.transform, dim) for dim in range(2))
        for cell, axis, found in zip(part.cell, GRID, (rows, columns), strict=True):
            assert {axis.cell(int(each)) for each in found.flat} == {cell}
        view[(..., *part.outside)] = DATA[rows, columns]
    if not np.may_share_memory(view, out):
        selection.put(view, out)
    rows, columns = (_coordinates(transform, dim) for dim in range(2))
    np.testing.assert_array_equal(out, np.broadcast_to(DATA[rows, columns], out.shape))


def _coordinates(transform, dim):
    each = transform.output[dim]
    if each.index_array is not None:
        found = each.offset + each.stride * each.index_array
    elif each.input_dimension is None:
        found = np.full((1,) * transform.input_rank, each.offset)
    else:
        low = transform.input_origin[each.input_dimension]
        line = low + np.arange(transform.input_shape[each.input_dimension])
        spread = [1] * transform.input_rank
        spread[each.input_dimension] = -1
        found = (each.offset + each.stride * line).reshape(spread)
    return np.broadcast_to(found, transform.input_shape)


def test_a_part_of_an_array_without_dimensions():
    assert [part.cell for part in parts(select(IndexTransform(input_rank=0)).axes, ())] == [()]


@pytest.mark.parametrize(
    ("transform", "box"),
    [
        (whole(), ((0, 10), (0, 12))),
        (whole()[2:9:3, 4], ((2, 9), (4, 5))),
        (whole()[8:2:-2, ::-1], ((4, 9), (0, 12))),
        (whole()[[7, 2], 1:3], ((2, 8), (1, 3))),
        (shifted(whole(), [3, -4]), ((-3, 7), (4, 16))),
    ],
    ids=repr,
)
def test_the_box_of_what_is_selected(transform, box):
    assert output_box(transform) == box
