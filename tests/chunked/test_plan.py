"""Selections, plans and partitions against NumPy: which part of which chunk is which of a view."""

import itertools
import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py import IndexDomain, IndexTransform, d
from tensorstore_py._chunked import plan as plan_module
from tensorstore_py._chunked.parts import parts
from tensorstore_py._chunked.plan import cells_of, make_plan, slices_of
from tensorstore_py._chunked.selection import Gathered, Rectangle, Strided, rectangle_of, select
from tensorstore_py._chunked.shard import descend
from tensorstore_py.plugin.driver import (
    CutAxis,
    IrregularAxis,
    RegularAxis,
    output_box,
    propagate_bounds,
    read_array,
    shifted,
    write_array,
)
from tests.chunked.views import CHUNK, SHAPES, look_up, views


def chunk_at(stored, chunks, cell):
    """One chunk of a padded array; what lies beyond the array is -7."""
    chunk = np.full(chunks, -7, stored.dtype)
    part = stored[tuple(slice(c * n, (c + 1) * n) for c, n in zip(cell, chunks, strict=True))]
    chunk[tuple(map(slice, part.shape))] = part
    return chunk


@settings(max_examples=5 * settings().max_examples)
@given(st.data())
def test_a_selection_is_its_transform_and_the_slices_of_its_plan_partition_it(data):
    shape = data.draw(SHAPES)
    chunks = data.draw(st.tuples(*[CHUNK] * len(shape)))
    transform = data.draw(views(shape))
    stored = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    selection = select(transform)
    grid = [RegularAxis(extent, chunk) for extent, chunk in zip(shape, chunks, strict=True)]
    plan = make_plan(selection.axes, grid)
    slices = list(plan.slices())
    dims = [dim for axis in selection.axes for dim in axis_dims(axis)]
    assert sorted(dims) == list(range(len(shape)))

    out = np.full(transform.input_shape, -1, np.int64)
    view = selection.view(out)
    assert view.shape == selection.shape
    touched = np.zeros(selection.shape, np.int64)
    assert len(slices) == plan.count
    assert len({each.cell for each in slices}) == len(slices)
    for each in slices:
        chunk = chunk_at(stored, chunks, each.cell)
        view[(..., *each.outside)] = chunk[each.inside]
        touched[(..., *each.outside)] += 1
        check_flags(each, chunk)
    if view.size:  # an empty view may be anywhere
        assert (touched == 1).all()
        gathered = gather(stored, selection.axes, selection.shape)
        np.testing.assert_array_equal(view, np.broadcast_to(gathered, view.shape))
    if not np.may_share_memory(view, out):
        selection.put(view, out)
    np.testing.assert_array_equal(out, look_up(stored, transform))


def check_flags(each, chunk):
    """`whole` and `full` are promises: a writer drops what was stored because of them."""
    covered = np.zeros(chunk.shape, bool)
    covered[each.inside] = True
    if each.full:
        assert covered[chunk != -7].all()
    if each.whole:
        assert covered.all()
        np.testing.assert_array_equal(chunk[each.inside], chunk)


@given(st.data())
def test_a_box_knows_which_chunks_it_covers(data):
    shape = data.draw(SHAPES.filter(len))
    chunks = data.draw(st.tuples(*[CHUNK] * len(shape)))
    box = tuple(
        slice(*sorted([data.draw(st.integers(0, size)), data.draw(st.integers(0, size))]))
        for size in shape
    )
    grid = [RegularAxis(extent, chunk) for extent, chunk in zip(shape, chunks, strict=True)]
    plan = make_plan(select(IndexTransform(input_shape=shape)[box]).axes, grid)
    expected = {}
    for cell in itertools.product(*(range(axis.count) for axis in grid)):
        cuts = [
            (max(side.start, c * n), min(side.stop, (c + 1) * n))
            for side, c, n in zip(box, cell, chunks, strict=True)
        ]
        if any(low >= high for low, high in cuts):
            continue
        lengths = [high - low for low, high in cuts]
        inside = [min(n, size - c * n) for c, n, size in zip(cell, chunks, shape, strict=True)]
        expected[cell] = (lengths == list(chunks), lengths == inside)
    assert {each.cell: (each.whole, each.full) for each in plan.slices()} == expected


