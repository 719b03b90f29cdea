import base64

import numpy as np
import pytest

from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.fill_value import (
    byte_permutation,
    default_fill_value,
    fill_value_to_json,
    parse_fill_value,
    same_bits,
    seen_fill_value,
    shows_bytes,
)
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import dtype


def fixed(name: str, size: int) -> dict[str, object]:
    return {"name": name, "configuration": {"length_bytes": size}}


def time(name: str, unit: str) -> dict[str, object]:
    return {"name": f"numpy.{name}", "configuration": {"unit": unit, "scale_factor": 1}}


INNER = [["a", fixed("null_terminated_bytes", 3)], ["b", time("datetime64", "s")]]
PAIRS = [["x", "uint16"], ["y", {"name": "structured", "configuration": {"fields": INNER}}]]
STRUCT = {"name": "struct", "configuration": {"fields": PAIRS}}
STRUCTURED = {"name": "structured", "configuration": {"fields": PAIRS}}
FILL = {"x": 258, "y": {"a": "YWI=", "b": -1}}
BYTES = b"\x02\x01ab\0" + b"\xff" * 8


@pytest.mark.parametrize(
    ("data_type", "json", "expected", "written"),
    [
        ("uint8", 7, 7, 7),
        (time("datetime64", "s"), 0, np.datetime64(0, "s"), 0),
        (time("datetime64", "ns"), "NaT", np.datetime64("NaT", "ns"), "NaT"),
        (time("timedelta64", "D"), -(2**63), np.timedelta64("NaT", "D"), "NaT"),
        (time("timedelta64", "D"), 3.0, np.timedelta64(3, "D"), 3),
        (fixed("fixed_length_utf32", 8), "é", "é", "é"),
        (fixed("null_terminated_bytes", 3), "YWI=", b"ab", "YWI="),
        (fixed("null_terminated_bytes", 3), "", b"", ""),
        (fixed("null_terminated_bytes", 3), [97], b"a", "YQ=="),
        (fixed("raw_bytes", 3), "YWIA", np.void(b"ab\0"), "YWIA"),
        (fixed("raw_bytes", 2), [1, 2], np.void(b"\1\2"), "AQI="),
        ("r16", [1, 255], np.void(b"\1\xff"), [1, 255]),
        ("r16", "AQI=", np.void(b"\1\2"), [1, 2]),
        ("string", "", "", ""),
        ("bytes", [0, 255], b"\0\xff", "AP8="),
        ("variable_length_bytes", "AP8=", b"\0\xff", "AP8="),
    ],
)
def test_values(data_type: object, json: object, expected: object, written: object) -> None:
    stored = StoredType.parse(data_type)

    value = parse_fill_value(json, stored)

    assert value.shape == ()
    assert value.dtype == stored.stored
    assert repr(value[()]) == repr(np.array(expected, stored.stored)[()])
    assert fill_value_to_json(value, stored) == written
    assert same_bits(parse_fill_value(written, stored), value)


def test_a_record_is_an_object_of_its_fields() -> None:
    stored = StoredType.parse(STRUCT)

    value = parse_fill_value(FILL, stored)

    assert value.tobytes() == BYTES
    assert fill_value_to_json(value, stored) == {
        "x": 258,
        # the inner record keeps its own form
        "y": base64.b64encode(BYTES[2:]).decode(),
    }


def test_a_record_of_zarr_python_is_base64() -> None:
    stored = StoredType.parse(STRUCTURED)
    text = base64.b64encode(BYTES).decode()

    for json in (text, FILL):
        value = parse_fill_value(json, stored)
        assert value.tobytes() == BYTES
        assert fill_value_to_json(value, stored) == text


def test_base64_follows_the_byte_order_of_what_is_stored() -> None:
    stored = StoredType.parse(STRUCTURED)
    text = base64.b64encode(b"\x01\x02ab\0" + b"\xff" * 8).decode()

    value = parse_fill_value(text, stored, "big")

    assert value.tobytes() == BYTES
    assert fill_value_to_json(value, stored, "big") == text


