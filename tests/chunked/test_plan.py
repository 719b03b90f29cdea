import itertools
import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py._chunked import plan as plan_module
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.selection import Gathered, Strided, select
from tensorstore_py._index import IndexTransform
from tensorstore_py._interface.chunk_grid import IrregularAxis, RegularAxis
from tests.chunked.views import CHUNK, SHAPES, look_up, views


def chunk_at(stored, chunks, cell):
    """One chunk of a padded array; what lies beyond the array is -7."""
    chunk = np.full(chunks, -7, stored.dtype)
    part = stored[tuple(slice(c * n, (c + 1) * n) for c, n in zip(cell, chunks, strict=True))]
    chunk[tuple(map(slice, part.shape))] = part
    return chunk


@settings(max_examples=5 * settings().max_examples)
@given(st.data())
def test_the_steps_of_a_plan_partition_the_selection(data):
    shape = data.draw(SHAPES)
    chunks = data.draw(st.tuples(*[CHUNK] * len(shape)))
    transform = data.draw(views(shape))
    stored = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    selection = select(transform)
    grid = [RegularAxis(extent, chunk) for extent, chunk in zip(shape, chunks, strict=True)]
    plan = make_plan(selection.axes, grid)
    steps = list(plan.steps())

    out = np.full(transform.input_shape, -1, np.int64)
    view = selection.view(out)
    touched = np.zeros(selection.shape, np.int64)
    assert len(steps) == plan.count
    assert len({step.cell for step in steps}) == len(steps)
    for step in steps:
        chunk = chunk_at(stored, chunks, step.cell)
        view[(..., *step.outside)] = chunk[step.inside]
        touched[(..., *step.outside)] += 1
        check_flags(step, chunk)
    if view.size:
        assert (touched == 1).all()
    if not np.may_share_memory(view, out):
        selection.put(view, out)
    np.testing.assert_array_equal(out, look_up(stored, transform))


def check_flags(step, chunk):
    """`whole` and `full` are promises: a writer drops what was stored because of them."""
    covered = np.zeros(chunk.shape, bool)
    covered[step.inside] = True
    if step.full:
        assert covered[chunk != -7].all()
    if step.whole:
        assert covered.all()
        np.testing.assert_array_equal(chunk[step.inside], chunk)


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
    assert {step.cell: (step.whole, step.full) for step in plan.steps()} == expected


def test_a_scalar_is_one_whole_step():
    plan = make_plan(select(IndexTransform(input_shape=[])).axes, [])
    (step,) = plan.steps()
    assert (step.cell, step.whole, step.full, plan.count) == ((), True, True, 1)
    text = np.array("text", object)
    assert text[step.inside].shape == ()  # and not the element, whatever that is a sequence of


def test_nothing_selected_is_no_step():
    grid = [RegularAxis(10, 4), RegularAxis(10, 4)]
    nothing = np.zeros(0, int)
    gathered = Gathered((0,), (nothing,), nothing)
    empty = select(IndexTransform(input_shape=[10, 10])[3:3]).axes
    for axes in (empty, (gathered, Strided(1, 0, 1, 10))):
        plan = make_plan(axes, grid)
        assert (plan.count, list(plan.steps())) == (0, [])


def test_steps_are_made_lazily():
    grid = [RegularAxis(10**4, 10)] * 3
    plan = make_plan([Strided(dim, 0, 1, 10**4) for dim in range(3)], grid)
    assert plan.count == 10**9
    assert next(iter(plan.steps())).cell == (0, 0, 0)


def test_gathered_cells_are_visited_once_whatever_the_order_of_the_indices():
    indices = np.array([9, 0, 5, 1, 8, 4])
    axis = Gathered((0,), (indices,), np.arange(6))
    plan = make_plan([axis], [RegularAxis(10, 4)])
    cells = [step.cell for step in plan.steps()]
    assert cells == [(0,), (1,), (2,)]


def test_a_step_longer_than_a_chunk_skips_chunks():
    plan = make_plan([Strided(0, 1, 7, 3)], [RegularAxis(20, 3)])
    found = [(step.cell, step.inside[0], step.outside[0]) for step in plan.steps()]
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
def test_long_axes_are_cut_in_blocks_into_the_same_steps(data):
    shape = data.draw(SHAPES)
    axes = select(data.draw(views(shape))).axes
    grid = grid_of(data.draw, shape)
    found = []
    for block in (10**6, data.draw(st.integers(1, 3))):
        with mock.patch.object(plan_module, "_BLOCK", block):
            plan = make_plan(axes, grid)
            steps = list(plan.steps())
        assert plan.count == len(steps)
        found.append(
            [
                (
                    step.cell,
                    [like(index) for index in step.inside],
                    [like(index) for index in step.outside],
                    step.whole,
                    step.full,
                )
                for step in steps
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
    count = sum(1 for _ in plan.steps())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == plan.count > 10**4
    assert peak < 2**20


def test_a_plan_of_any_length_is_made_at_once():
    plan = make_plan([Strided(0, 0, 1, 2**60)], [RegularAxis(2**60, 1)])
    assert plan.count == 2**60
    assert next(iter(plan.steps())).cell == (0,)