def test_a_scalar_is_one_whole_slice():
    plan = make_plan(select(IndexTransform(input_shape=[])).axes, [])
    (each,) = plan.slices()
    assert (each.cell, each.whole, each.full, plan.count) == ((), True, True, 1)
    text = np.array("text", object)
    assert text[each.inside].shape == ()  # and not the element, whatever that is a sequence of


def test_nothing_selected_is_no_slice():
    grid = [RegularAxis(10, 4), RegularAxis(10, 4)]
    nothing = np.zeros(0, int)
    gathered = Gathered((0,), (nothing,), nothing)
    empty = select(IndexTransform(input_shape=[10, 10])[3:3]).axes
    for axes in (empty, (gathered, Strided(1, 0, 1, 10))):
        plan = make_plan(axes, grid)
        assert (plan.count, list(plan.slices())) == (0, [])


def test_slices_are_made_lazily():
    grid = [RegularAxis(10**4, 10)] * 3
    plan = make_plan([Strided(dim, 0, 1, 10**4) for dim in range(3)], grid)
    assert plan.count == 10**9
    assert next(iter(plan.slices())).cell == (0, 0, 0)


def test_gathered_cells_are_visited_once_whatever_the_order_of_the_indices():
    indices = np.array([9, 0, 5, 1, 8, 4])
    axis = Gathered((0,), (indices,), np.arange(6))
    plan = make_plan([axis], [RegularAxis(10, 4)])
    cells = [each.cell for each in plan.slices()]
    assert cells == [(0,), (1,), (2,)]


def test_a_step_longer_than_a_chunk_skips_chunks():
    plan = make_plan([Strided(0, 1, 7, 3)], [RegularAxis(20, 3)])
    found = [(each.cell, each.inside[0], each.outside[0]) for each in plan.slices()]
    assert found == [
        ((0,), slice(1, 2, 7), slice(0, 1, 1)),
        ((2,), slice(2, 3, 7), slice(1, 2, 1)),
        ((5,), slice(0, 1, 7), slice(2, 3, 1)),
    ]


def grid_of(draw, shape):
    """Each dimension cut regularly, or in chunks of several sizes."""
    grid: list[RegularAxis | IrregularAxis] = []
    for extent in shape:
        if draw(st.booleans()):
            grid.append(RegularAxis(extent, draw(CHUNK)))
        else:
            runs = draw(st.lists(st.tuples(CHUNK, st.integers(1, 3)), max_size=4))
            grid.append(IrregularAxis(extent, [*runs, (5, extent)]))
    return grid


def like(index):
    """What can be compared of an index."""
    return (index.shape, index.tolist()) if isinstance(index, np.ndarray) else index


@given(st.data())
def test_long_axes_are_cut_in_blocks_into_the_same_slices(data):
    shape = data.draw(SHAPES)
    axes = select(data.draw(views(shape))).axes
    grid = grid_of(data.draw, shape)
    found = []
    for block in (10**6, data.draw(st.integers(1, 3))):
        with mock.patch.object(plan_module, "_BLOCK", block):
            plan = make_plan(axes, grid)
            slices = list(plan.slices())
        assert plan.count == len(slices)
        found.append(
            [
                (
                    each.cell,
                    [like(index) for index in each.inside],
                    [like(index) for index in each.outside],
                    each.whole,
                    each.full,
                )
                for each in slices
            ]
        )
    assert found[0] == found[1]


AXES = {
    "regular": (RegularAxis(10**5, 5), 1),
    "strided": (RegularAxis(10**5, 5), 3),
    "skipping": (RegularAxis(10**5, 5), 7),
    "irregular": (IrregularAxis(10**5, [(3, 10**4), (7, 10**4)]), 1),
    "irregular, strided": (IrregularAxis(10**5, [(3, 10**4), (7, 10**4)]), 5),
}


