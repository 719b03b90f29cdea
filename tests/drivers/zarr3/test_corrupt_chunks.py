"""Chunks and shards that are damaged: errors that name the key, no memory for what is not there.

Everything else stays readable.
"""

import bz2
import gzip
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
from tensorstore_py.plugin.codec import crc32c

SHAPE, CHUNKS, INNER = (4, 6), (2, 3), (1, 3)
VALUES = np.arange(24, dtype="<i4").reshape(SHAPE) * 1000
SIZE = 24
MISSING = 2**64 - 1
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
INDEX = [BYTES, {"name": "crc32c"}]


def made(name: str, **configuration: object) -> dict:
    return {"name": name, "configuration": configuration}


def shards(*codecs: object, location: str = "end", index: object = None) -> list:
    return [
        made(
            "sharding_indexed", chunk_shape=INNER, codecs=list(codecs),
            index_codecs=index or INDEX, index_location=location,
        )
    ]  # fmt: skip


ZSTD = made("zstd", level=1)
DELTA = made("numcodecs.delta", dtype="<i4")

#: Every way to encode that notices at least some damage.
ENCODINGS: dict[str, list] = {
    "raw": [BYTES],
    "big": [made("bytes", endian="big")],
    "gzip": [BYTES, made("gzip", level=1)],
    "zstd": [BYTES, ZSTD],
    "zstd_checksum": [BYTES, made("zstd", level=1, checksum=True)],
    "blosc_lz4": [BYTES, made("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4)],
    "blosc_zstd": [BYTES, made("blosc", cname="zstd", clevel=5, shuffle="bitshuffle", typesize=4)],
    "crc32c": [BYTES, made("crc32c")],
    "transpose": [made("transpose", order=[1, 0]), BYTES],
    "packbits": [made("packbits", padding_encoding="first_byte", last_bit=14)],
    "reshape": [made("reshape", shape=[-1]), BYTES, ZSTD],
    "bitround": [made("bitround", keepbits=30), BYTES],
    "delta": [DELTA, BYTES],
    "scale": [made("numcodecs.fixedscaleoffset", scale=1, offset=0, astype="<f8"), BYTES],
    "astype": [made("numcodecs.astype", encode_dtype="<i8"), BYTES],
    "shuffle": [BYTES, made("numcodecs.shuffle", elementsize=4)],
    "zlib": [BYTES, made("numcodecs.zlib", level=1)],
    "bz2": [BYTES, made("numcodecs.bz2", level=1)],
    "lzma": [BYTES, made("numcodecs.lzma", preset=0)],
    "lz4": [BYTES, made("numcodecs.lz4")],
    "crc32": [BYTES, made("numcodecs.crc32")],
    "adler32": [BYTES, made("numcodecs.adler32")],
    "fletcher32": [BYTES, made("numcodecs.fletcher32")],
    "jenkins": [BYTES, made("numcodecs.jenkins_lookup3")],
    "chain": [DELTA, BYTES, made("numcodecs.shuffle"), made("gzip", level=1), made("crc32c")],
    "two": [BYTES, made("numcodecs.zlib"), ZSTD],
    "shards": shards(BYTES),
    "shards_at_start": shards(BYTES, location="start"),
    "shards_zstd": shards(BYTES, ZSTD),
    "shards_checked": shards(BYTES, made("crc32c")),
    "shards_no_checksum": shards(BYTES, made("crc32c"), index=[BYTES]),
    "shards_big_index": shards(BYTES, index=[made("bytes", endian="big"), made("crc32c")]),
    "shards_compressed": [*shards(BYTES, ZSTD), made("gzip", level=1), made("crc32c")],
    "shards_in_shards": [
        made("sharding_indexed", chunk_shape=[2, 3], codecs=shards(BYTES), index_codecs=INDEX)
    ],
    "shards_transposed": [
        made("transpose", order=[1, 0]),
        made("sharding_indexed", chunk_shape=[3, 1], codecs=[BYTES, ZSTD], index_codecs=INDEX),
    ],
}
#: Those that notice every changed bit, by a checksum over all that is stored.
CHECKED = {
    "crc32c", "crc32", "adler32", "fletcher32", "jenkins", "chain", "shards_checked",
    "shards_compressed",
}  # fmt: skip
SHARDED = [name for name in ENCODINGS if name.startswith("shards")]
#: Shards whose index lies open: bytes, and where it is.
PLAIN = {"shards": -36, "shards_at_start": 0, "shards_zstd": -36, "shards_checked": -36}


class Opened:
    """An array of four chunks, and what is stored of it."""

    def __init__(self, codecs: list, dtype: str = "int32", values: object = VALUES) -> None:
        metadata = {
            "data_type": dtype, "shape": SHAPE, "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNKS}},
        }  # fmt: skip
        spec = {"driver": "zarr3", "kvstore": "memory://a/", "metadata": metadata}
        self.array = ts.open(spec, create=True, context=ts.Context()).result()
        self.array[...] = values
        assert self.array.kvstore is not None
        self.store = self.array.kvstore
        self.kept = self.array.read().result().tolist()
        self.data = bytes(self.store["c/0/1"])

    def damage(self, data: bytes) -> None:
        self.store["c/0/1"] = data

    def error(self) -> DataLossError | None:
        """What reading everything raises; the chunks that are whole are read either way."""
        assert self.array[2:].read().result().tolist() == self.kept[2:]
        assert self.array[:, :3].read().result().tolist() == [row[:3] for row in self.kept]
        error = self.array.read().exception()
        if error is None:
            return None
        assert type(error) is DataLossError
        assert 'Error reading "a/c/0/1"' in str(error)
        return error


def resealed(data: bytes, start: int, size: int = 32) -> bytes:
    """A shard whose index has the checksum that belongs to it, whatever it says."""
    start %= len(data)
    checksum = crc32c(data[start : start + size])
    return data[: start + size] + struct.pack("<I", checksum) + data[start + size + 4 :]


def with_entries(data: bytes, start: int, *entries: tuple[int, int] | None) -> bytes:
    """A shard with other entries in its index; None leaves one as it is."""
    start %= len(data)
    changed = bytearray(data)
    for number, entry in enumerate(entries):
        if entry is not None:
            struct.pack_into("<QQ", changed, start + 16 * number, *entry)
    return resealed(bytes(changed), start)


@pytest.mark.parametrize("name", ENCODINGS)
def test_truncated_chunks_are_named(name: str) -> None:
    opened = Opened(ENCODINGS[name])
    size = len(opened.data)
    lengths = {0, 1, 3, 4, 5, size // 3, size // 2, size - 36, size - 20, size - 4, size - 1}

    for length in sorted(each for each in lengths if 0 <= each < size):
        opened.damage(opened.data[:length])
        assert opened.error() is not None, length


@pytest.mark.parametrize("name", ENCODINGS)
def test_changed_bits_are_found_or_harmless(name: str) -> None:
    opened = Opened(ENCODINGS[name])

    for position in range(len(opened.data)):
        damaged = bytearray(opened.data)
        damaged[position] ^= 1 << (position % 8)
        opened.damage(bytes(damaged))
        assert opened.error() is not None or name not in CHECKED, position


@pytest.mark.parametrize("name", ENCODINGS)
def test_bytes_of_no_meaning_are_named(name: str) -> None:
    opened = Opened(ENCODINGS[name])
    random = np.random.default_rng(0)

    for size in (1, 10, 25, 100, 1000):
        opened.damage(random.bytes(size))
        assert opened.error() is not None


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name not in SHARDED])
def test_a_chunk_of_another_size_is_named(name: str) -> None:
    opened = Opened(ENCODINGS[name])
    larger = ts.open(
        {
            "driver": "zarr3",
            "kvstore": "memory://b/",
            "metadata": {
                "data_type": "int32", "shape": [2, 6], "codecs": ENCODINGS[name],
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 6]}},
            },
        },
        create=True,
    ).result()  # fmt: skip
    larger[...] = VALUES[:2]
    assert larger.kvstore is not None
    opened.damage(bytes(larger.kvstore["c/0/0"]))

    error = opened.error()

    assert error is not None
    assert "expected" in str(error) or "more than" in str(error), error


