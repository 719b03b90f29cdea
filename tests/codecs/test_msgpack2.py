import sys
from importlib.util import find_spec

import numpy as np
import pytest

from tensorstore_py.codecs import msgpack2
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin import ArrayToBytes, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

VALUES = np.empty((2, 3), object)
for place, value in zip(
    np.ndindex(2, 3), [None, "é", {"b": 1, "a": [2]}, [1, [2]], -0.5, True], strict=True
):
    VALUES[place] = value
CHUNK = ChunkType((2, 3), np.dtype(object), np.array(None))


def bound(members: dict | None = None, chunk: ChunkType = CHUNK) -> ArrayToBytes:
    codec = parse_codec_json("zarr", {"id": "msgpack2", **(members or {})}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(codec, ArrayToBytes)
    return codec


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    msgpack2._library.cache_clear()
    monkeypatch.setitem(sys.modules, "msgpack", None)

    with pytest.raises(UnsupportedError, match=r"tensorstore-py\[codecs\]"):
        bound()


def test_its_objects_are_json_values() -> None:
    assert msgpack2.MsgPack2Spec().object_type == "json"
    with pytest.raises(SpecError, match=r"^raw: "):
        parse_codec_json("zarr", {"id": "msgpack2", "raw": 1})


if find_spec("msgpack"):
    import msgpack
    from numcodecs.msgpacks import MsgPack

    @pytest.mark.parametrize(
        "members", [{}, {"use_single_float": True}, {"raw": True}, {"use_bin_type": False}]
    )
    def test_other_implementations_read_and_write_the_same(members: dict) -> None:
        encoded = bound(members).encode(VALUES)

        assert encoded == MsgPack(**members).encode(VALUES)
        if not members.get("raw"):
            assert bound(members).decode(encoded).tolist() == VALUES.tolist()

    def test_text_is_read_as_bytes_if_that_is_asked() -> None:
        found = bound({"raw": True}).decode(bound().encode(VALUES))

        assert found[0, 1] == "é".encode()

    @pytest.mark.parametrize("dtype", ["<f8", ">i4", "<U3"])
    def test_elements_of_fixed_size_are_stored_too(dtype: str) -> None:
        values = np.arange(6).astype(dtype).reshape(2, 3)
        codec = bound({}, chunk_type((2, 3), dtype))

        assert codec.encode(values) == MsgPack().encode(values)
        assert codec.decode(codec.encode(values)).tolist() == values.tolist()

    def test_a_chunk_without_dimensions_is_stored_too() -> None:
        codec = bound({}, ChunkType((), np.dtype(object), np.array(None)))

        assert codec.decode(codec.encode(np.array({"a": 1}, object))).item() == {"a": 1}

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\xc1",
            b"\xdd\xff\xff\xff\xff",
            b"\x91" * 100_000,
            msgpack.packb(5),
            msgpack.packb([1, 2, 3, 4, 5, 6, "|O", [7]]),
            msgpack.packb([1, 2, 3, 4, 5, 6, "<f8", [6]]),
            msgpack.packb([1, 2, 3, "|O", [6]]),
            msgpack.packb([1, 2, 3, 4, 5, 6, "|O", [6]]) + b"\0",
        ],
    )
    def test_damaged_data_is_data_loss(data: bytes) -> None:
        with pytest.raises(DataLossError, match="msgpack2"):
            bound().decode(data)
