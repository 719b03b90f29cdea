from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import dtype
from tensorstore_py.plugin.driver import (
    Schema,
    Unit,
)
from tests.drivers import formats

SCHEMA = {"dtype": "uint16", "domain": {"shape": [1000, 2000, 3000]}}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def created(asked: dict | Schema, **stated: object) -> dict:
    return formats.created("zarr3", asked, stated)


def layout(**members: object) -> dict:
    return {**SCHEMA, "chunk_layout": members}


def test_the_defaults() -> None:
    assert created(SCHEMA) == {
        "chunk_grid": {"configuration": {"chunk_shape": [101, 101, 101]}, "name": "regular"},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [LITTLE],
        "data_type": "uint16",
        "fill_value": 0,
        "node_type": "array",
        "shape": [1000, 2000, 3000],
        "zarr_format": 3,
    }


def test_chunks_of_different_sizes_for_reading_and_writing_make_shards() -> None:
    document = created(
        layout(
            chunk={"aspect_ratio": [2, 1, 1]},
            read_chunk={"elements": 2000000},
            write_chunk={"elements": 1000000000},
        )
    )

    (sharding,) = document["codecs"]
    assert document["chunk_grid"]["configuration"]["chunk_shape"] == [1000, 1000, 1000]
    assert sharding == {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [200, 100, 100],
            "codecs": [LITTLE],
            "index_codecs": [LITTLE, {"name": "crc32c"}],
        },
    }


def test_codecs_of_the_schema_go_into_the_shards() -> None:
    asked = {
        **layout(read_chunk={"shape": [64] * 3}, write_chunk={"shape": [512] * 3}),
        "codec": {"driver": "zarr3", "codecs": ["blosc"]},
    }

    (sharding,) = created(asked)["codecs"]

    names = [codec["name"] for codec in sharding["configuration"]["codecs"]]
    assert names == ["bytes", "blosc"]


@pytest.mark.parametrize("member", ["inner_order", "inner_order_soft_constraint"])
def test_an_inner_order_makes_a_transpose(member: str) -> None:
    document = created(layout(**{member: [2, 0, 1]}))

    assert document["codecs"] == [
        {"name": "transpose", "configuration": {"order": [2, 0, 1]}},
        LITTLE,
    ]


def test_a_sub_chunk_shape_constrains_the_chunk_shape() -> None:
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [5, 3]}}

    document = created({}, shape=[10, 20], data_type="uint8", codecs=[sharding])

    assert document["chunk_grid"]["configuration"]["chunk_shape"] == [10, 21]


def test_labels_and_units_are_written() -> None:
    document = created(
        {"domain": {"shape": [4, 5], "labels": ["x", ""]}, "dimension_units": ["4nm", None]},
        data_type="bool",
        attributes={"a": 1},
    )

    assert document["dimension_names"] == ["x", None]
    assert document["attributes"] == {"a": 1, "dimension_units": ["4 nm", None]}
    assert document["fill_value"] is False


def test_what_the_metadata_says_is_taken_over() -> None:
    said = {
        "shape": [4, 5],
        "data_type": "float32",
        "fill_value": "NaN",
        "chunk_key_encoding": {"name": "v2"},
        "dimension_names": ["", None],
        "z": {"must_understand": False},
    }

    document = created({}, **said)

    assert {name: document[name] for name in said} == said


@pytest.mark.parametrize(
    ("asked", "stated", "message"),
    [
        ({}, {"shape": [1]}, "dtype must be specified"),
        ({"dtype": "uint8"}, {}, "domain must be specified"),
        ({"dtype": "uint8", "rank": 2}, {}, "domain must be specified"),
        ({"dtype": "uint8", "domain": {"rank": 2}}, {}, "domain must be specified"),
        ({**SCHEMA, "fill_value": 2.5}, {}, "fill_value"),
        ({**SCHEMA, "fill_value": 65536}, {}, "fill_value"),
        ({**SCHEMA, "chunk_layout": {"codec_chunk": {"shape": [1, 1, 1]}}}, {}, "codec_chunk"),
    ],
)
def test_what_is_missing_or_impossible(asked: dict, stated: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        created(asked, **stated)


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        ({"fill_value": 2}, {"shape": [4], "data_type": "uint8", "fill_value": 1}),
        (
            layout(read_chunk={"shape": [5, 3, 1]}, write_chunk={"shape": [5, 4, 1]}),
            {},
        ),
        (
            layout(read_chunk={"shape": [5, 3, 1]}, write_chunk={"shape": [5, 6, 1]}),
            {"codecs": ["bytes"]},
        ),
        (layout(inner_order=[2, 0, 1]), {"codecs": ["gzip"]}),
        (
            {
                **layout(chunk={"shape": [1, 1, 2]}),
                "codec": {
                    "driver": "zarr3",
                    "codecs": [
                        {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1, 1]}}
                    ],
                },
            },
            {},
        ),
        (
            {"dtype": "uint8", "domain": {"shape": [3, 5], "labels": ["x", ""]}},
            {"dimension_names": [None, "b"]},
        ),
    ],
)
def test_contradictions(asked: dict, stated: dict) -> None:
    with pytest.raises(MismatchError):
        created(asked, **stated)


