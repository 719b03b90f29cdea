"""Compressed data unpacks to what its chunk may hold, or to a limit that is stated."""

import bz2
import json
import lzma
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import numcodecs
import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, ResourceExhaustedError

LIMIT = 2**18
BOMB = 2**25
ZSTD = {"name": "zstd", "configuration": {"level": 1}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
INDEX = {"name": "bytes", "configuration": {"endian": "little"}}


def streamed_zstd(size: int) -> bytes:
    """Zeros as a streaming encoder writes them: the frame does not say how many."""
    count = size >> 17
    blocks = [
        (2**17 << 3 | 2 | (n == count - 1)).to_bytes(3, "little") + b"\0" for n in range(count)
    ]
    return bytes.fromhex("28b52ffd0058") + b"".join(blocks)


def in_pieces(made, size: int) -> bytes:
    """What a compressor makes of zeros, without holding them all."""
    piece = bytes(2**20)
    return b"".join(made.compress(piece) for _ in range(size >> 20)) + made.flush()


PACKERS: dict[str, tuple[dict, Callable[[int], bytes]]] = {
    "zstd_streamed": (ZSTD, streamed_zstd),
    "zstd": (ZSTD, lambda size: bytes(numcodecs.Zstd(1).encode(bytes(size)))),
    "gzip": (GZIP, lambda size: in_pieces(zlib.compressobj(9, wbits=31), size)),
    "zlib": ({"name": "numcodecs.zlib"}, lambda size: in_pieces(zlib.compressobj(9), size)),
    "bz2": ({"name": "numcodecs.bz2"}, lambda size: in_pieces(bz2.BZ2Compressor(9), size)),
    "lzma": (
        {"name": "numcodecs.lzma", "configuration": {"preset": 0}},
        lambda size: in_pieces(lzma.LZMACompressor(preset=0), size),
    ),
    "lz4": (
        {"name": "numcodecs.lz4"},
        lambda size: bytes(numcodecs.LZ4().encode(bytes(size))),
    ),
    "blosc": (
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 9, "shuffle": "noshuffle"}},
        lambda size: bytes(numcodecs.Blosc("zstd", 9).encode(bytes(size))),
    ),
}
_made: dict[str, bytes] = {}


def bomb(name: str) -> bytes:
    if name not in _made:
        _made[name] = PACKERS[name][1](BOMB)
    return _made[name]


def stored(codecs: list, data: bytes, data_type: str = "string", shape: tuple = (4,), **context):
    """An array of one chunk, which holds `data`."""
    document = {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
        "fill_value": 0 if data_type == "uint8" else "", "attributes": {},
    }  # fmt: skip
    held = ts.Context(context)
    store = ts.KvStore.open("memory://", context=held).result()
    store["zarr.json"] = json.dumps(document)
    store["c/0"] = data
    return ts.open("memory://|zarr3", context=held).result()


def error_and_peak(array: ts.TensorStore, part: object = ...) -> tuple[BaseException, int]:
    array[part].read().exception()  # libraries are loaded at first use
    tracemalloc.start()
    try:
        error = array[part].read().exception()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error is not None
    return error, most


@pytest.mark.parametrize("name", PACKERS)
def test_a_chunk_of_a_known_size_unpacks_to_that(name):
    codec, data = PACKERS[name][0], bomb(name)

    for chain in (["bytes", codec], ["bytes", {"name": "numcodecs.zlib"}, codec]):
        for part in (..., 0):
            error, most = error_and_peak(stored(chain, data, "uint8"), part)

            assert type(error) is DataLossError
            assert 'Error reading "c/0"' in str(error)
            assert most < 2**20 + 2 * len(data)


def in_a_shard(data: bytes) -> bytes:
    return data + struct.pack("<QQ", 0, len(data))


FORMS: dict[str, tuple[Callable[[dict], list], Callable[[bytes], bytes]]] = {
    "text": (lambda codec: ["vlen-utf8", codec], bytes),
    "bytes": (lambda codec: ["vlen-bytes", codec], bytes),
    "in_a_shard": (
        lambda codec: [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [4],
                    "codecs": ["vlen-utf8", codec],
                    "index_codecs": [INDEX],
                },
            }
        ],
        in_a_shard,
    ),
    "around_a_shard": (
        lambda codec: [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2], "codecs": ["vlen-utf8"], "index_codecs": [INDEX]
                },
            },
            codec,
        ],
        bytes,
    ),
    "behind_another": (lambda codec: ["vlen-utf8", {"name": "numcodecs.zlib"}, codec], bytes),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "text") for name in PACKERS),
        *((name, form) for name in ("zstd_streamed", "gzip") for form in FORMS if form != "text"),
    ],
)
def test_data_of_variable_length_unpacks_to_a_limit(name, form):
    codec, data = PACKERS[name][0], bomb(name)
    chain, wrapped = FORMS[form]
    data_type = "bytes" if form == "bytes" else "string"
    array = stored(chain(codec), wrapped(data), data_type, unpacking_limit={"limit_bytes": LIMIT})

    for part in (..., 0):
        error, most = error_and_peak(array, part)

        assert type(error) is ResourceExhaustedError
        assert 'Error reading "c/0"' in str(error) or "of shard" in str(error)
        assert '"unpacking_limit"' in str(error)
        # A hundred times what is stored goes through; streams hold it in parts before it is one.
        assert most < 3 * max(LIMIT, 100 * len(data))