@pytest.mark.parametrize("name", AXES)
def test_a_plan_takes_no_memory_per_chunk(name):
    along, step = AXES[name]
    tracemalloc.start()
    plan = make_plan([Strided(0, 2, step, (10**5 - 2) // step)], [along])
    count = sum(1 for _ in plan.slices())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == plan.count > 10**4
    assert peak < 2**20


def test_a_plan_of_any_length_is_made_at_once():
    plan = make_plan([Strided(0, 0, 1, 2**60)], [RegularAxis(2**60, 1)])
    assert plan.count == 2**60
    assert next(iter(plan.slices())).cell == (0,)


class TestDescending:
    def below(self, transform, cell):
        """The inner axes and the part of the view for one shard of 8 x 8."""
        selection = select(transform(IndexTransform(input_shape=[16, 16])))
        plan = make_plan(selection.axes, [RegularAxis(16, 8), RegularAxis(16, 8)])
        (each,) = [each for each in plan.slices() if each.cell == cell]
        view = np.zeros(selection.shape)
        axes, part = descend(each, view)
        assert np.shares_memory(part, view)
        return axes, part.shape

    def test_boxes_are_relative_to_the_shard(self):
        axes, shape = self.below(lambda t: t[5:12, 9:15:2], (1, 1))
        assert axes == [Strided(0, 0, 1, 4), Strided(1, 1, 2, 3)]
        assert shape == (4, 3)

    def test_gathered_axes_keep_their_places_in_the_view(self):
        axes, shape = self.below(lambda t: t.oindex[[12, 3, 9], 2:4], (1, 0))
        gathered, strided = axes
        assert isinstance(gathered, Gathered)
        assert gathered.indices[0].tolist() == [4, 1]
        assert gathered.positions.tolist() == [0, 2]
        assert strided == Strided(1, 2, 1, 2)
        assert shape == (3, 2)


def gather(stored, axes, shape):
    """What the axes of a selection select, as the working view (without its free axes)."""
    where: list[np.ndarray] = [np.zeros(1, np.int64)] * stored.ndim
    sizes = shape[len(shape) - len(axes) :]
    for place, axis in enumerate(axes):
        spread = [1] * len(axes)
        spread[place] = sizes[place]
        if isinstance(axis, Strided):
            assert axis.step >= 1
            assert axis.count == sizes[place]
            line = axis.start + axis.step * np.arange(axis.count)
            where[axis.dim] = line.reshape(spread)
        else:
            assert sorted(axis.positions.tolist()) == list(range(sizes[place]))
            for dim, index in zip(axis.dims, axis.indices, strict=True):
                line = np.empty(sizes[place], np.int64)
                line[axis.positions] = index
                where[dim] = line.reshape(spread)
    return stored[tuple(np.broadcast_arrays(*where))] if axes else stored


def axis_dims(axis):
    return axis.dims if isinstance(axis, Gathered) else (axis.dim,)


class TestSelection:
    @pytest.mark.parametrize(
        "view",
        [
            lambda t: t,
            lambda t: t[1:5:2, ::-1, 3],
            lambda t: t.transpose([2, 0, 1]),
            lambda t: t[:, None, 2],
            lambda t: t[..., 1, 1],
            lambda t: t.translate_by[5, 6, 7],
        ],
    )
    def test_strided_views_cost_no_index_array(self, view):
        transform = view(IndexTransform(input_shape=[6, 5, 4]))
        selection = select(transform)
        assert all(isinstance(axis, Strided) for axis in selection.axes)
        out = np.zeros(transform.input_shape)
        assert np.shares_memory(selection.view(out), out)

    def test_a_negative_stride_becomes_a_backward_view(self):
        selection = select(IndexTransform(input_shape=[10])[8:2:-3])
        assert selection.axes == (Strided(0, 5, 3, 2),)
        assert selection.flip == (True,)

    def test_independent_index_arrays_are_independent_axes(self):
        transform = IndexTransform(input_shape=[6, 5, 4]).oindex[[1, 3], :, [0, 0, 2]]
        kinds = [(type(axis), axis_dims(axis)) for axis in select(transform).axes]
        assert kinds == [(Gathered, (0,)), (Strided, (1,)), (Gathered, (2,))]

    def test_index_arrays_that_move_together_are_one_axis(self):
        transform = IndexTransform(input_shape=[6, 5, 4]).vindex[[1, 3], :, [0, 2]]
        kinds = [(type(axis), axis_dims(axis)) for axis in select(transform).axes]
        assert kinds == [(Gathered, (0, 2)), (Strided, (1,))]

    def test_a_diagonal_is_one_axis(self):
        selection = select(IndexTransform(input_shape=[6, 5])[d[0, 1].diagonal])
        (axis,) = selection.axes
        assert isinstance(axis, Gathered)
        assert axis.dims == (0, 1)
        assert axis.indices[0].tolist() == axis.indices[1].tolist() == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("element", ["text", b"bytes", {"a": 1}, [1, 2]])
    def test_values_of_no_dimensions_are_an_array(self, element):
        source = np.empty((), object)
        source[()] = element
        found = select(IndexTransform(input_shape=[])).values(source)
        assert found.shape == ()
        assert found[()] == element

    def test_values_are_those_of_one_position_of_what_is_broadcast(self):
        transform = IndexTransform(input_shape=[4])[None, :, None]
        source = np.arange(4).reshape(1, 4, 1)
        assert select(transform).values(source).tolist() == [0, 1, 2, 3]
        assert not select(transform[:, :0]).values(source[:, :0]).size


BLOCK_SHAPE = (7, 5, 6)


BLOCK = np.arange(7 * 5 * 6).reshape(BLOCK_SHAPE)


@st.composite
def terms(draw):
    """Integers and slices within the array, and chunk sizes."""
    terms, chunk = [], []
    for extent in BLOCK_SHAPE:
        low = draw(st.integers(0, extent - 1))
        high = draw(st.integers(low + 1, extent))
        terms.append(draw(st.sampled_from([low, slice(low, high), slice(None)])))
        chunk.append(draw(st.integers(1, extent + 1)))
    return tuple(terms), tuple(chunk)


def padded_chunk(data, cell, chunk):
    """One chunk with whatever lies beyond the array, which nothing may look at."""
    padded = np.full(chunk, -1)
    part = data[tuple(slice(i * size, (i + 1) * size) for i, size in zip(cell, chunk, strict=True))]
    padded[tuple(map(slice, part.shape))] = part
    return padded


def assembled(rectangle, chunk, out):
    for part in slices_of(rectangle, chunk):
        out[part.outside] = padded_chunk(BLOCK, part.cell, chunk)[part.inside]
    return out


class TestRectangle:
    @given(terms())
    def test_what_a_rectangle_selects_is_what_numpy_selects(self, given):
        index, chunk = given
        rectangle = rectangle_of(IndexTransform(input_shape=BLOCK_SHAPE)[index], BLOCK_SHAPE)
        assert rectangle is not None
        out = assembled(rectangle, chunk, np.full(rectangle.shape, -1))
        np.testing.assert_array_equal(out, BLOCK[index])

    @given(terms())
    def test_the_chunks_that_a_rectangle_meets_are_those_that_it_is_cut_into(self, given):
        index, chunk = given
        rectangle = rectangle_of(IndexTransform(input_shape=BLOCK_SHAPE)[index], BLOCK_SHAPE)
        assert rectangle is not None
        cells = cells_of(rectangle, chunk)
        assert cells == [part.cell for part in slices_of(rectangle, chunk)]
        assert len(set(cells)) == len(cells)

    def test_a_rectangle_of_no_dimensions_meets_the_one_chunk_there_is(self):
        rectangle = Rectangle([], [], [])
        assert cells_of(rectangle, []) == [part.cell for part in slices_of(rectangle, [])] == [()]

    @given(terms())
    def test_implicit_bounds_are_those_of_the_array(self, given):
        index, _ = given
        domain = IndexDomain(shape=BLOCK_SHAPE)
        view = IndexTransform(3).mark_bounds_implicit[True][index]
        assert rectangle_of(view, BLOCK_SHAPE) == rectangle_of(
            propagate_bounds(domain, view), BLOCK_SHAPE
        )

    def test_what_is_no_rectangle_goes_the_long_way(self):
        whole = IndexTransform(input_shape=BLOCK_SHAPE)
        assert rectangle_of(whole[::2], BLOCK_SHAPE) is None
        assert rectangle_of(whole[[1, 2]], BLOCK_SHAPE) is None
        assert rectangle_of(whole[None], BLOCK_SHAPE) is None
        assert rectangle_of(whole.T, BLOCK_SHAPE) is None
        assert rectangle_of(whole[2:2], BLOCK_SHAPE) is None
        assert rectangle_of(IndexTransform(input_shape=(8, 5, 6)), BLOCK_SHAPE) is None
        assert rectangle_of(whole.translate_by[-1, 0, 0][:2], BLOCK_SHAPE) == Rectangle(
            [0, 0, 0], [3, 5, 6], [True] * 3
        )


ARRAY = np.arange(60).reshape(3, 4, 5)


WHOLE = IndexTransform(input_shape=[3, 4, 5])


VIEWS = [
    (WHOLE, ARRAY),
    (WHOLE[1], ARRAY[1]),
    (WHOLE[:, 1:3, ::2], ARRAY[:, 1:3, ::2]),
    (WHOLE[..., ::-1], ARRAY[..., ::-1]),
    (WHOLE[[2, 0], :, [1, 1]], ARRAY[[2, 0], :, [1, 1]]),
    (WHOLE[d[2, 0].transpose[0, 1]], np.moveaxis(ARRAY, (2, 0), (0, 1))),
    (WHOLE.T, ARRAY.T),
    (WHOLE[:, 2:2], ARRAY[:, 2:2]),
    (WHOLE[0, 0, 0], ARRAY[0, 0, 0]),
]


CUTS = (CutAxis(np.array([0, 3, 4, 10])), CutAxis(np.array([0, 5, 12])))


TABLE = np.arange(120).reshape(10, 12)


def whole():
    return IndexTransform(input_shape=[10, 12])


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


class TestParts:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("number", range(len(VIEWS)))
    def test_reads_what_numpy_reads(self, number, order):
        transform, expected = VIEWS[number]
        found = read_array(ARRAY, transform, order)
        np.testing.assert_array_equal(found, expected)
        assert found.flags.f_contiguous if order == "F" else found.flags.c_contiguous
        assert not np.shares_memory(found, ARRAY)

    @pytest.mark.parametrize(
        ("index", "source"),
        [
            ((slice(None), 1), np.arange(15).reshape(3, 5)),
            (([2, 0], slice(None), [1, 3]), np.arange(8).reshape(2, 4)),
            ((slice(None), slice(None), slice(None, None, -1)), np.arange(5)),
            ((0, 0, 0), np.array(7)),
            ((slice(1, 1),), np.array(7)),
        ],
    )
    def test_writes_what_numpy_writes(self, index, source):
        found, expected = ARRAY.copy(), ARRAY.copy()
        write_array(found, WHOLE[index], source)
        expected[index] = source
        np.testing.assert_array_equal(found, expected)

    def test_dimensions_on_which_nothing_depends_are_broadcast(self):
        transform = IndexTransform(input_shape=[2, 5], output=[])
        assert read_array(np.array(3), transform, "C").tolist() == [[3] * 5] * 2

    def test_an_axis_is_cut_anywhere(self):
        axis = CUTS[0]
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
    def test_the_parts_make_up_the_whole(self, transform):
        selection = select(transform)
        out = np.full(transform.input_shape, -1)
        view = selection.view(out)
        seen = set()
        for part in parts(selection.axes, CUTS, (0, 0)):
            assert part.cell not in seen
            seen.add(part.cell)
            rows, columns = (_coordinates(part.transform, dim) for dim in range(2))
            for cell, axis, found in zip(part.cell, CUTS, (rows, columns), strict=True):
                assert {axis.cell(int(each)) for each in found.flat} == {cell}
            view[(..., *part.outside)] = TABLE[rows, columns]
        selection.put(view, out)
        rows, columns = (_coordinates(transform, dim) for dim in range(2))
        np.testing.assert_array_equal(out, np.broadcast_to(TABLE[rows, columns], out.shape))

    def test_a_part_of_an_array_without_dimensions(self):
        assert [part.cell for part in parts(select(IndexTransform(input_rank=0)).axes, (), ())] == [
            ()
        ]

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
    def test_the_box_of_what_is_selected(self, transform, box):
        assert output_box(transform) == box
