"""Grids: cells cover a dimension without gaps, and arrays are treated as their elements are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._interface.chunk_grid import ChunkAxis, IrregularAxis, RegularAxis


@st.composite
def irregular(draw):
    runs = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), max_size=6))
    return IrregularAxis(draw(st.integers(0, sum(size * count for size, count in runs))), runs)


AXES = st.builds(RegularAxis, st.integers(0, 60), st.integers(1, 9)) | irregular()


@given(AXES)
def test_every_coordinate_is_in_one_cell(axis):
    covered = []
    for cell in range(axis.count):
        start = axis.start(cell)
        covered += [index for index in range(start, start + axis.size(cell)) if index < axis.extent]
        assert axis.cell(start) == cell
    assert covered == list(range(axis.extent))


@given(AXES, st.lists(st.integers(0, 59), max_size=12))
def test_many_at_once_are_as_one_by_one(axis, indices):
    indices = [index for index in indices if index < axis.extent]
    for shape in ((len(indices),), (len(indices), 1)):
        array = np.array(indices, np.int64).reshape(shape)
        cells = axis.cells(array)
        assert (cells.shape, cells.dtype) == (shape, np.int64)
        assert cells.reshape(-1).tolist() == [axis.cell(index) for index in indices]
        starts = axis.starts(cells)
        assert starts.shape == shape
        assert starts.reshape(-1).tolist() == [axis.start(axis.cell(index)) for index in indices]


@pytest.mark.parametrize(
    ("extent", "chunk", "count"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2), (8, 4, 2)]
)
def test_cells_that_stick_out_count(extent, chunk, count):
    assert RegularAxis(extent, chunk).count == count


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=6))
def test_runs_stand_for_one_chunk_after_the_other(runs):
    sizes = [size for size, count in runs for _ in range(count)]
    axis = IrregularAxis(sum(sizes), runs)
    assert axis.count == len(sizes)
    assert [axis.size(cell) for cell in range(axis.count)] == sizes
    assert [axis.start(cell) for cell in range(axis.count)] == np.cumsum([0, *sizes])[:-1].tolist()


def test_a_run_of_very_many_chunks_costs_nothing():
    axis = IrregularAxis(10**15, [(7, 1), (2, 10**14), (3, 2**62), (2**62, 2**62)])
    assert axis.cell(7 + 2 * 10**13) == 10**13 + 1
    assert axis.start(10**14) == 7 + 2 * (10**14 - 1)
    assert axis.size(axis.count - 1) == 3


def test_chunks_that_do_not_reach_the_end_are_refused():
    with pytest.raises(ValueError, match="chunks of 9 elements in all do not reach the extent 10"):
        IrregularAxis(10, [(4, 2), (1, 1)])


def test_the_last_chunk_is_stored_in_full():
    axis = RegularAxis(5, 4)
    assert [axis.size(cell) for cell in range(axis.count)] == [4, 4]


def test_an_axis_of_another_kind_says_only_where_its_cells_are():
    class Growing(ChunkAxis):
        """Cells of 1, 2, 4, 8 and so on."""

        def __init__(self, extent):
            self.extent = extent

        def cell(self, index):
            return (index + 1).bit_length() - 1

        def cells(self, indices):
            return np.log2(indices + 1).astype(np.int64)

        def start(self, cell):
            return 2**cell - 1

        def starts(self, cells):
            return 2**cells - 1

        def size(self, cell):
            return 2**cell

    assert [Growing(extent).count for extent in (0, 1, 2, 3, 4, 7, 8)] == [0, 1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 11])
@pytest.mark.parametrize("start", [0, 1, 7])
@pytest.mark.parametrize(
    "axis", [RegularAxis(40, 4), IrregularAxis(40, [(2, 5), (7, 3), (9, 1)])], ids=["same", "runs"]
)
def test_touched_cells_are_counted(axis, start, step):
    for count in range(1, (40 - start - 1) // step + 2):
        cells = {axis.cell(start + step * k) for k in range(count)}
        assert axis.touched(start, step, count) == len(cells)
