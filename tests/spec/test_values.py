"""Fill values, elements and other values as JSON, and how JSON is read and printed."""

import numpy as np
import pytest
import tensorstore as reference

from tensorstore_py import IndexDomain, IndexTransform, MismatchError, SpecError, d, dtype
from tensorstore_py._spec import dtype as module
from tensorstore_py._spec.dtype import (
    DataType,
    add_data_type,
    field_types_json,
    numpy_of_name,
    parametric_name,
)
from tensorstore_py._spec.fill_value import (
    check_broadcast,
    fill_value_from_json,
    fill_value_like,
    fill_value_to_input,
    fill_value_to_json,
    fill_value_to_output,
    same_fill_value,
)
from tensorstore_py._spec.json_value import describe, freeze, parse_json_text, same_json, thaw
from tensorstore_py._spec.pretty import pretty

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


class TestFillValue:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("value", VALUES, ids=repr)
    def test_converted_as_in_the_reference(self, name, value):
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
    def test_parsed_as_in_the_reference(self, name, json):
        expected = theirs(json={"dtype": name, "fill_value": json})
        try:
            mine = repr(fill_value_from_json(freeze(json), dtype(name)))
        except SpecError as error:
            mine = errors(error)

        assert expected == mine

    def test_errors_have_the_position(self):
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
    def test_to_json(self, name, value, expected):
        assert fill_value_to_json(fill_value_like(value, dtype(name))) == expected

    def test_characters_have_no_json(self):
        with pytest.raises(SpecError, match="no JSON form of char"):
            fill_value_to_json(fill_value_like(b"a", dtype("char")))

    def test_handed_out_read_only(self):
        with pytest.raises(ValueError, match="read-only"):
            fill_value_like([1, 2], None)[0] = 3

    def test_equality(self):
        one = fill_value_like(1, None)

        assert same_fill_value(one, fill_value_like(1, None))
        assert not same_fill_value(one, fill_value_like(1.0, None))
        assert not same_fill_value(one, None)
        assert same_fill_value(None, None)

    @pytest.mark.parametrize(
        ("value", "shape", "fits"),
        [(1, [], True), ([1, 2], [3, 2], True), ([[1], [2]], [2, 9], True), ([1, 2], [3], False)],
    )
    def test_broadcast(self, value, shape, fits):
        array, domain = fill_value_like(value, None), IndexDomain(shape=shape)

        if fits:
            check_broadcast(array, domain)
        else:
            with pytest.raises(MismatchError, match="Cannot broadcast"):
                check_broadcast(array, domain)

    def test_a_record_from_its_fields_by_name(self):
        record = dtype([["x", "uint8"], ["when", "datetime64[D]"]])

        found = fill_value_like({"x": 3, "when": "2020-01-01"}, record)

        assert found.item()[0] == 3
        assert str(found.item()[1]) == "2020-01-01"


VALUE = [[1, 2, 3], [4, 5, 6]]


class TestToOutput:
    array = fill_value_like([[1, 2, 3], [4, 5, 6]], None)

    def moved(self, *output):
        json = {"input_rank": 3, "output": list(output)}
        return fill_value_to_output(self.array, IndexTransform(json=json))

    def test_permuted_and_flipped(self):
        moved = self.moved(
            {"input_dimension": 2, "stride": -1}, {"offset": 4}, {"input_dimension": 1}
        )

        assert moved.tolist() == [[[3, 6]], [[2, 5]], [[1, 4]]]

    def test_refused(self):
        with pytest.raises(MismatchError, match="input dimension 1, which no output"):
            self.moved({"input_dimension": 2})
        with pytest.raises(MismatchError, match="strided"):
            self.moved({"input_dimension": 2, "stride": 2}, {"input_dimension": 1})


