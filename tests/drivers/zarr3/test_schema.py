import json
from typing import Any

import numpy as np
import pytest

from tensorstore_py.drivers.zarr3.metadata import Metadata, MetadataConstraints
from tensorstore_py.drivers.zarr3.schema import (
    array_domain,
    check_asked,
    check_metadata,
    dimension_labels,
    fixed_inside,
    known_schema,
    metadata_schema,
)
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import IndexDomain, Schema, Unit, dtype

DOCUMENT: dict[str, object] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10, 20],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 6]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 7,
    "codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 3}}],
    "attributes": {"a": 1, "dimension_units": ["nm", "5 m"]},
    "dimension_names": ["y", "x"],
}


def parse(**members: object) -> Metadata:
    return Metadata.parse(json.dumps({**DOCUMENT, **members}).encode())


def schema_of(metadata: Metadata, **opened: Any) -> Schema:
    return metadata_schema(metadata, metadata.data_type.view(**opened))


def test_the_schema_of_an_array() -> None:
    assert schema_of(parse()).to_json() == {
        "chunk_layout": {
            "grid_origin": [0, 0],
            "inner_order": [0, 1],
            "read_chunk": {"shape": [5, 6]},
            "write_chunk": {"shape": [5, 6]},
        },
        "codec": {"codecs": DOCUMENT["codecs"], "driver": "zarr3"},
        "dimension_units": [[1, "nm"], [5, "m"]],
        "domain": {
            "exclusive_max": [[10], [20]],
            "inclusive_min": [0, 0],
            "labels": ["y", "x"],
        },
        "dtype": "uint8",
        "fill_value": 7,
        "rank": 2,
    }


def test_labels_are_given_up_where_they_cannot_be() -> None:
    assert dimension_labels(None) is None
    assert dimension_labels(["x", None, ""]) == ["x", "", ""]
    assert dimension_labels(["x", "x"]) is None
    assert array_domain(parse(dimension_names=["x", "x"])).labels == ("", "")


def known(asked: dict, **stated: object) -> dict:
    constraints = MetadataConstraints.parse(stated)
    stored = constraints.data_type
    view = None if stored is None else stored.view()
    return known_schema(Schema(asked), constraints, view).to_json()


def test_what_is_known_before_anything_is_open() -> None:
    assert known({}) == {"codec": {"driver": "zarr3"}}
    assert known({"fill_value": 3}, shape=[4, 5], codecs=["bytes"]) == {
        "chunk_layout": {"grid_origin": [0, 0], "inner_order": [0, 1]},
        "codec": {"driver": "zarr3", "codecs": [{"name": "bytes"}]},
        "domain": {"exclusive_max": [[4], [5]], "inclusive_min": [0, 0]},
        "fill_value": 3,
        "rank": 2,
    }


def test_the_metadata_fill_value_is_the_one_that_is_known() -> None:
    schema = known({"fill_value": 3.0}, data_type="float32", fill_value="NaN")

    assert schema["fill_value"] != schema["fill_value"]


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        ({"dtype": "uint8"}, {"data_type": "uint16"}),
        ({"rank": 3}, {"shape": [1, 2]}),
        ({"domain": {"shape": [1, 3]}}, {"shape": [1, 2]}),
        ({"domain": {"shape": [1, 3], "labels": ["x", "y"]}}, {"dimension_names": ["a", "y"]}),
        (
            {"chunk_layout": {"write_chunk": {"shape": [5, 7]}}},
            {"chunk_grid": DOCUMENT["chunk_grid"]},
        ),
        ({"chunk_layout": {"inner_order": [1, 0]}}, {"codecs": ["bytes"]}),
        ({"chunk_layout": {"grid_origin": [1, 0]}}, {}),
        ({"codec": {"driver": "zarr3", "codecs": ["gzip"]}}, {"codecs": ["zstd"]}),
        ({"dimension_units": ["m"]}, {"attributes": {"dimension_units": ["s"]}}),
    ],
)
def test_contradictions_within_a_spec(asked: dict, stated: dict) -> None:
    with pytest.raises((MismatchError, SpecError)):
        known(asked, **stated)


