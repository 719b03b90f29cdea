"""What NumPy's index expressions mean is what NumPy itself does with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._index.positions import completed, interval, numpy_index, position, wrapped
from tensorstore_py.errors import IndexingError, OutOfRangeError


@given(st.integers(0, 9), st.slices(9))
def test_a_slice_is_inside_and_takes_the_same(extent, term):
    values = np.arange(extent)
    found = interval(term, extent)
    assert 0 <= found.start <= extent
    np.testing.assert_array_equal(values[term], [values[at] for at in range(extent)[term]])
    expected = range(extent)[term]
    got = range(found.start, found.stop, found.step or 1)
    assert list(got) == list(expected)


def test_positions_count_from_the_end_too():
    assert [position(at, 0, 3) for at in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    assert wrapped(np.array([-3, -1, 0, 2], "int8"), 0, 3).tolist() == [0, 2, 0, 2]


@pytest.mark.parametrize("at", [-4, 3])
def test_a_position_outside_names_the_dimension(at):
    with pytest.raises(OutOfRangeError, match=f"index {at} .* dimension 5 with length 3"):
        position(at, 5, 3)
    with pytest.raises(OutOfRangeError, match=f"index {at} .* dimension 5 with length 3"):
        wrapped(np.array([0, at]), 5, 3)


def test_what_is_not_mentioned_is_taken_whole():
    assert completed((1, ..., 2), (3, 3, 3, 3)) == [1, slice(None), slice(None), 2]
    assert completed((), (3,)) == [slice(None)]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((0, 0, 0), "too many indices for array; expected 2, got 3"),
        ((..., ...), "single ellipsis"),
        ("x", "are valid indices, not 'x'"),
        (1.0, "are valid indices, not 1.0"),
        (np.array([0.5]), "are valid indices"),
        ([[1], [1, 2]], "no index array"),
        (
            np.ones((2, 2), bool),
            r"mask of shape \(2, 2\) does not fit dimensions of shape \(2, 3\)",
        ),
        ((0, np.ones(2, bool)), "from dimension 1 on"),
    ],
)
def test_what_means_nothing_says_so(item, message):
    with pytest.raises(IndexingError, match=message):
        numpy_index(item, (2, 3))


def test_the_terms_are_positions():
    mask = np.array([True, False, True])
    found = numpy_index((None, -1, ..., mask), (4, 5, 3))
    assert found[0] is None
    assert np.asarray(found[1]).tolist() == 3  # beside an array, NumPy takes an integer for one
    assert found[2] == slice(0, 5, 1)
    assert found[3] is mask
    assert numpy_index(slice(None, None, -1), (3,)) == (slice(2, -1, -1),)
