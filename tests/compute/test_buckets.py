from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorstore_py._compute.buckets import Buckets, quantiles
from tensorstore_py._compute.measure import Piece

ASKED = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)
EXACT = ["b1", "u1", "i1", "u2", "i2", "f2"]
LARGE = ["i4", "u4", "i8", "u8", "f4", "f8"]


def found_quantiles(data, cut):
    sketch = Buckets(data.dtype)
    states = []
    for part in (data[:, cut:], data[:, :cut]):
        state = sketch.begin(len(data))
        for row in range(len(data)):  # in pieces
            piece = Piece(part[row : row + 1], skips=False)
            sketch.take(state, slice(row, row + 1), piece)
        states.append(sketch.close(state))
    return quantiles(sketch, Buckets.merge(*states), len(data), ASKED)


def drawn(draw, dtype):
    elements = None
    if dtype[0] == "f":
        width: Any = 8 * int(dtype[1])
        most = None if width < 64 else 1e300
        elements = st.floats(
            -most if most else None, most, width=width, allow_nan=False, allow_infinity=False
        )
    return draw.draw(hnp.arrays(dtype, (2, 23), elements=elements))


@given(st.data(), st.sampled_from(EXACT))
def test_small_numbers_have_exact_quantiles(draw, dtype):
    data = drawn(draw, dtype)

    found = found_quantiles(data, 7)

    wide = data.astype("f8")
    np.testing.assert_allclose(found, np.quantile(wide, ASKED, axis=1).T, rtol=1e-12)


@given(st.data(), st.sampled_from(LARGE))
def test_the_error_of_others_is_bounded(draw, dtype):
    data = drawn(draw, dtype)

    found = found_quantiles(data, 7)

    sides = np.sort(data.astype("f8"), axis=1)
    for column, share in enumerate(ASKED):
        at = share * (data.shape[1] - 1)
        low, high = sides[:, int(np.floor(at))], sides[:, int(np.ceil(at))]
        bound = np.maximum(np.abs(low), np.abs(high)) * 2.0**-11
        bound += np.finfo("f4").tiny * (dtype == "f4") + np.finfo("f8").tiny
        assert (found[:, column] >= low - bound).all()
        assert (found[:, column] <= high + bound).all()


@pytest.mark.parametrize("dtype", LARGE)
def test_numbers_of_few_bits_are_exact(dtype):
    data = np.arange(4096).astype(dtype)[None]

    np.testing.assert_array_equal(found_quantiles(data, 100)[0, [0, -1]], [0, 4095])
    assert found_quantiles(data[:, :3].copy(), 1)[0, 3] == 1


def test_infinities_nan_and_nothing():
    data = np.array([[-np.inf, np.inf, np.inf], [np.nan, 1, 3], [np.nan] * 3])

    found = found_quantiles(data, 2)

    assert found[0, [0, -1]].tolist() == [-np.inf, np.inf]
    assert found[1, 3] == 2
    assert np.isnan(found[2]).all()


def test_many_different_numbers():
    data = np.random.default_rng(3).normal(size=(1, 400_000))
    sketch = Buckets(data.dtype)
    state = sketch.begin(1)
    for part in np.split(data, 4, axis=1):
        sketch.take(state, slice(0, 1), Piece(part * 1e-300, skips=False))
        sketch.take(state, slice(0, 1), Piece(part * 1e300, skips=False))

    found = quantiles(sketch, sketch.close(state), 1, (0.25,))

    both = np.concatenate([data * 1e-300, data * 1e300], axis=1)
    np.testing.assert_allclose(found[0], np.quantile(both, [0.25]), rtol=1e-3)
