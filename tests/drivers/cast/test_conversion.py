import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.drivers.cast.conversion import conversion
from tensorstore_py.errors import SpecError
from tests.drivers.elements import DATA_TYPES, elements

NAMES = [name for name in dir(reference) if isinstance(getattr(reference, name), reference.dtype)]
PLACEHOLDERS = {"string": b"a", "ustring": "a", "json": 1, "char": b"a"}


def one(name):
    element = PLACEHOLDERS.get(name, 0)
    target = ts.dtype(name).array_dtype
    return np.zeros(1, target) if name == "byte" else np.array([element], target)


@pytest.mark.parametrize("source", NAMES)
def test_which_pairs_convert_as_in_the_reference(source):
    base = reference.array(one(source), dtype=reference.dtype(source))
    for target in NAMES:
        try:
            expected = reference.cast(base, target).mode
        except ValueError:
            expected = ""
        found = "r" * (conversion(ts.dtype(source), ts.dtype(target)) is not None)
        found += "w" * (conversion(ts.dtype(target), ts.dtype(source)) is not None)
        assert found == expected, target


VALUES = [
    ("float32", "int8", [1.9, -1.9, 300, -300, np.nan, np.inf]),
    ("float64", "uint8", [1.9, -1.9, 300, -300]),
    ("float64", "int16", [1e10, 70000, np.nan]),
    ("float64", "uint32", [1e10, -1, np.nan]),
    ("float64", "int64", [1e19, -1e19, np.nan]),
    ("float64", "bool", [0, 0.5, np.nan]),
    ("float32", "int2", [1, 2, 3, -5, 0.9]),
    ("float32", "float8_e4m3fn", [1000, 1.3]),
    ("int32", "uint8", [300, -1]),
    ("int64", "int4", [100, -9]),
    ("int8", "int2", [2]),
    ("int64", "float16", [10**6]),
    ("int64", "bfloat16", [257]),
    ("uint64", "int64", [2**64 - 1]),
    ("bfloat16", "int8", [200]),
    ("float8_e5m2", "int8", [57344]),
    ("int4", "bool", [0, 3]),
    ("bool", "int4", [True]),
    ("complex64", "float32", [1 + 2j]),
    ("complex64", "int8", [300 + 1j]),
    ("complex128", "complex64", [1j]),
    ("complex64", "json", [1j]),
    ("float32", "json", [1.5, np.inf]),
    ("int4", "json", [3]),
    ("uint64", "json", [2**64 - 1]),
    ("float8_e4m3fn", "json", [1.5]),
    ("json", "int32", [1, "2", 3.0, " 7"]),
    ("json", "int8", [300]),
    ("json", "int32", [3.5]),
    ("json", "int32", [None]),
    ("json", "bool", [True, "true", "false"]),
    ("json", "bool", [1]),
    ("json", "float32", [1, "2.5", "nan"]),
    ("json", "float32", [True]),
    ("json", "ustring", ["a"]),
    ("json", "ustring", [1]),
    ("json", "string", ["a", "\u1234"]),
    ("json", "uint64", [2**64 - 1]),
    ("ustring", "json", ["a"]),
    ("ustring", "string", ["\u1234"]),
    ("string", "json", [b"a"]),
    ("string", "json", [b"\xff"]),
    ("string", "ustring", [b"a"]),
    ("string", "ustring", [b"\xff"]),
    ("int32", "string", [5]),
    ("float64", "ustring", [1e5, 1e6, 1e-5, -0.0, 100.0, 1e15, 3e-7, np.nan, np.inf]),
    ("bfloat16", "ustring", [1.5]),
    ("complex64", "ustring", [1 + 2j]),
]


@pytest.mark.parametrize(("source", "target", "values"), VALUES)
def test_values_as_in_the_reference(source, target, values):
    array = np.array(values, ts.dtype(source).array_dtype)
    base = reference.array(array, dtype=reference.dtype(source))
    convert = conversion(ts.dtype(source), ts.dtype(target))
    assert convert is not None
    try:
        expected = reference.cast(base, target).read().result()
    except ValueError:
        with pytest.raises(ts.SpecError):
            convert(array)
        return
    found = convert(array)
    assert found.dtype == expected.dtype
    assert [str(element) for element in found] == [str(element) for element in expected]


