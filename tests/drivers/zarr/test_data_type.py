import numpy as np
import pytest

from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import dtype

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
    name, endian = SCALARS[encoded]
    view = stored.view()

    assert view.data_type.name == name
    assert (view.stored == view.native.newbyteorder(">")) == (endian == "big") or (
        view.native.itemsize == 1
    )
    assert (view.name, view.inner_shape, view.offset) == ("", (), 0)
    assert stored.size_bytes == view.data_type.itemsize
    assert stored.to_json() == encoded


def test_stored_byte_order_is_that_of_the_notation() -> None:
    assert StoredType.parse(">u2").view().stored == np.dtype(">u2")
    assert StoredType.parse("<u2").view().stored == np.dtype("<u2")


@pytest.mark.parametrize(
    ("encoded", "name", "size"), [("|S3", "char", 3), ("<S12", "char", 12), ("|V4", "byte", 4)]
)
def test_text_and_raw_bytes_have_one_more_dimension(encoded: str, name: str, size: int) -> None:
    stored = StoredType.parse(encoded)

    assert stored.view().data_type == dtype(name)
    assert stored.view().inner_shape == (size,)
    assert stored.size_bytes == size
    assert stored.to_json() == encoded


def test_fields_are_packed_in_their_order() -> None:
    json = [["x", "<u2", [2, 3]], ["y", "|S3", [2]], ["z", ">f8"]]

    stored = StoredType.parse(json)

    assert [field.name for field in stored.fields] == ["x", "y", "z"]
    assert [field.offset for field in stored.fields] == [0, 12, 18]
    assert [stored.view(name).inner_shape for name in "xyz"] == [(2, 3), (2, 3), ()]
    assert stored.size_bytes == 26
    assert stored.to_json() == json


def test_a_field_is_chosen_by_name() -> None:
    stored = StoredType.parse([["x", "<u2"], ["y", "<f4"]])

    assert stored.view("y").data_type == dtype("float32")
    with pytest.raises(SpecError, match='no field "z", only "x", "y"'):
        stored.view("z")


def test_the_only_field_needs_no_name() -> None:
    stored = StoredType.parse([["x", "<u2"]])

    assert stored.view() == stored.view("x")
    assert stored.is_structured


def test_a_scalar_type_has_no_fields_to_choose() -> None:
    with pytest.raises(SpecError, match="has no named fields"):
        StoredType.parse("<u2").view("x")


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("bool", "|b1"), ("uint8", "|u1"), ("bfloat16", "bfloat16"), ("int4", "int4")],
)
def test_new_arrays_get_the_natural_type(name: str, encoded: str) -> None:
    assert StoredType.of(dtype(name)).to_json() == encoded


def test_new_arrays_get_native_byte_order() -> None:
    assert StoredType.of(dtype("float32")).to_json() == np.dtype("f4").str


@pytest.mark.parametrize("name", ["char", "byte"])
def test_types_without_a_counterpart_are_refused_by_name(name: str) -> None:
    with pytest.raises(SpecError, match=f"^dtype: data type {name} "):
        StoredType.of(dtype(name))


NATURAL = [
    ("ustring", "|O"),
    ("string", "|O"),
    ("json", "|O"),
    ("object", "|O"),
    ("datetime64[ns]", "<M8[ns]"),
    ("timedelta64[10us]", "<m8[10us]"),
    ("U7", "<U7"),
    ("S7", "|S7"),
    ("V7", "|V7"),
    (
        [["a", "bfloat16"], ["b", [["c", "V2"], ["d", "bool", [3]]], [2]], ["e", "S4"]],
        [["a", "bfloat16"], ["b", [["c", "|V2"], ["d", "|b1", [3]]], [2]], ["e", "|S4"]],
    ),
]


@pytest.mark.parametrize(("asked", "written"), NATURAL)
def test_types_that_the_reference_lacks_have_their_natural_form(
    asked: str | list, written: object
) -> None:
    stored = StoredType.of(dtype(asked))

    assert stored.to_json() == written
    assert stored.view(asked=dtype(asked)).data_type == dtype(asked)
    assert StoredType.parse(stored.to_json()) == stored


