import ml_dtypes
import numpy as np
import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
)
from tensorstore_py.plugin.driver import parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

RANDOM = np.random.default_rng(0)


def rounded(values: object, keepbits: int, name: str = "bitround") -> Array:
    array = np.asarray(values)
    codec = parse_codec_json("zarr3", {"name": name, "configuration": {"keepbits": keepbits}})
    bound = codec.bind(chunk_type(array.shape, array.dtype))  # type: ignore[attr-defined]
    assert isinstance(bound, ArrayToArray)
    return bound.encode(array)


@pytest.mark.parametrize("keepbits", [1, 5, 10])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8"])
def test_both_versions_round_alike(dtype: str, keepbits: int) -> None:
    values = (RANDOM.normal(size=(20, 5)) * 100).astype(dtype)
    values[0] = [0, -0.0, np.inf, -np.inf, 1]

    encoded = rounded(values, keepbits, "numcodecs.bitround")

    assert encoded.tobytes() == rounded(values, keepbits).tobytes()


def test_byte_order_does_not_matter() -> None:
    values = RANDOM.normal(size=50).astype("<f4")

    little = rounded(values, 3, "numcodecs.bitround")
    big = rounded(values.astype(">f4"), 3, "numcodecs.bitround")

    assert little.tolist() == big.tolist()


@pytest.mark.parametrize(
    ("dtype", "keepbits", "problem"),
    [
        ("<i4", 3, "expected floating-point elements of 2, 4 or 8 bytes, not int32"),
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


def test_integers_keep_bits_from_the_highest() -> None:
    # The table of the specification.
    table = {0: 0, 1: 1, 10: 10, 11: 12, 100: 96, 123: 128, 200: 192, 208: 192, 209: 224, 255: 224}

    for dtype in ("u1", "u2", "u8", "i8"):
        found = rounded(np.array(list(table), dtype), 3)
        assert found.dtype == dtype
        # Only one byte is too small for what 255 rounds to.
        assert found.tolist() == [*list(table.values())[:-1], 224 if dtype == "u1" else 256]


def test_floats_keep_bits_of_the_mantissa() -> None:
    values = np.array([0, 0.1, 1.2, 12.3, 123.4, 1234.5, np.nan, np.inf, -np.inf], "<f4")

    found = rounded(values, 3).tolist()

    assert found[:6] == [0, 0.1015625, 1.25, 12, 120, 1280]
    assert np.isnan(found[6])
    assert found[7:] == [np.inf, -np.inf]


def test_the_largest_integers_are_rounded() -> None:
    largest = np.array([2**64 - 1, 2**63, 2**53 + 1], "<u8")

    assert rounded(largest, 53).tolist() == [2**64 - 2**11, 2**63, 2**53]
    assert rounded(largest, 64).tolist() == largest.tolist()


def test_a_nan_stays_one_whatever_its_bits() -> None:
    values = np.array([0x7FFFFFFF, 0x7F800001], "<u4").view("<f4")

    assert rounded(values, 3).tobytes() == values.tobytes()


def test_both_parts_of_complex_numbers_and_times_are_rounded() -> None:
    assert rounded(np.array([1.2 + 12.3j], "<c16"), 3).tolist() == [1.25 + 12j]
    assert rounded(np.array([11], "<m8[s]"), 3).astype(int).tolist() == [12]
    found = rounded(np.array([1.2], ml_dtypes.bfloat16), 3)
    assert found.dtype == ml_dtypes.bfloat16
    assert found.astype(float).tolist() == [1.25]


@pytest.mark.parametrize("dtype", ["?", "<U3", "V3", "float8_e4m3fn", "int4"])
def test_what_has_no_bits_to_round_is_refused(dtype: str) -> None:
    with pytest.raises(SpecError, match='codec "bitround" rounds numbers and times, not'):
        rounded(np.zeros(3, dtype), 3)


@pytest.mark.parametrize("keepbits", [0, 65, "3", None])
def test_bits_to_keep_are_a_number_of_them(keepbits: object) -> None:
    with pytest.raises(SpecError, match=r"^configuration\.keepbits: "):
        parse_codec_json("zarr3", {"name": "bitround", "configuration": {"keepbits": keepbits}})
