import numpy as np
import pytest
import tensorstore as reference

from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.fill_value import (
    check_broadcast,
    fill_value_from_json,
    fill_value_like,
    fill_value_to_json,
    same_fill_value,
)
from tensorstore_py._spec.json_value import freeze
from tensorstore_py.errors import MismatchError, SpecError

NAMES: list[str | None] = [
    None,
    "bool",
    "int8",
    "uint64",
    "float32",
    "bfloat16",
    "int4",
    "complex64",
    "string",
    "ustring",
    "json",
]
VALUES = [
    42,
    3.5,
    True,
    "abc",
    b"abc",
    [1, 2],
    [[[1], [2]]],
    float("nan"),
    -1,
    np.float32(2),
    np.array([1, 1]),
    np.array(3, "i1"),
    1 + 2j,
    [1, [2]],
    {"a": 1},
    np.broadcast_to(np.int8(3), (2, 3)),
    np.broadcast_to(np.arange(3), (2, 3)),
]
JSON_VALUES: dict[str, list[object]] = {
    "bool": [True, "true", "True", 1, None],
    "int8": ["3", " 3", "3.0", "a", True, None, 3.0, -129, [], [[]], [[1, 2], [3]], [1, [2]]],
    "uint64": [2**63, 2**64 - 1, -1],
    "int4": ["3", 8, -8],
    "float32": ["3", "NaN", "nan", "Infinity", "-inf", "a", True, None, 1e39, 3],
    "bfloat16": ["NaN", 70000.0],
    "float8_e5m2": ["3", 1e9],
    "complex64": [3, [1, 2]],
    "string": ["é", 3],
    "ustring": ["é", ["a", "b"]],
    "json": [None, {"a": [1]}, [[1], [2]], [1, [2]]],
    "char": ["a"],
}


def errors(error):
    return [kind for kind in (TypeError, OverflowError, ValueError) if isinstance(error, kind)][:1]


def theirs(**arguments):
    try:
        array = reference.Schema(**arguments).fill_value
    except (TypeError, ValueError, OverflowError) as error:
        return errors(error)
    return repr(array)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_converted_as_in_the_reference(name, value):
    if (name is None or name == "json") and isinstance(value, bytes):
        with pytest.raises((TypeError, ValueError)):
            fill_value_like(value, name and dtype(name))
        return
    arguments = {"fill_value": value} if name is None else {"dtype": name, "fill_value": value}
    try:
        mine = repr(fill_value_like(value, None if name is None else dtype(name)))
    except (TypeError, ValueError, OverflowError) as error:
        mine = errors(error)

    assert theirs(**arguments) == mine


@pytest.mark.parametrize(
    ("name", "json"), [(name, json) for name, values in JSON_VALUES.items() for json in values]
)
def test_parsed_as_in_the_reference(name, json):
    expected = theirs(json={"dtype": name, "fill_value": json})
    try:
        mine = repr(fill_value_from_json(freeze(json), dtype(name)))
    except SpecError as error:
        mine = errors(error)

    assert expected == mine


def test_errors_have_the_position():
    with pytest.raises(SpecError) as caught:
        fill_value_from_json(((1, 2), (3, "x")), dtype("int8"))

    assert caught.value.path == (1, 1)
    assert 'from -128 to 127, but found "x"' in caught.value.problem


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("int4", [-8, 7], [-8, 7]),
        ("bfloat16", 1.5, 1.5),
        ("complex64", 1 + 2j, [1.0, 2.0]),
        ("string", b"\xc3\xa9", "é"),
        ("json", {"a": 1}, {"a": 1}),
        ("bool", [True, False], [True, False]),
        ("float32", float("inf"), float("inf")),
    ],
)
def test_to_json(name, value, expected):
    assert fill_value_to_json(fill_value_like(value, dtype(name))) == expected


def test_characters_have_no_json():
    with pytest.raises(SpecError, match="no JSON form of char"):
        fill_value_to_json(fill_value_like(b"a", dtype("char")))


def test_handed_out_read_only():
    with pytest.raises(ValueError, match="read-only"):
        fill_value_like([1, 2], None)[0] = 3


def test_equality():
    one = fill_value_like(1, None)

    assert same_fill_value(one, fill_value_like(1, None))
    assert not same_fill_value(one, fill_value_like(1.0, None))
    assert not same_fill_value(one, None)
    assert same_fill_value(None, None)


@pytest.mark.parametrize(
    ("value", "shape", "fits"),
    [(1, [], True), ([1, 2], [3, 2], True), ([[1], [2]], [2, 9], True), ([1, 2], [3], False)],
)
def test_broadcast(value, shape, fits):
    array, domain = fill_value_like(value, None), IndexDomain(shape=shape)

    if fits:
        check_broadcast(array, domain)
    else:
        with pytest.raises(MismatchError, match="Cannot broadcast"):
            check_broadcast(array, domain)


def test_a_record_from_its_fields_by_name():
    record = dtype([["x", "uint8"], ["when", "datetime64[D]"]])

    found = fill_value_like({"x": 3, "when": "2020-01-01"}, record)

    assert found.item()[0] == 3
    assert str(found.item()[1]) == "2020-01-01"
