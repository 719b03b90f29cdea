import numcodecs
import numpy as np
import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, assert_same_bits, chunk_type

VALUES = np.random.default_rng(0).normal(size=(3, 4)) * 50


def bind(members: dict, dtype: str):
    spec = parse_codec_json("zarr", {"id": "fixedscaleoffset", **members})
    return spec.bind(chunk_type((3, 4), dtype))  # type: ignore[attr-defined]


class TestFixedScaleOffset(CodecSuite):
    family = "zarr"
    configurations = (
        {"id": "fixedscaleoffset", "scale": 10, "offset": -5, "dtype": "<f8", "astype": "<i2"},
        {"id": "fixedscaleoffset", "scale": 1, "offset": 0, "dtype": "<f8"},
    )
    dtypes = (np.dtype("<f8"),)


@pytest.mark.parametrize(
    ("dtype", "astype", "scale", "offset"),
    [("<f8", "<i4", 10, 3), ("<f4", "<i2", 0.1, 1000.5), (">f8", ">i4", 10, 0),
     ("<i2", "<i2", 2, 1), ("<f8", "|u1", 1, -200), ("<i4", "<f4", 3, -2.5), ("<f2", "<f2", 10, 0)],
)  # fmt: skip
def test_other_implementations_read_and_write_the_same(
    dtype: str, astype: str, scale: float, offset: float
) -> None:
    values = VALUES.astype(dtype)
    library = numcodecs.FixedScaleOffset(offset, scale, dtype, astype)
    members = {"offset": offset, "scale": scale, "dtype": dtype, "astype": astype}
    codec = bind(members, dtype)

    encoded = codec.encode(values)

    assert encoded.tobytes() == library.encode(values).tobytes()
    assert_same_bits(library.decode(encoded).reshape(3, 4), codec.decode(encoded))


def test_nan_becomes_some_integer_without_a_warning() -> None:
    members = {"offset": 0, "scale": 1, "dtype": "<f8", "astype": "<i4"}
    values = np.full((3, 4), np.nan)

    assert bind(members, "<f8").encode(values).dtype == np.dtype("<i4")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scale": 0}, r"^scale: expected a number other than 0"),
        ({"scale": "1"}, r"^scale"),
        ({"offset": None}, r"^offset"),
        ({"dtype": "<U8"}, "are not possible for <U8 elements"),
        ({"dtype": "|i1", "offset": 1000}, r"are not possible for int8 elements"),
    ],
)
def test_wrong_members_are_named(changes: dict, problem: str) -> None:
    members = {"offset": 0, "scale": 1, "dtype": "<f8", **changes}

    with pytest.raises(SpecError, match=problem):
        bind(members, "<f8")
