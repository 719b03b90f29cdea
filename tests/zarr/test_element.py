"""Types of elements, by all their names."""

import numcodecs
import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.element import as_element


@pytest.mark.parametrize(
    ("dtype", "name", "stored"),
    [
        ("i4", "int32", None),
        (np.uint8, "uint8", None),
        (float, "float64", None),
        (">f4", "float32", ">f4"),
        ("bfloat16", "bfloat16", None),
        (ts.bfloat16, "bfloat16", None),
        ("S5", "S5", None),
        ("V5", "V5", None),
        ("U5", "U5", None),
        (">U5", "U5", ">U5"),
        ("U", "ustring", None),
        (str, "ustring", None),
        ("str", "ustring", None),
        (np.dtypes.StringDType(), "ustring", None),
        (bytes, "string", None),
        ("M8[ns]", "datetime64[ns]", None),
        ("json", "json", None),
    ],
)
def test_has_a_name_in_the_engine(dtype, name, stored):
    found = as_element(dtype)
    assert found.data_type == ts.dtype(name)
    assert found.stored == stored


@pytest.mark.parametrize("dtype", ["S1", "V1"])
def test_single_bytes_are_only_said_by_the_format(dtype):
    found = as_element(dtype)
    assert (found.data_type, found.stored) == (None, f"|{dtype}")


@pytest.mark.parametrize(
    ("codec", "name"),
    [(numcodecs.VLenUTF8(), "ustring"), ({"id": "vlen-bytes"}, "string"), ("json2", "json")],
)
def test_objects_are_what_their_codec_stores(codec, name):
    found = as_element(object, codec)
    assert found.data_type == ts.dtype(name)
    assert found.stored == "|O"


def test_objects_must_be_known():
    with pytest.raises(ValueError, match="pass dtype=str for text"):
        as_element(object)


@pytest.mark.parametrize("dtype", ["S", "V"])
def test_bytes_have_a_length(dtype):
    with pytest.raises(ValueError, match="has no length"):
        as_element(dtype)


@pytest.mark.parametrize(
    ("dtype", "value", "zarr_format", "expected"),
    [
        ("i4", None, 2, None),
        ("i4", ..., 2, 0),
        ("i4", ..., 3, None),
        ("i4", 1.0, 2, 1),
        ("S3", 0, 2, b""),
        ("U3", "abc", 3, "abc"),
        ("M8[D]", ..., 2, None),
        ("M8[D]", "2020-01-01", 2, np.datetime64("2020-01-01")),
        (str, 0, 2, None),
        (str, "x", 2, "x"),
    ],
)
def test_fill_values_are_of_the_type(dtype, value, zarr_format, expected):
    found = as_element(dtype).fill_value(value, ..., zarr_format)
    assert found == expected


def test_fill_values_of_records():
    element = as_element([("a", "i4"), ("b", "S2")])
    for value, expected in ((0, (0, b"")), ((1, b"x"), (1, b"x")), (b"\1\0\0\0xy", (1, b"xy"))):
        assert np.asarray(element.fill_value(value, ..., 2)).tolist() == expected