@pytest.mark.parametrize("name", ["zstd", "chain", "shards", "shards_zstd", "shards_compressed"])
def test_a_damaged_chunk_is_replaced_only_as_a_whole(name: str) -> None:
    opened = Opened(ENCODINGS[name])
    opened.damage(b"damaged")

    with pytest.raises(DataLossError, match=r'Error updating "a/c/0/1": what is stored there'):
        opened.array[0, 4] = 1

    assert bytes(opened.store["c/0/1"]) == b"damaged"
    opened.array[:2, 3:] = VALUES[:2, 3:]
    assert opened.array.read().result().tolist() == opened.kept


#: Entries of an index of two inner chunks of 12 bytes each, in a shard of 60 bytes.
ENTRIES: dict[str, tuple[tuple[int, int] | None, ...]] = {
    "behind_the_end": ((60, 12), None),
    "over_the_end": ((50, 12), None),
    "far_behind": (None, (2**40, 12)),
    "wraps_around": ((2**64 - 12, 24), None),
    "wraps_to_zero": ((2**64 - 12, 12), None),
    "too_long": ((0, 2**40), None),
    "longest": ((0, 2**64 - 2), None),
    "no_offset": ((MISSING, 12), None),
    "no_size": ((0, MISSING), None),
    "nothing": ((0, 0), None),
    "too_short": ((0, 11), None),
    "whole": ((0, 60), None),
    "last": (None, (60, 1)),
}


