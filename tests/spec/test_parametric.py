import numpy as np
import pytest

from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.parametric import field_types_json, numpy_of_name, parametric_name
from tensorstore_py.errors import SpecError


def type_of(name):
    return dtype(name).array_dtype


def name_of(numpy_type):
    return dtype(numpy_type).name


@pytest.mark.parametrize(
    "numpy_type", ["M8[ns]", "m8[D]", "M8[10ms]", "U7", "S7", [("a", "u2"), ("b", "f4", (2, 3))]]
)
def test_names_and_types_are_each_others_inverse(numpy_type):
    numpy_type = np.dtype(numpy_type)
    name = parametric_name(numpy_type, name_of)
    assert numpy_of_name(name, type_of) == numpy_type


@pytest.mark.parametrize("numpy_type", ["u2", "?", "O", "S1", "U0", "V1"])
def test_other_types_have_no_parameter(numpy_type):
    assert parametric_name(np.dtype(numpy_type), name_of) is None


def test_padding_and_byte_order_do_not_matter():
    padded = np.dtype([("a", "u1"), ("b", ">u4")], align=True)
    assert field_types_json(padded, name_of) == [["a", "uint8"], ["b", "uint32"]]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ([["a"]], (0,)),
        ([["a", "int8"], [5, "int8"]], (1,)),
        ([["", "int8"]], (0,)),
        ([["a", "int8"], ["a", "int8"]], (1, 0)),
        ([["a", "int9"]], (0, 1)),
        ([["a", 5]], (0, 1)),
        ([["a", "ustring"]], (0, 1)),
        ([["a", "int8", 3]], (0, 2)),
        ([["a", "int8", [0]]], (0, 2)),
        ([["a", "int8", [True]]], (0, 2)),
        ([["a", [["b", "int8"], ["c", "no"]]]], (0, 1, 1, 1)),
        ([], ()),
    ],
)
def test_malformed_records_name_the_place(fields, path):
    with pytest.raises(SpecError) as caught:
        numpy_of_name(fields, type_of)
    assert caught.value.path == path