def test_the_value_of_the_only_field_stands_for_the_record() -> None:
    stored = StoredType.parse([["x", "int8"]])

    assert parse_fill_value(-3, stored).tobytes() == b"\xfd"
    assert fill_value_to_json(parse_fill_value(-3, stored), stored) == {"x": -3}


@pytest.mark.parametrize(
    ("data_type", "json", "message"),
    [
        (time("datetime64", "s"), "2020-01-01", 'whole number of units or "NaT"'),
        (time("datetime64", "s"), 2**63, "whole number of units"),
        (time("timedelta64", "s"), True, "whole number of units"),
        (fixed("fixed_length_utf32", 8), "abc", "at most 2 characters"),
        (fixed("fixed_length_utf32", 8), 0, "expected a string"),
        (fixed("null_terminated_bytes", 2), "YWJj", "at most 2 bytes"),
        (fixed("null_terminated_bytes", 2), "Y", "expected base64"),
        (fixed("raw_bytes", 3), "YWI=", "expected 3 bytes, but found 2"),
        ("r16", [1], "expected 2 bytes, but found 1"),
        ("r16", [1, 256], "integers from 0 to 255"),
        ("r16", [1, True], "integers from 0 to 255"),
        ("r16", 0, "expected base64 text or a list"),
        ("string", 0, "expected a string"),
        ("bytes", "é", "expected base64"),
        (STRUCT, 0, "expected an object of all fields"),
        (STRUCT, {"x": 1}, "y: the fill value of this field is missing"),
        (STRUCT, {**FILL, "z": 1}, "z: no such field"),
        (STRUCT, {**FILL, "x": -1}, "x: expected an integer from 0 to 65535"),
        (STRUCT, {"x": 1, "y": {"a": "", "b": None}}, "y.b: "),
        (STRUCT, "AAAA", "expected 13 bytes in base64"),
    ],
)
def test_what_is_no_value_of_the_type(data_type: object, json: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_fill_value(json, StoredType.parse(data_type))


def test_defaults() -> None:
    found = [
        default_fill_value(StoredType.of(dtype(name)))[()]
        for name in ("uint8", "ustring", "string", "datetime64[s]", "S2")
    ]

    assert found[:3] == [0, "", b""]
    assert np.isnat(found[3])
    assert found[4] == b""


def test_what_is_seen_of_an_element() -> None:
    stored = StoredType.parse(STRUCT)
    value = parse_fill_value(FILL, stored)

    assert seen_fill_value(stored, stored.view("x"), value) == 258
    assert seen_fill_value(stored, stored.view("y.a"), value) == b"ab"
    whole = stored.view(as_void=True)
    assert shows_bytes(stored, whole)
    assert seen_fill_value(stored, whole, value).tobytes() == BYTES
    assert seen_fill_value(stored, whole, value, "big").tobytes()[:2] == b"\1\2"
    assert not shows_bytes(StoredType.parse("r16"), StoredType.parse("r16").view())
    with pytest.raises(ValueError, match="read-only"):
        seen_fill_value(stored, whole, value)[0] = b"a"


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        ("uint8", None),
        ("r32", None),
        ("uint16", [1, 0]),
        ("complex64", [3, 2, 1, 0, 7, 6, 5, 4]),
        (fixed("fixed_length_utf32", 8), [3, 2, 1, 0, 7, 6, 5, 4]),
        ([["a", "r16"], ["b", "bfloat16"], ["c", "bool"]], [0, 1, 3, 2, 4]),
    ],
)
def test_where_bytes_go_in_the_other_order(data_type: object, expected: list | None) -> None:
    stored = StoredType.parse(data_type)
    found = byte_permutation(stored, "big")

    assert byte_permutation(stored, "little") is None
    assert (None if found is None else found.tolist()) == expected


def test_bits_count_and_objects_are_compared_by_value() -> None:
    assert not same_bits(np.array(0.0), np.array(-0.0))
    assert same_bits(np.array(np.nan), np.array(np.nan))
    assert not same_bits(np.array(1, "u1"), np.array(1, "i1"))
    text = StoredType.parse("string")
    assert same_bits(parse_fill_value("ab" * 50, text), parse_fill_value("ab" * 50, text))
