"""The driver document of zarr: every example of it, and every row of its tables."""

import json
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import SpecError

WHERE = {"driver": "zarr", "kvstore": "memory://"}


def metadata_of(store: ts.TensorStore) -> dict:
    found = store.spec().to_json()["metadata"]
    assert isinstance(found, dict)
    return found


SCALAR = {
    "zarr_format": 2,
    "shape": [1000, 2000, 3000],
    "chunks": [100, 200, 300],
    "dtype": "<u2",
    "compressor": None,
    "fill_value": 42,
    "order": "C",
    "filters": None,
}
BLOSC = {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": 1}
STRUCTURED = {
    **SCALAR,
    "dtype": [["x", "<u2", [2, 3]], ["y", "<f4", [5]]],
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    "fill_value": "AQACAAMABAAFAAYAAAAgQQAAMEEAAEBBAABQQQAAYEE=",
    "order": "F",
}


def metadata_of(store: ts.TensorStore) -> dict[str, Any]:
    metadata = store.spec().to_json()["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def schema(chunk: list[int], order: list[int], inner: list[int], **members: object) -> dict:
    rank = len(chunk)
    return {
        "chunk_layout": {
            "grid_origin": [0] * rank,
            "inner_order": order,
            "read_chunk": {"shape": chunk},
            "write_chunk": {"shape": chunk},
        },
        "domain": {
            "exclusive_max": [[1000], [2000], [3000], *inner],
            "inclusive_min": [0] * rank,
        },
        "rank": rank,
        **members,
    }


def metadata_of(store: ts.TensorStore) -> dict[str, object]:
    metadata = store.spec().to_json()["metadata"]
    assert isinstance(metadata, dict)
    return metadata


# metadata, field, schema
SCHEMAS = [
    (
        SCALAR,
        None,
        schema(
            [100, 200, 300], [0, 1, 2], [], dtype="uint16", fill_value=42,
            codec={"compressor": None, "driver": "zarr", "filters": None},
        ),
    ),
    (
        STRUCTURED,
        "x",
        schema(
            [100, 200, 300, 2, 3], [2, 1, 0, 3, 4], [2, 3], dtype="uint16",
            fill_value=[[1, 2, 3], [4, 5, 6]],
            codec={"compressor": BLOSC, "driver": "zarr", "filters": None},
        ),
    ),
    (
        STRUCTURED,
        "y",
        schema(
            [100, 200, 300, 5], [2, 1, 0, 3], [5], dtype="float32",
            fill_value=[10.0, 11.0, 12.0, 13.0, 14.0],
            codec={"compressor": BLOSC, "driver": "zarr", "filters": None},
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "field", "expected"), SCHEMAS)
def test_metadata_maps_to_a_schema(metadata: dict, field: str | None, expected: dict) -> None:
    members = {} if field is None else {"field": field}
    store = ts.KvStore.open("memory://").result()
    store[".zarray"] = json.dumps(metadata)

    spec = {"driver": "zarr", "kvstore": store.spec().to_json(), **members}
    opened = ts.open({**spec, "metadata": metadata}, create=True).result()

    assert opened.schema.to_json() == expected
    if field is not None:
        assert opened.spec().to_json()["field"] == field


def test_the_example_of_a_spec_is_one() -> None:
    example: dict[str, Any] = {
        "driver": "zarr",
        "kvstore": {"driver": "gcs", "bucket": "my-bucket", "path": "path/to/array/"},
        "key_encoding": ".",
        "metadata": {
            "shape": [1000, 1000],
            "chunks": [100, 100],
            "dtype": "<i2",
            "order": "C",
            "compressor": {"id": "blosc", "shuffle": -1, "clevel": 5, "cname": "lz4"},
        },
    }
    example["kvstore"] = "memory://path/to/array/"

    opened = ts.open(example, create=True).result()

    assert (opened.dtype, opened.shape) == (ts.int16, (1000, 1000))
    assert metadata_of(opened)["dimension_separator"] == "."


# as written, as printed
COMPRESSORS = [
    ({"id": "gzip", "level": 9}, {"id": "gzip", "level": 9}),
    ({"id": "gzip"}, {"id": "gzip", "level": 1}),
    ({"id": "zlib"}, {"id": "zlib", "level": 1}),
    (
        {"id": "blosc", "cname": "blosclz", "clevel": 9, "shuffle": 2},
        {"blocksize": 0, "clevel": 9, "cname": "blosclz", "id": "blosc", "shuffle": 2},
    ),
    (
        {"id": "blosc"},
        {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": -1},
    ),
    ({"id": "bz2"}, {"id": "bz2", "level": 1}),
    ({"id": "zstd", "level": 6}, {"id": "zstd", "level": 6}),
    ({"id": "zstd"}, {"id": "zstd", "level": 1}),
    (None, None),
]


@pytest.mark.parametrize(("written", "printed"), COMPRESSORS)
def test_compressors_have_their_members_and_defaults(written: object, printed: object) -> None:
    codec = ts.CodecSpec({"driver": "zarr", "compressor": written})
    assert codec.to_json() == {"compressor": printed, "driver": "zarr", "filters": None}
    opened = ts.open(WHERE, create=True, dtype="uint8", shape=[20], codec=codec).result()

    opened[...] = np.arange(20, dtype=np.uint8)

    assert opened.read().result().tolist() == list(range(20))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("zlib", 0, 9), ("gzip", 0, 9), ("bz2", 1, 9), ("zstd", -131072, 22)],
)
def test_levels_have_their_range(name: str, low: int, high: int) -> None:
    for level in (low, high):
        ts.CodecSpec({"driver": "zarr", "compressor": {"id": name, "level": level}})
    for level in (low - 1, high + 1):
        with pytest.raises(SpecError, match=r"compressor\.level"):
            ts.CodecSpec({"driver": "zarr", "compressor": {"id": name, "level": level}})


# TensorStore data type, little endian, big endian
DATA_TYPES = [
    ("bool", "|b1", None),
    ("int4", "int4", None),
    ("uint8", "|u1", None),
    ("int8", "|i1", None),
    ("uint16", "<u2", ">u2"),
    ("int16", "<i2", ">i2"),
    ("uint32", "<u4", ">u4"),
    ("int32", "<i4", ">i4"),
    ("uint64", "<u8", ">u8"),
    ("int64", "<i8", ">i8"),
    ("float8_e4m3fn", "float8_e4m3fn", None),
    ("float8_e4m3fnuz", "float8_e4m3fnuz", None),
    ("float8_e4m3b11fnuz", "float8_e4m3b11fnuz", None),
    ("float8_e5m2", "float8_e5m2", None),
    ("float8_e5m2fnuz", "float8_e5m2fnuz", None),
    ("float16", "<f2", ">f2"),
    ("bfloat16", "bfloat16", None),
    ("float32", "<f4", ">f4"),
    ("float64", "<f8", ">f8"),
    ("complex64", "<c8", ">c8"),
    ("complex128", "<c16", ">c16"),
]


@pytest.mark.parametrize(("name", "little", "big"), DATA_TYPES)
def test_data_types_map_to_each_other(name: str, little: str, big: str | None) -> None:
    created = ts.open(WHERE, create=True, dtype=name, shape=[3]).result()
    assert metadata_of(created)["dtype"] == little
    for encoded in (little, big):
        if encoded is None:
            continue
        spec = {**WHERE, "metadata": {"dtype": encoded, "shape": [3], "compressor": None}}
        opened = ts.open(spec, create=True).result()
        opened[...] = np.array([0, 1, 1]).astype(ts.dtype(name).numpy_dtype)

        assert opened.dtype == ts.dtype(name)
        assert opened.read().result().astype(complex).tolist() == [0, 1, 1]
        assert opened.kvstore is not None
        stored = bytes(opened.kvstore["0"])
        size = len(stored) // 3
        one = stored[size : 2 * size]
        swapped = ts.dtype(name).array(np.ones(1, ts.dtype(name).numpy_dtype)).tobytes()
        assert one == swapped or (encoded == big and one != swapped)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("<u2", [[100], [200]]), ([["x", "<u2", [2, 3]]], [[100], [200], 2, 3])]
)
def test_the_domain_has_the_dimensions_of_the_elements_too(dtype: object, shape: list) -> None:
    spec = {**WHERE, "metadata": {"dtype": dtype, "shape": [100, 200], "chunks": [100, 200]}}

    opened = ts.open(spec, create=True).result()

    assert opened.domain == ts.IndexDomain(json={"shape": shape})
    assert opened.chunk_layout.write_chunk.shape == tuple(
        extent[0] if isinstance(extent, list) else extent for extent in shape
    )


