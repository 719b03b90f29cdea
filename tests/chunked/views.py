"""Random views of a small array, as index transforms and as what NumPy makes of them.

Every position of a view is looked up one by one in the transform, so nothing here shares a
thought with the engine under test.
"""

import itertools

import numpy as np
from hypothesis import strategies as st

from tensorstore_py import IndexTransform, d

SHAPES = st.lists(st.integers(1, 7), min_size=0, max_size=4).filter(
    lambda shape: np.prod(shape) <= 400
)
CHUNK = st.integers(1, 4)


def brute_coordinates(transform):
    """The stored coordinates of every position of a view, of shape `[*view shape, rank]`."""
    shape = transform.input_shape
    found = np.empty((*shape, transform.output_rank), np.int64)
    origin = transform.input_origin
    for position in itertools.product(*map(range, shape)):
        found[position] = transform([a + b for a, b in zip(origin, position, strict=True)])
    return found


def look_up(stored, transform):
    """What a view of `stored` shows."""
    where = brute_coordinates(transform)
    return stored[tuple(np.moveaxis(where, -1, 0))]


@st.composite
def views(draw, shape, max_steps=3, distinct=False):
    """A transform into an array of `shape`; `distinct` ones name no element twice."""
    transform = IndexTransform(input_shape=shape)
    for _ in range(draw(st.integers(0, max_steps))):
        if transform.input_rank == 0 or 0 in transform.input_shape:
            break
        names = ["slices", "integer", "newaxis", "oindex", "vindex", "mask", "transpose", "shift"]
        if distinct:
            names.remove("newaxis")
        if transform.input_rank > 1:
            names.append("diagonal")
        transform = draw(STEPS[draw(st.sampled_from(names))](transform, distinct))
    return transform


def bounds(transform, dim):
    low = transform.input_origin[dim]
    return low, low + transform.input_shape[dim]


@st.composite
def one_slice(draw, low, high):
    a, b = sorted([draw(st.integers(low, high)), draw(st.integers(low, high))])
    step = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -1, -2, -3]))
    if step > 0:
        return slice(a, b, step)
    return slice(b - 1, a - 1, step) if b > a else slice(low, low, 1)


@st.composite
def slices(draw, transform, _distinct):
    terms = [draw(one_slice(*bounds(transform, dim))) for dim in range(transform.input_rank)]
    return transform[tuple(terms)]


@st.composite
def integer(draw, transform, _distinct):
    dim = draw(st.integers(0, transform.input_rank - 1))
    low, high = bounds(transform, dim)
    return transform[(slice(None),) * dim + (draw(st.integers(low, high - 1)),)]


@st.composite
def newaxis(draw, transform, _distinct):
    dim = draw(st.integers(0, transform.input_rank))
    return transform[(slice(None),) * dim + (None,)]


@st.composite
def indices(draw, low, high, distinct, shape):
    size = int(np.prod(shape))
    values = draw(
        st.lists(st.integers(low, high - 1), min_size=size, max_size=size, unique=distinct)
    )
    return np.array(values, np.int64).reshape(shape)


@st.composite
def oindex(draw, transform, distinct):
    terms: list[object] = []
    for dim in range(transform.input_rank):
        low, high = bounds(transform, dim)
        if draw(st.booleans()):
            size = draw(st.integers(0, min(high - low, 5)))
            terms.append(draw(indices(low, high, distinct, (size,))))
        else:
            terms.append(draw(one_slice(low, high)))
    return transform.oindex[tuple(terms)]


@st.composite
def vindex(draw, transform, distinct):
    chosen = [dim for dim in range(transform.input_rank) if draw(st.booleans())]
    room = min([transform.input_shape[dim] for dim in chosen], default=1)
    shape = draw(st.sampled_from([(room,), (room, 1), (1, room), (room // 2,)]))
    if not distinct:
        shape = draw(st.sampled_from([shape, (3,), (2, 3), (2, 1, 2)]))
    terms: list[object] = []
    for dim in range(transform.input_rank):
        low, high = bounds(transform, dim)
        if dim in chosen:
            terms.append(draw(indices(low, high, distinct, shape)))
        else:
            terms.append(draw(one_slice(low, high)))
    return transform.vindex[tuple(terms)]


@st.composite
def mask(draw, transform, _distinct):
    dim = draw(st.integers(0, transform.input_rank - 1))
    transform = transform.translate_to[0]
    size = transform.input_shape[dim]
    chosen = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    return transform.oindex[(slice(None),) * dim + (chosen,)]


@st.composite
def transpose(draw, transform, _distinct):
    return transform.transpose(draw(st.permutations(range(transform.input_rank))))


@st.composite
def shift(draw, transform, _distinct):
    return transform.translate_by[[draw(st.integers(-5, 5)) for _ in range(transform.input_rank)]]


@st.composite
def diagonal(draw, transform, _distinct):
    dims = draw(st.permutations(range(transform.input_rank)))[: draw(st.integers(2, 3))]
    # The dimensions must share some positions.
    transform = transform.translate_to[[draw(st.integers(-1, 1)) for _ in transform.input_shape]]
    return transform[d[tuple(dims)].diagonal]


STEPS = {
    "slices": slices,
    "integer": integer,
    "newaxis": newaxis,
    "oindex": oindex,
    "vindex": vindex,
    "mask": mask,
    "transpose": transpose,
    "shift": shift,
    "diagonal": diagonal,
}
