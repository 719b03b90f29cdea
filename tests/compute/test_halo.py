"""What a block sees beyond its bounds, beside what NumPy pads with."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._compute.halo import Halo, extended

PADDED: dict[object, Any] = {"reflect": "symmetric", "nearest": "edge", "periodic": "wrap"}


@given(
    st.integers(1, 9), st.integers(0, 25), st.integers(0, 25),
    st.sampled_from([*PADDED, 7]), st.data(),
)  # fmt: skip
def test_a_window_is_that_of_the_padded_whole(extent, before, after, boundary, data):
    low = data.draw(st.integers(0, extent - 1))
    high = data.draw(st.integers(low + 1, extent))
    values = np.arange(100, 100 + extent)

    halo = Halo(before, after, boundary)
    window = halo.window(low, high, extent)
    found = extended(values[np.asarray(window.read)], 0, window, boundary)

    if boundary == 7:
        whole = np.pad(values, (before, after), constant_values=7)
    else:
        whole = np.pad(values, (before, after), mode=PADDED[boundary])
    np.testing.assert_array_equal(found, whole[low : high + before + after])
    assert window.margins == (before, after)
    assert window.extent == len(found) <= halo.largest(high - low, extent)


@given(st.integers(1, 9), st.integers(0, 12), st.integers(0, 12), st.data())
def test_without_a_boundary_there_is_nothing_beyond_the_ends(extent, before, after, data):
    low = data.draw(st.integers(0, extent - 1))
    high = data.draw(st.integers(low + 1, extent))

    halo = Halo(before, after)
    window = halo.window(low, high, extent)

    first, last = max(0, low - before), min(extent, high + after)
    assert window.read == range(first, last)
    assert window.margins == (low - first, last - high)
    assert window.extent == len(window.read) <= halo.largest(high - low, extent)


def test_of_the_other_end_only_what_is_wanted_is_read():
    assert [*Halo(2, 0, "periodic").window(0, 3, 100).read] == [0, 1, 2, 98, 99]
    assert Halo(2, 2, "reflect").window(0, 3, 100).read == range(5)


@pytest.mark.parametrize("dim", [0, 1])
def test_constants_stand_along_the_dimension(dim):
    window = Halo(1, 2, 9).window(0, 2, 2)
    found = extended(np.ones((2, 2), "int8"), dim, window, 9)
    assert found.shape == ((5, 2), (2, 5))[dim]
    assert np.moveaxis(found, dim, 0)[:, 0].tolist() == [9, 1, 1, 9, 9]
