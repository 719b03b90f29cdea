import numcodecs
import numpy as np
import pytest

from tensorstore_py.codecs.packbits import PackBits
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing.codecs import CodecSuite, assert_same_bits, chunk_type


class TestPackBits(CodecSuite):
    family = "zarr"
    configurations = ({"id": "packbits"},)
    shapes = ((1,), (7,), (8,), (4, 5, 6))
    dtypes = (np.dtype(np.bool_),)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 100])
def test_other_implementations_read_and_write_the_same(count: int) -> None:
    values = np.random.default_rng(0).integers(0, 2, count).astype(bool)
    codec = PackBits(chunk_type((count,), bool))

    encoded = codec.encode(values)

    assert encoded.tobytes() == numcodecs.PackBits().encode(values).tobytes()
    assert_same_bits(values, codec.decode(encoded))


def test_the_number_of_filling_bits_is_checked() -> None:
    codec = PackBits(chunk_type((9,), bool))
    encoded = codec.encode(np.ones(9, bool))
    encoded[0] = 6

    with pytest.raises(DataLossError, match=r"leave 7 bits of the last byte, but .* says 6"):
        codec.decode(encoded)
