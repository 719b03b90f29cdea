"""Chunks that are damaged: errors that name the key, no memory for what is not there.

Everything else stays readable.
"""

import bz2
import gzip
import json
import lzma
import struct
import tracemalloc
import zlib
from collections.abc import Callable

import numcodecs
import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError

SHAPE, CHUNKS = (4, 6), (2, 3)
VALUES = np.arange(24, dtype="<i4").reshape(SHAPE) * 1000
TEXTS = np.array(["", "a", "bb", "é", "text", "x" * 50] * 4, object).reshape(SHAPE)
SIZE = 24
DELTA = {"id": "delta", "dtype": "<i4", "astype": "<i4"}
SHUFFLE = {"id": "shuffle", "elementsize": 4}
ZLIB = {"id": "zlib", "level": 1}

#: Every way to encode that notices at least some damage: data type, filters, compressor.
ENCODINGS: dict[str, tuple] = {
    "raw": ("<i4", None, None),
    "zlib": ("<i4", None, ZLIB),
    "gzip": ("<i4", None, {"id": "gzip", "level": 1}),
    "bz2": ("<i4", None, {"id": "bz2", "level": 1}),
    "zstd": ("<i4", None, {"id": "zstd", "level": 1}),
    "zstd_checksum": ("<i4", None, {"id": "zstd", "level": 1, "checksum": True}),
    "blosc_lz4": ("<i4", None, {"id": "blosc", "cname": "lz4"}),
    "blosc_zstd": ("<i4", None, {"id": "blosc", "cname": "zstd", "shuffle": 2}),
    "lz4": ("<i4", None, {"id": "lz4"}),
    "lzma": ("<i4", None, {"id": "lzma", "preset": 0}),
    "shuffle": ("<i4", [SHUFFLE], None),
    "delta": ("<i4", [DELTA], None),
    "scale": (
        "<i4",
        [{"id": "fixedscaleoffset", "dtype": "<i4", "astype": "<f8", "scale": 1, "offset": 0}],
        None,
    ),
    "astype": ("<i4", [{"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i4"}], None),
    "crc32": ("<i4", [{"id": "crc32"}], None),
    "crc32c": ("<i4", [{"id": "crc32c"}], None),
    "adler32": ("<i4", [{"id": "adler32"}], None),
    "fletcher32": ("<i4", [{"id": "fletcher32"}], None),
    "jenkins": ("<i4", [{"id": "jenkins_lookup3"}], None),
    "base64": ("<i4", [{"id": "base64"}], None),
    "json2": ("<i4", [{"id": "json2"}], None),
    "chain": ("<i4", [DELTA, SHUFFLE, {"id": "fletcher32"}], ZLIB),
    "two": ("<i4", [ZLIB], {"id": "zstd", "level": 1}),
    "record": ([["x", "<i2"], ["y", "<i2"]], [{"id": "crc32"}], ZLIB),
    "strings": ("|O", [{"id": "vlen-utf8"}], None),
    "strings_zlib": ("|O", [{"id": "vlen-utf8"}], ZLIB),
    "strings_crc32": ("|O", [{"id": "vlen-utf8"}, {"id": "crc32"}], None),
    "json_objects": ("|O", [{"id": "json2"}], None),
    "categories": (
        "|O",
        [{"id": "categorize", "labels": ["a", "bb"], "dtype": "|O"}, {"id": "crc32"}],
        None,
    ),
}
#: Those that notice every changed bit, by a checksum over all that is stored.
CHECKED = {
    "crc32", "crc32c", "adler32", "fletcher32", "jenkins", "strings_crc32", "categories",
}  # fmt: skip


