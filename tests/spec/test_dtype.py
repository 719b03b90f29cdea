import pickle

import ml_dtypes
import numpy as np
import pytest
import tensorstore as reference

from tensorstore_py._spec import data_types
from tensorstore_py._spec import dtype as module
from tensorstore_py._spec.dtype import DataType, add_data_type, dtype
from tensorstore_py.errors import SpecError

LIKE = [
    "int32",
    "json",
    "str",
    "nothing",
    3,
    None,
    b"int32",
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    object,
    np.int32,
    np.longlong,
    np.bool_,
    np.str_,
    np.bytes_,
    np.void,
    np.float16,
    np.longdouble,
    np.dtype("int8"),
    np.dtype(">i4"),
    np.dtype("S1"),
    np.dtype("O"),
    np.dtype("V4"),
    np.dtype(ml_dtypes.int4),
    ml_dtypes.bfloat16,
]


def outcome(make, like):
    try:
        found = make(like)
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError
    return repr(found), found.name, found.numpy_dtype, found.type, found.to_json()


@pytest.mark.parametrize("like", LIKE, ids=repr)
def test_found_as_the_reference_does(like):
    assert outcome(reference.dtype, like) == outcome(dtype, like)


def test_one_object_for_each_type():
    assert dtype("int8") is dtype(np.int8) is data_types.int8
    assert dtype(data_types.int8) is data_types.int8
    assert pickle.loads(pickle.dumps(data_types.int4)) is data_types.int4
    assert len({data_types.int8, dtype("int8"), data_types.uint8}) == 2


def test_equality():
    assert data_types.bool == bool  # noqa: E721 - the very comparison that is tested
    assert bool == data_types.bool  # noqa: E721
    assert data_types.uint8 == np.uint8
    assert data_types.uint8 == "uint8"
    assert data_types.uint8 != np.int8
    assert np.uint8 != data_types.bool
    assert data_types.uint8 != "nothing"
    assert data_types.uint8 is not None
    assert data_types.uint8 != 5


def test_call():
    assert type(data_types.int16(3)) is np.int16
    assert data_types.int4(-8) == -8
    assert data_types.bool(1) is np.True_
    assert data_types.ustring("a") == "a"
    assert data_types.string(b"a") == b"a"
    assert data_types.json((1, np.float32(2))) == [1, 2.0]


def test_arrays_of_characters_have_a_size():
    assert data_types.char.array_dtype == np.dtype("S1")
    assert data_types.byte.array_dtype == np.dtype("V1")
    assert [data_types.char.itemsize, data_types.int4.itemsize, data_types.int64.itemsize] == [
        1,
        1,
        8,
    ]
    assert [getattr(data_types, name).kind for name in ("int4", "bfloat16", "json", "char")] == [
        "i",
        "f",
        "O",
        "S",
    ]


def test_array_converts_safely():
    assert data_types.int8.array([1, 2]).dtype == np.int8
    with pytest.raises(TypeError, match="safe"):
        data_types.int8.array(np.arange(3))


def test_parse_takes_names_only():
    assert dtype.parse("int8") is data_types.int8
    with pytest.raises(SpecError, match="expected the name of a data type, but found 3"):
        dtype.parse(3)
    with pytest.raises(SpecError, match='did you mean "uint16"'):
        dtype.parse("uint_16")


def test_the_table_is_open(monkeypatch):
    monkeypatch.setattr(dtype, "_by_name", dict(dtype._by_name))
    monkeypatch.setattr(module, "_NUMPY_NAMES", dict(module._NUMPY_NAMES))
    seconds = np.dtype("datetime64[s]")

    made = add_data_type(DataType("seconds", seconds, np.datetime64, "M", seconds))

    assert dtype("seconds") is dtype(seconds) is made
    with pytest.raises(ValueError, match="exists already"):
        add_data_type(made.record)


@pytest.mark.parametrize(
    ("like", "name"),
    [
        (np.dtype(">M8[us]"), "datetime64[us]"),
        (np.dtype("m8"), "timedelta64"),
        ("datetime64[1s]", "datetime64[s]"),
        ("datetime64[25s]", "datetime64[25s]"),
        (np.dtype(">U5"), "U5"),
        (np.dtype("S5"), "S5"),
        ("V5", "V5"),
        ("S1", "char"),
        ("V1", "byte"),
        (np.dtype([("a", ">i4")]), '[["a", "int32"]]'),
        ('[["a","int32"]]', '[["a", "int32"]]'),
        (
            [["a", "int32"], ["b", [["c", "S3", [2]]]]],
            '[["a", "int32"], ["b", [["c", "S3", [2]]]]]',
        ),
    ],
)
def test_parametric_types_have_one_object_per_canonical_name(like, name):
    found = dtype(like)
    assert found.name == name
    assert found is dtype(name)
    assert dtype.parse(found.to_json()) is found
    assert pickle.loads(pickle.dumps(found)) is found
    assert found == dtype(found.array_dtype) or name == "V5"


