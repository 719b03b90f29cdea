"""Documents in the form that most have are read a short way: it gives what the long one gives.

One member that means nothing makes a document go the long way, so both are compared for the same
document, right or wrong.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py.drivers.zarr.metadata import ZarrMetadata
from tensorstore_py.drivers.zarr3.metadata import Zarr3Metadata

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
INDEX = [BYTES, {"name": "crc32c"}]
SHARDS = {
    "name": "sharding_indexed",
    "configuration": {"chunk_shape": [2, 2], "codecs": [BYTES], "index_codecs": INDEX},
}
ODD: st.SearchStrategy[Any] = st.sampled_from([
    None, True, 3.0, -1, 2**63, 2**64, "x", "\u00e4", [], [1.0], [True], {}, [None, "a"],
    {"name": "regular"}, {"must_understand": False}, {"dimension_units": ["4 nm", None]},
])  # fmt: skip


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What documents have, or now and then something else."""
    return st.integers(0, 59).flatmap(lambda number: ODD if number == 37 else usual)


def some(*values: object) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


SHAPE = st.lists(st.integers(0, 9), min_size=2, max_size=2)
CHUNKS = st.lists(st.integers(1, 9), min_size=2, max_size=2)
FILL = some(
    0, 1, 255, -1, 0.0, -0.0, 1.5, False, True, "NaN", "0x7fc00000", None, "", [0, 1], "AA=="
)
GRID = st.fixed_dictionaries(
    {
        "name": mostly(st.just("regular")),
        "configuration": mostly(st.fixed_dictionaries({"chunk_shape": mostly(CHUNKS)})),
    }
)
ZARR3 = st.fixed_dictionaries(
    {
        "zarr_format": mostly(st.just(3)),
        "node_type": mostly(some("array", "array", "group")),
        "shape": mostly(SHAPE),
        "data_type": mostly(some("uint8", "uint16", "float32", "bool", "complex64", "int4", "r16",
                                 "string", "bfloat16", "float64", "int64", "uint7")),
        "chunk_grid": GRID,
        "chunk_key_encoding": mostly(some(
            {"name": "default"}, {"name": "v2", "configuration": {"separator": "/"}}, "default",
        )),
        "fill_value": mostly(FILL),
        "codecs": mostly(some(
            [BYTES], [{"name": "bytes"}], [BYTES, {"name": "gzip", "configuration": {"level": 1}}],
            [BYTES, "crc32c"], [SHARDS], ["gzip"], [BYTES, BYTES], ["vlen-utf8"], [{"name": "no"}],
            [{"name": "transpose", "configuration": {"order": [1, 0]}}, BYTES],
        )),
    },
    optional={
        "dimension_names": mostly(some(["y", "x"], [None, "x"], ["\u00e4", ""], ["y"], [1, 2])),
        "attributes": mostly(some({}, {"a": [1, {"b": None}]}, {"n": 2**70})),
        "storage_transformers": mostly(st.just([])),
        "x": mostly(st.just({"must_understand": False})),
    },
)  # fmt: skip
ZARR2 = st.fixed_dictionaries(
    {
        "zarr_format": mostly(st.just(2)),
        "shape": mostly(SHAPE),
        "chunks": mostly(CHUNKS),
        "dtype": mostly(some("<u2", ">f4", "|b1", "|u1", "<c8", "|S3", "|V2", "<M8[s]", "|O", "<U2",
                             "bfloat16", "<u3", [["a", "<u2"]])),
        "fill_value": mostly(FILL),
        "order": mostly(some("C", "F")),
        "compressor": mostly(some(None, {"id": "zlib", "level": 3}, {"id": "zlib", "level": 99},
                                  {"id": "blosc"}, {"id": "no"})),
        "filters": mostly(some(None, [], [{"id": "vlen-utf8"}], [{"id": "shuffle"}], [3])),
    },
    optional={"dimension_separator": mostly(some(".", "/"))},
)  # fmt: skip


def outcome(kind: type[Any], document: object) -> object:
    """All that is known of a document that was read, or what is wrong with it."""
    try:
        found = kind.read(json.dumps(document).encode())
    except Exception as error:
        return type(error), str(error), getattr(error, "path", None)
    fill = found.fill_value
    bits = (
        (fill.dtype, fill.shape, fill.tolist(), fill.flags.writeable)
        if kind is Zarr3Metadata
        else fill
    )
    members = [
        (name, getattr(found, name)) for name in sorted(found.to_json()) if hasattr(found, name)
    ]
    members = [(name, value) for name, value in members if name != "fill_value"]
    return repr(bits), repr(members), found.to_json(), found.rank, found.constraints.to_json()


@given(ZARR3)
def test_version_3(document: dict) -> None:
    grid = {**document["chunk_grid"], "must_understand": True}

    assert outcome(Zarr3Metadata, document) == outcome(
        Zarr3Metadata, {**document, "chunk_grid": grid}
    )


@given(ZARR2)
def test_version_2(document: dict) -> None:
    assert outcome(ZarrMetadata, document) == outcome(ZarrMetadata, {**document, "x": 1})


def test_a_member_that_is_missing_is_named() -> None:
    for kind in (ZarrMetadata, Zarr3Metadata):
        assert "required" in str(outcome(kind, {"shape": [3]}))