@pytest.mark.parametrize("codec", ["json2", "msgpack2"])
def test_so_do_objects(codec):
    held = ts.Context({"unpacking_limit": {"limit_bytes": LIMIT}})
    store = ts.KvStore.open("memory://", context=held).result()
    store[".zarray"] = json.dumps({
        "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O", "order": "C",
        "filters": [{"id": codec}], "compressor": {"id": "zstd", "level": 1}, "fill_value": None,
    })  # fmt: skip
    store["0"] = streamed_zstd(BOMB)

    error, most = error_and_peak(ts.open("memory://|zarr2", context=held).result())

    assert type(error) is ResourceExhaustedError
    assert most < 3 * LIMIT


def written(values: list, codec: dict, **context):
    spec = {
        "driver": "zarr3", "kvstore": "memory://",
        "metadata": {"codecs": ["vlen-utf8", codec], "data_type": "string", "shape": [len(values)]},
    }  # fmt: skip
    array = ts.open(spec, create=True, context=ts.Context(context)).result()
    array.write(values).result()
    return array


def test_the_limit_can_be_raised():
    values = ["a" * 2**22, "b", "", "c"]
    small, large = ({"unpacking_limit": {"limit_bytes": each}} for each in (LIMIT, 32 * LIMIT))

    assert type(written(values, ZSTD, **small).read().exception()) is ResourceExhaustedError
    assert written(values, ZSTD, **large).read().result().tolist() == values
    assert written(values, GZIP).read().result().tolist() == values


def test_what_hardly_compresses_may_be_larger_than_the_limit():
    values = np.random.default_rng(0).bytes(2 * LIMIT).hex()
    array = written([values], GZIP, unpacking_limit={"limit_bytes": LIMIT})

    assert array.read().result().tolist() == [values]


def test_many_equal_elements_may_take_what_elements_take():
    array = written(["nothing"] * 2**17, ZSTD, unpacking_limit={"limit_bytes": 1})

    assert set(array.read().result()) == {"nothing"}


def test_the_limit_is_that_of_the_handle_and_not_of_the_array():
    context = ts.Context()
    spec = {"driver": "zarr3", "kvstore": "memory://", "context": {}}
    array = written(["a" * 2**22], ZSTD)
    assert array.kvstore is not None
    store = ts.KvStore.open("memory://", context=context).result()
    for key in array.kvstore.list().result():
        store[key] = array.kvstore[key]
    strict = {**spec, "unpacking_limit": {"limit_bytes": LIMIT}}

    assert type(ts.open(strict, context=context).result().read().exception()) is (
        ResourceExhaustedError
    )
    assert ts.open(spec, context=context).result().read().result()[0] == "a" * 2**22


RESIDENT = """
import json, resource, sys
import numpy as np
import tensorstore_py as ts

count = 2**30 >> 17
blocks = [(2**17 << 3 | 2 | (n == count - 1)).to_bytes(3, "little") + b"\\0" for n in range(count)]
frame = bytes.fromhex("28b52ffd0058") + b"".join(blocks)
store = ts.KvStore.open(sys.argv[1]).result()
for name, data_type, codec in (("a/", "uint8", "bytes"), ("b/", "string", "vlen-utf8")):
    spec = {"driver": "zarr3", "kvstore": sys.argv[1] + name, "metadata": {
        "shape": [1024], "data_type": data_type,
        "codecs": [codec, {"name": "zstd", "configuration": {"level": 1}}]}}
    array = ts.open(spec, create=True).result()
    array.write(np.zeros(1024, "uint8") if name == "a/" else "x").result()
    array.read().result()
    store[name + "c/0"] = frame
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = array.read().exception()
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(len(frame), type(error).__name__, taken)
"""


def test_a_frame_of_32_kb_for_a_gigabyte_takes_no_more_of_the_machine(tmp_path):
    found = subprocess.run(
        [sys.executable, "-c", RESIDENT, f"file://{tmp_path}/"],
        check=True, capture_output=True, text=True,
    ).stdout.split("\n")  # fmt: skip

    size, error, taken = found[0].split()
    assert (size, error) == ("32774", "DataLossError")
    assert int(taken) < 8
    _, error, taken = found[1].split()
    assert error == "ResourceExhaustedError"
    assert int(taken) < 160
