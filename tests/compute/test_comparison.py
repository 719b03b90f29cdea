import ml_dtypes
import numpy as np
import pytest

from tensorstore_py._compute.comparison import Tolerance, comparable, differing, largest_distance

NAN = np.nan


@pytest.mark.parametrize(
    ("one", "other", "equal_nan", "differ"),
    [
        ([1.0, NAN, -0.0], [1.0, NAN, 0.0], True, [False, False, False]),
        ([1.0, NAN, NAN], [1.0, NAN, 0.0], False, [False, True, True]),
        (["a", "b"], ["a", "c"], True, [False, True]),
    ],
)
def test_values_are_compared(one, other, equal_nan, differ):
    found = differing(np.array(one), np.array(other), Tolerance(equal_nan))

    assert found.tolist() == differ


@pytest.mark.parametrize("equal_nan", [True, False])
def test_tolerances_are_those_of_numpy(equal_nan):
    values = np.array([0, 1, 1.05, 100, 104.9, 106, np.inf, -np.inf, NAN])
    one, other = (each.ravel() for each in np.meshgrid(values, values))

    found = differing(one, other, Tolerance(equal_nan, rtol=0.05, atol=0.06))

    wanted = ~np.isclose(one, other, rtol=0.05, atol=0.06, equal_nan=equal_nan)
    assert found.tolist() == wanted.tolist()


def test_whole_numbers_near_each_other():
    one, other = np.array([0, 255, 10], "u1"), np.array([255, 0, 12], "u1")

    assert differing(one, other, Tolerance(atol=2)).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("i2", "f4"),
        ("bool", "u1"),
        ("c8", "f8"),
        (ml_dtypes.bfloat16, "f4"),
        (ml_dtypes.int4, "i8"),
    ],
)
def test_numbers_of_two_types(one, other):
    here, there = np.array([0, 1, 1]).astype(one), np.array([0, 1, 0]).astype(other)

    assert comparable(here.dtype, there.dtype)
    assert differing(here, there, Tolerance()).tolist() == [False, False, True]
    assert largest_distance(here, there) == 1


def test_times_and_bytes():
    one, other = (
        np.array(each, "M8[D]") for each in (["2020-01-01", "NaT"], ["2020-01-03", "NaT"])
    )
    assert differing(one, other, Tolerance()).tolist() == [True, False]
    assert differing(one, other, Tolerance(equal_nan=False)).tolist() == [True, True]
    assert largest_distance(one, other) == np.timedelta64(2, "D")
    assert not comparable(one.dtype, np.dtype("i8"))
    assert largest_distance(np.array([b"a"], object), np.array([b"b"], object)) is None


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        (np.array([-(2**63)]), np.array([2**63 - 1]), 2**64 - 1),
        (np.array([0], "u8"), np.array([2**64 - 1], "u8"), 2**64 - 1),
        (np.array([1.0, NAN]), np.array([4.0, 1.0]), 3.0),
        (np.array([3j]), np.array([4.0 + 0j]), 5.0),
        (np.array([], "i2"), np.array([], "i2"), None),
    ],
)
def test_the_largest_distance(one, other, far):
    assert largest_distance(one, other) == far
