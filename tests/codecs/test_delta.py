import numcodecs
import numpy as np
import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, assert_same_bits, chunk_type

RANDOM = np.random.default_rng(0)


def bind(members: dict, chunk: ChunkType):
    return parse_codec_json("zarr", {"id": "delta", **members}).bind(chunk)  # type: ignore[attr-defined]


class TestDelta(CodecSuite):
    family = "zarr"
    configurations = ({"id": "delta", "dtype": "<i2"}, {"id": "delta", "dtype": "<u2"})
    dtypes = (np.dtype("<i2"), np.dtype("<u2"))


@pytest.mark.parametrize(
    ("dtype", "astype"),
    [("<i4", None), ("<i4", "<i2"), (">i4", ">i2"), ("<f4", None), ("<u8", None), ("|b1", None),
     ("<i2", "<f8"), ("<u1", "<i4"), ("<m8[s]", None), ("<c8", None)],
)  # fmt: skip
def test_other_implementations_read_and_write_the_same(dtype: str, astype: str | None) -> None:
    values = RANDOM.integers(0, 100, (3, 4)).astype(dtype)
    library = numcodecs.Delta(dtype, astype)
    codec = bind({"dtype": dtype, "astype": astype or dtype}, chunk_type((3, 4), dtype))

    encoded = codec.encode(values)

    assert encoded.tobytes() == library.encode(values).tobytes()
    assert encoded.dtype == codec.encoded.dtype == library.encode(values).dtype
    assert_same_bits(library.decode(encoded).reshape(3, 4), codec.decode(encoded))


def test_bytes_are_taken_for_the_codec_s_own_elements() -> None:
    values = RANDOM.normal(size=6).astype("<f8")
    codec = bind({"dtype": "<i4"}, chunk_type((6,), "<f8"))

    encoded = codec.encode(values)

    assert (encoded.shape, encoded.dtype) == ((12,), np.dtype("<i4"))
    assert codec.decode(encoded).tobytes() == values.tobytes()


def test_stating_the_default_changes_nothing() -> None:
    short = parse_codec_json("zarr", {"id": "delta", "dtype": "i2"})

    assert short == parse_codec_json("zarr", {"id": "delta", "dtype": "<i2", "astype": "<i2"})


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"dtype": "|O"}, r"^dtype: expected an element type"),
        ({"dtype": "i4,i4"}, r"^dtype: expected an element type"),
        ({"dtype": 4}, r"^dtype: expected an element type"),
        ({"dtype": "<U4"}, r"^dtype: expected a type of numbers"),
        ({"dtype": "<i4", "astype": "|S4"}, r"^astype: expected a type of numbers"),
        ({"dtype": "<i8"}, "12 bytes are no whole number"),
        ({}, r"^dtype: this member is required"),
    ],
)
def test_wrong_members_are_named(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bind(members, chunk_type((3,), "<i4"))
