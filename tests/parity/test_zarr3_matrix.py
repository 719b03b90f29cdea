"""zarr version 3: every data type with every codec, order, separator and sharding, both ways.

Each type meets each codec, and both meet each sharding in each order; at night, all of them meet at
once. The array is 7 x 9 in chunks that do not divide it, one chunk of which holds fill values only.
"""

import itertools

import numpy as np
import pytest

from tests.parity.libraries import (
    ALL,
    COMMON,
    document,
    few,
    ours,
    same,
    sample,
    spec_of,
    stored,
    wheel,
    with_zarr,
)

SHAPE = (7, 9)
CODECS: dict[str, list[dict[str, object]]] = {
    "none": [],
    "gzip": [{"name": "gzip", "configuration": {"level": 3}}],
    "zstd": [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}],
    "crc32c": [{"name": "crc32c"}],
    "zstd_crc32c": [{"name": "zstd", "configuration": {"level": 0}}, {"name": "crc32c"}],
    "blosc_shuffle": [
        {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 4, "shuffle": "shuffle"}}
    ],
    "blosc_bit": [
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle"}}
    ],
}
#: name -> (chunk shape of the grid, inner chunk shape, index location)
LAYOUTS = {
    "plain": ((3, 4), None, None),
    "end": ((4, 6), (2, 3), "end"),
    "start": ((4, 6), (2, 3), "start"),
    "nested": ((4, 8), (4, 4), "nested"),
}
SEPARATORS = [("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")]


def codec_list(name, order, endian):
    serializer = {"name": "bytes", "configuration": {"endian": endian}}
    turn = {"name": "transpose", "configuration": {"order": [1, 0]}}
    return [*([turn] if order == "F" else []), serializer, *CODECS[name]]


def metadata(dtype, codec, order, layout, separator, endian="little"):
    chunks, inner, location = LAYOUTS[layout]
    codecs = codec_list(codec, order, endian)
    if dtype in {"bool", "int8", "uint8"} or wheel.dtype(dtype).numpy_dtype.itemsize == 1:
        codecs = [{"name": "bytes"} if each["name"] == "bytes" else each for each in codecs]
    if location == "nested":
        codecs = shard(inner, shard((2, 2), codecs, "start"), "end")
    elif inner is not None:
        codecs = shard(inner, codecs, location)
    name, character = separator
    return {
        "shape": list(SHAPE),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": name, "configuration": {"separator": character}},
        "data_type": dtype,
        "codecs": codecs,
    }


def shard(chunk_shape, codecs, location):
    configuration = {
        "chunk_shape": list(chunk_shape),
        "codecs": codecs,
        "index_codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "crc32c"},
        ],
        "index_location": location,
    }
    return [{"name": "sharding_indexed", "configuration": configuration}]


def values_of(dtype, seed=0):
    values = sample(dtype, SHAPE, seed)
    values[4:7, 4:8] = np.zeros((), values.dtype)
    values[0:3, 4:8] = np.zeros((), values.dtype)
    return values


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("dtype", ALL)
def test_matrix(tmp_path, dtype, codec):
    row, column = ALL.index(dtype), list(CODECS).index(codec)
    for extra, (layout, order) in few(itertools.product(LAYOUTS, "CF"), row + column):
        separator = SEPARATORS[(row // 2 + extra) % 4]
        endian = ["little", "big"][(column + extra // 4) % 2]
        check(
            tmp_path / f"{layout}{order}",
            dtype,
            metadata(dtype, codec, order, layout, separator, endian),
        )


def check(path, dtype, asked):
    values = values_of(dtype)
    theirs = spec_of("zarr3", path / "theirs", metadata=asked)
    mine = spec_of("zarr3", path / "mine", metadata=asked)
    wheel.open(theirs, create=True).result()[...] = values
    ours.open(mine, create=True).result()[...] = values

    same(ours.open(theirs).result().read().result(), values)
    same(wheel.open(mine).result().read().result(), values)
    assert stored(path / "mine") == stored(path / "theirs")
    assert document(path / "mine", "zarr.json") == document(path / "theirs", "zarr.json")
    if dtype in COMMON:
        same(with_zarr(path / "mine", 3)[...], values)

    # Each changes a part of what the other stored.
    region = (slice(1, 6), slice(3, 9))
    change = sample(dtype, (5, 6), 1)
    values[region] = change
    wheel.open(mine).result()[region] = change
    ours.open(theirs).result()[region] = change
    same(ours.open(mine).result().read().result(), values)
    same(wheel.open(theirs).result().read().result(), values)
    if dtype in COMMON:
        change = sample(dtype, (6, 3), 2)
        values[0:6, 2:5] = change
        with_zarr(path / "mine", 3)[0:6, 2:5] = change
        same(ours.open(mine).result().read().result(), values)
