import struct

import numpy as np
import pytest
from numcodecs.lz4 import LZ4

from tensorstore_py.codecs.lz4 import Lz4, N5Lz4Spec
from tensorstore_py.errors import DataLossError, UnsupportedError
from tensorstore_py.testing.codecs import CodecSuite, chunk_type

DATA = np.arange(500, dtype="<u2").tobytes()


class TestLz4(CodecSuite):
    family = "zarr"
    configurations = ({"id": "lz4"}, {"id": "lz4", "acceleration": 50})


@pytest.mark.parametrize("acceleration", [1, 100])
def test_other_implementations_read_and_write_the_same(acceleration: int) -> None:
    codec = Lz4(acceleration)

    assert codec.encode(DATA) == LZ4(acceleration).encode(DATA)
    assert bytes(LZ4().decode(codec.encode(DATA))) == DATA
    assert codec.decode(LZ4().encode(DATA), len(DATA)) == DATA
    assert codec.decode(LZ4().encode(DATA)) == DATA


def test_a_size_that_the_data_cannot_have_allocates_nothing() -> None:
    encoded = bytearray(Lz4(1).encode(DATA))
    encoded[:4] = struct.pack("<I", 2**31 - 1)

    with pytest.raises(DataLossError, match="cannot stand for 2147483647 bytes"):
        Lz4(1).decode(bytes(encoded))
    with pytest.raises(DataLossError, match="expected 1000"):
        Lz4(1).decode(bytes(encoded), 1000)


def test_truncated_data_is_data_loss() -> None:
    encoded = Lz4(1).encode(DATA)

    for stop in (0, 4, 5, len(encoded) // 2, len(encoded) - 1):
        with pytest.raises(DataLossError):
            Lz4(1).decode(encoded[:stop], len(DATA))


def _stream(*blocks: tuple[int, bytes, int]) -> bytes:
    """Blocks of lz4-java: how each is stored, its bytes, and how many they stand for."""
    ends = (*blocks, (0x10, b"", 0))
    return b"".join(
        struct.pack("<8sBiiI", b"LZ4Block", kind | 6, len(body), size, 0) + body
        for kind, body, size in ends
    )


def test_streams_of_n5_are_read() -> None:
    codec = N5Lz4Spec().bind(chunk_type((4,), "uint8"))
    packed = Lz4(1).encode(b"a" * 300)[4:]
    stream = _stream((0x20, packed, 300), (0x10, b"bcd", 3))

    assert codec.decode(stream, 303) == b"a" * 300 + b"bcd"
    assert codec.decode(stream) == b"a" * 300 + b"bcd"
    with pytest.raises(UnsupportedError, match="can only be read"):
        codec.encode(b"abcd")


@pytest.mark.parametrize(
    "stream",
    [
        b"", _stream((0x10, b"abc", 3)), _stream((0x10, b"abcde", 5)), _stream((0x10, b"abc", 4)),
        _stream((0x30, b"abcd", 4)), _stream((0x20, b"\xff\xff", 4)), _stream((0x20, b"", 4)),
        _stream((0x10, b"abcd", -4)), _stream((0x20, b"a", 2**31 - 1)),
        _stream((0x10, b"abcd", 4))[:15], b"x" * 40,
    ],
)  # fmt: skip
def test_streams_that_are_not_whole_are_data_loss(stream: bytes) -> None:
    codec = N5Lz4Spec().bind(chunk_type((4,), "uint8"))
    with pytest.raises(DataLossError):
        codec.decode(stream, 4)
