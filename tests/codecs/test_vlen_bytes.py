import struct

import numpy as np
import pytest
from numcodecs.vlen import VLenBytes

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import ArrayToBytes, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

VALUES = np.array([[b"", b"a", b"\0"], [b"\xff\xfe", b"long" * 20, b""]], object)
CHUNK = ChunkType((2, 3), np.dtype(object), np.array(b"", object))


def bound(chunk: ChunkType = CHUNK) -> ArrayToBytes:
    codec = parse_codec_json("zarr", {"id": "vlen-bytes"}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(codec, ArrayToBytes)
    return codec


def test_other_implementations_read_and_write_the_same() -> None:
    encoded = bytes(bound().encode(VALUES))

    assert encoded == bytes(VLenBytes().encode(VALUES))
    assert bound().decode(encoded).tolist() == VALUES.tolist()


def test_what_was_read_does_not_change_with_the_buffer() -> None:
    encoded = bytearray(bound().encode(VALUES))
    found = bound().decode(encoded)

    encoded[:] = bytes(len(encoded))

    assert found.tolist() == VALUES.tolist()


def test_elements_of_fixed_size_are_refused() -> None:
    with pytest.raises(SpecError, match='codec "vlen-bytes" stores byte strings'):
        bound(chunk_type((3,), "|S4"))


def test_damaged_data_is_data_loss() -> None:
    encoded = bytes(bound().encode(VALUES))

    for stop in range(len(encoded)):
        with pytest.raises(DataLossError, match=r"too few|truncated"):
            bound().decode(encoded[:stop])
    with pytest.raises(DataLossError, match="holds 7 elements, expected 6"):
        bound().decode(struct.pack("<I", 7) + encoded[4:])
    with pytest.raises(DataLossError, match="corrupt vlen-bytes data"):
        bound().decode(encoded[:4] + struct.pack("<I", 2**31) + encoded[8:])


def test_version_3_writes_the_same_and_wants_the_type_that_it_stores() -> None:
    spec = parse_codec_json("zarr3", {"name": "vlen-bytes", "configuration": {}})
    missing = np.empty((), object)
    missing[...] = ""

    assert spec == parse_codec_json("zarr", {"id": "vlen-bytes"})
    assert spec.object_type == "string"
    with pytest.raises(SpecError, match=r"stores byte strings, but the chunk holds text$"):
        spec.bind(ChunkType((2,), np.dtype(object), missing))  # type: ignore[attr-defined]
