import struct

import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, UnsupportedError
from tensorstore_py.testing.codecs import chunk_type
from tests.codecs.bound import bound

DATA = np.arange(500, dtype="<u2").tobytes()


def test_a_size_that_the_data_cannot_have_allocates_nothing() -> None:
    encoded = bytearray(bound("zarr", "lz4").encode(DATA))
    encoded[:4] = struct.pack("<I", 2**31 - 1)

    with pytest.raises(DataLossError, match="cannot stand for 2147483647 bytes"):
        bound("zarr", "lz4").decode(bytes(encoded))
    with pytest.raises(DataLossError, match="expected 1000"):
        bound("zarr", "lz4").decode(bytes(encoded), 1000)


def test_truncated_data_is_data_loss() -> None:
    encoded = bound("zarr", "lz4").encode(DATA)

    for stop in (0, 4, 5, len(encoded) // 2, len(encoded) - 1):
        with pytest.raises(DataLossError):
            bound("zarr", "lz4").decode(encoded[:stop], len(DATA))


def _stream(*blocks: tuple[int, bytes, int]) -> bytes:
    """Blocks of lz4-java: how each is stored, its bytes, and how many they stand for."""
    ends = (*blocks, (0x10, b"", 0))
    return b"".join(
        struct.pack("<8sBiiI", b"LZ4Block", kind | 6, len(body), size, 0) + body
        for kind, body, size in ends
    )


def test_streams_of_n5_are_read() -> None:
    codec = bound("n5", "lz4", chunk_type((4,), "uint8"))
    packed = bound("zarr", "lz4").encode(b"a" * 300)[4:]
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
    codec = bound("n5", "lz4", chunk_type((4,), "uint8"))
    with pytest.raises(DataLossError):
        codec.decode(stream, 4)
