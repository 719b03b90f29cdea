import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorstore_py._compute.measure import Piece
from tensorstore_py._compute.totals import (
    ExactTotal,
    FloatTotal,
    exact_sums,
    float_sums,
    narrow_sums,
)


def total(measure, data, cut):
    states = []
    for part in (data[:, :cut], data[:, cut:]):
        state = measure.begin(len(data))
        measure.take(state, slice(None), Piece(part, skips=False))
        states.append(state)
    return measure.merge(*states)


@given(st.data(), st.sampled_from(["i1", "u1", "i2", "u4", "i8", "u8"]))
def test_whole_numbers_are_summed_exactly(draw, dtype):
    data = draw.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=2, max_dims=2, max_side=20)))

    found = exact_sums(total(ExactTotal(), data, data.shape[1] // 2))

    assert found.tolist() == data.astype(object).sum(axis=1).tolist()
    narrow = narrow_sums(total(ExactTotal(), data, 1))
    fits = all(-(2**63) <= each < 2**63 for each in found)
    assert fits == (narrow is not None)
    if narrow is not None:
        assert narrow.tolist() == found.tolist()


def test_a_sum_beyond_64_bits():
    data = np.full((1, 1000), np.iinfo(np.uint64).max)

    assert exact_sums(total(ExactTotal(), data, 10)).tolist() == [1000 * (2**64 - 1)]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
def test_what_rounding_loses_is_kept(dtype):
    data = np.array([[1e4, 1e-3, -1e4]], dtype)
    measure = FloatTotal(data.dtype)
    states = []
    for column in range(3):
        state = measure.begin(1)
        measure.take(state, slice(None), Piece(data[:, column : column + 1], skips=False))
        states.append(state)

    found = [
        float_sums(FloatTotal.merge(states[one], FloatTotal.merge(states[two], states[three])))
        for one, two, three in ((0, 1, 2), (2, 1, 0), (1, 0, 2))
    ]

    assert found[0] == found[1] == found[2] == data[0, 1].astype("c16" if dtype == "c8" else "f8")


@pytest.mark.parametrize(
    ("values", "sum"),
    [([np.inf, 1, np.inf], np.inf), ([np.inf, -np.inf], np.nan), ([np.nan], np.nan)],
)
def test_what_is_not_finite(values, sum):
    np.testing.assert_equal(
        float_sums(total(FloatTotal(np.dtype("f8")), np.array([values]), 1)), [sum]
    )