class TestFillValueView:
    @pytest.mark.parametrize(
        "term",
        [
            (slice(None), 1),
            (1,),
            (slice(None), slice(None, None, -1)),
            (slice(None), slice(0, 3, 2)),
            (slice(None), [2, 0, 2]),
            (Ellipsis, None),
            (None, 0),
        ],
        ids=repr,
    )
    def test_through_a_transform_as_in_the_reference(self, term):
        expected = reference.Schema(fill_value=VALUE, shape=[2, 3])[term].fill_value
        domain = IndexDomain(shape=[2, 3])
        transform = IndexTransform(domain)[term]

        mine = fill_value_to_input(fill_value_like(VALUE, None), transform, domain)

        assert repr(expected) == repr(mine)

    def test_diagonal(self):
        domain = IndexDomain(shape=[2, 2])
        transform = IndexTransform(domain)[d[0, 1].diagonal]

        mine = fill_value_to_input(fill_value_like([[1, 2], [3, 4]], None), transform, domain)

        assert mine.tolist() == [1, 4]

    def test_without_a_domain(self):
        array = fill_value_like([1, 2], None)
        whole = IndexTransform(input_rank=2)

        assert fill_value_to_input(array, whole.T, None).tolist() == [[1], [2]]
        with pytest.raises(MismatchError, match="bounds are unknown"):
            fill_value_to_input(array, whole[:, 0], None)
        with pytest.raises(MismatchError, match="Cannot broadcast"):
            fill_value_to_input(array, whole[:, 0:1], None)


RECORD = [["a", "int16"], ["t", "datetime64[s]"], ["c", "complex64"], ["s", "S3", [2]]]


ELEMENTS = [
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


class TestElementJson:
    @pytest.mark.parametrize(("name", "json"), ELEMENTS)
    def test_round_trip(self, name, json):
        array = fill_value_from_json(freeze(json), dtype(name))
        assert array.dtype == dtype(name).array_dtype
        assert fill_value_to_json(array) == json

    def test_dates_may_be_counts(self):
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
    def test_wrong_values_name_the_place(self, name, json, path):
        with pytest.raises(SpecError) as caught:
            fill_value_from_json(freeze(json), dtype(name))
        assert caught.value.path == path


class Printing:
    def to_json(self):
        return [1, np.float32(2)]


class TestJsonValue:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, None),
            (True, True),
            (np.uint8(3), 3),
            (np.float32(1.5), 1.5),
            (np.bool_(True), True),
            ([1, (2, [3])], (1, (2, (3,)))),
            (np.arange(3), (0, 1, 2)),
            (range(2), (0, 1)),
            ({1: "a"}, {"1": "a"}),
            (Printing(), (1, 2.0)),
            (2**64 - 1, 2**64 - 1),
            (float("inf"), float("inf")),
        ],
    )
    def test_freeze(self, given, expected):
        frozen = freeze(given)

        assert frozen == expected
        assert type(frozen) is type(expected)

    def test_freeze_refuses_what_json_cannot_hold(self):
        with pytest.raises(OverflowError):
            freeze(2**64)
        with pytest.raises(OverflowError):
            freeze([-(2**63) - 1])
        with pytest.raises(TypeError, match="'object'"):
            freeze({"a": object()})
        with pytest.raises(TypeError, match="'bytes'"):
            freeze(b"abc")

    def test_freeze_refuses_circles(self):
        circle: list[object] = []
        circle.append(circle)

        with pytest.raises(SpecError, match="contain itself"):
            freeze(circle)

    def test_thaw_sorts_members_and_makes_lists(self):
        json = thaw({"b": (1, {"d": 1, "c": Printing()}), "a": None})

        assert json == {"a": None, "b": [1, {"c": [1, 2.0], "d": 1}]}
        assert list(json) == ["a", "b"]
        with pytest.raises(TypeError, match="no JSON form"):
            thaw(object())

    def test_describe_is_short_json(self):
        assert describe({"a": [1, None, True, 'x"y']}) == '{"a":[1,null,true,"x\\"y"]}'
        assert len(describe("x" * 500)) == 60

    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            (float("nan"), float("nan"), True),
            ([1, {"a": (float("nan"), None)}], (1, {"a": [float("nan"), None]}), True),
            ([1, 2], [1, 2, 3], False),
            ({"a": 1}, {"b": 1}, False),
            ({"a": float("nan")}, {"a": None}, False),
            ("a", ["a"], False),
        ],
    )
    def test_nan_is_equal_to_itself(self, one, other, same):
        assert same_json(one, other) is same


