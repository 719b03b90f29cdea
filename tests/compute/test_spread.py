import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py._compute.measure import Piece
from tensorstore_py._compute.spread import Spread, variances


def spread(data, cuts, *, skips=False):
    measure = Spread(data.dtype)
    states = []
    for part in np.split(data, cuts, axis=1):
        state = measure.begin(len(data))
        if part.size:
            measure.take(state, slice(None), Piece(part, skips=skips))
        states.append(state)
    found = states[0]
    for state in states[1:]:
        found = Spread.merge(state, found)
    return found


@given(st.integers(0, 2**32), st.lists(st.integers(0, 40), max_size=3), st.sampled_from([0, 1]))
@settings(max_examples=50)
def test_a_small_spread_around_a_large_mean(seed, cuts, ddof):
    data = 1e8 + np.random.default_rng(seed).normal(size=(3, 40))

    found = variances(spread(data, sorted(cuts)), ddof)

    np.testing.assert_allclose(found, data.var(axis=1, ddof=ddof), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "c16"])
def test_as_numpy(dtype):
    data = np.random.default_rng(1).integers(0, 9, size=(2, 30)).astype(dtype)
    if dtype == "c16":
        data = data * (1 + 2j)

    np.testing.assert_allclose(variances(spread(data, [7, 7, 20]), 0), data.var(axis=1), rtol=1e-6)


def test_nan_that_is_passed_over():
    data = np.array([[1, np.nan, 3, 8], [np.nan] * 4])

    found = variances(spread(data, [1, 2], skips=True), 0)

    np.testing.assert_allclose(found, [np.nanvar(data[0]), np.nan])


def test_no_more_elements_than_are_taken_off():
    assert np.isnan(variances(spread(np.array([[3.0]]), []), 1)).all()
