"""`to_json(include_defaults=True)` prints what the reference prints."""

from typing import Any

import pytest
import tensorstore as reference

import tensorstore_py as ts

MEMBERS: list[dict[str, Any]] = [
    {},
    {"dtype": "int8"},
    {"schema": {"rank": 2}},
    {"schema": {"dtype": "int8", "domain": {"shape": [2]}, "fill_value": 3}},
    {"schema": {"chunk_layout": {"chunk": {"elements": 5}}}},
    {"rank": 2},
    {"create": True},
    {"open": True},
    {"open": True, "create": True},
    {"create": True, "delete_existing": True},
    {"assume_metadata": True},
    {"cache_pool": {"total_bytes_limit": 5}},
    {"metadata_cache_pool": "cache_pool#a"},
    {"recheck_cached_data": False, "recheck_cached_metadata": 5.5},
    {"transform": {"input_shape": [2]}},
    {"kvstore": {"driver": "file", "path": "/a/"}},
    {"context": {"cache_pool": {}}},
    {"path": "x"},
]
SPECS = [
    *({"driver": driver, "kvstore": "memory://a/", **each}
      for driver in ("zarr", "zarr3", "n5") for each in MEMBERS),
    {"driver": "zarr"},
    {"driver": "zarr3"},
    {"driver": "n5"},
    {"driver": "zarr3", "kvstore": "memory://a/", "metadata": {
        "shape": [3], "data_type": "int8", "chunk_key_encoding": {"name": "v2"},
        "codecs": ["bytes", {"name": "gzip", "configuration": {"level": 5}}]}},
    {"driver": "zarr", "kvstore": "memory://a/",
     "metadata": {"shape": [3], "dtype": "|i1", "compressor": None}},
    {"driver": "zarr", "kvstore": "memory://a/", "metadata": {"dimension_separator": "/"}},
    {"driver": "zarr", "kvstore": "memory://a/", "field": "x"},
    {"driver": "zarr", "kvstore": "memory://a/", "metadata_key": "x"},
    {"driver": "array", "array": [1, 2], "dtype": "int32"},
    {"driver": "cast", "base": "memory://a/|zarr3:", "dtype": "int8"},
    "memory://a/",
]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_specs(spec):
    ours, theirs = ts.Spec(spec), reference.Spec(spec)
    assert ours.to_json() == theirs.to_json()
    assert ours.to_json(include_defaults=True) == theirs.to_json(include_defaults=True)


@pytest.mark.parametrize(
    ("way", "json"),
    [
        ("Schema", {"rank": 2}),
        ("Schema", {"domain": {"shape": [2]}, "codec": {"driver": "zarr3"}}),
        ("Schema", {}),
        ("CodecSpec", {"driver": "zarr"}),
        ("CodecSpec", {"driver": "zarr", "compressor": {"id": "zlib"}}),
        ("CodecSpec", {"driver": "zarr3", "codecs": ["gzip"]}),
    ],
)
def test_parts(way, json):
    ours, theirs = getattr(ts, way)(json), getattr(reference, way)(json)
    assert ours.to_json(include_defaults=True) == theirs.to_json(include_defaults=True)


@pytest.mark.parametrize(
    "json",
    [
        "memory://a/",
        {"driver": "file", "path": "/a/"},
        {"driver": "file", "path": "/a/", "file_io_sync": False,
         "context": {"file_io_concurrency": {"limit": 3}}},
    ],
    ids=str,
)  # fmt: skip
def test_stores(json):
    ours, theirs = ts.KvStore.Spec(json), reference.KvStore.Spec(json)
    assert ours.to_json(include_defaults=True) == theirs.to_json(include_defaults=True)
