import numpy as np
import pytest

from tensorstore_py._compute.counts import Counts, FillCount, equal_to
from tensorstore_py._compute.measure import Piece


def test_counts():
    counts = Counts()
    state = counts.begin(2)
    counts.take(state, slice(0, 2), Piece(np.array([[1, np.nan], [2, 3]]), skips=True))
    counts.take(state, slice(1, 2), Piece(np.array([[np.nan]]), skips=True))

    assert (state["valid"].tolist(), state["missing"].tolist()) == ([1, 2], [1, 1])
    both = Counts.merge(state, state)
    assert both["valid"].tolist() == [2, 4]


def test_fill_values():
    fill = FillCount(np.array(np.nan))
    state = fill.begin(1)

    fill.take(state, slice(0, 1), Piece(np.array([[np.nan, 0, np.nan]]), skips=False))

    assert FillCount.merge(state, state)["count"].tolist() == [4]


@pytest.mark.parametrize(
    ("values", "other", "same"),
    [
        (np.array([b"a", b"b", b""], object), np.array(b"b", object), [False, True, False]),
        (np.array(["x", "y"]), np.array("y"), [False, True]),
        (np.array(["2020", "NaT"], "M8[Y]"), np.array("NaT", "M8[Y]"), [False, True]),
        (np.array([0.0, -0.0]), np.array(0.0), [True, True]),
        (
            np.array([(1, np.nan), (1, 2)], [("a", "i4"), ("b", "f4")]),
            np.array((1, np.nan), [("a", "i4"), ("b", "f4")]),
            [True, False],
        ),
        (
            np.array([([1, 2],), ([1, 3],)], [("a", "i4", (2,))]),
            np.array(([1, 2],), [("a", "i4", (2,))]),
            [True, False],
        ),
    ],
)
def test_equality(values, other, same):
    assert equal_to(values, other).tolist() == same
