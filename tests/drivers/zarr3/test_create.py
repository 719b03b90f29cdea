import json

import pytest

from tensorstore_py.drivers.zarr3.create import new_metadata
from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.metadata import MetadataConstraints
from tensorstore_py.drivers.zarr3.schema import known_schema
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import Schema, dtype

SCHEMA = {"dtype": "uint16", "domain": {"shape": [1000, 2000, 3000]}}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def created(asked: dict, **stated: object) -> dict:
    constraints = MetadataConstraints.parse(stated)
    stored = constraints.data_type
    if stored is None and "dtype" in asked:
        stored = StoredType.of(dtype(asked["dtype"]))
    known = known_schema(Schema(asked), constraints, None if stored is None else stored.view())
    metadata = new_metadata(known, Schema(asked), constraints)
    document = json.loads(metadata.serialize())
    assert isinstance(document, dict)
    return document


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
