import math

import numpy as np
import pytest

from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.drivers.zarr.fill_value import (
    field_fill_value,
    fill_value_json,
    fill_value_of,
    parse_fill_value,
)
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import dtype

PAIR = [["x", ">u2", [2]], ["y", "<f4"]]

# data type, JSON in, JSON out
ROUND_TRIPS = [
    ("<u2", None, None),
    ("|b1", True, True),
    ("|u1", 255, 255),
    ("|u1", 3.0, 3),
    (">i8", -(2**63), -(2**63)),
    ("<u8", 2**64 - 1, 2**64 - 1),
    ("int4", -8, -8),
    ("int2", 1, 1),
    ("<f4", 1, 1.0),
    ("<f4", 0.1, 0.10000000149011612),
    ("<f4", "NaN", "NaN"),
    (">f4", "-Infinity", "-Infinity"),
    ("<f4", math.nan, "NaN"),
    ("<f4", 1e300, "Infinity"),
    ("<f4", "1.5", 1.5),
    ("<f2", 65520, "Infinity"),
    ("<f8", 0.1, 0.1),
    ("bfloat16", 0.1, 0.10009765625),
    ("float8_e4m3fn", 1000, "NaN"),
    ("float8_e5m2", "Infinity", "Infinity"),
    ("float4_e2m1fn", "BQ==", "BQ=="),
    ("<M8[ns]", 5, 5),
    (">M8[s]", "NaT", -(2**63)),
    ("<m8[D]", -(2**63), -(2**63)),
    ("<m8[D]", 3.0, 3),
    ("<U3", "é", "é"),
    (">U3", "", ""),
    ("<c8", [1.5, "NaN"], [1.5, "NaN"]),
    (">c16", [0.1, -2], [0.1, -2.0]),
    ("<c8", "AACAPwAAAEA=", [1.0, 2.0]),
    ("|S3", "YWJj", "YWJj"),
    ("|S3", "", "AAAA"),
    ("|S3", "aGk=", "aGkA"),
    ("|V2", "aGk", "aGk="),
    ("|V3", "AQID", "AQID"),
    (PAIR, "AAEAAgAAgD8=", "AAEAAgAAgD8="),
    ([["x", "|b1"], ["y", "<f4"]], "AgACAAA=", "AQACAAA="),
]


@pytest.mark.parametrize(("encoded", "json", "written"), ROUND_TRIPS)
def test_values_read_and_write_as_the_reference_does(
    encoded: object, json: object, written: object
) -> None:
    stored = StoredType.parse(encoded)

    data = parse_fill_value(stored, json)

    assert fill_value_json(stored, data) == written
    assert type(fill_value_json(stored, data)) is type(written)
    assert data is None or len(data) == stored.size_bytes


def test_bytes_are_those_of_a_stored_element() -> None:
    assert parse_fill_value(StoredType.parse(">u2"), 258) == b"\x01\x02"
    assert parse_fill_value(StoredType.parse("<u2"), 258) == b"\x02\x01"


