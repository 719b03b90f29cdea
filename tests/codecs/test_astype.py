import numcodecs
import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, assert_same_bits, chunk_type

VALUES = np.random.default_rng(0).integers(0, 100, (3, 4))


def bind(encode: object, decode: object, dtype: str):
    members = {"id": "astype", "encode_dtype": encode, "decode_dtype": decode}
    return parse_codec_json("zarr", members).bind(chunk_type((3, 4), dtype))  # type: ignore[attr-defined]


class TestAsType(CodecSuite):
    family = "zarr"
    configurations = ({"id": "astype", "encode_dtype": "|i1", "decode_dtype": "<f8"},)
    dtypes = (np.dtype("<f8"),)


@pytest.mark.parametrize(
    ("encode", "decode"),
    [("<f4", "<f8"), ("|u1", "<i8"), (">i4", "<f4"), ("<M8[D]", "<M8[s]"), ("|S4", "<i4")],
)
def test_other_implementations_read_and_write_the_same(encode: str, decode: str) -> None:
    values = VALUES.astype(decode)
    library = numcodecs.AsType(encode, decode)
    codec = bind(encode, decode, decode)

    encoded = codec.encode(values)

    assert encoded.tobytes() == library.encode(values).tobytes()
    assert_same_bits(library.decode(encoded), codec.decode(encoded))


def test_text_that_is_no_number_is_data_loss() -> None:
    with pytest.raises(DataLossError, match=r"^astype: invalid literal"):
        bind("|S4", "<i4", "<i4").decode(np.full((3, 4), b"x", "|S4"))


@pytest.mark.parametrize(
    ("encode", "decode", "problem"),
    [
        ("|V4", "<i4", r"^encode_dtype: expected a type that can be converted"),
        ("<i4", "|V4", r"^decode_dtype: expected a type that can be converted"),
        ("|O", "<i4", r"^encode_dtype: expected an element type"),
        ("<i4", 3, r"^decode_dtype: expected an element type"),
    ],
)
def test_wrong_members_are_named(encode: object, decode: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bind(encode, decode, "<i4")
