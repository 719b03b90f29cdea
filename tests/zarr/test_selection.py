"""Selections: as NumPy has them; what lies outside, and what is no selection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tensorstore_py.zarr.selection import (
    basic_selection,
    block_selection,
    coordinate_selection,
    mask_selection,
    orthogonal_selection,
    selection,
    split_fields,
    vector_selection,
)

SHAPE = (5, 6)
DATA = np.arange(30).reshape(SHAPE)


def taken(selected, data=DATA):
    """What the terms select, by NumPy, all positions being positive."""
    if selected.mode == "oindex":
        for axis, term in reversed(list(enumerate(selected.terms))):
            if isinstance(term, slice):
                term = _of(term)
            data = data[(slice(None),) * axis + (term,)]
        return data
    return data[tuple(_of(term) if isinstance(term, slice) else term for term in selected.terms)]


def _of(term):
    """A slice whose end may lie in front of position 0, as the engine's may."""
    stop = None if term.stop is not None and term.stop < 0 else term.stop
    return slice(term.start, stop, term.step)


@given(npst.basic_indices(SHAPE, allow_newaxis=False))
def test_basic_selections_are_numpys(item):
    np.testing.assert_array_equal(taken(selection(item, SHAPE)), DATA[item])
    np.testing.assert_array_equal(taken(basic_selection(item, SHAPE)), DATA[item])


@given(st.data())
def test_positions_are_numpys(data):
    count = data.draw(st.integers(1, 4))
    item = tuple(
        np.array(data.draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count)))
        for n in SHAPE
    )
    np.testing.assert_array_equal(taken(selection(item, SHAPE)), DATA[item])
    np.testing.assert_array_equal(taken(coordinate_selection(item, SHAPE)), DATA[item])


@given(npst.arrays(bool, SHAPE))
def test_masks_are_numpys(mask):
    for select in (selection, mask_selection, vector_selection):
        np.testing.assert_array_equal(taken(select(mask, SHAPE)), DATA[mask])


@given(st.data())
def test_orthogonal_selections_are_those_of_ix(data):
    rows = data.draw(st.lists(st.integers(-5, 4), min_size=1, max_size=4))
    columns = np.array(data.draw(st.lists(st.booleans(), min_size=6, max_size=6)))
    expected = DATA[np.ix_(rows, columns)]
    np.testing.assert_array_equal(taken(orthogonal_selection((rows, columns), SHAPE)), expected)
    np.testing.assert_array_equal(taken(selection((rows, columns), SHAPE)), expected)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (0, DATA[:2]),
        (-1, DATA[4:]),
        ((1, 0), DATA[2:4, :4]),
        ((slice(None), 1), DATA[:, 4:]),
        ((..., 0), DATA[:, :4]),
        (slice(1, 99), DATA[2:]),
        (slice(2, 1), DATA[:0]),
        ((), DATA),
    ],
)
def test_blocks_are_chunks(item, expected):
    np.testing.assert_array_equal(taken(block_selection(item, SHAPE, (2, 4))), expected)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (5, "index 5 is out of bounds for dimension 0 with length 5"),
        ((0, -7), "index -7 is out of bounds for dimension 1"),
        ([0, 5], "index 5 is out of bounds for dimension 0"),
        (([0], [6]), "index 6 is out of bounds for dimension 1"),
        ((slice(None), [-7]), "index -7 is out of bounds for dimension 1"),
        ((0, 0, 0), "too many indices"),
        ((..., ...), "single ellipsis"),
        (None, "expected integer or slice"),
        (1.5, "expected integer or slice"),
        (True, "expected integer or slice"),
        (range(2), "expected integer or slice"),
        ([0.5], "expected integer or slice"),
        (DATA > 99, None),
        ((DATA > 3, 0), "1-dimensional only"),
        (np.ones((2, 2), bool), "of the array's shape"),
        ((slice(None), np.array([[0]])), "1-dimensional only"),
        (([0], ..., [0], [0]), r"oindex.* or with vindex"),
        ((slice(None), np.array([True])), "wrong length for dimension 1; expected 6, got 1"),
    ],
)
def test_what_selects_nothing_says_so(item, message):
    if message is None:
        assert taken(selection(item, SHAPE)).size == 0
        return
    with pytest.raises(IndexError, match=message):
        selection(item, SHAPE)


@pytest.mark.parametrize("item", [0, [0], (slice(None), [0]), ..., ([0.5], [0]), ()])
def test_vindex_takes_positions_in_all_dimensions(item):
    with pytest.raises(IndexError, match="use oindex"):
        vector_selection(item, SHAPE)


def test_positions_broadcast():
    found = taken(vector_selection(([[0], [1]], [2, 3]), SHAPE))
    np.testing.assert_array_equal(found, [[2, 3], [8, 9]])
    with pytest.raises(ValueError, match="broadcast"):
        vector_selection(([0, 1], [1, 2, 3]), SHAPE)


@pytest.mark.parametrize("item", [slice(None, None, 2), [0], 9, None])
def test_blocks_are_integers_and_slices(item):
    with pytest.raises(IndexError, match=r"block indexing|out of bounds"):
        block_selection(item, SHAPE, (2, 4))


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (3, (3, None)),
        ("a", (..., "a")),
        (["a", "b"], (..., ["a", "b"])),
        (("a", "b"), (..., ["a", "b"])),
        ((3, "a"), (3, "a")),
        ((3, slice(2), "a", "b"), ((3, slice(2)), ["a", "b"])),
    ],
)
def test_names_of_fields_are_taken_out(item, expected):
    assert split_fields(item) == expected
