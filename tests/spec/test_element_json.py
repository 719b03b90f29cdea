import numpy as np
import pytest

from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.fill_value import fill_value_from_json, fill_value_to_json
from tensorstore_py._spec.json_value import freeze
from tensorstore_py.errors import SpecError

RECORD = [["a", "int16"], ["t", "datetime64[s]"], ["c", "complex64"], ["s", "S3", [2]]]
VALUES = [
    ("datetime64[s]", "2020-02-29T12:00:00"),
    ("datetime64[D]", "NaT"),
    ("timedelta64[ms]", -7),
    ("timedelta64[ms]", "NaT"),
    ("U4", "zürn"),
    ("S4", "abc"),
    ("S4", "base64:/wAB/g=="),
    ("V4", "base64:/wAB/g=="),
    (RECORD, {"a": -3, "t": "1999-12-31T23:59:59", "c": [1.5, -2.0], "s": ["x", "yz"]}),
    ("datetime64[s]", ["2020-02-29T12:00:00", "NaT"]),
]


@pytest.mark.parametrize(("name", "json"), VALUES)
def test_round_trip(name, json):
    array = fill_value_from_json(freeze(json), dtype(name))
    assert array.dtype == dtype(name).array_dtype
    assert fill_value_to_json(array) == json


def test_dates_may_be_counts():
    assert fill_value_from_json(86400, dtype("datetime64[s]")) == np.datetime64("1970-01-02")
    assert fill_value_from_json("12", dtype("timedelta64[s]")) == np.timedelta64(12, "s")


@pytest.mark.parametrize(
    ("name", "json", "path"),
    [
        ("datetime64[s]", "soon", ()),
        ("datetime64[s]", 1.5, ()),
        ("datetime64[s]", True, ()),
        ("datetime64[s]", 2**63, ()),
        ("U4", "abcde", ()),
        ("U4", 5, ()),
        ("S4", "abcde", ()),
        ("S4", "ä", ()),
        ("V4", "base64:?", ()),
        ("V4", 7, ()),
        (RECORD, 5, ()),
        (RECORD, {"a": 1}, ()),
        ([["a", "int8"]], {"a": 300}, ("a",)),
        ([["a", "int8"]], {"a": 3, "b": 4}, ("b",)),
        ([["a", "S1", [2]]], {"a": ["x"]}, ("a",)),
        ([["a", "S2", [2]]], {"a": ["x", "long"]}, ("a", 1)),
        ([["a", "complex64"]], {"a": "x"}, ("a",)),
    ],
)
def test_wrong_values_name_the_place(name, json, path):
    with pytest.raises(SpecError) as caught:
        fill_value_from_json(freeze(json), dtype(name))
    assert caught.value.path == path