class Opened:
    """An array of four chunks, and what is stored of it."""

    def __init__(self, name: str) -> None:
        dtype, filters, compressor = ENCODINGS[name]
        self.objects = dtype == "|O"
        metadata = {
            "dtype": dtype, "shape": SHAPE, "chunks": CHUNKS, "filters": filters,
            "compressor": compressor, "fill_value": None,
        }  # fmt: skip
        spec = {"driver": "zarr", "kvstore": "memory://a/", "metadata": metadata}
        self.context = ts.Context()
        self.array = ts.open(spec, create=True, context=self.context).result()
        self.values = TEXTS if self.objects else VALUES
        if isinstance(dtype, list):
            self.values = np.ascontiguousarray(VALUES).view([("x", "<i2"), ("y", "<i2")])
        self.array[...] = self.values
        assert self.array.kvstore is not None
        self.store = self.array.kvstore
        self.kept = self.array.read().result().tolist()

    def damage(self, data: bytes, key: str = "0.1") -> None:
        self.store[key] = data

    def error(self, key: str = "0.1") -> DataLossError | None:
        """What reading everything raises; the chunks that are whole are read either way."""
        assert self.array[2:].read().result().tolist() == self.kept[2:]
        error = self.array.read().exception()
        if error is None:
            return None
        assert type(error) is DataLossError
        assert f'Error reading "a/{key}": ' in str(error)
        return error


@pytest.mark.parametrize("name", ENCODINGS)
def test_truncated_chunks_are_named(name: str) -> None:
    opened = Opened(name)
    data = bytes(opened.store["0.1"])
    lengths = {0, 1, 3, 4, 5, len(data) // 3, len(data) // 2, len(data) - 4, len(data) - 1}

    for length in sorted(each for each in lengths if 0 <= each < len(data)):
        opened.damage(data[:length])
        assert opened.error() is not None, length


@pytest.mark.parametrize("name", ENCODINGS)
def test_changed_bits_are_found_or_harmless(name: str) -> None:
    opened = Opened(name)
    data = bytes(opened.store["0.1"])

    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        opened.damage(bytes(damaged))
        assert opened.error() is not None or name not in CHECKED, position


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_chunk_of_another_size_is_named(name: str) -> None:
    if name == "crc32c":
        pytest.importorskip("google_crc32c")  # without it numcodecs has no such codec
    opened = Opened(name)
    _, filters, compressor = ENCODINGS[name]
    codecs = [numcodecs.get_codec(dict(each)) for each in filters or ()]
    if compressor:
        codecs.append(numcodecs.get_codec(dict(compressor)))
    for count in (5, 7, 60):
        data = np.full(count, "a", object) if opened.objects else np.arange(count, dtype="<i4")
        for codec in codecs:
            data = codec.encode(data)
        opened.damage(bytes(numcodecs.compat.ensure_bytes(data)))

        error = opened.error()

        assert error is not None
        assert "expected" in str(error) or "more than" in str(error), error


@pytest.mark.parametrize("name", ENCODINGS)
def test_bytes_of_no_meaning_are_named(name: str) -> None:
    opened = Opened(name)
    random = np.random.default_rng(0)

    for size in (1, 10, 25, 100, 1000):
        opened.damage(random.bytes(size))
        assert opened.error() is not None


@pytest.mark.parametrize("name", ["zlib", "chain", "strings_crc32", "record"])
def test_a_damaged_chunk_is_replaced_only_as_a_whole(name: str) -> None:
    opened = Opened(name)
    opened.damage(b"damaged")

    with pytest.raises(DataLossError, match=r'Error updating "a/0\.1": what is stored there'):
        opened.array[0, 4] = opened.values[0, 0]

    assert bytes(opened.store["0.1"]) == b"damaged"
    if name != "record":
        opened.array[:2, 3:] = opened.values[:2, 3:]
        assert opened.array.read().result().tolist() == opened.kept


def test_one_field_of_a_damaged_chunk_is_not_written() -> None:
    opened = Opened("record")
    spec = {"driver": "zarr", "kvstore": "memory://a/", "field": "x"}
    field = ts.open(spec, context=opened.context).result()
    opened.damage(b"damaged")

    with pytest.raises(DataLossError, match=r'Error updating "a/0\.1"'):
        field[:2, 3:] = 1

    assert bytes(opened.store["0.1"]) == b"damaged"
    assert field[2:].read().result().tolist() == opened.values["x"][2:].tolist()


BOMB = 1 << 26


def stated_by_lz4(_: bytes) -> bytes:
    return struct.pack("<I", 2**31 - 1) + bytes(100)


def stated_by_zstd(_: bytes) -> bytes:
    return bytes.fromhex("28b52ffd a0 00000080 190000616263".replace(" ", ""))


def stated_by_blosc(_: bytes) -> bytes:
    return struct.pack("<BBBBIII", 2, 1, 0x21, 4, 2**31 - 17, 2**31 - 17, 40) + bytes(24)


#: Data that unpacks to far more than a chunk: made of `BOMB` zeros, or by a header that lies.
BOMBS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "zlib": ("zlib", zlib.compress),
    "gzip": ("gzip", gzip.compress),
    "bz2": ("bz2", bz2.compress),
    "lzma": ("lzma", lambda data: lzma.compress(data, preset=0)),
    "zstd": ("zstd", lambda data: numcodecs.Zstd(1).encode(data)),
    "zstd_lies": ("zstd", stated_by_zstd),
    "blosc": ("blosc_lz4", lambda data: numcodecs.Blosc("lz4").encode(data)),
    "blosc_lies": ("blosc_lz4", stated_by_blosc),
    "lz4": ("lz4", lambda data: numcodecs.LZ4().encode(data)),
    "lz4_lies": ("lz4", stated_by_lz4),
    "behind_filters": ("chain", zlib.compress),
    "in_another": ("two", lambda data: numcodecs.Zstd(1).encode(zlib.compress(data))),
    "record": ("record", zlib.compress),
    "strings_lie": ("strings", lambda _: struct.pack("<I", 2**32 - 1) + bytes(100)),
    "string_lies": ("strings", lambda _: struct.pack("<II", 6, 2**32 - 1) + bytes(100)),
    "json_lies": ("json2", lambda _: b'[1,"<i4",[1000000000000]]'),
    "json_objects_lie": ("json_objects", lambda _: b'["|O",[1000000000000]]'),
}