def test_no_digit_is_lost_in_text():
    for value in (1 / 3, 123456789.123, np.float32(1 / 3), np.float16(0.1)):
        array = np.array([value])
        convert = conversion(ts.dtype(array.dtype), ts.ustring)
        assert convert is not None
        assert np.array([float(convert(array)[0])]).astype(array.dtype) == array


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("datetime64[s]", "datetime64[ms]", ["2020-01-01"], ["2020-01-01T00:00:00.000"]),
        ("datetime64[s]", "int64", ["1970-01-02"], [86400]),
        ("int32", "timedelta64[s]", [5], [np.timedelta64(5, "s")]),
        ("U5", "ustring", ["abc"], ["abc"]),
        ("U5", "string", ["abc"], [b"abc"]),
        ("ustring", "U5", ["abc"], ["abc"]),
        ("string", "U5", [b"abc"], ["abc"]),
        ("S3", "S5", [b"abc"], [b"abc"]),
    ],
)
def test_types_that_the_reference_has_not(source, target, values, expected):
    source, target = ts.dtype(source), ts.dtype(target)
    convert = conversion(source, target)
    assert convert is not None
    found = convert(np.array(values, source.array_dtype))
    np.testing.assert_array_equal(found, np.array(expected, target.array_dtype))


def test_text_is_never_cut():
    convert = conversion(ts.ustring, ts.dtype("U2"))
    assert convert is not None
    with pytest.raises(ts.SpecError):
        convert(np.array(["abc"], object))


@pytest.mark.parametrize(
    ("source", "target"), [("U5", "int32"), ("datetime64[s]", "float64"), ("json", "object")]
)
def test_pairs_without_conversion(source, target):
    assert conversion(ts.dtype(source), ts.dtype(target)) is None


NUMERIC = [name for name in DATA_TYPES if ts.dtype(name).kind in "biufc"]


@pytest.mark.parametrize("source", NUMERIC)
def test_numbers_convert_alike_with_and_without_dimensions(source):
    data_type = ts.dtype(source)
    array = elements(data_type, (3,))
    if source in ("float32", "float64", "bfloat16"):
        array[2] = 3e9  # more than a signed integer of 32 bits takes
    for name in NUMERIC:
        convert = conversion(data_type, ts.dtype(name))
        if convert is None:
            assert (data_type.kind, name) == ("c", "bool")
            continue
        expected = convert(array)
        assert expected.dtype == ts.dtype(name).array_dtype
        for place, element in enumerate(array):
            found = convert(np.array(element))
            assert found.shape == ()
            assert found.tobytes() == expected[place : place + 1].tobytes(), name


@pytest.mark.parametrize("source", ["int2", "uint4", "bfloat16", "float6_e2m3fn", "float8_e5m2"])
def test_powers_of_two_survive_in_a_type_that_has_nothing_else(source):
    array = np.array([1, 1, 1], np.float32).astype(ts.dtype(source).array_dtype)
    there = conversion(ts.dtype(source), ts.dtype("float8_e8m0fnu"))
    back = conversion(ts.dtype("float8_e8m0fnu"), ts.dtype(source))
    assert there is not None
    assert back is not None
    assert there(array).astype(np.float32).tolist() == [1, 1, 1]
    assert back(there(array)).tobytes() == array.tobytes()


def test_floats_beyond_an_unsigned_integer_wrap_around_in_arrays_of_any_size():
    for count in (1, 100):
        for name in ("float32", "float64", "bfloat16"):
            convert = conversion(ts.dtype(name), ts.uint32)
            assert convert is not None
            array = np.full(count, 2.0**33 + 2.0**31).astype(ts.dtype(name).array_dtype)
            assert set(convert(array).tolist()) == {2**31}


@pytest.mark.parametrize(
    ("target", "element", "expected"),
    [
        ("string", "a", b"a"),
        ("string", b"b", b"b"),
        ("ustring", "a", "a"),
        ("ustring", b"b", "b"),
        ("json", {"a": [1]}, {"a": [1]}),
        ("string", 5, None),
        ("ustring", None, None),
        ("json", 1j, None),
    ],
)
def test_objects_convert_to_text_and_json_where_they_are(target, element, expected):
    convert = conversion(ts.dtype("object"), ts.dtype(target))
    assert convert is not None
    array = np.empty((), object)
    array[()] = element
    if expected is None:
        with pytest.raises(SpecError):
            convert(array)
    else:
        assert convert(array)[()] == expected
