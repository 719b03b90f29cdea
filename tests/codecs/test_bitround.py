import numcodecs
import numpy as np
import pytest

from tensorstore_py.codecs.bitround import BitRound
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, chunk_type

RANDOM = np.random.default_rng(0)


class TestBitRound(CodecSuite):
    family = "zarr"
    # The suite's samples have few bits, which rounding keeps.
    configurations = ({"id": "bitround", "keepbits": 8},)
    dtypes = (np.dtype("<f2"), np.dtype("<f4"), np.dtype("<f8"))


@pytest.mark.parametrize("keepbits", [0, 1, 5, 10])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8"])
def test_other_implementations_write_the_same(dtype: str, keepbits: int) -> None:
    values = (RANDOM.normal(size=(20, 5)) * 100).astype(dtype)
    values[0] = [0, -0.0, np.inf, -np.inf, 1]

    encoded = BitRound(chunk_type((20, 5), dtype), keepbits).encode(values)

    assert encoded.tobytes() == numcodecs.BitRound(keepbits).encode(values).tobytes()


def test_byte_order_does_not_matter() -> None:
    values = RANDOM.normal(size=50).astype("<f4")

    little = BitRound(chunk_type((50,), "<f4"), 3).encode(values)
    big = BitRound(chunk_type((50,), ">f4"), 3).encode(values.astype(">f4"))

    assert little.tolist() == big.tolist()


@pytest.mark.parametrize(
    ("dtype", "keepbits", "problem"),
    [
        ("<i4", 3, "expected floating-point elements of 2, 4 or 8 bytes, but they are int32"),
        ("<c8", 3, "expected floating-point elements"),
        ("bfloat16", 3, "expected floating-point elements"),
        ("<f2", 11, "^keepbits: expected at most 10"),
        ("<f4", 24, "^keepbits: expected at most 23"),
        ("<f8", 53, "^keepbits: "),
        ("<f8", -1, "^keepbits: "),
    ],
)
def test_what_cannot_be_rounded_is_refused(dtype: str, keepbits: int, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        parse_codec_json("zarr", {"id": "bitround", "keepbits": keepbits}).bind(  # type: ignore[attr-defined]
            chunk_type((3,), dtype)
        )
