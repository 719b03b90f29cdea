import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorstore_py as ts
from tensorstore_py._compute.bins import Bins, edges_of
from tensorstore_py._compute.measure import Piece

DTYPES = ["u1", "i1", "i2", "u4", "i8", "f2", "f4", "f8"]


def counts(data, edges, cut):
    bins = Bins(edges, data.dtype)
    states = []
    for part in (data[:, :cut], data[:, cut:]):
        state = bins.begin(len(data))
        bins.take(state, slice(None), Piece(part, skips=False))
        states.append(state)
    return Bins.merge(*states)["counts"]


@given(
    st.data(),
    st.sampled_from(DTYPES),
    st.integers(1, 12),
    st.tuples(st.integers(-50, 50), st.integers(0, 90)),
)
def test_as_numpy(draw, dtype, bins, limits):
    low, wide = limits
    elements = None if dtype[0] != "f" else st.floats(-99, 99, width=16) | st.just(np.nan)
    data = draw.draw(hnp.arrays(dtype, (2, 17), elements=elements))
    edges = edges_of(data.dtype, bins, (low, low + wide))

    found = counts(data, edges, 5)

    for row, of_row in zip(data, found, strict=True):
        wanted, known = np.histogram(row, bins, (low, low + wide))
        assert of_row.tolist() == wanted.tolist()
        np.testing.assert_array_equal(known, edges)


@pytest.mark.parametrize("edges", [[0, 1, 10, 10, 50], [-3.5, 2]])
def test_given_edges(edges):
    data = np.array([[-4, 0, 1, 9, 10, 50, 51, 2]], "f4")

    found = counts(data, edges_of(data.dtype, edges, None), 3)

    assert found.tolist() == [np.histogram(data, edges)[0].tolist()]


def test_the_range_of_small_whole_numbers_is_known():
    assert edges_of(np.dtype("i1"), 256, None).tolist() == list(range(-128, 129))
    assert edges_of(np.dtype(bool), 256, None).tolist() == [0, 1, 2]
    assert edges_of(np.dtype("u2"), 2, None).tolist() == [0, 32768, 65536]


@pytest.mark.parametrize(
    ("bins", "range", "member"),
    [
        (5, None, "range"), (0, (0, 1), "bins"), (5, (1, 0), "range"), ([1], None, "bins"),
        ([2, 1], None, "bins"), (5, (0, np.inf), "range"),
    ],
)  # fmt: skip
def test_bins_that_are_none(bins, range, member):
    with pytest.raises(ts.SpecError) as raised:
        edges_of(np.dtype("f4"), bins, range)

    assert raised.value.path == (member,)


def test_many_bins_of_few_elements():
    data = np.array([[3], [200]], "u1")

    found = counts(data, edges_of(data.dtype, 256, None), 1)

    assert [np.nonzero(row)[0].tolist() for row in found] == [[3], [200]]
