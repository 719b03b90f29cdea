import struct

import numpy as np
import pytest
from numcodecs.lz4 import LZ4

from tensorstore_py.codecs.lz4 import Lz4
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing.codecs import CodecSuite

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
