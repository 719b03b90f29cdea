import json

import pytest

from tensorstore_py.drivers.zarr.metadata import ZarrConstraints, ZarrMetadata
from tensorstore_py.errors import MismatchError, SpecError
from tests.drivers.formats import opened

DOCUMENT = {
    "zarr_format": 2,
    "shape": [10, 20],
    "chunks": [5, 5],
    "dtype": "<u2",
    "compressor": None,
    "fill_value": 3,
    "order": "C",
    "filters": None,
}


def parse(**changes: object) -> ZarrMetadata:
    return ZarrMetadata.read(json.dumps({**DOCUMENT, **changes}).encode())


def test_a_document_reads_back_as_it_was() -> None:
    text = (
        b'{"chunks":[5,5],"compressor":{"id":"zlib","level":1},"dimension_separator":"/",'
        b'"dtype":">f4","fill_value":"NaN","filters":null,"order":"F","shape":[10,20],'
        b'"zarr_format":2}'
    )

    metadata = ZarrMetadata.read(text)

    assert metadata.serialize() == text
    assert metadata == ZarrMetadata.read(text)


def test_a_separator_is_only_written_where_one_was() -> None:
    assert parse().dimension_separator is None
    assert "dimension_separator" not in parse().to_json()
    assert parse(dimension_separator=".").to_json()["dimension_separator"] == "."


def test_unknown_members_stay() -> None:
    metadata = parse(foo={"b": 1, "a": [None]}, _OTHER=True)

    written = json.loads(metadata.serialize())

    assert written == {**DOCUMENT, "foo": {"b": 1, "a": [None]}, "_OTHER": True}


def test_no_filters_and_an_empty_list_are_the_same() -> None:
    assert parse(filters=[]) == parse()


@pytest.mark.parametrize("name", ["chunks", "dtype", "shape", "zarr_format"])
def test_every_member_is_required(name: str) -> None:
    document = {key: DOCUMENT[key] for key in DOCUMENT if key != name}

    with pytest.raises(SpecError, match=f"^{name}: this member is required"):
        ZarrMetadata.read(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("zarr_format", 3, "^zarr_format: expected 2.*found 3; use driver zarr3"),
        ("zarr_format", "2", "^zarr_format: expected 2"),
        ("shape", 10, "^shape: expected an array"),
        ("shape", [10, -1], r"^shape\[1\]: "),
        ("shape", None, "^shape: expected an array"),
        ("shape", [2] * 33, "^shape: expected at most 32 dimensions"),
        ("chunks", [5, 0], r"^chunks\[1\]: "),
        ("chunks", [5], "^chunks: has 1 dimensions, but the shape has 2"),
        ("dtype", "<u3", '^dtype: "<u3"'),
        ("dtype", None, "^dtype: expected a data type"),
        ("fill_value", -1, "^fill_value: expected an integer from 0 to 65535"),
        ("order", "A", '^order: "A" is not possible here'),
        ("dimension_separator", "-", "^dimension_separator: "),
        ("compressor", {"id": "lzip"}, r"^compressor\.id: "),
    ],
)
def test_a_wrong_member_is_named(name: str, value: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        parse(**{name: value})


def test_an_unknown_filter_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r'^filters\[1\]\.id: .*"detla"'):
        parse(filters=[{"id": "shuffle"}, {"id": "detla"}])


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]"])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(SpecError, match=r"this is no JSON|expected an object"):
        ZarrMetadata.read(data)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({}, {}),
        ({"zarr_format": 2.0}, {"zarr_format": 2}),
        ({"shape": [1.0]}, {"shape": [1]}),
        ({"filters": []}, {"filters": None}),
        ({"compressor": None}, {"compressor": None}),
        ({"compressor": {"id": "bz2"}}, {"compressor": {"id": "bz2", "level": 1}}),
        ({"dtype": "<f4", "fill_value": 1}, {"dtype": "<f4", "fill_value": 1.0}),
        ({"dtype": "<f4", "fill_value": None}, {"dtype": "<f4", "fill_value": None}),
        ({"dtype": [["x", "<f4"]]}, {"dtype": [["x", "<f4"]]}),
    ],
)
def test_constraints_print_what_was_said(given: dict, written: dict) -> None:
    assert ZarrConstraints.parse(given).to_json() == written


def test_constraints_know_no_other_members() -> None:
    with pytest.raises(SpecError, match=r"^chunk: no such member"):
        ZarrConstraints.parse({"chunk": [1]})


def test_a_fill_value_needs_its_type() -> None:
    with pytest.raises(SpecError, match=r'^fill_value: .* together with "dtype"'):
        ZarrConstraints.parse({"fill_value": 0})
    with pytest.raises(SpecError, match=r'^dtype: "<u3"'):
        ZarrConstraints.parse({"fill_value": 0, "dtype": "<u3"})


def test_a_complete_document_satisfies_its_own_constraints() -> None:
    metadata = parse(dtype="<f4", fill_value="NaN")

    constraints = metadata.constraints
    assert isinstance(constraints, ZarrConstraints)
    assert constraints.to_json() == metadata.to_json()


@pytest.mark.parametrize(
    ("asked", "stored", "wanted"),
    [
        ({"shape": [10, 21]}, r"\[10,20\]", r"\[10,21\]"),
        ({"chunks": [5, 4]}, r"\[5,5\]", r"\[5,4\]"),
        ({"dtype": ">u2"}, '"<u2"', '">u2"'),
        ({"dtype": "<u2", "fill_value": None}, "3", "null"),
        ({"order": "F"}, '"C"', '"F"'),
        ({"compressor": {"id": "bz2"}}, "null", '{"id":"bz2","level":1}'),
        ({"dimension_separator": "/"}, '"."', '"/"'),
    ],
)
def test_a_constraint_that_does_not_hold_is_named(asked: dict, stored: str, wanted: str) -> None:
    with pytest.raises(
        MismatchError, match=f'"{list(asked)[-1]}" is {stored} in the stored .*asks for {wanted}'
    ):
        opened("zarr", {**DOCUMENT, "dimension_separator": "."}, metadata=asked)


def test_any_separator_fits_a_document_without_one() -> None:
    opened("zarr", DOCUMENT, metadata={"dimension_separator": "/"})