@pytest.mark.parametrize(
    "stated",
    [
        {},
        DOCUMENT,
        {"attributes": {"a": 1}},
        {"attributes": {"dimension_units": [None, "5m"]}},
        {"codecs": ["gzip"]},
        {"dimension_names": ["y", "x"]},
    ],
)
def test_constraints_that_a_document_satisfies(stated: dict) -> None:
    check_metadata(MetadataConstraints.parse(stated), parse())


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"shape": [10, 21]}, r'"shape": stored is \[10,20\], asked for was \[10,21\]'),
        ({"data_type": "int8"}, '"data_type": stored is "uint8", asked for was "int8"'),
        ({"data_type": "uint8", "fill_value": 8}, '"fill_value": stored is 7, asked for was 8'),
        (
            {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 7]}}},
            '"chunk_grid"',
        ),
        ({"chunk_key_encoding": {"name": "v2"}}, '"chunk_key_encoding"'),
        ({"codecs": ["bytes"]}, '"codecs".*bytes to bytes'),
        (
            {"codecs": ["bytes", {"name": "gzip", "configuration": {"level": 5}}]},
            '"codecs".*"level" is both 3 and 5',
        ),
        ({"dimension_names": ["y", None]}, '"dimension_names"'),
        ({"attributes": {"a": 2}}, '"attributes.a": stored is 1, asked for was 2'),
        ({"attributes": {"b": None}}, '"attributes.b"'),
        (
            {"attributes": {"dimension_units": ["m", None]}},
            r'dimension_units\[0\]": stored is "nm", asked for was "m"',
        ),
        ({"z": {"must_understand": False}}, '"z": stored is null'),
    ],
)
def test_constraints_that_it_does_not(stated: dict, message: str) -> None:
    with pytest.raises(MismatchError, match=message):
        check_metadata(MetadataConstraints.parse(stated), parse())


def test_units_that_are_not_stored_do_not_satisfy() -> None:
    stated = MetadataConstraints.parse({"attributes": {"dimension_units": ["m", None]}})

    with pytest.raises(MismatchError, match="stored is null"):
        check_metadata(stated, parse(attributes={}))


FIELDS = [["x", "uint16"], ["raw", "r24"]]
RECORDS = {"data_type": FIELDS, "fill_value": {"x": 7, "raw": [1, 2, 3]}}


def test_the_schema_of_a_field_has_its_dimensions() -> None:
    metadata = parse(**RECORDS)
    schema = schema_of(metadata, name="raw")

    assert schema.rank == 3
    assert schema.dtype == dtype("byte")
    assert schema.domain == array_domain(metadata, (3,))
    assert schema.domain.labels == ("y", "x", "")
    assert schema.domain.implicit_upper_bounds == (True, True, False)
    assert schema.chunk_layout.write_chunk.shape == (5, 6, 3)
    assert schema.chunk_layout.inner_order == (0, 1, 2)
    assert schema.dimension_units == (Unit("nm"), Unit("5 m"), None)
    assert schema.fill_value is not None
    assert schema.fill_value.tolist() == [b"\1", b"\2", b"\3"]
    assert schema_of(metadata, name="x").fill_value == 7


def test_what_is_known_of_a_field() -> None:
    stated = MetadataConstraints.parse({"shape": [4], **RECORDS, "dimension_names": ["y"]})
    assert stated.data_type is not None
    view = stated.data_type.view("raw")

    known = known_schema(Schema(), stated, view)

    assert known.rank == 2
    assert known.domain is not None
    assert known.domain.shape == (4, 3)
    assert known.domain.labels == ("y", "")
    assert known.chunk_layout.write_chunk.shape == (None, 3)
    for asked in ({"rank": 1}, {"domain": {"shape": [4, 2]}}, {"dtype": "V3"}):
        with pytest.raises((MismatchError, SpecError)):
            known_schema(Schema(asked), stated, view)


def test_dimensions_inside_an_element_are_not_resizable() -> None:
    domain = fixed_inside(IndexDomain(shape=[4, 3]), (3,))

    assert domain.implicit_upper_bounds == (True, False)
    with pytest.raises(MismatchError, match="dimension 1 ends at 3"):
        fixed_inside(domain, (2,))


def test_a_fill_value_that_varies_over_an_element() -> None:
    metadata = parse(**RECORDS)
    view = metadata.data_type.view("raw")

    check_asked(Schema(fill_value=np.array([b"\1", b"\2", b"\3"], "V1")), metadata, view)
    with pytest.raises(MismatchError, match="fill_value"):
        check_asked(Schema(fill_value=np.array([b"\1", b"\2", b"\4"], "V1")), metadata, view)


def test_the_same_data_type_by_another_name() -> None:
    pairs = {"name": "structured", "configuration": {"fields": FIELDS}}
    for stated in ({"data_type": pairs}, {"data_type": pairs, "fill_value": "BwABAgM="}):
        check_metadata(MetadataConstraints.parse(stated), parse(**RECORDS))
    with pytest.raises(MismatchError, match='"data_type"'):
        check_metadata(MetadataConstraints.parse({"data_type": "r40"}), parse(**RECORDS))
    other = MetadataConstraints.parse({"data_type": pairs, "fill_value": "BwABAgQ="})
    with pytest.raises(MismatchError, match='"fill_value"'):
        check_metadata(other, parse(**RECORDS))