# data type, order, inner order
ORDERS = [
    ("<u2", "C", [0, 1, 2]),
    ("<u2", "F", [2, 1, 0]),
    ([["x", "<u2", [2, 3]]], "C", [0, 1, 2, 3, 4]),
    ([["x", "<u2", [2, 3]]], "F", [2, 1, 0, 3, 4]),
]


@pytest.mark.parametrize(("dtype", "order", "inner_order"), ORDERS)
def test_the_inner_order_ends_with_the_dimensions_of_the_elements(
    dtype: object, order: str, inner_order: list[int]
) -> None:
    spec = {**WHERE, "metadata": {"dtype": dtype, "shape": [4, 5, 6], "order": order}}

    opened = ts.open(spec, create=True).result()

    assert list(opened.chunk_layout.inner_order or ()) == inner_order


def test_without_a_fill_value_zeros_are_stored_as_anything_else() -> None:
    spec = {**WHERE, "metadata": {"dtype": "<u2", "shape": [3]}}
    opened = ts.open(spec, create=True).result()

    opened[...] = 0

    assert opened.fill_value is None
    assert opened.kvstore is not None
    assert "0" in {bytes(key).decode() for key in opened.kvstore.list().result()}
    filled = ts.open(spec, create=True, fill_value=0).result()
    filled[...] = 0
    assert filled.kvstore is not None
    assert [bytes(key) for key in filled.kvstore.list().result()] == [b".zarray"]
