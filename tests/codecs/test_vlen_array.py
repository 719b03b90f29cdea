import struct

import numpy as np
import pytest
from numcodecs.vlen import VLenArray

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import ArrayToBytes, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

CHUNK = ChunkType((3,), np.dtype(object), np.array(None))
VALUES = np.empty(3, object)
VALUES[:] = [np.arange(3), np.arange(0), np.arange(5)]


def bound(dtype: str = "<i4", chunk: ChunkType = CHUNK) -> ArrayToBytes:
    codec = parse_codec_json("zarr", {"id": "vlen-array", "dtype": dtype}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(codec, ArrayToBytes)
    return codec


@pytest.mark.parametrize("dtype", ["<i4", ">f8", "|u1"])
def test_other_implementations_read_and_write_the_same(dtype: str) -> None:
    encoded = bytes(bound(dtype).encode(VALUES))

    assert encoded == bytes(VLenArray(dtype).encode(VALUES))
    found = bound(dtype).decode(encoded)
    assert [element.tolist() for element in found] == [element.tolist() for element in VALUES]
    assert {element.dtype for element in found} == {np.dtype(dtype)}


def test_what_is_missing_is_an_empty_array() -> None:
    found = bound().decode(bytes(bound().encode(np.full(3, None))))

    assert [element.tolist() for element in found] == [[], [], []]


def test_what_was_read_does_not_change_with_the_buffer() -> None:
    encoded = bytearray(bound().encode(VALUES))
    found = bound().decode(encoded)

    encoded[:] = bytes(len(encoded))

    assert found[2].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["|O", None, "x", "i4,i4"])
def test_a_wrong_element_type_is_named(dtype: str) -> None:
    with pytest.raises(SpecError, match=r"^dtype: "):
        bound(dtype)


def test_elements_of_fixed_size_are_refused() -> None:
    with pytest.raises(SpecError, match='codec "vlen-array" stores arrays'):
        bound("<i4", chunk_type((3,), "<i4"))


def test_damaged_data_is_data_loss() -> None:
    encoded = bytes(bound().encode(VALUES))

    for stop in range(len(encoded)):
        with pytest.raises(DataLossError, match=r"too few|truncated"):
            bound().decode(encoded[:stop])
    with pytest.raises(DataLossError, match="holds 4 elements, expected 3"):
        bound().decode(struct.pack("<I", 4) + encoded[4:])
    with pytest.raises(DataLossError, match="corrupt vlen-array data"):
        bound().decode(encoded[:4] + struct.pack("<I", 11) + encoded[8:])
