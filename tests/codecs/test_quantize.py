import numcodecs
import numpy as np
import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, assert_same_bits, chunk_type

VALUES = np.random.default_rng(0).normal(size=(3, 4)) * 50


class TestQuantize(CodecSuite):
    family = "zarr"
    # The suite's samples are whole numbers, which rounding keeps.
    configurations = ({"id": "quantize", "digits": 3, "dtype": "<f8"},)
    dtypes = (np.dtype("<f8"),)


@pytest.mark.parametrize("digits", [-3, -1, 0, 1, 2, 5, 12])
@pytest.mark.parametrize(("dtype", "astype"), [("<f8", "<f4"), (">f4", ">f4"), ("<f2", "<f2")])
def test_other_implementations_read_and_write_the_same(
    digits: int, dtype: str, astype: str
) -> None:
    values = VALUES.astype(dtype)
    library = numcodecs.Quantize(digits, dtype, astype)
    members = {"id": "quantize", "digits": digits, "dtype": dtype, "astype": astype}
    codec = parse_codec_json("zarr", members).bind(chunk_type((3, 4), dtype))  # type: ignore[attr-defined]

    encoded = codec.encode(values)

    with np.errstate(all="ignore"):
        assert encoded.tobytes() == library.encode(values).tobytes()
        assert_same_bits(library.decode(encoded), codec.decode(encoded))


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"digits": 2, "dtype": "<i4"}, r'^dtype: expected a floating-point type .*"<i4"'),
        ({"digits": 2, "dtype": "<f4", "astype": "<i4"}, r"^astype: expected a floating-point"),
        ({"digits": 301, "dtype": "<f4"}, r"^digits: "),
        ({"digits": 1.5, "dtype": "<f4"}, r"^digits: "),
    ],
)
def test_wrong_members_are_named(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        parse_codec_json("zarr", {"id": "quantize", **members})
