import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py._chunked.selection import Gathered, Strided, select
from tensorstore_py._index import IndexTransform, d
from tests.chunked.views import SHAPES, look_up, views


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


@settings(max_examples=5 * settings().max_examples)
@given(st.data())
def test_a_selection_is_its_transform(data):
    shape = data.draw(SHAPES)
    transform = data.draw(views(shape))
    stored = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    selection = select(transform)

    dims = [dim for axis in selection.axes for dim in axis_dims(axis)]
    assert sorted(dims) == list(range(len(shape)))

    out = np.full(transform.input_shape, -1, np.int64)
    view = selection.view(out)
    assert view.shape == selection.shape
    view[...] = gather(stored, selection.axes, selection.shape)
    if not np.may_share_memory(view, out):
        selection.put(view, out)
    np.testing.assert_array_equal(out, look_up(stored, transform))


def axis_dims(axis):
    return axis.dims if isinstance(axis, Gathered) else (axis.dim,)


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
def test_strided_views_cost_no_index_array(view):
    transform = view(IndexTransform(input_shape=[6, 5, 4]))
    selection = select(transform)
    assert all(isinstance(axis, Strided) for axis in selection.axes)
    out = np.zeros(transform.input_shape)
    assert np.shares_memory(selection.view(out), out)


def test_a_negative_stride_becomes_a_backward_view():
    selection = select(IndexTransform(input_shape=[10])[8:2:-3])
    assert selection.axes == (Strided(0, 5, 3, 2),)
    assert selection.flip == (True,)


def test_independent_index_arrays_are_independent_axes():
    transform = IndexTransform(input_shape=[6, 5, 4]).oindex[[1, 3], :, [0, 0, 2]]
    kinds = [(type(axis), axis_dims(axis)) for axis in select(transform).axes]
    assert kinds == [(Gathered, (0,)), (Strided, (1,)), (Gathered, (2,))]


def test_index_arrays_that_move_together_are_one_axis():
    transform = IndexTransform(input_shape=[6, 5, 4]).vindex[[1, 3], :, [0, 2]]
    kinds = [(type(axis), axis_dims(axis)) for axis in select(transform).axes]
    assert kinds == [(Gathered, (0, 2)), (Strided, (1,))]


def test_a_diagonal_is_one_axis():
    selection = select(IndexTransform(input_shape=[6, 5])[d[0, 1].diagonal])
    (axis,) = selection.axes
    assert isinstance(axis, Gathered)
    assert axis.dims == (0, 1)
    assert axis.indices[0].tolist() == axis.indices[1].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("element", ["text", b"bytes", {"a": 1}, [1, 2]])
def test_values_of_no_dimensions_are_an_array(element):
    source = np.empty((), object)
    source[()] = element
    found = select(IndexTransform(input_shape=[])).values(source)
    assert found.shape == ()
    assert found[()] == element


def test_values_are_those_of_one_position_of_what_is_broadcast():
    transform = IndexTransform(input_shape=[4])[None, :, None]
    source = np.arange(4).reshape(1, 4, 1)
    assert select(transform).values(source).tolist() == [0, 1, 2, 3]
    assert not select(transform[:, :0]).values(source[:, :0]).size
