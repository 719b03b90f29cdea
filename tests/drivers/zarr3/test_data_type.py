import numpy as np
import pytest

from tensorstore_py.drivers.zarr3.data_type import (
    NAMED,
    PLAIN,
    StoredType,
    of_numpy,
    raw_name,
    type_name,
)
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import dtype


@pytest.mark.parametrize(
    "unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as"]
)
@pytest.mark.parametrize("name", ["numpy.datetime64", "numpy.timedelta64"])
def test_every_unit(name: str, unit: str) -> None:
    found = NAMED[name]({"unit": unit, "scale_factor": 3})

    assert found == np.dtype(f"{name[6:]}[3{unit}]")
    assert of_numpy(found) == {
        "name": name,
        "configuration": {"unit": unit.replace("μ", "u"), "scale_factor": 3},
    }


def test_a_generic_unit_has_no_scale() -> None:
    assert NAMED["numpy.timedelta64"]({"unit": "generic", "scale_factor": 1}) == np.dtype("m8")


@pytest.mark.parametrize(
    ("name", "length", "expected"),
    [
        ("fixed_length_utf32", 12, "<U3"),
        ("null_terminated_bytes", 12, "S12"),
        ("raw_bytes", 1, "V1"),
    ],
)
def test_fixed_lengths(name: str, length: int, expected: str) -> None:
    found = NAMED[name]({"length_bytes": length})

    assert found == np.dtype(expected)
    assert of_numpy(found) == {"name": name, "configuration": {"length_bytes": length}}


@pytest.mark.parametrize(
    ("name", "configuration", "message"),
    [
        ("numpy.datetime64", {"unit": "s"}, "scale_factor: this member is required"),
        ("numpy.datetime64", {"unit": "sec", "scale_factor": 1}, "unit: expected a unit"),
        ("numpy.datetime64", {"unit": 1, "scale_factor": 1}, "unit: expected a unit"),
        ("numpy.datetime64", {"unit": "s", "scale_factor": 0}, "scale_factor: "),
        ("numpy.timedelta64", {"unit": "s", "scale_factor": 2**31}, "scale_factor: "),
        ("numpy.timedelta64", {"unit": "s", "scale_factor": 1.5}, "scale_factor: "),
        ("numpy.timedelta64", {"unit": "s", "scale_factor": 1, "x": 1}, "x: no such member"),
        ("fixed_length_utf32", {"length_bytes": 6}, "length_bytes: expected a multiple of 4"),
        ("fixed_length_utf32", {"length_bytes": 0}, "length_bytes: "),
        ("raw_bytes", {"length": 6}, "length: no such member"),
        ("null_terminated_bytes", {"length_bytes": 2**40}, "length_bytes: "),
        ("null_terminated_bytes", {"length_bytes": "4"}, "length_bytes: "),
    ],
)
def test_wrong_configurations(name: str, configuration: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        NAMED[name](configuration)


def test_raw_names() -> None:
    assert [raw_name(name) for name in ("r8", "r80", "rank", "r", "r08", "R8")] == [
        1, 10, None, None, None, None,
    ]  # fmt: skip
    with pytest.raises(SpecError, match="multiple of 8"):
        raw_name("r12")


def test_every_plain_type_of_a_fixed_size_has_a_name() -> None:
    for name, stored in PLAIN.items():
        if not stored.hasobject:
            assert PLAIN[str(type_name(dtype(stored)))] == stored, name


def test_types_that_the_format_has_not() -> None:
    assert [type_name(dtype(name)) for name in ("json", "object", "char", "byte")] == [None] * 4


SECONDS = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
POINT = {
    "name": "struct",
    "configuration": {
        "fields": [
            {"name": "x", "data_type": "int16"},
            {"name": "tag", "data_type": "r24"},
        ]
    },
}
RECORD = {
    "name": "struct",
    "configuration": {
        "fields": [
            {"name": "p", "data_type": POINT},
            {"name": "when", "data_type": SECONDS},
            {"name": "ok", "data_type": "bool"},
        ]
    },
}


def structured(*fields: list[object]) -> dict[str, object]:
    return {"name": "structured", "configuration": {"fields": list(fields)}}


@pytest.mark.parametrize(
    "name",
    ["bool", "int2", "uint64", "float8_e5m2", "bfloat16", "complex64", "uint4", "float8_e4m3"],
)
def test_names_are_the_same_here(name: str) -> None:
    assert StoredType.parse(name).view().data_type is dtype(name)
    assert StoredType.parse({"name": name, "configuration": {}}).to_json() == name
    assert StoredType.of(dtype(name)).to_json() == name


@pytest.mark.parametrize("json", ["strings", "json", "<u2", "float128", "r0", 5, None, {"a": 1}])
def test_what_is_not_supported_is_named(json: object) -> None:
    with pytest.raises(SpecError, match="not supported"):
        StoredType.parse(json)


def test_a_typing_error_gets_a_hint() -> None:
    with pytest.raises(SpecError, match='did you mean "uint16"'):
        StoredType.parse("unit16")


@pytest.mark.parametrize("name", ["json", "object", "char", "byte"])
def test_a_data_type_without_a_name_in_the_format_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match=f'"{name}" cannot be stored'):
        StoredType.of(dtype(name))


