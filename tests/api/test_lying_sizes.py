"""Sizes in metadata are checked before memory is taken for them; what cannot be had is typed."""

import json
import tracemalloc

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, ResourceExhaustedError, SpecError

LE = {"name": "bytes", "configuration": {"endian": "little"}}
SCALED = {
    "name": "numcodecs.fixedscaleoffset",
    "configuration": {"scale": 1, "offset": 0, "astype": "<f8"},
}
SCALED_V2 = {"id": "fixedscaleoffset", "dtype": "<u2", "scale": 1, "offset": 0}
KEYS = {"zarr3": "zarr.json", "zarr": ".zarray", "n5": "attributes.json"}


def opened(driver: str, document: dict, **values: bytes) -> ts.TensorStore:
    context = ts.Context()
    store = ts.KvStore.open("memory://", context=context).result()
    store[KEYS[driver]] = json.dumps(document)
    for key, value in values.items():
        store[key] = value
    return ts.open({"driver": driver, "kvstore": "memory://"}, context=context).result()


def zarr3(shape: list, chunks: list, data_type: object = "uint16", codecs: object = (LE,)) -> dict:
    return {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "v2"}, "codecs": codecs, "fill_value": 0,
    }  # fmt: skip


def zarr2(shape: list, chunks: list, dtype: object = "<u2", **more: object) -> dict:
    return {
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "order": "C",
        "compressor": None, "filters": None, "fill_value": None, **more,
    }  # fmt: skip


@pytest.fixture
def peak():
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("driver", "document"),
    [
        ("zarr3", zarr3([4, 4], [2**40, 2**40])),
        ("zarr3", zarr3([4], [2**62])),
        ("zarr", zarr2([4, 4], [2**40, 2**40])),
        ("zarr", zarr2([4, 4], [2**32, 2**32], order="F")),
        ("zarr", zarr2([4], [2**60], [["x", "<u8"], ["y", "|S8"]])),
    ],
)
def test_chunks_that_no_memory_holds_are_refused_when_the_array_is_opened(driver, document, peak):
    with pytest.raises(DataLossError, match="more than any memory") as caught:
        opened(driver, document)

    assert "take " in str(caught.value)
    assert KEYS[driver] in str(caught.value)
    assert peak() < 2**24


def test_such_chunks_are_refused_where_they_are_asked_for():
    grid = {"name": "regular", "configuration": {"chunk_shape": [2**62]}}
    metadata = {"shape": [4], "chunk_grid": grid, "data_type": "uint64"}
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}

    with pytest.raises(SpecError, match="more than any memory"):
        ts.open(spec, create=True).result()


def test_elements_that_are_too_large_are_refused(peak):
    for dtype in (
        "<U500000000",
        "|S2147483647",
        "|V99999999",
        [["x", "|S60000000"], ["y", "|S60000000"]],
    ):
        with pytest.raises(DataLossError, match="more than 67108864 bytes"):
            opened("zarr", zarr2([4], [2], dtype))
    for name in ("U500000000", "S999999999", '[["x", "uint8", [65536, 65536]]]'):
        with pytest.raises(SpecError, match="more than 67108864 bytes"):
            ts.dtype(name)
    assert peak() < 2**24
    assert ts.dtype("S67108864").numpy_dtype.itemsize == 2**26


@pytest.mark.parametrize(
    ("driver", "document"),
    [
        ("zarr3", zarr3([2**40], [2**40])),
        ("zarr3", zarr3([2**40], [2**40], codecs=[SCALED, LE])),
        ("zarr", zarr2([2**40], [2**40], [["x", "<i4"], ["y", "|S4"]])),
        ("zarr", zarr2([2**40], [2**40], filters=[SCALED_V2])),
    ],
)  # fmt: skip
def test_a_huge_chunk_takes_nothing_before_it_is_read(driver, document, peak):
    array = opened(driver, document)
    repr(array)

    assert not array[5].read().result() or driver == "zarr"  # it is missing, and so fill value
    assert peak() < 2**24


CHAINS = {
    "raw": [LE],
    "zstd": [LE, {"name": "zstd", "configuration": {"level": 1}}],
    "gzip": [LE, {"name": "gzip", "configuration": {"level": 1}}],
    "big": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "numcodecs.zlib"}],
    "pcodec": [{"name": "numcodecs.pcodec"}],
    "transpose": [{"name": "transpose", "configuration": {"order": [1, 0]}}, LE],
    "shards": [
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2**30, 2**30], "codecs": [LE]},
        }
    ],
    "packed_shards": [
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2**29, 2**29], "codecs": [LE]},
        },
        {"name": "gzip", "configuration": {"level": 1}},
    ],
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_small_value_for_a_huge_chunk_is_an_error_that_names_the_key(name):
    array = opened("zarr3", zarr3([2**30, 2**30], [2**30, 2**30], codecs=CHAINS[name]))
    assert array.kvstore is not None
    for data in (b"", b"x" * 40, bytes.fromhex("28b52ffd0058") + b"\x03\x00\x10\x00"):
        array.kvstore["0.0"] = data
        for action in (array[0, 0].read, lambda: array[0, 0].write(1)):
            error = action().exception()

            assert isinstance(error, DataLossError | ResourceExhaustedError)
            assert "0.0" in str(error)


def test_an_answer_that_cannot_be_had_says_what_it_would_take():
    array = opened("zarr3", zarr3([2**50, 2**50], [64, 64]))

    for read in (array.read, ts.downsample(array, [2, 1], "mean").read, ts.stack([array]).read):
        error = read().exception()

        assert isinstance(error, ResourceExhaustedError)
        assert isinstance(error, MemoryError)
        assert "type uint16 takes " in str(error)
        assert str(2**50) in str(error)
    with pytest.raises(ResourceExhaustedError):
        np.asarray(array)


def test_a_codec_that_asks_for_more_memory_than_there_is_is_refused():
    filters = [{"id": "lzma", "format": 3, "filters": [{"id": 33, "dict_size": 2**32 - 1}]}]

    with pytest.raises(DataLossError, match="lzma"):
        opened("zarr", zarr2([4], [2], filters=filters))


@pytest.mark.parametrize("number", ["1" * 5000, "1e400", str(2**64), "-" + "9" * 40])
def test_numbers_that_nothing_counts(number):
    context = ts.Context()
    store = ts.KvStore.open("memory://", context=context).result()
    n5 = {"dimensions": [77], "blockSize": [2], "dataType": "uint8", "compression": {"type": "raw"}}
    documents = {"zarr3": zarr3([77], [2]), "zarr": zarr2([77], [2]), "n5": n5}
    for driver, key in KEYS.items():
        store[key] = json.dumps(documents[driver]).replace("77", number)
        with pytest.raises(DataLossError):
            ts.open({"driver": driver, "kvstore": "memory://"}, context=context).result()
    store["document"] = number
    found = ts.open({"driver": "json", "kvstore": "memory://document"}, context=context).result()
    assert found.read().exception() is None or isinstance(found.read().exception(), DataLossError)
