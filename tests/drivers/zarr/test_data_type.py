import numpy as np
import pytest

from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import dtype

SCALARS = {
    "|b1": ("bool", "little"),
    "|i1": ("int8", "little"),
    ">u1": ("uint8", "big"),
    "<i2": ("int16", "little"),
    ">u4": ("uint32", "big"),
    "<u8": ("uint64", "little"),
    ">f2": ("float16", "big"),
    "<f4": ("float32", "little"),
    "<f8": ("float64", "little"),
    ">c8": ("complex64", "big"),
    "<c16": ("complex128", "little"),
    "bfloat16": ("bfloat16", "little"),
    "int2": ("int2", "little"),
    "int4": ("int4", "little"),
    "float4_e2m1fn": ("float4_e2m1fn", "little"),
    "float8_e3m4": ("float8_e3m4", "little"),
    "float8_e4m3b11fnuz": ("float8_e4m3b11fnuz", "little"),
    "float8_e4m3fn": ("float8_e4m3fn", "little"),
    "float8_e4m3fnuz": ("float8_e4m3fnuz", "little"),
    "float8_e5m2": ("float8_e5m2", "little"),
    "float8_e5m2fnuz": ("float8_e5m2fnuz", "little"),
    "float8_e8m0fnu": ("float8_e8m0fnu", "little"),
}


@pytest.mark.parametrize("encoded", SCALARS)
def test_a_scalar_type_has_one_nameless_field(encoded: str) -> None:
    stored = StoredType.parse(encoded)
    field = stored.field(None)

    assert (field.data_type.name, field.endian) == SCALARS[encoded]
    assert (field.name, field.inner_shape, field.offset) == ("", (), 0)
    assert stored.size_bytes == field.data_type.itemsize
    assert stored.to_json() == encoded


def test_stored_byte_order_is_that_of_the_notation() -> None:
    assert StoredType.parse(">u2").field(None).stored == np.dtype(">u2")
    assert StoredType.parse("<u2").field(None).stored == np.dtype("<u2")


@pytest.mark.parametrize(
    ("encoded", "name", "size"), [("|S3", "char", 3), ("<S12", "char", 12), ("|V4", "byte", 4)]
)
def test_text_and_raw_bytes_have_one_more_dimension(encoded: str, name: str, size: int) -> None:
    stored = StoredType.parse(encoded)

    assert stored.field(None).data_type == dtype(name)
    assert stored.field(None).inner_shape == (size,)
    assert stored.size_bytes == size
    assert stored.to_json() == encoded


def test_fields_are_packed_in_their_order() -> None:
    json = [["x", "<u2", [2, 3]], ["y", "|S3", [2]], ["z", ">f8"]]

    stored = StoredType.parse(json)

    assert [field.name for field in stored.fields] == ["x", "y", "z"]
    assert [field.offset for field in stored.fields] == [0, 12, 18]
    assert [field.inner_shape for field in stored.fields] == [(2, 3), (2, 3), ()]
    assert stored.size_bytes == 26
    assert stored.to_json() == json


def test_a_field_is_chosen_by_name() -> None:
    stored = StoredType.parse([["x", "<u2"], ["y", "<f4"]])

    assert stored.field("y").data_type == dtype("float32")
    with pytest.raises(SpecError, match='pass "field", one of "x", "y"'):
        stored.field(None)
    with pytest.raises(SpecError, match='no field "z", only "x", "y"'):
        stored.field("z")


def test_the_only_field_needs_no_name() -> None:
    stored = StoredType.parse([["x", "<u2"]])

    assert stored.field(None) == stored.field("x")
    assert stored.is_structured


def test_a_scalar_type_has_no_fields_to_choose() -> None:
    with pytest.raises(SpecError, match="has no named fields"):
        StoredType.parse("<u2").field("x")


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("bool", "|b1"), ("uint8", "|u1"), ("bfloat16", "bfloat16"), ("int4", "int4")],
)
def test_new_arrays_get_the_natural_type(name: str, encoded: str) -> None:
    assert StoredType.of(dtype(name)).to_json() == encoded


def test_new_arrays_get_native_byte_order() -> None:
    assert StoredType.of(dtype("float32")).to_json() == np.dtype("f4").str


@pytest.mark.parametrize("name", ["json", "string", "ustring", "char", "byte"])
def test_types_without_a_counterpart_are_refused_by_name(name: str) -> None:
    with pytest.raises(SpecError, match=f"^dtype: data type {name} "):
        StoredType.of(dtype(name))


@pytest.mark.parametrize(
    ("json", "problem"),
    [
        ("<u3", '"<u3" is no supported data type'),
        ("u2", '"u2" is no supported'),
        ("=u2", '"=u2" is no supported'),
        ("|u2", '"|u2" is no supported'),
        ("<f16", '"<f16" is no supported'),
        ("<bfloat16", "is no supported"),
        ("|S", "is no supported"),
        ("<M8[ns]", "dates"),
        ("<m8[s]", "time differences"),
        ("<U3", "Unicode"),
        ("|O", "Python objects"),
        (3, "expected a data type or an array"),
        (None, "found null"),
        ([], "at least one field"),
        ([["x", "<u2"], ["x", "<u4"]], r'\[1\]: field name "x" occurs more than once'),
        ([["", "<u2"]], r"\[0\]\[0\]: expected a field name"),
        ([["x", "<u2"], ["y", "<u3"]], r'\[1\]\[1\]: "<u3"'),
        ([["x", "<u2", 2]], r"\[0\]\[2\]: expected an array"),
        ([["x", "<u2", [0]]], r"\[0\]\[2\]: expected an array of positive"),
        ([["x", "<u2", [True]]], r"\[0\]\[2\]: expected an array of positive"),
        ([["x"]], r"\[0\]: expected \[name, data type\]"),
        ([["x", [["a", "<u2"]]]], r'\[0\]\[1\]: the nested fields of field "x"'),
        ([["x", 5]], r"\[0\]\[1\]: expected a data type"),
    ],
)
def test_what_is_no_data_type_is_named(json: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem.replace("|", r"\|")):
        StoredType.parse(json)
