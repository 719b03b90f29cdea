"""Boxes against NumPy and against the long way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._chunked.box import Box, box_of, cells_of, cut
from tensorstore_py._index import IndexDomain, IndexTransform, propagate_bounds

SHAPE = (7, 5, 6)
DATA = np.arange(7 * 5 * 6).reshape(SHAPE)


@st.composite
def indices(draw):
    """Integers and slices within the array, and chunk sizes."""
    terms, chunk = [], []
    for extent in SHAPE:
        low = draw(st.integers(0, extent - 1))
        high = draw(st.integers(low + 1, extent))
        terms.append(draw(st.sampled_from([low, slice(low, high), slice(None)])))
        chunk.append(draw(st.integers(1, extent + 1)))
    return tuple(terms), tuple(chunk)


def chunk_at(data, cell, chunk):
    """One chunk with whatever lies beyond the array, which nobody may look at."""
    padded = np.full(chunk, -1)
    part = data[tuple(slice(i * size, (i + 1) * size) for i, size in zip(cell, chunk, strict=True))]
    padded[tuple(map(slice, part.shape))] = part
    return padded


def assembled(box, chunk, out):
    for part in cut(box, chunk):
        out[part.outside] = chunk_at(DATA, part.cell, chunk)[part.inside]
    return out


@given(indices())
def test_what_a_box_selects_is_what_numpy_selects(given):
    index, chunk = given
    box = box_of(IndexTransform(input_shape=SHAPE)[index], SHAPE)
    assert box is not None
    out = assembled(box, chunk, np.full(box.shape, -1))
    np.testing.assert_array_equal(out, DATA[index])


@given(indices())
def test_the_chunks_that_a_box_meets_are_those_that_it_is_cut_into(given):
    index, chunk = given
    box = box_of(IndexTransform(input_shape=SHAPE)[index], SHAPE)
    assert box is not None
    cells = cells_of(box, chunk)
    assert cells == [part.cell for part in cut(box, chunk)]
    assert len(set(cells)) == len(cells)


def test_a_box_of_no_dimensions_meets_the_one_chunk_there_is():
    box = Box([], [], [])
    assert cells_of(box, []) == [part.cell for part in cut(box, [])] == [()]


@given(indices())
def test_implicit_bounds_are_those_of_the_array(given):
    index, _ = given
    domain = IndexDomain(shape=SHAPE)
    view = IndexTransform(3).mark_bounds_implicit[True][index]
    assert box_of(view, SHAPE) == box_of(propagate_bounds(domain, view), SHAPE)


def test_what_is_no_box_goes_the_long_way():
    whole = IndexTransform(input_shape=SHAPE)
    assert box_of(whole[::2], SHAPE) is None
    assert box_of(whole[[1, 2]], SHAPE) is None
    assert box_of(whole[None], SHAPE) is None
    assert box_of(whole.T, SHAPE) is None
    assert box_of(whole[2:2], SHAPE) is None
    assert box_of(IndexTransform(input_shape=(8, 5, 6)), SHAPE) is None
    assert box_of(whole.translate_by[-1, 0, 0][:2], SHAPE) == Box([0, 0, 0], [3, 5, 6], [True] * 3)
