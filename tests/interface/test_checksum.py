from zlib import crc32

import numpy as np
import pytest

from tensorstore_py._interface.checksum import Checksum
from tensorstore_py.errors import DataLossError


def codec(location: str = "end") -> Checksum:
    return Checksum("sum", lambda data: crc32(data.data), location)  # type: ignore[arg-type]


@pytest.mark.parametrize("location", ["start", "end"])
def test_the_checksum_stands_beside_the_data(location: str) -> None:
    stored = codec(location).encode(b"abc")
    checksum = crc32(b"abc").to_bytes(4, "little")

    assert stored == (checksum + b"abc" if location == "start" else b"abc" + checksum)
    assert bytes(codec(location).decode(stored, 3)) == b"abc"
    out = bytearray(3)
    codec(location).decode_into(memoryview(stored), memoryview(out))
    assert out == b"abc"


def test_reading_copies_nothing() -> None:
    stored = codec().encode(b"abc")

    found = codec().decode(stored)

    assert np.shares_memory(np.frombuffer(found, "u1"), np.frombuffer(stored, "u1"))


def test_four_bytes_are_added() -> None:
    assert codec().encoded_size(3) == 7
    assert codec().encoded_size(None) is None
    assert bytes(codec().decode(codec().encode(b""))) == b""


@pytest.mark.parametrize("location", ["start", "end"])
def test_every_changed_byte_is_data_loss(location: str) -> None:
    stored = codec(location).encode(b"abc")

    for position in range(len(stored)):
        damaged = bytearray(stored)
        damaged[position] ^= 4
        with pytest.raises(DataLossError, match=r"^sum mismatch: stored 0x"):
            codec(location).decode(damaged)


def test_data_of_another_size_is_data_loss() -> None:
    with pytest.raises(DataLossError, match="3 bytes are too few to hold a sum checksum"):
        codec().decode(b"abc")
    with pytest.raises(DataLossError, match="decoded to 3 bytes, expected 4"):
        codec().decode(codec().encode(b"abc"), 4)