def fixed(name: str, size: int) -> dict:
    return {"name": name, "configuration": {"length_bytes": size}}


@pytest.mark.parametrize(
    ("name", "data_type", "fill_value", "serializer"),
    [
        ("ustring", "string", "", {"name": "vlen-utf8"}),
        ("string", "bytes", "", {"name": "vlen-bytes"}),
        ("U2", fixed("fixed_length_utf32", 8), "", LITTLE),
        ("S2", fixed("null_terminated_bytes", 2), "", {"name": "bytes"}),
        ("V2", fixed("raw_bytes", 2), "AAA=", {"name": "bytes"}),
        (
            "timedelta64[5D]",
            {"name": "numpy.timedelta64", "configuration": {"unit": "D", "scale_factor": 5}},
            "NaT",
            LITTLE,
        ),
    ],
)
def test_other_data_types(
    name: str, data_type: object, fill_value: object, serializer: object
) -> None:
    layout = {"read_chunk": {"shape": [2]}, "write_chunk": {"shape": [4]}}
    document = created({"dtype": name, "domain": {"shape": [5]}})
    shards = created({"dtype": name, "domain": {"shape": [5]}, "chunk_layout": layout})

    assert document["data_type"] == data_type
    assert document["fill_value"] == fill_value
    assert document["codecs"] == [serializer]
    assert shards["codecs"][0]["configuration"]["codecs"] == [serializer]


def test_dimensions_inside_an_element_are_not_written() -> None:
    asked = {
        "domain": {"shape": [5, 6, 3], "labels": ["x", "y", ""]},
        "dimension_units": ["m", None, None],
        "chunk_layout": {"write_chunk": {"shape": [2, 3, 3]}, "inner_order": [1, 0, 2]},
    }

    document = created(asked, data_type="r24")

    assert document["shape"] == [5, 6]
    assert document["chunk_grid"]["configuration"] == {"chunk_shape": [2, 3]}
    assert document["dimension_names"] == ["x", "y"]
    assert document["attributes"] == {"dimension_units": ["m", None]}
    assert document["codecs"][0] == {"name": "transpose", "configuration": {"order": [1, 0]}}


def test_a_fill_value_of_the_schema() -> None:
    raw = np.array([b"\1", b"\2"], "V1")
    assert created(Schema(fill_value=raw), data_type="r16", shape=[3])["fill_value"] == [1, 2]
    assert created(Schema(fill_value=raw[:1]), data_type="r16", shape=[3])["fill_value"] == [1, 1]
    asked = {"dtype": [["x", "uint8"], ["y", "S2"]], "fill_value": {"x": 3, "y": "ab"}}
    document = created({**asked, "domain": {"shape": [3]}})
    assert document["fill_value"] == {"x": 3, "y": "YWI="}
    text = {"dtype": "ustring", "fill_value": "nothing", "domain": {"shape": [3]}}
    assert created(text)["fill_value"] == "nothing"
    assert created(text, fill_value="nothing", data_type="string")["fill_value"] == "nothing"


@pytest.mark.parametrize(
    ("asked", "stated", "message"),
    [
        ({"domain": {"shape": [5, 2]}}, {"data_type": "r24"}, "dimension 1 ends at 2"),
        (
            {"chunk_layout": {"inner_order": [1, 0]}},
            {"data_type": "r24", "shape": [5]},
            "inside an element, .*, come last",
        ),
        (
            {"fill_value": "b"},
            {"data_type": "string", "fill_value": "a", "shape": [5]},
            "the schema says 'b', the metadata 'a'",
        ),
        (
            Schema(fill_value=np.array([b"\1"] * 4, "V1")),
            {"data_type": "r24", "shape": [5]},
            "does not broadcast",
        ),
        ({"dtype": "byte", "domain": {"shape": [5]}}, {}, "have a length here"),
        ({"dtype": "uint16"}, {"data_type": "r16", "shape": [5]}, "dtype"),
    ],
)
def test_what_elements_cannot_be(asked: dict | Schema, stated: dict, message: str) -> None:
    with pytest.raises((SpecError, MismatchError), match=message):
        created(asked, **stated)


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


