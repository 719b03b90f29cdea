from typing import Any

import pytest

from tensorstore_py.drivers.n5.create import new_metadata
from tensorstore_py.drivers.n5.metadata import MetadataConstraints
from tensorstore_py.drivers.n5.schema import known_schema
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import Schema


def blosc(shuffle: int) -> dict[str, object]:
    return {"blocksize": 0, "clevel": 5, "cname": "lz4", "shuffle": shuffle, "type": "blosc"}


def create(schema: object, **stated: object) -> dict[str, object]:
    asked = Schema(json=schema)
    constraints = MetadataConstraints.parse(stated)
    return new_metadata(known_schema(asked, constraints), asked, constraints).to_json()


@pytest.mark.parametrize(
    ("schema", "stated", "document"),
    [
        (
            {"dtype": "uint8", "domain": {"shape": [1000, 2000]}},
            {},
            {
                "blockSize": [1000, 1048],
                "compression": blosc(2),
                "dataType": "uint8",
                "dimensions": [1000, 2000],
            },
        ),
        (
            {"dimension_units": ["4nm", None]},
            {"dataType": "float32", "dimensions": [3, 4], "axes": ["a", "b"]},
            {
                "axes": ["a", "b"],
                "blockSize": [3, 4],
                "compression": blosc(1),
                "dataType": "float32",
                "dimensions": [3, 4],
                "resolution": [4.0, 1.0],
                "units": ["nm", ""],
            },
        ),
        (
            {"codec": {"driver": "n5", "compression": {"type": "raw"}}, "dtype": "int64"},
            {"dimensions": [30], "blockSize": [7], "note": "kept", "resolution": [2]},
            {
                "blockSize": [7],
                "compression": {"type": "raw"},
                "dataType": "int64",
                "dimensions": [30],
                "note": "kept",
                "resolution": [2.0],
            },
        ),
        (
            {"dtype": "int8", "rank": 0},
            {},
            {"blockSize": [], "compression": blosc(2), "dataType": "int8", "dimensions": []},
        ),
        (
            {
                "dtype": "int8",
                "domain": {"shape": [300, 400], "labels": ["x", ""]},
                "chunk_layout": {"chunk": {"shape": [30, -1]}},
            },
            {"units": ["nm", ""]},
            {
                "axes": ["x", ""],
                "blockSize": [30, 400],
                "compression": blosc(2),
                "dataType": "int8",
                "dimensions": [300, 400],
                "resolution": [1.0, 1.0],
                "units": ["nm", ""],
            },
        ),
    ],
)
def test_documents(schema: dict, stated: dict, document: dict) -> None:
    assert create(schema, **stated) == document


SHAPED: dict[str, Any] = {"dtype": "uint8", "domain": {"shape": [30, 40]}}


@pytest.mark.parametrize(
    ("schema", "stated", "error", "problem"),
    [
        ({}, {}, SpecError, "^domain must be specified"),
        ({"dtype": "int8", "rank": 2}, {}, SpecError, "^domain must be specified"),
        ({"domain": {"shape": [3]}}, {}, SpecError, "^dtype must be specified"),
        ({**SHAPED, "fill_value": 0}, {}, SpecError, "^fill_value: "),
        (SHAPED, {"blockSize": [2**16, 2**16]}, SpecError, r"^metadata\.blockSize: blocks of"),
        (
            {**SHAPED, "chunk_layout": {"codec_chunk": {"shape": [3, 4]}}},
            {},
            SpecError,
            "^codec_chunk: ",
        ),
        (
            {
                **SHAPED,
                "chunk_layout": {"read_chunk": {"shape": [3, 4]}, "write_chunk": {"shape": [6, 8]}},
            },
            {},
            MismatchError,
            "read and write chunks are the same",
        ),
    ],
)
def test_what_cannot_be_had_is_named(
    schema: dict, stated: dict, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        create(schema, **stated)
