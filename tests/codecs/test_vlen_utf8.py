import struct

import numpy as np
import pytest
from numcodecs.vlen import VLenUTF8

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import ArrayToBytes, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

TEXTS = np.array([["", "a", "bb"], ["é", "\U0001f600 x", "\0"]], object)
CHUNK = ChunkType((2, 3), np.dtype(object), np.array(""))


def bound(chunk: ChunkType = CHUNK) -> ArrayToBytes:
    codec = parse_codec_json("zarr", {"id": "vlen-utf8"}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(codec, ArrayToBytes)
    return codec


def test_other_implementations_read_and_write_the_same() -> None:
    encoded = bytes(bound().encode(TEXTS))

    assert encoded == bytes(VLenUTF8().encode(TEXTS))
    assert bound().decode(encoded).tolist() == TEXTS.tolist()
    assert bound().decode(memoryview(encoded)).shape == (2, 3)


def test_memory_order_does_not_matter() -> None:
    assert bytes(bound().encode(np.asfortranarray(TEXTS))) == bytes(bound().encode(TEXTS))


def test_strings_of_numpy_are_read_as_plain_ones() -> None:
    found = bound().decode(bytes(bound().encode(TEXTS)))

    assert {type(text).__name__ for text in found.flat} == {"str"}


@pytest.mark.parametrize("dtype", ["<i4", "<U4", "|S4"])
def test_elements_of_fixed_size_are_refused(dtype: str) -> None:
    with pytest.raises(SpecError, match='codec "vlen-utf8" stores strings'):
        bound(chunk_type((3,), dtype))


def test_it_has_no_members() -> None:
    with pytest.raises(SpecError, match=r"^encoding: no such member"):
        parse_codec_json("zarr", {"id": "vlen-utf8", "encoding": "utf-8"})


@pytest.mark.parametrize("count", [0, 5, 7, 2**31, 2**32 - 1])
def test_another_number_of_strings_allocates_nothing(count: int) -> None:
    data = struct.pack("<I", count) + bytes(bound().encode(TEXTS))[4:]

    with pytest.raises(DataLossError, match=f"holds {count} elements, expected 6"):
        bound().decode(data)


def test_truncated_data_is_data_loss() -> None:
    encoded = bytes(bound().encode(TEXTS))

    for stop in range(len(encoded)):
        with pytest.raises(DataLossError, match=r"too few|truncated"):
            bound().decode(encoded[:stop])


@pytest.mark.parametrize("length", [2**32 - 1, 2**31, 1000])
def test_a_length_that_lies_is_data_loss(length: int) -> None:
    encoded = bytearray(bound().encode(TEXTS))
    encoded[4:8] = struct.pack("<I", length)

    with pytest.raises(DataLossError, match="corrupt vlen-utf8 data"):
        bound().decode(encoded)


def test_bytes_that_are_no_text_are_data_loss() -> None:
    encoded = bytes(bound().encode(TEXTS)).replace("é".encode(), b"\xff\xff")

    with pytest.raises(DataLossError, match="corrupt vlen-utf8 data: 'utf-8' codec"):
        bound().decode(encoded)


def test_version_3_writes_the_same_and_wants_the_type_that_it_stores() -> None:
    spec = parse_codec_json("zarr3", {"name": "vlen-utf8", "configuration": {}})
    missing = np.empty((), object)
    missing[...] = b""

    assert spec == parse_codec_json("zarr", {"id": "vlen-utf8"})
    assert spec.object_type == "ustring"
    with pytest.raises(SpecError, match=r"stores strings, but the chunk holds byte strings$"):
        spec.bind(ChunkType((2,), np.dtype(object), missing))  # type: ignore[attr-defined]