def opened(members: dict | None = None, **asked: Any) -> Any:
    return formats.opened("zarr3", {**DOCUMENT, **(members or {})}, **asked)


def test_the_schema_of_an_array() -> None:
    assert opened().schema.to_json() == {
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
    for names, labels in (
        (["x", None], ("x", "")),
        (["", "y"], ("", "y")),
        (["x", "x"], ("", "")),
    ):
        assert opened({"dimension_names": names}).domain.labels == labels


def known(asked: dict, **stated: object) -> dict:
    return formats.known("zarr3", asked, stated).to_json()


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
    opened(metadata=stated)


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
        opened(metadata=stated)


def test_units_that_are_not_stored_do_not_satisfy() -> None:
    stated = {"attributes": {"dimension_units": ["m", None]}}

    with pytest.raises(MismatchError, match="stored is null"):
        opened({"attributes": {}}, metadata=stated)


FIELDS = [["x", "uint16"], ["raw", "r24"]]
RECORDS = {"data_type": FIELDS, "fill_value": {"x": 7, "raw": [1, 2, 3]}}


def test_the_schema_of_a_field_has_its_dimensions() -> None:
    schema = opened(RECORDS, field="raw").schema

    assert schema.rank == 3
    assert schema.dtype == dtype("byte")
    assert schema.domain.shape == (10, 20, 3)
    assert schema.domain.labels == ("y", "x", "")
    assert schema.domain.implicit_upper_bounds == (True, True, False)
    assert schema.chunk_layout.write_chunk.shape == (5, 6, 3)
    assert schema.chunk_layout.inner_order == (0, 1, 2)
    assert schema.dimension_units == (Unit("nm"), Unit("5 m"), None)
    assert schema.fill_value is not None
    assert schema.fill_value.tolist() == [b"\1", b"\2", b"\3"]
    assert opened(RECORDS, field="x").schema.fill_value == 7


def test_what_is_known_of_a_field() -> None:
    stated = {"shape": [4], **RECORDS, "dimension_names": ["y"]}

    known = formats.known("zarr3", {}, stated, field="raw")

    assert known.rank == 2
    assert known.domain is not None
    assert known.domain.shape == (4, 3)
    assert known.domain.labels == ("y", "")
    assert known.chunk_layout.write_chunk.shape == (None, 3)
    for asked in ({"rank": 1}, {"domain": {"shape": [4, 2]}}):
        with pytest.raises((MismatchError, SpecError)):
            formats.known("zarr3", asked, stated, field="raw")


def test_dimensions_inside_an_element_are_not_resizable() -> None:
    raw = {"data_type": "r24"}

    assert formats.known("zarr3", {"domain": {"shape": [4, 3]}}, raw).domain == ts.IndexDomain(
        shape=[4, 3], implicit_upper_bounds=[True, False]
    )
    with pytest.raises(SpecError, match="dimension 1 ends at 2"):
        formats.known("zarr3", {"domain": {"shape": [4, 2]}}, raw)


def test_a_fill_value_that_varies_over_an_element() -> None:
    same = Schema(fill_value=np.array([b"\1", b"\2", b"\3"], "V1"))
    other = Schema(fill_value=np.array([b"\1", b"\2", b"\4"], "V1"))

    opened(RECORDS, field="raw", schema=same)
    with pytest.raises(MismatchError, match="fill_value"):
        opened(RECORDS, field="raw", schema=other)


def test_the_same_data_type_by_another_name() -> None:
    pairs = {"name": "structured", "configuration": {"fields": FIELDS}}
    for stated in ({"data_type": pairs}, {"data_type": pairs, "fill_value": "BwABAgM="}):
        opened(RECORDS, metadata=stated)
    with pytest.raises(MismatchError, match='"data_type"'):
        opened(RECORDS, metadata={"data_type": "r40"})
    other = {"data_type": pairs, "fill_value": "BwABAgQ="}
    with pytest.raises(MismatchError, match='"fill_value"'):
        opened(RECORDS, metadata=other)