def test_records_print_as_lists_of_fields():
    record = dtype([["a", "int32"], ["b", "bfloat16", [2]]])
    assert record.is_record
    assert record.to_json() == [["a", "int32"], ["b", "bfloat16", [2]]]
    assert repr(record) == 'dtype([["a", "int32"], ["b", "bfloat16", [2]]])'
    assert np.asarray(record((1, [2, 3])))["b"].tolist() == [2, 3]


@pytest.mark.parametrize(
    "name", ["U0", "S", "datetime64[q]", "datetime64[0s]", "U5x", "[[", "[[]]"]
)
def test_unknown_parameters_are_refused(name):
    with pytest.raises(SpecError):
        dtype(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("u1", "uint8"), ("<f4", "float32"), (">f4", "float32"), ("int", "int64"),
     ("double", "float64"), ("?", "bool"), ("|b1", "bool"),
     ("M8[s]", "datetime64[s]"), ("<U7", "U7"), ("|S3", "S3")],
)  # fmt: skip
def test_names_of_numpy_are_what_they_stand_for(name, meant):
    assert dtype(name) is dtype(meant)
    assert dtype.parse(name) is dtype(meant)


@pytest.mark.parametrize(("name", "meant"), [("flaot32", "float32"), ("str", "ustring")])
def test_near_names_are_offered(name, meant):
    with pytest.raises(SpecError, match=f'did you mean "{meant}"'):
        dtype(name)


def test_hints_do_not_name_records_of_others():
    dtype([["hint", "int8"]])
    with pytest.raises(SpecError) as caught:
        dtype('[["hint", "int9"]')
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "several"),
    [("int32", False), ("bool", False), ("byte", False), ("char", False), ("bfloat16", False),
     ("string", True), ("json", True), ("U3", True), ("S2", True), ("datetime64[s]", False)],
)  # fmt: skip
def test_what_can_be_read_in_several_ways(name, several):
    assert dtype(name).has_readings is several
    assert dtype([("a", "int8")]).has_readings


@pytest.mark.parametrize(
    ("name", "kind", "low", "high"),
    [("uint2", "u", 0, 3), ("uint4", "u", 0, 15), ("float6_e2m3fn", "f", -7.5, 7.5),
     ("float6_e3m2fn", "f", -28, 28), ("float8_e4m3", "f", -240, 240)],
)  # fmt: skip
def test_registered_types_that_the_reference_lacks(name, kind, low, high):
    found = dtype(name)

    assert found.kind == kind
    assert found.array([low, high]).astype(float).tolist() == [low, high]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bool", np.dtype("bool")),
        ("uint16", np.dtype("uint16")),
        ("complex64", np.dtype("complex64")),
        ("bfloat16", np.dtype(ml_dtypes.bfloat16)),
        ("float8_e5m2", np.dtype(ml_dtypes.float8_e5m2)),
        ("int4", np.dtype(ml_dtypes.int4)),
        ("string", np.dtype(object)),
        ("ustring", np.dtype(object)),
        ("json", np.dtype(object)),
        ("char", np.dtype("S1")),
        ("byte", np.dtype("V1")),
        ("datetime64[s]", np.dtype("M8[s]")),
        ("U7", np.dtype("U7")),
        ("V3", np.dtype("V3")),
    ],
)
def test_numpy_takes_it_for_the_type_of_what_is_read(name, meant):
    found = dtype(name)
    assert np.dtype(found) == meant
    assert found.__numpy_dtype__ == meant
    assert getattr(found, "dtype") == meant  # noqa: B009 - what NumPy asks for before 2.4
    assert np.empty(2, found).dtype == meant
    assert np.can_cast(found, meant)
    # and it stays what it is
    assert repr(found) == f'dtype("{name}")'
    assert found.to_json() == name


def test_numpy_takes_records():
    found = dtype([["x", "uint16"], ["y", "<f4"]])
    assert np.dtype(found) == np.dtype([("x", "<u2"), ("y", "<f4")])
    assert np.zeros(2, np.dtype(found))["x"].tolist() == [0, 0]
