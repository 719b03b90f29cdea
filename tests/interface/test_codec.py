import numpy as np
import pytest

from tensorstore_py._interface.codec import (
    OPAQUE,
    ArrayToArraySpec,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    CodecModel,
    size_error,
)
from tensorstore_py.errors import DataLossError, MismatchError, UnsupportedError
from tensorstore_py.testing.codecs import chunk_type


class Half(BytesToBytes):
    """A codec that decodes to half of what it is given, whatever was asked."""

    def encode(self, data):
        return bytes(data) * 2

    def decode(self, data, size=None):
        return data[: len(data) // 2]


class TwoMembers(CodecModel):
    codec_id = "two"
    a: int | None = None
    b: int | None = None


def test_a_chunk_knows_its_size() -> None:
    assert chunk_type((2, 3), "complex128").size_bytes == 96
    assert chunk_type((), "uint8").size_bytes == 1
    assert OPAQUE.dtype.itemsize == 0


def test_decoding_into_memory_is_decoding_and_copying_by_default() -> None:
    out = bytearray(3)

    Half().decode_into(b"abcabc", memoryview(out))

    assert out == b"abc"
    with pytest.raises(DataLossError, match="decoded to 3 bytes, expected 4"):
        Half().decode_into(b"abcabc", memoryview(bytearray(4)))
    assert Half().encoded_size(3) is None
    assert "decoded to 1 bytes" in str(size_error(1, 2))


class VainArray(ArrayToArraySpec):
    codec_id = "vain"


class VainSerializer(ArrayToBytesSpec):
    codec_id = "vain"


class VainCompressor(BytesToBytesSpec):
    codec_id = "vain"


@pytest.mark.parametrize("kind", [VainArray, VainSerializer, VainCompressor])
def test_a_spec_without_a_binding_says_so(kind: type[VainArray]) -> None:
    with pytest.raises(UnsupportedError, match='"vain"'):
        kind().bind(chunk_type((2,), np.uint8))


def test_a_spec_is_resolved_as_it_is_by_default() -> None:
    spec = TwoMembers(a=1)

    assert spec.resolved(OPAQUE) is spec


def test_members_merge_where_they_agree_or_one_is_silent() -> None:
    assert TwoMembers(a=1).merged(TwoMembers(b=2)) == TwoMembers(a=1, b=2)
    assert TwoMembers(a=1).merged(TwoMembers(a=1)) == TwoMembers(a=1)
    with pytest.raises(MismatchError, match='codec "two": "a" is both 1 and 2'):
        TwoMembers(a=1).merged(TwoMembers(a=2))
