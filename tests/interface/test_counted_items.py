import struct

import numpy as np
import pytest

from tensorstore_py._interface.codec import ChunkType
from tensorstore_py._interface.counted_items import CountedItems
from tensorstore_py.errors import DataLossError

CHUNK = ChunkType((2, 2), np.dtype(object), np.array(0))
VALUES = np.array([[1, 2], [3, 4]], object)


def encode(array: np.ndarray) -> bytes:
    assert array.ndim == 1
    return struct.pack(f"<{1 + 2 * len(array)}I", len(array), *(n for x in array for n in (4, x)))


def decode(data: bytes) -> np.ndarray:
    numbers = np.frombuffer(data, "<u4")
    if 99 in numbers:
        raise ValueError("99 is no good")
    return numbers[2::2].astype(object)


CODEC = CountedItems("things", CHUNK, encode, decode)  # type: ignore[arg-type]


def test_chunks_have_their_shape_again() -> None:
    assert CODEC.decode(CODEC.encode(VALUES)).tolist() == VALUES.tolist()
    assert CODEC.decode(CODEC.encode(VALUES.T)).tolist() == VALUES.T.tolist()
    assert CODEC.encoded_size is None


def test_the_library_gets_memory_that_it_may_write_to() -> None:
    def touch(array: np.ndarray) -> bytes:
        array[0] = None
        return b""

    codec = CountedItems("things", CHUNK, touch, decode)  # type: ignore[arg-type]
    mine = np.broadcast_to(VALUES, VALUES.shape)
    assert codec.encode(mine) == b""
    assert mine[0, 0] == 1


def test_a_number_that_lies_never_reaches_the_library() -> None:
    with pytest.raises(DataLossError, match="things: the data holds 5 elements, expected 4"):
        CODEC.decode(struct.pack("<I", 5) + bytes(100))
    with pytest.raises(DataLossError, match="things: 19 bytes are too few for 4 elements"):
        CODEC.decode(struct.pack("<I", 4) + bytes(15))


def test_what_the_library_refuses_is_data_loss() -> None:
    with pytest.raises(DataLossError, match="corrupt things data: 99 is no good"):
        CODEC.decode(CODEC.encode(np.array([[1, 2], [3, 99]], object)))
