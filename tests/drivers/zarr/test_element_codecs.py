import numpy as np
import pytest

from tensorstore_py.drivers.zarr.element_codecs import FilteredElements, SerializedElements
from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.codec import ArrayToArraySpec, ArrayToBytes, ArrayToBytesSpec, ChunkType
from tensorstore_py.plugin.driver import OPAQUE, parse_codec_json

CHUNK = ChunkType((2, 3), np.dtype(">i2"), np.zeros((), ">i2"))
VALUES = np.array([[5, 6, 8], [8, 7, -1]], ">i2")


def delta() -> FilteredElements:
    spec = parse_codec_json("zarr", {"id": "delta", "dtype": ">i2", "astype": "|i1"})
    assert isinstance(spec, ArrayToArraySpec)
    return FilteredElements(spec.bind(CHUNK), CHUNK)


def json() -> SerializedElements:
    spec = parse_codec_json("zarr", {"id": "json2"})
    assert isinstance(spec, ArrayToBytesSpec)
    return SerializedElements(spec.bind(CHUNK), CHUNK)


def test_a_filter_of_elements_takes_and_gives_bytes() -> None:
    stored = delta().encode(VALUES.tobytes())

    assert bytes(stored) == np.array([5, 1, 2, 0, -1, -8], "i1").tobytes()
    assert bytes(delta().decode(stored)) == VALUES.tobytes()
    assert delta().encoded_size(12) == 6
    out = bytearray(12)
    delta().decode_into(bytes(stored), memoryview(out))
    assert out == VALUES.tobytes()


def test_a_wrong_number_of_bytes_is_data_loss() -> None:
    for size in (0, 5, 7):
        with pytest.raises(DataLossError, match=f"decoded to {size} bytes, expected 6"):
            delta().decode(bytes(size))


def test_a_serializer_takes_and_gives_bytes() -> None:
    stored = json().encode(VALUES.tobytes())

    assert bytes(stored) == b'[[5,6,8],[8,7,-1],">i2",[2,3]]'
    assert bytes(json().decode(stored)) == VALUES.tobytes()
    assert json().encoded_size(12) is None
    out = bytearray(12)
    json().decode_into(bytes(stored), memoryview(out))
    assert out == VALUES.tobytes()


class Reverse(ArrayToBytes):
    def encode(self, array):
        return array.tobytes()[::-1]

    def decode(self, data):
        return np.frombuffer(bytes(data)[::-1], "u1")


def test_bytes_of_any_number_are_elements_of_one_byte() -> None:
    codec = SerializedElements(Reverse(), OPAQUE)

    assert bytes(codec.encode(b"abc")) == b"cba"
    assert bytes(codec.decode(b"cba")) == b"abc"