@pytest.mark.parametrize(
    ("encoded", "name"),
    [
        ("<M8[ns]", "datetime64[ns]"),
        (">M8[10us]", "datetime64[10us]"),
        ("<m8[D]", "timedelta64[D]"),
        ("<U5", "U5"),
        (">U5", "U5"),
        ("|O", "object"),
    ],
)
def test_dates_text_and_objects_are_scalars(encoded: str, name: str) -> None:
    stored = StoredType.parse(encoded)

    assert stored.view().data_type == dtype(name)
    assert stored.view().inner_shape == ()
    assert stored.to_json() == encoded


def test_text_of_fixed_length_is_one_value_if_that_is_asked_for() -> None:
    assert StoredType.parse("|S4").view(asked=dtype("S4")).inner_shape == ()
    assert StoredType.parse("|S4").view(asked=dtype("S5")).inner_shape == (4,)
    assert StoredType.parse("|V4").view(asked=dtype("V4")).data_type == dtype("V4")


def test_several_fields_are_a_record_together() -> None:
    stored = StoredType.parse([["x", ">u2"], ["y", [["a", "|S3"], ["b", "<M8[s]"]], [2]]])

    whole = stored.view()

    assert whole.data_type == dtype(
        [["x", "uint16"], ["y", [["a", "S3"], ["b", "datetime64[s]"]], [2]]]
    )
    assert (whole.offset, whole.inner_shape, whole.size_bytes) == (0, (), 24)


def test_a_single_field_is_a_record_only_if_that_is_asked_for() -> None:
    stored = StoredType.parse([["x", "<u2"]])

    assert stored.view().data_type == dtype("uint16")
    assert stored.view(asked=dtype([["x", "uint16"]])).data_type.is_record
    assert stored.view(asked=dtype([["y", "uint16"]])).data_type == dtype("uint16")


def test_nested_fields_are_named_by_a_path() -> None:
    stored = StoredType.parse(
        [["a.b", "|u1"], ["p", [["a", "<u2", [3]], ["b", [["c", "|S2"]]]], [2]]]
    )

    assert stored.view("a.b").data_type == dtype("uint8")
    assert stored.view("p").inner_shape == (2,)
    field = stored.view("p.a")
    assert (field.name, field.offset) == ("p.a", 1)
    assert (field.inner_shape, field.inner_strides) == ((2, 3), (8, 2))
    text = stored.view("p.b.c")
    assert (text.offset, text.inner_shape, text.inner_strides) == (7, (2, 2), (8, 1))
    for wrong in ("p.c", "p.a.x", "a", "p."):
        with pytest.raises(SpecError, match=f'no field "{wrong}", only "a.b", "p"'):
            stored.view(wrong)


def test_the_bytes_of_any_element_can_be_opened() -> None:
    view = StoredType.parse([["x", "<u2"], ["y", "|S3"]]).view(as_void=True)

    assert (view.data_type, view.inner_shape, view.inner_strides) == (dtype("byte"), (5,), (1,))
    with pytest.raises(SpecError, match=r"^open_as_void: Python objects"):
        StoredType.parse("|O").view(as_void=True)


def test_fields_that_cannot_be_opened_together_say_so() -> None:
    stored = StoredType.parse([["x", "|S0"], ["y", "|u1"]])

    assert stored.view("y").data_type == dtype("uint8")
    assert stored.view("x").inner_shape == (0,)


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
        ("<M8", "dates state their unit"),
        ("<M8[xs]", "dates state their unit"),
        ("|M8[s]", "dates state their unit"),
        ("<m8", "time differences state their unit"),
        ("|U3", "text states its length and byte order"),
        ("<U0", "text states its length"),
        ("<U", "text states its length"),
        ("<O", 'Python objects are "|O"'),
        ("|S99999999999", "is no supported"),
        ([["x", "|O"]], r'\[0\]\[1\]: field "x" would hold Python objects'),
        ([["x", [["a", "<u3"]]]], r'\[0\]\[1\]\[0\]\[1\]: "<u3"'),
        ([["x", []]], r"\[0\]\[1\]: expected at least one field"),
        ([["x", "<u8", [2**30, 2**30]]], r"\[0\]: an element has more than"),
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
        ([["x", 5]], r"\[0\]\[1\]: expected a data type"),
    ],
)
def test_what_is_no_data_type_is_named(json: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem.replace("|", r"\|")):
        StoredType.parse(json)
