"""How arrays are cut into chunks, and what the chunks are called."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import UnsupportedError
from tensorstore_py.plugin.driver import (
    ChunkAxis,
    ChunkGridModel,
    IrregularAxis,
    RegularAxis,
    SeparatedKeys,
)


@st.composite
def irregular(draw):
    runs = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), max_size=6))
    return IrregularAxis(draw(st.integers(0, sum(size * count for size, count in runs))), runs)


AXES = st.builds(RegularAxis, st.integers(0, 60), st.integers(1, 9)) | irregular()


class TestAxis:
    @given(AXES)
    def test_every_coordinate_is_in_one_cell(self, axis):
        covered = []
        for cell in range(axis.count):
            start = axis.start(cell)
            covered += [
                index for index in range(start, start + axis.size(cell)) if index < axis.extent
            ]
            assert axis.cell(start) == cell
        assert covered == list(range(axis.extent))

    @given(AXES, st.lists(st.integers(0, 59), max_size=12))
    def test_many_at_once_are_as_one_by_one(self, axis, indices):
        indices = [index for index in indices if index < axis.extent]
        for shape in ((len(indices),), (len(indices), 1)):
            array = np.array(indices, np.int64).reshape(shape)
            cells = axis.cells(array)
            assert (cells.shape, cells.dtype) == (shape, np.int64)
            assert cells.reshape(-1).tolist() == [axis.cell(index) for index in indices]
            starts = axis.starts(cells)
            assert starts.shape == shape
            assert starts.reshape(-1).tolist() == [
                axis.start(axis.cell(index)) for index in indices
            ]

    @pytest.mark.parametrize(
        ("extent", "chunk", "count"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2), (8, 4, 2)]
    )
    def test_cells_that_stick_out_count(self, extent, chunk, count):
        assert RegularAxis(extent, chunk).count == count

    @given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=6))
    def test_runs_stand_for_one_chunk_after_the_other(self, runs):
        sizes = [size for size, count in runs for _ in range(count)]
        axis = IrregularAxis(sum(sizes), runs)
        assert axis.count == len(sizes)
        assert [axis.size(cell) for cell in range(axis.count)] == sizes
        assert [axis.start(cell) for cell in range(axis.count)] == np.cumsum([0, *sizes])[
            :-1
        ].tolist()

    def test_a_run_of_very_many_chunks_costs_nothing(self):
        axis = IrregularAxis(10**15, [(7, 1), (2, 10**14), (3, 2**62), (2**62, 2**62)])
        assert axis.cell(7 + 2 * 10**13) == 10**13 + 1
        assert axis.start(10**14) == 7 + 2 * (10**14 - 1)
        assert axis.size(axis.count - 1) == 3

    def test_chunks_that_do_not_reach_the_end_are_refused(self):
        with pytest.raises(
            ValueError, match="chunks of 9 elements in all do not reach the extent 10"
        ):
            IrregularAxis(10, [(4, 2), (1, 1)])

    def test_the_last_chunk_is_stored_in_full(self):
        axis = RegularAxis(5, 4)
        assert [axis.size(cell) for cell in range(axis.count)] == [4, 4]

    def test_an_axis_of_another_kind_says_only_where_its_cells_are(self):
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
        "axis",
        [RegularAxis(40, 4), IrregularAxis(40, [(2, 5), (7, 3), (9, 1)])],
        ids=["same", "runs"],
    )
    def test_touched_cells_are_counted(self, axis, start, step):
        for count in range(1, (40 - start - 1) // step + 2):
            cells = {axis.cell(start + step * k) for k in range(count)}
            assert axis.touched(start, step, count) == len(cells)


class Sized(ChunkGridModel):
    grid_id: ClassVar[str] = "sized"

    said: tuple[tuple[int, ...], ...] = ()

    @property
    def sizes(self) -> tuple[frozenset[int], ...]:
        return tuple(map(frozenset, self.said))


class TestModel:
    def test_shapes_follow_from_sizes(self) -> None:
        grid = Sized(said=((6, 9, 12), (4,), ()))

        assert (grid.rank, grid.is_even) == (3, False)
        assert (grid.shape, grid.largest, grid.common) == ((None, 4, None), (12, 4, 1), (3, 4, 1))

    def test_one_size_a_dimension_is_even(self) -> None:
        assert Sized(said=((4,), (5,))).is_even
        assert Sized().is_even

    def test_by_default_a_grid_covers_everything_and_stays_as_it_is(self) -> None:
        grid = Sized(said=((4,),))

        grid.check_reaches([10**9])
        assert grid.resized([10**9], [1]) is grid
        assert grid.cuts_like(Sized(said=((4,),)))
        assert not grid.cuts_like(Sized(said=((5,),)))

    def test_a_name_alone_cuts_nothing(self) -> None:
        class Named(ChunkGridModel):
            grid_id: ClassVar[str] = "named"

        with pytest.raises(UnsupportedError, match='"named" only exists as a name'):
            _ = Named().sizes
        with pytest.raises(UnsupportedError, match='"named" only exists as a name'):
            Named().axes([4])


RULES = st.sampled_from([("/", "c/", "c"), (".", "c.", "c"), (".", "", "0"), ("/", "", "0")])


CELLS = st.lists(st.integers(0, 10**12), max_size=5).map(tuple)


class TestKeys:
    @given(RULES, CELLS)
    def test_a_name_is_read_back_as_the_cell_it_stands_for(self, rule, cell):
        separator, prefix, scalar = rule
        keys = SeparatedKeys(len(cell), separator, prefix=prefix, scalar=scalar)
        assert keys.decode(keys.encode(cell)) == cell

    @given(RULES, st.integers(1, 3), st.text("0123456789c./-x", max_size=8))
    def test_what_is_read_as_a_cell_is_its_name(self, rule, rank, name):
        separator, prefix, scalar = rule
        keys = SeparatedKeys(rank, separator, prefix=prefix, scalar=scalar)
        cell = keys.decode(name)
        assert cell is None or keys.encode(cell) == name

    @pytest.mark.parametrize(
        "name",
        ["", "c", "c/", "c/1", "c/1/2/3", "c/01/2", "c/-1/2", "c/+1/2", "c/1_0/2", "c/ 1/2",
         "c/1/2/", "c//2", "c/1.2", "1/2", "d/1/2", "c/١/2", "c/²/2", "zarr.json"],
    )  # fmt: skip
    def test_other_names_stand_for_nothing(self, name):
        assert SeparatedKeys(2, "/", prefix="c/", scalar="c").decode(name) is None

    @pytest.mark.parametrize(("prefix", "scalar"), [("c/", "c"), ("", "0")])
    def test_rank_zero_has_one_name(self, prefix, scalar):
        keys = SeparatedKeys(0, "/", prefix=prefix, scalar=scalar)
        assert keys.encode(()) == scalar
        assert keys.decode(scalar) == ()
        assert keys.decode(prefix) is None or prefix == scalar
        assert keys.decode(scalar + "0") is None

    def test_names_by_the_outer_dimensions_only(self):
        store = ts.KvStore.open("memory://").result()
        metadata = {"dtype": [["x", "<u2", [3]]], "chunks": [2, 8]}
        spec = {"driver": "zarr", "kvstore": store, "field": "x", "metadata": metadata}
        array = ts.open(spec, create=True, shape=[8, 8, 3]).result()

        array.write(7).result()
        store["4"] = b"no chunk of this array"
        assert set(store.list().result()) == {
            b".zarray",
            b"4",
            *(b"%d.0" % row for row in range(4)),
        }
        array.resize(exclusive_max=[3, None, None]).result()
        assert set(store.list().result()) == {b".zarray", b"4", b"0.0", b"1.0"}