class TestJsontext:
    def test_values(self):
        assert parse_json_text('{"a": [1, 2.5, null, true, "é"]}') == {
            "a": [1, 2.5, None, True, "é"]
        }
        assert parse_json_text(b'\xef\xbb\xbf{"a": "\xc3\xa9"}') == {"a": "é"}

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ('{"a": 1, "a": 1}', ("a",)),
            ('{"a": [0, {"b": {"c": 1, "d": 2, "c": 3}}]}', ("a", 1, "b", "c")),
            ('[{"a": {"x": 1, "x": 2}}]', (0, "a", "x")),
        ],
    )
    def test_repeated_members_are_named(self, text, path):
        with pytest.raises(SpecError, match="given twice") as caught:
            parse_json_text(text)

        assert caught.value.path == path

    @pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
    def test_numbers_that_json_has_not(self, constant):
        with pytest.raises(
            SpecError, match=f'{constant} is not JSON; write it as a string, "{constant}"'
        ):
            parse_json_text(f'{{"fill_value": {constant}}}')

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "line 1, column 1"),
            ('{"a": 1,}', "line 1"),
            ('{\n"a" 1}', "line 2, column 5"),
            (b'"\xff"', "not UTF-8"),
            ("[" * 100_000, "nested too deeply"),
        ],
    )
    def test_syntax(self, text, problem):
        with pytest.raises(SpecError, match=problem):
            parse_json_text(text)


def type_of(name):
    return dtype(name).array_dtype


def name_of(numpy_type):
    return dtype(numpy_type).name


class TestParametric:
    @pytest.mark.parametrize(
        "numpy_type",
        ["M8[ns]", "m8[D]", "M8[10ms]", "U7", "S7", [("a", "u2"), ("b", "f4", (2, 3))]],
    )
    def test_names_and_types_are_each_others_inverse(self, numpy_type):
        numpy_type = np.dtype(numpy_type)
        name = parametric_name(numpy_type, name_of)
        assert numpy_of_name(name, type_of) == numpy_type

    @pytest.mark.parametrize("numpy_type", ["u2", "?", "O", "S1", "U0", "V1"])
    def test_other_types_have_no_parameter(self, numpy_type):
        assert parametric_name(np.dtype(numpy_type), name_of) is None

    def test_padding_and_byte_order_do_not_matter(self):
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
    def test_malformed_records_name_the_place(self, fields, path):
        with pytest.raises(SpecError) as caught:
            numpy_of_name(fields, type_of)
        assert caught.value.path == path

    def test_the_table_is_open(self, monkeypatch):
        monkeypatch.setattr(dtype, "_by_name", dict(dtype._by_name))
        monkeypatch.setattr(module, "_NUMPY_NAMES", dict(module._NUMPY_NAMES))
        seconds = np.dtype("datetime64[s]")

        made = add_data_type(DataType("seconds", seconds, np.datetime64, "M", seconds))

        assert dtype("seconds") is dtype(seconds) is made
        with pytest.raises(ValueError, match="exists already"):
            add_data_type(made.record)


class TestPretty:
    @pytest.mark.parametrize(
        "json",
        [
            {},
            {"rank": 2},
            {"dimension_units": [[4.0, "nm"], None, [1e15, "é\n'\"\\"], [1.5e15, "\x01f"]]},
            {"dimension_units": [[4.0, "n" * length] for length in (20, 20, 20)]},
            {
                "fill_value": {
                    "a" * 30: "b" * 30,
                    "c": [1, 2.5, True, None, 1e-7, 123456789012345680.0],
                }
            },
            {"fill_value": {"a": {"b": {"c": {"d": "x" * 48}}}}},
            {"fill_value": {"a": {"b": {"c": {"d": "x" * 49}}}}},
            {"fill_value": {"a": list(range(26))}},
            {"fill_value": {"a": list(range(27))}},
        ],
    )
    def test_reads_like_the_reference(self, json):
        expected = reference.Schema(json)

        assert repr(expected) == pretty("Schema", expected.to_json())

    def test_infinities_have_no_literal(self):
        assert (
            pretty("Schema", {"a": [float("nan"), float("inf")]}) == "Schema({'a': [null, null]})"
        )
