"""Values are converted as by astype."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._api.assignment import as_value


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        (1.7, "int32", np.int32(1)),
        ("3", "int32", np.int32(3)),
        ([1.7, 2], "int32", np.array([1, 2], "i4")),
        (np.arange(3.0), "uint8", np.arange(3, dtype="u1")),
        (np.float64(2.5), "int8", np.int8(2)),
        ("longer", "U3", np.str_("lon")),
        ([b"longer"], "S3", np.array([b"lon"])),
        (True, "float32", np.float32(1)),
        (range(3), "int16", np.arange(3, dtype="i2")),
    ],
)
def test_are_of_the_type_of_the_array(value, name, expected):
    found = as_value(value, ts.dtype(name))
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)


def test_records_are_tuples():
    data_type = ts.dtype([["a", "int32"], ["b", "S2"]])
    found = as_value([(1, b"x"), (2, b"yz")], data_type)
    assert np.asarray(found).tolist() == [(1, b"x"), (2, b"yz")]


def test_text_of_any_length_is_objects():
    found = as_value(np.array(["a", "bc"]), ts.ustring)
    assert np.asarray(found).dtype == object
    assert as_value("abc", ts.ustring) == "abc"


@pytest.mark.parametrize(
    ("value", "error"),
    [("x", ValueError), (None, TypeError), (2**70, OverflowError), (1 + 2j, TypeError)],
)
def test_what_is_no_value_is_refused(value, error):
    with pytest.raises(error):
        as_value(value, ts.int32)


def test_what_has_the_type_is_not_copied():
    data = np.arange(3)
    assert as_value(data, ts.int64) is data
