from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import ArrayToArray, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, chunk_type


class TestIntegers(CodecSuite):
    configurations = (
        "scale_offset",
        {"name": "scale_offset", "configuration": {"scale": 3}},
        {"name": "scale_offset", "configuration": {"offset": -4, "scale": 2}},
    )
    dtypes = (np.dtype("u1"), np.dtype("<i2"), np.dtype("<i8"))

    def chunks(self):
        # -4 is no number of the unsigned ones.
        return (chunk for chunk in super().chunks() if chunk.dtype.kind == "i")


class TestFloats(CodecSuite):
    configurations = (
        {"name": "scale_offset", "configuration": {"offset": 1, "scale": 0.5}},
        {"name": "scale_offset", "configuration": {"scale": "0x4000"}},
    )
    dtypes = (np.dtype("<f2"), np.dtype(ml_dtypes.bfloat16))


def bound(dtype: object, fill_value: object = 0, **members: object) -> ArrayToArray:
    codec: Any = parse_codec_json("zarr3", {"name": "scale_offset", "configuration": members})
    found = codec.bind(chunk_type((3,), dtype, fill_value))
    assert isinstance(found, ArrayToArray)
    return found


def test_the_offset_is_subtracted_first() -> None:
    codec = bound("float32", 10, offset=5, scale=0.1)

    stored = codec.encode(np.array([5, 15, 105], "f4"))

    np.testing.assert_allclose(stored.astype(float), [0, 1, 10])
    assert stored.dtype == np.float32
    np.testing.assert_allclose(codec.decode(stored).astype(float), [5, 15, 105])
    assert codec.encoded.fill_value.tolist() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("dtype", "members", "values", "problem"),
    [
        ("u2", {"offset": 1000}, [1000, 999], "-1 is no number of type uint16"),
        ("i1", {"scale": 2}, [63, 64], "128 is no number of type int8"),
        ("i8", {"scale": 2}, [0, 2**62], f"{2**63} is no number"),
        ("i8", {"offset": -1}, [2**63 - 1], f"{2**63} is no number"),
        ("u8", {"scale": 3}, [2**63], f"{3 * 2**63} is no number"),
        ("int4", {"scale": 2}, [3, 4], "8 is no number of type int4"),
        ("f4", {"scale": 1e30}, [1, 1e30], "grows beyond float32"),
        ("f2", {"offset": -60000}, [60000], "grows beyond float16"),
        ("float8_e4m3fn", {"scale": 2}, [256], "512.0 is no number of type float8_e4m3fn"),
        ("float4_e2m1fn", {"scale": 2}, [6], "12.0 is no number of type float4_e2m1fn"),
    ],
)
def test_what_the_type_cannot_hold_on_the_way_is_an_error(
    dtype: str, members: dict[str, Any], values: list[float], problem: str
) -> None:
    numpy_dtype = np.dtype(dtype)
    array = np.array(values, "u8" if dtype == "u8" else None).astype(numpy_dtype)

    with pytest.raises(ValueError, match=problem) as raised:
        bound(dtype, members.get("offset", 0), **members).encode(array)
    assert raised.match('codec "scale_offset"')


@pytest.mark.parametrize(
    ("dtype", "members", "stored", "problem"),
    [
        ("i2", {"scale": 3}, [3, 4], "4 is no multiple of 3"),
        ("u1", {"offset": 10}, [245, 246], "256 is no number of type uint8"),
        ("i8", {"scale": -1}, [-(2**63)], f"{2**63} is no number"),
        ("f4", {"scale": 1e-30}, [1e30], "grows beyond float32"),
    ],
)
def test_what_is_stored_and_does_not_fit_is_data_loss(
    dtype: str, members: dict[str, Any], stored: list[float], problem: str
) -> None:
    codec = bound(dtype, members.get("offset", 0), **members)

    with pytest.raises(DataLossError, match=f"what is stored does not fit: .*{problem}"):
        codec.decode(np.array(stored).astype(dtype))


def test_infinities_and_nan_pass() -> None:
    codec = bound("f4", offset=1, scale=2)
    values = np.array([np.inf, -np.inf, np.nan], "f4")

    assert codec.encode(values).tobytes() == values.tobytes()
    assert codec.decode(values).tobytes() == values.tobytes()


def test_without_members_it_does_nothing() -> None:
    codec = bound("f8")
    values = np.arange(3.0)

    assert codec.encode(values) is values
    assert codec.decode(values) is values
    assert codec.view_of(values) is values
    assert bound("f8", scale=2).view_of(values) is None


def test_empty_chunks_are_taken() -> None:
    codec = bound("i2", offset=1, scale=2)

    assert codec.decode(codec.encode(np.zeros((0, 3), "i2"))).shape == (0, 3)


@pytest.mark.parametrize(
    ("dtype", "members", "problem"),
    [
        ("f4", {"scale": 0}, "^scale: expected a number other than 0"),
        ("f4", {"scale": "-0x1"}, "^scale: expected"),
        ("i2", {"offset": 1.5}, "^offset: expected an integer from -32768 to 32767"),
        ("i2", {"scale": 40000}, "^scale: expected an integer"),
        ("u1", {"offset": -1}, "^offset: expected an integer"),
        ("f4", {"offset": True}, r"^configuration\.offset: "),
        ("f4", {"offset": [1]}, r"^configuration\.offset: "),
        ("f4", {"factor": 1}, r"^configuration\.factor: no such member"),
        ("u2", {"offset": 5}, "the fill value cannot be stored: -5 is no number of type uint16"),
        ("?", {}, 'codec "scale_offset" is for integers and floats, not bool'),
        ("c8", {}, 'codec "scale_offset" is for'),
        ("<U2", {}, 'codec "scale_offset" is for'),
        ("<m8[s]", {}, 'codec "scale_offset" is for'),
    ],
)
def test_what_makes_no_sense_is_refused(dtype: str, members: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bound(dtype, **members)