@pytest.mark.parametrize(
    ("json", "data_type"),
    [
        ("string", "ustring"),
        ("bytes", "string"),
        ("variable_length_bytes", "string"),
        ("complex_float32", "complex64"),
        ("complex_float64", "complex128"),
        (SECONDS, "datetime64[s]"),
    ],
)
def test_other_names(json: object, data_type: str) -> None:
    found = StoredType.parse(json)

    assert found.view().data_type == dtype(data_type)
    assert found.to_json() == json


@pytest.mark.parametrize(
    "name",
    ["ustring", "string", "datetime64[10us]", "timedelta64[D]", "datetime64", "U3", "S4", "V5",
     '[["a", "uint8"], ["b", [["c", "V1"], ["d", "S1"], ["e", "bfloat16"]]]]'],
)  # fmt: skip
def test_what_new_metadata_says_means_the_same(name: str) -> None:
    data_type = dtype(name)
    stored = StoredType.of(data_type)

    assert StoredType.parse(stored.to_json()) == stored
    assert stored.view(asked=data_type).data_type == data_type
    assert stored.stored == data_type.array_dtype


def test_fields_of_fields() -> None:
    record = StoredType.parse(RECORD)

    assert record.size_bytes == 14
    assert record.view().data_type.array_dtype == np.dtype(
        [("p", [("x", "i2"), ("tag", "V3")]), ("when", "M8[s]"), ("ok", "?")]
    )
    assert (record.view("p.x").offset, record.view("when").offset) == (0, 5)
    tag = record.view("p.tag")
    assert (tag.name, tag.offset, tag.inner_shape, tag.data_type.name) == ("p.tag", 2, (3,), "byte")
    assert record.view("p").name == "p"
    assert list(record.units) == [2, 1, 1, 1, 8, 1]


def test_the_bytes_of_an_element() -> None:
    view = StoredType.parse(RECORD).view(as_void=True)

    assert (view.data_type.name, view.inner_shape) == ("byte", (14,))


def test_raw_bytes_are_one_value_only_if_asked() -> None:
    raw = StoredType.parse("r32")

    assert raw.view().inner_shape == (4,)
    assert raw.view(asked=dtype("V4")).inner_shape == ()
    assert raw.view(asked=dtype("V4")).data_type == dtype("V4")


def test_the_only_field_is_opened_unless_a_record_is_asked_for() -> None:
    one = StoredType.parse([["x", "uint8"]])

    assert one.view().data_type == dtype("uint8")
    assert one.view(asked=dtype([["x", "uint8"]])).data_type == dtype([["x", "uint8"]])


def test_the_form_of_a_record_is_kept() -> None:
    pairs = structured(["x", "uint8"], ["y", structured(["z", SECONDS])])
    assert StoredType.parse(pairs).to_json() == pairs
    # what is written in another form is reported in the form of the name
    objects = StoredType.parse({"name": "struct", "configuration": {"fields": [["x", "uint8"]]}})
    assert objects == StoredType.parse([["x", "uint8"]])
    assert objects.to_json() == {
        "configuration": {"fields": [{"data_type": "uint8", "name": "x"}]},
        "name": "struct",
    }


@pytest.mark.parametrize(
    ("json", "message"),
    [
        ("struct", "needs a configuration"),
        ("numpy.datetime64", "needs a configuration"),
        ("r12", "multiple of 8"),
        ({"name": "uint8", "configuration": {"bits": 7}}, "configuration.bits: .*nothing to conf"),
        ({"name": "uint8", "configuration": 7}, "configuration: expected an object"),
        ({"name": "uint8", "conf": {}}, "conf: no such member"),
        ({"name": "struct"}, "configuration.fields: expected an array of fields"),
        ({"name": "struct", "configuration": {"feilds": []}}, "configuration.feilds: no such"),
        ("r536870920", "up to 536870912"),
        ([], "at least one field"),
        ([["x", "uint8"], ["x", "int8"]], r"\[1\]: field name \"x\" occurs more than once"),
        ([["", "uint8"]], r"\[0\]\[0\]: expected a field name"),
        ([["x", "uint8", [2]]], r"\[0\]: expected \{"),
        ([["x", "string"]], r"\[0\]\[1\]: .*no fixed size"),
        ([{"name": "x", "data_type": "unit8"}], r"\[0\].data_type: .*did you mean"),
        (structured(["x", [["y", "r9"]]]), r"fields\[0\]\[1\]\[0\]\[1\]: .*multiple of 8"),
        ([["x", "r536870912"], ["y", "uint8"]], r"\[1\]: an element has more than"),
    ],
)
def test_errors_name_the_member(json: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        StoredType.parse(json)


def test_a_field_that_is_not_there() -> None:
    with pytest.raises(SpecError, match='no field "z", only "p", "when", "ok"'):
        StoredType.parse(RECORD).view("z")
    with pytest.raises(SpecError, match="uint8 has no named fields"):
        StoredType.parse("uint8").view("z")


def test_text_of_any_length_has_no_bytes() -> None:
    with pytest.raises(SpecError, match=r"open_as_void: .*no fixed number"):
        StoredType.parse("string").view(as_void=True)


def test_records_hold_no_arrays() -> None:
    with pytest.raises(SpecError, match=r'field "x" is an array of shape \[2\]'):
        StoredType.of(dtype([["x", "uint8", [2]]]))