@pytest.mark.parametrize("name", ["shards", "shards_at_start"])
@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_of_an_index_that_lies_is_named(name: str, case: str) -> None:
    opened = Opened(ENCODINGS[name])
    assert len(opened.data) == 60
    opened.damage(with_entries(opened.data, PLAIN[name], *ENTRIES[case]))

    error = opened.error()

    assert error is not None
    good = 1 if ENTRIES[case][0] is not None else 0
    # The other inner chunk of that shard is where it was.
    assert opened.array[good, 3:].read().result().tolist() == opened.kept[good][3:]
    assert type(opened.array[1 - good, 4].read().exception()) is DataLossError


@pytest.mark.parametrize("name", ["shards", "shards_at_start", "shards_checked"])
def test_inner_chunks_may_share_bytes(name: str) -> None:
    opened = Opened(ENCODINGS[name])
    start = PLAIN[name] % len(opened.data)
    first = struct.unpack_from("<QQ", opened.data, start)

    opened.damage(with_entries(opened.data, PLAIN[name], None, first))

    assert opened.error() is None
    found = opened.array[:2, 3:].read().result().tolist()
    assert found == [opened.kept[0][3:]] * 2


def test_inner_chunks_that_overlap_are_read_as_they_are() -> None:
    opened = Opened(ENCODINGS["shards"])
    opened.damage(with_entries(opened.data, -36, None, (4, 12)))

    assert opened.error() is None
    assert opened.array[1, 3:].read().result().tolist() == [4000, 5000, 9000]


def test_entries_that_are_missing_are_the_fill_value() -> None:
    opened = Opened(ENCODINGS["shards"])
    opened.damage(with_entries(opened.data, -36, (MISSING, MISSING), None))

    assert opened.error() is None
    assert opened.array[0, 3:].read().result().tolist() == [0, 0, 0]
    assert opened.array[1, 3:].read().result().tolist() == opened.kept[1][3:]


@pytest.mark.parametrize("name", PLAIN)
def test_a_wrong_checksum_of_an_index_is_named(name: str) -> None:
    opened = Opened(ENCODINGS[name])
    start = PLAIN[name] % len(opened.data)

    for position in range(start, start + 36):
        damaged = bytearray(opened.data)
        damaged[position] ^= 0x10
        opened.damage(bytes(damaged))
        error = opened.error()
        assert error is not None
        assert "index" in str(error)
        assert "CRC-32C mismatch" in str(error)


def test_only_the_inner_chunk_that_is_damaged_is_lost() -> None:
    opened = Opened(ENCODINGS["shards_checked"])
    damaged = bytearray(opened.data)
    damaged[20] ^= 1

    opened.damage(bytes(damaged))

    assert opened.error() is not None
    assert opened.array[0, 3:].read().result().tolist() == opened.kept[0][3:]


def test_a_part_of_a_shard_is_not_written_over_an_index_that_lies() -> None:
    opened = Opened(ENCODINGS["shards"])
    damaged = with_entries(opened.data, -36, (50, 12), None)
    opened.damage(damaged)

    with pytest.raises(DataLossError, match="Error updating"):
        opened.array[1, 3:] = 7

    assert bytes(opened.store["c/0/1"]) == damaged


def test_an_index_in_an_inner_shard_that_lies_is_named() -> None:
    opened = Opened(ENCODINGS["shards_in_shards"])
    # The inner shard is the first thing in the outer one: two chunks, then its index.
    damaged = with_entries(opened.data[:60], -36, (60, 12), None) + opened.data[60:]
    opened.damage(damaged)

    assert opened.error() is not None
    assert opened.array[1, 3:].read().result().tolist() == opened.kept[1][3:]


@pytest.mark.parametrize("fill", [0, 255])
def test_a_boolean_is_true_or_false(fill: int) -> None:
    opened = Opened([BYTES], "bool", VALUES % 2000 == 0)
    for value in (2, 128, 255):
        opened.damage(bytes([1, 0, 1, fill % 2, 0, value]))
        error = opened.error()
        assert error is not None
        assert "boolean" in str(error)


