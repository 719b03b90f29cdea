"""Data types, beside the reference's."""

import pickle

import ml_dtypes
import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py import SpecError, dtype

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


class TestDtype:
    @pytest.mark.parametrize("like", LIKE, ids=repr)
    def test_found_as_the_reference_does(self, like):
        assert outcome(reference.dtype, like) == outcome(dtype, like)

    def test_one_object_for_each_type(self):
        assert dtype("int8") is dtype(np.int8) is ts.int8
        assert dtype(ts.int8) is ts.int8
        assert pickle.loads(pickle.dumps(ts.int4)) is ts.int4
        assert len({ts.int8, dtype("int8"), ts.uint8}) == 2

    def test_equality(self):
        assert ts.bool == bool  # noqa: E721 - the very comparison that is tested
        assert bool == ts.bool  # noqa: E721
        assert ts.uint8 == np.uint8
        assert ts.uint8 == "uint8"
        assert ts.uint8 != np.int8
        assert np.uint8 != ts.bool
        assert ts.uint8 != "nothing"
        assert ts.uint8 is not None
        assert ts.uint8 != 5

    def test_call(self):
        assert type(ts.int16(3)) is np.int16
        assert ts.int4(-8) == -8
        assert ts.bool(1) is np.True_
        assert ts.ustring("a") == "a"
        assert ts.string(b"a") == b"a"
        assert ts.json((1, np.float32(2))) == [1, 2.0]

    def test_arrays_of_characters_have_a_size(self):
        assert ts.char.array_dtype == np.dtype("S1")
        assert ts.byte.array_dtype == np.dtype("V1")
        assert [ts.char.itemsize, ts.int4.itemsize, ts.int64.itemsize] == [
            1,
            1,
            8,
        ]
        assert [getattr(ts, name).kind for name in ("int4", "bfloat16", "json", "char")] == [
            "i",
            "f",
            "O",
            "S",
        ]

    def test_array_converts_safely(self):
        assert ts.int8.array([1, 2]).dtype == np.int8
        with pytest.raises(TypeError, match="safe"):
            ts.int8.array(np.arange(3))

    def test_parse_takes_names_only(self):
        assert dtype.parse("int8") is ts.int8
        with pytest.raises(SpecError, match="expected the name of a data type, but found 3"):
            dtype.parse(3)
        with pytest.raises(SpecError, match='did you mean "uint16"'):
            dtype.parse("uint_16")

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
    def test_parametric_types_have_one_object_per_canonical_name(self, like, name):
        found = dtype(like)
        assert found.name == name
        assert found is dtype(name)
        assert dtype.parse(found.to_json()) is found
        assert pickle.loads(pickle.dumps(found)) is found
        assert found == dtype(found.array_dtype) or name == "V5"

    def test_records_print_as_lists_of_fields(self):
        record = dtype([["a", "int32"], ["b", "bfloat16", [2]]])
        assert record.is_record
        assert record.to_json() == [["a", "int32"], ["b", "bfloat16", [2]]]
        assert repr(record) == 'dtype([["a", "int32"], ["b", "bfloat16", [2]]])'
        assert np.asarray(record((1, [2, 3])))["b"].tolist() == [2, 3]

    @pytest.mark.parametrize(
        "name", ["U0", "S", "datetime64[q]", "datetime64[0s]", "U5x", "[[", "[[]]"]
    )
    def test_unknown_parameters_are_refused(self, name):
        with pytest.raises(SpecError):
            dtype(name)

    @pytest.mark.parametrize(
        ("name", "meant"),
        [("u1", "uint8"), ("<f4", "float32"), (">f4", "float32"), ("int", "int64"),
         ("double", "float64"), ("?", "bool"), ("|b1", "bool"),
         ("M8[s]", "datetime64[s]"), ("<U7", "U7"), ("|S3", "S3")],
    )  # fmt: skip
    def test_names_of_numpy_are_what_they_stand_for(self, name, meant):
        assert dtype(name) is dtype(meant)
        assert dtype.parse(name) is dtype(meant)

    @pytest.mark.parametrize(("name", "meant"), [("flaot32", "float32"), ("str", "ustring")])
    def test_near_names_are_offered(self, name, meant):
        with pytest.raises(SpecError, match=f'did you mean "{meant}"'):
            dtype(name)

    def test_hints_do_not_name_records_of_others(self):
        dtype([["hint", "int8"]])
        with pytest.raises(SpecError) as caught:
            dtype('[["hint", "int9"]')
        assert "did you mean" not in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "several"),
        [("int32", False), ("bool", False), ("byte", False), ("char", False), ("bfloat16", False),
         ("string", True), ("json", True), ("U3", True), ("S2", True), ("datetime64[s]", False)],
    )  # fmt: skip
    def test_what_can_be_read_in_several_ways(self, name, several):
        assert dtype(name).has_readings is several
        assert dtype([("a", "int8")]).has_readings

    @pytest.mark.parametrize(
        ("name", "kind", "low", "high"),
        [("uint2", "u", 0, 3), ("uint4", "u", 0, 15), ("float6_e2m3fn", "f", -7.5, 7.5),
         ("float6_e3m2fn", "f", -28, 28), ("float8_e4m3", "f", -240, 240)],
    )  # fmt: skip
    def test_registered_types_that_the_reference_lacks(self, name, kind, low, high):
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
    def test_numpy_takes_it_for_the_type_of_what_is_read(self, name, meant):
        found = dtype(name)
        assert np.dtype(found) == meant
        assert found.__numpy_dtype__ == meant
        assert getattr(found, "dtype") == meant  # noqa: B009 - what NumPy asks for before 2.4
        assert np.empty(2, found).dtype == meant
        assert np.can_cast(found, meant)
        # and it stays what it is
        assert repr(found) == f'dtype("{name}")'
        assert found.to_json() == name

    def test_numpy_takes_records(self):
        found = dtype([["x", "uint16"], ["y", "<f4"]])
        assert np.dtype(found) == np.dtype([("x", "<u2"), ("y", "<f4")])
        assert np.zeros(2, np.dtype(found))["x"].tolist() == [0, 0]


class TestDataTypes:
    def test_the_constants_are_those_of_the_reference(self):
        expected = {
            name for name in dir(reference) if isinstance(getattr(reference, name), reference.dtype)
        }

        assert expected <= set(ts.__all__)
        for name in expected:
            mine, theirs = getattr(ts, name), getattr(reference, name)
            assert mine.name == name
            assert (mine.numpy_dtype, mine.type) == (theirs.numpy_dtype, theirs.type)
