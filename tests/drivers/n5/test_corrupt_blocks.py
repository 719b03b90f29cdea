"""Blocks that are damaged: errors that name the key, no memory for what is not there.

Everything else stays readable.
"""

import bz2
import gzip
import lzma
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache

import numcodecs
import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError

SHAPE, CHUNKS = (6, 4), (3, 2)
VALUES = np.arange(24, dtype="i4").reshape(SHAPE) * 1000 + 7
BLOSC = {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}
COMPRESSIONS: dict[str, dict[str, object]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip"},
    "zlib": {"type": "gzip", "useZlib": True},
    "bzip2": {"type": "bzip2"},
    "xz": {"type": "xz", "preset": 0},
    "zstd": {"type": "zstd"},
    "blosc": BLOSC,
    "blosc_zstd": {**BLOSC, "cname": "zstd", "shuffle": 2},
}
KEY = "1/0"


def header(*shape: int, mode: int = 0, rank: int = 2) -> bytes:
    return struct.pack(f">HH{len(shape)}I", mode, rank, *shape)


class Opened:
    """An array of four blocks, and what is stored of it."""

    def __init__(self, name: str) -> None:
        metadata = {
            "dimensions": SHAPE, "blockSize": CHUNKS, "dataType": "int32",
            "compression": COMPRESSIONS[name],
        }  # fmt: skip
        spec = {"driver": "n5", "kvstore": "memory://a/", "metadata": metadata}
        self.array = ts.open(spec, create=True).result()
        self.array[...] = VALUES
        assert self.array.kvstore is not None
        self.store = self.array.kvstore
        self.data = bytes(self.store[KEY])

    def error(self, data: bytes) -> DataLossError | None:
        """What reading everything raises; the blocks that are whole are read either way."""
        self.store[KEY] = data
        assert self.array[:3].read().result().tolist() == VALUES[:3].tolist()
        error = self.array.read().exception()
        if error is None:
            return None
        assert type(error) is DataLossError
        assert f'Error reading "a/{KEY}": ' in str(error)
        return error


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_truncated_blocks_are_named(name: str) -> None:
    opened = Opened(name)
    length = len(opened.data)

    for cut in sorted({0, 1, 2, 4, 8, 11, 12, 13, length // 2, length - 4, length - 1}):
        assert opened.error(opened.data[:cut]) is not None, cut


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_bytes_behind_a_block_are_named(name: str) -> None:
    opened = Opened(name)

    assert opened.error(opened.data + b"x") is not None
    assert opened.error(opened.data * 2) is not None


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_changed_bits_are_found_or_harmless(name: str) -> None:
    opened = Opened(name)

    for position in range(len(opened.data)):
        damaged = bytearray(opened.data)
        damaged[position] ^= 1 << (position % 8)
        error = opened.error(bytes(damaged))
        # Whatever the header states is checked against the rest.
        assert error is not None or position >= 12, position


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_bytes_of_no_meaning_are_named(name: str) -> None:
    opened = Opened(name)
    random = np.random.default_rng(0)

    for size in (1, 10, 25, 100, 1000):
        assert opened.error(random.bytes(size)) is not None
        assert opened.error(header(3, 2) + random.bytes(size)) is not None


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (header(3, 2, mode=1) + struct.pack(">I", 6), "blocks of variable length"),
        (header(mode=2, rank=0), "blocks of objects"),
        (header(3, 2, mode=9), "mode 9"),
        (header(3, rank=1), "1 dimensions"),
        (header(3, 2, 1, rank=3), "3 dimensions"),
        (header(4, 2), "a block of shape [4, 2] is stored, but blockSize is [3, 2]"),
        (header(2**32 - 1, 2**32 - 1), "a block of shape"),
        (header(2, 2), "16"),
        (header(0, 2), " 0"),
    ],
)
@pytest.mark.parametrize("name", ["raw", "gzip"])
def test_a_header_that_lies_is_named(name: str, start: bytes, problem: str) -> None:
    opened = Opened(name)

    error = opened.error(start + opened.data[12:])

    assert error is not None
    assert problem in str(error)


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_damaged_block_is_replaced_only_as_a_whole(name: str) -> None:
    opened = Opened(name)
    opened.store[KEY] = b"damaged"

    with pytest.raises(DataLossError, match='Error updating "a/1/0": what is stored there'):
        opened.array[3, 0] = 1

    assert bytes(opened.store[KEY]) == b"damaged"
    opened.array[3:, :2] = VALUES[3:, :2]
    assert opened.array.read().result().tolist() == VALUES.tolist()


BOMB = 1 << 24
#: Data that unpacks to far more than a block.
BOMBS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("zlib", zlib.compress),
    "bzip2": ("bzip2", bz2.compress),
    "xz": ("xz", lambda data: lzma.compress(data, preset=0)),
    "zstd": ("zstd", lambda data: numcodecs.Zstd(1).encode(data)),
    "blosc": ("blosc", lambda data: numcodecs.Blosc("lz4").encode(data)),
}


@cache
def bomb(name: str) -> bytes:
    return BOMBS[name][1](bytes(BOMB))


@pytest.mark.parametrize("shape", [(3, 2), (1, 1), (0, 0)])
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(name: str, shape: tuple[int, int]) -> None:
    opened = Opened(BOMBS[name][0])
    data = header(*shape) + bomb(name)
    opened.error(data)  # libraries are loaded at first use
    tracemalloc.start()
    try:
        error = opened.error(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert error is not None
    assert most < (1 << 20) + 4 * len(data)


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_an_object_that_is_far_too_long_is_not_a_block(name: str) -> None:
    opened = Opened(name)

    assert opened.error(bytes(1 << 20)) is not None