@pytest.fixture(scope="module")
def zeros() -> bytes:
    return bytes(BOMB)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(name: str, zeros: bytes) -> None:
    encoding, make = BOMBS[name]
    opened = Opened(encoding)
    opened.damage(make(zeros))
    opened.error()  # libraries are loaded at first use
    tracemalloc.start()
    try:
        error = opened.error()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert error is not None
    # Apart from what is stored: a bomb of lz4 is a 250th of what it stands for.
    assert most < (1 << 20) + 2 * len(bytes(opened.store["0.1"]))


def test_a_shuffle_of_another_size_is_data_loss_when_it_comes_last() -> None:
    opened = Opened("shuffle")
    for size in (23, 25, 48):
        opened.damage(bytes(size))
        error = opened.error()
        assert error is not None
        assert f"decoded to {size} bytes, expected {SIZE}" in str(error)


def test_text_that_no_unicode_has_is_data_loss() -> None:
    metadata = {"dtype": "<U2", "shape": [2], "chunks": [1], "compressor": None}
    spec = {"driver": "zarr", "kvstore": "memory://a/", "metadata": metadata}
    array = ts.open(spec, create=True).result()
    array[...] = ["ab", "c"]
    assert array.kvstore is not None
    array.kvstore["0"] = struct.pack("<II", 0x41, 0x110000)

    with pytest.raises(DataLossError, match=r'Error reading "a/0": .*0x110000'):
        array.read().result()
    assert array[1].read().result() == "c"


def test_the_document_is_as_it_was() -> None:
    opened = Opened("chain")
    before = json.loads(bytes(opened.store[".zarray"]))
    opened.damage(b"damaged")
    opened.error()

    assert json.loads(bytes(opened.store[".zarray"])) == before