@pytest.mark.parametrize(
    ("encoded", "json", "problem"),
    [
        ("|b1", 1, "expected true or false, but found 1"),
        ("|u1", 256, "from 0 to 255, but found 256"),
        ("|u1", -1, "from 0 to 255"),
        ("|u1", 3.5, "from 0 to 255"),
        ("|u1", True, "found true"),
        ("|u1", "3", "from 0 to 255"),
        ("int4", 8, "from -8 to 7"),
        ("<f4", "nan", '"NaN", "Infinity", "-Infinity", but found "nan"'),
        ("<f4", "inf", "expected a number"),
        ("<f4", True, "expected a number"),
        ("<f4", [1], "expected a number"),
        ("<c8", 1.5, r"expected \[real part, imaginary part\]"),
        ("<c8", [1, 2, 3], "expected \\[real part"),
        ("<c8", [1, "x"], r"^\[1\]: expected a number"),
        ("<c8", "NaN", "expected 8 bytes in base64"),
        ("|S3", "AAAAAAAA", "expected 3 bytes in base64"),
        ("|S3", "abc", "expected 3 bytes in base64"),
        ("|S3", 3, "expected 3 bytes in base64"),
        ("|V3", "", "expected 3 bytes in base64"),
        ("<M8[ns]", 1.5, "expected a whole number of units"),
        ("<M8[ns]", 2**63, "expected a whole number of units"),
        ("<m8[s]", True, "expected a whole number of units"),
        ("<m8[s]", "nat", '"NaT", but found "nat"'),
        ("<U2", "abc", "expected text of at most 2 characters"),
        ("<U2", 0, "expected text of at most 2 characters"),
        (PAIR, 0, "expected 8 bytes in base64"),
        (PAIR, "AAAA", "expected 8 bytes in base64"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(
    encoded: object, json: object, problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        parse_fill_value(StoredType.parse(encoded), json)


def test_a_field_sees_its_part_in_native_order() -> None:
    stored = StoredType.parse(PAIR)
    data = parse_fill_value(stored, "AAEAAgAAgD8=")
    assert data is not None

    x = field_fill_value(stored.view("x"), data)
    y = field_fill_value(stored.view("y"), data)

    assert x.dtype.isnative
    assert x.tolist() == [1, 2]
    assert (y.shape, y.item()) == ((), 1.0)
    assert not x.flags.writeable


def test_a_stored_truth_value_of_any_bits_is_true() -> None:
    field = StoredType.parse("|b1").view()

    assert field_fill_value(field, b"\x02").tobytes() == b"\x01"


def test_text_is_seen_as_characters() -> None:
    field = StoredType.parse("|S2").view()

    assert field_fill_value(field, b"hi").tolist() == [b"h", b"i"]


def test_a_value_is_broadcast_to_the_inner_shape() -> None:
    stored = StoredType.parse([["x", ">u2", [2, 3]]])

    data = fill_value_of(stored, stored.view(), np.array([7, 8, 9], "u2"))

    assert np.frombuffer(data, ">u2").tolist() == [7, 8, 9, 7, 8, 9]
    byte = StoredType.parse("|u1")
    assert fill_value_of(byte, byte.view(), np.array([5], "u1")) == b"\x05"


def test_a_value_of_another_shape_is_refused() -> None:
    stored = StoredType.parse([["x", ">u2", [2, 3]]])

    with pytest.raises(SpecError, match=r"shape \[2\] does not broadcast"):
        fill_value_of(stored, stored.view(), np.array([7, 8], "u2"))


def test_one_field_s_value_is_not_the_value_of_all() -> None:
    stored = StoredType.parse(PAIR)

    with pytest.raises(SpecError, match="as base64"):
        fill_value_of(stored, stored.view("y"), np.array(1, "f4"))


def test_a_record_s_value_is_the_value_of_all_fields() -> None:
    stored = StoredType.parse(PAIR)
    value = np.array(([1, 2], 1.0), stored.view().native)

    data = fill_value_of(stored, stored.view(), value)

    assert data == parse_fill_value(stored, "AAEAAgAAgD8=")
    assert field_fill_value(stored.view(), data) == value


# data type of the objects, JSON in, JSON out, value
OBJECTS = [
    ("ustring", "é", "é", "é"),
    ("ustring", 0, "", ""),
    ("ustring", None, None, ""),
    ("string", "AAE=", "AAE=", b"\0\1"),
    ("string", 0, "", b""),
    ("string", None, None, b""),
    ("json", {"b": [1], "a": None}, {"a": None, "b": [1]}, {"a": None, "b": [1]}),
    ("json", [1, 2], [1, 2], [1, 2]),
    ("json", None, None, None),
    ("object", 0, 0, 0),
    ("object", None, None, None),
]


@pytest.mark.parametrize(("name", "json", "written", "value"), OBJECTS)
def test_objects_have_values_by_their_type(
    name: str, json: object, written: object, value: object
) -> None:
    stored = StoredType.parse("|O")
    view = stored.view(asked=dtype(name))

    data = parse_fill_value(stored, json, dtype(name))

    assert fill_value_json(stored, data) == written
    found = field_fill_value(view, data)
    assert (found.shape, found.dtype.kind, found.item()) == ((), "O", value)
    if json is not None:
        assert fill_value_of(stored, view, found) == data


@pytest.mark.parametrize(
    ("name", "json", "problem"),
    [
        ("ustring", 3, "expected a string, but found 3"),
        ("ustring", True, "expected a string"),
        ("ustring", ["a"], "expected a string"),
        ("string", "a", "expected a byte string in base64"),
        ("string", [1], "expected a byte string in base64"),
    ],
)
def test_an_object_of_another_type_is_refused(name: str, json: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        parse_fill_value(StoredType.parse("|O"), json, dtype(name))


def test_a_value_that_is_no_json_cannot_be_written() -> None:
    stored = StoredType.parse("|O")
    value = np.fromiter([{1, 2}], np.dtype(object)).reshape(())

    with pytest.raises(SpecError, match="cannot be written in metadata"):
        fill_value_of(stored, stored.view(), value)