BOMB = 1 << 26


def stated_by_lz4(_: bytes) -> bytes:
    return struct.pack("<I", 2**31 - 1) + bytes(100)


def stated_by_zstd(_: bytes) -> bytes:
    return bytes.fromhex("28b52ffda000000080190000616263")


def stated_by_blosc(_: bytes) -> bytes:
    return struct.pack("<BBBBIII", 2, 1, 0x21, 4, 2**31 - 17, 2**31 - 17, 40) + bytes(24)


def in_a_shard(make: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def shard(zeros: bytes) -> bytes:
        inner = make(zeros)
        index = struct.pack("<QQQQ", 0, len(inner), MISSING, MISSING)
        return inner + index + struct.pack("<I", crc32c(index))

    return shard


def by_zstd(data: bytes) -> bytes:
    return bytes(numcodecs.Zstd(1).encode(data))


#: Data that unpacks to far more than a chunk: made of `BOMB` zeros, or by a header that lies.
BOMBS: dict[str, tuple[list, Callable[[bytes], bytes]]] = {
    "gzip": (ENCODINGS["gzip"], gzip.compress),
    "zlib": (ENCODINGS["zlib"], zlib.compress),
    "bz2": (ENCODINGS["bz2"], bz2.compress),
    "lzma": (ENCODINGS["lzma"], lambda data: lzma.compress(data, preset=0)),
    "zstd": (ENCODINGS["zstd"], by_zstd),
    "zstd_lies": (ENCODINGS["zstd"], stated_by_zstd),
    "blosc": (ENCODINGS["blosc_lz4"], lambda data: numcodecs.Blosc("lz4").encode(data)),
    "blosc_lies": (ENCODINGS["blosc_lz4"], stated_by_blosc),
    "lz4": (ENCODINGS["lz4"], lambda data: numcodecs.LZ4().encode(data)),
    "lz4_lies": (ENCODINGS["lz4"], stated_by_lz4),
    "in_another": (ENCODINGS["two"], lambda data: by_zstd(zlib.compress(data))),
    "behind_filters": (ENCODINGS["reshape"], by_zstd),
    "in_a_shard": (ENCODINGS["shards_zstd"], in_a_shard(by_zstd)),
    "in_a_shard_lies": (ENCODINGS["shards_zstd"], in_a_shard(stated_by_zstd)),
    "in_a_shard_gzip": (shards(BYTES, made("gzip", level=1)), in_a_shard(gzip.compress)),
    "in_a_shard_blosc": (
        shards(BYTES, made("blosc", cname="lz4", clevel=1, shuffle="noshuffle")),
        in_a_shard(stated_by_blosc),
    ),
    "in_a_shard_bz2": (shards(BYTES, made("numcodecs.bz2")), in_a_shard(bz2.compress)),
    **{
        f"around_shards_{name}": ([*shards(BYTES, ZSTD), codec], make)
        for name, codec, make in (
            ("gzip", made("gzip", level=1), gzip.compress),
            ("zlib", made("numcodecs.zlib"), zlib.compress),
            ("bz2", made("numcodecs.bz2"), bz2.compress),
            ("lzma", made("numcodecs.lzma", preset=0), lambda data: lzma.compress(data, preset=0)),
            ("zstd", ZSTD, by_zstd),
            ("zstd_lies", ZSTD, stated_by_zstd),
            ("blosc_lies", made("blosc", shuffle="noshuffle"), stated_by_blosc),
            ("lz4", made("numcodecs.lz4"), lambda data: numcodecs.LZ4().encode(data)),
            ("lz4_lies", made("numcodecs.lz4"), stated_by_lz4),
        )
    },
    "twice": ([BYTES, made("gzip", level=1), ZSTD], by_zstd),
    "twice_in_a_shard": (
        shards(BYTES, made("gzip", level=1), made("numcodecs.bz2")),
        in_a_shard(bz2.compress),
    ),
}


@pytest.fixture(scope="module")
def zeros() -> bytes:
    return bytes(BOMB)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(name: str, zeros: bytes) -> None:
    codecs, make = BOMBS[name]
    opened = Opened(codecs)
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
    assert most < (1 << 20) + 2 * len(bytes(opened.store["c/0/1"]))


def test_the_document_is_as_it_was() -> None:
    opened = Opened(ENCODINGS["shards_zstd"])
    before = bytes(opened.store["zarr.json"])
    opened.damage(b"damaged")
    opened.error()

    assert bytes(opened.store["zarr.json"]) == before
