from typing import Any

import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import ArrayToArray, ChunkType, bind_chain, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, chunk_type


class TestCastValue(CodecSuite):
    configurations = (
        {"name": "cast_value", "configuration": {"data_type": "int8"}},
        {"name": "cast_value", "configuration": {"data_type": "float64", "out_of_range": "clamp"}},
        {"name": "cast_value", "configuration": {"data_type": {"name": "uint16"}}},
        {
            "name": "cast_value",
            "configuration": {"data_type": "float8_e4m3", "scalar_map": {"encode": [[5, 6]],
             "decode": [[6, 5]]}},
        },
    )  # fmt: skip
    dtypes = tuple(dtype for dtype in CodecSuite.dtypes if dtype.kind in "iuf") + tuple(
        np.dtype(each) for each in ("float16", "int64", "bfloat16")
    )


def bound(dtype: str, fill_value: object = 0, **members: object) -> ArrayToArray:
    codec: Any = parse_codec_json("zarr3", {"name": "cast_value", "configuration": members})
    found = codec.bind(chunk_type((3,), dtype, fill_value))
    assert isinstance(found, ArrayToArray)
    return found


def test_the_table_of_roundings() -> None:
    values = np.array([-2.5, -1.5, -0.2, 0.5, 1.5, 2.7])
    expected = {
        "nearest-even": [-2, -2, 0, 0, 2, 3],
        "towards-zero": [-2, -1, 0, 0, 1, 2],
        "towards-positive": [-2, -1, 0, 1, 2, 3],
        "towards-negative": [-3, -2, -1, 0, 1, 2],
        "nearest-away": [-3, -2, 0, 1, 2, 3],
    }

    for rounding, wanted in expected.items():
        codec = bound("float64", data_type="int8", rounding=rounding)
        assert codec.encode(values).tolist() == wanted
        assert codec.encoded.dtype == np.int8
        assert codec.decode(codec.encode(values)).tolist() == wanted


def test_numbers_out_of_range() -> None:
    values = np.array([128.0, -129.0, 127])

    with pytest.raises(ValueError, match=r'"cast_value": 128\.0 is no number of type int8; say by'):
        bound("float64", data_type="int8").encode(values)
    clamp = bound("float64", data_type="int8", out_of_range="clamp")
    wrap = bound("float64", data_type="int8", out_of_range="wrap")
    assert clamp.encode(values).tolist() == [127, -128, 127]
    assert wrap.encode(values).tolist() == [-128, 127, 127]


def test_numbers_of_the_map_come_first() -> None:
    codec = bound(
        "float64",
        data_type="uint8",
        rounding="towards-zero",
        out_of_range="wrap",
        scalar_map={
            "encode": [["NaN", 0], ["Infinity", 1], ["-Infinity", 2], [7, 3], [7, 4]],
            "decode": [[255, "NaN"]],
        },
    )

    stored = codec.encode(np.array([np.nan, np.inf, -np.inf, 7.9, 7, 257]))

    assert stored.tolist() == [0, 1, 2, 7, 3, 1]
    decoded = codec.decode(np.array([0, 255], "u1"))
    assert decoded[0] == 0
    assert np.isnan(decoded[1])


def test_a_fill_value_is_cast_too_and_must_come_back() -> None:
    maps = {"encode": [["NaN", 255]], "decode": [[255, "NaN"]]}

    codec = bound("float32", np.nan, data_type="uint8", scalar_map=maps)

    assert codec.encoded.fill_value.tolist() == 255
    with pytest.raises(SpecError, match=r"the fill value cannot be stored: nan is no number"):
        bound("float32", np.nan, data_type="uint8")
    with pytest.raises(SpecError, match=r"fill value 0\.5 would come back as 0\.0: map it by"):
        bound("float32", 0.5, data_type="uint8")
    with pytest.raises(SpecError, match=r"the fill value cannot be stored: 300 is no number"):
        bound("int16", 300, data_type="uint8")


def test_what_is_stored_and_does_not_fit_is_data_loss() -> None:
    codec = bound("uint8", data_type="int16")

    with pytest.raises(DataLossError, match="what is stored does not fit: -1 is no number of type"):
        codec.decode(np.array([1, -1], "i2"))


def test_shards_behind_it_hold_the_fill_value_that_is_stored() -> None:
    fill_value = np.array(np.nan, "f4")
    chunk = ChunkType((2, 2), np.dtype("f4"), fill_value)
    maps = {"encode": [["NaN", 9]], "decode": [[9, "NaN"]]}
    cast = {"name": "cast_value", "configuration": {"data_type": "uint8", "scalar_map": maps}}
    shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2]}}
    codecs = [parse_codec_json("zarr3", each) for each in (cast, shards)]
    chain = bind_chain(codecs, chunk)
    values = np.array([[np.nan, np.nan], [1, 2]], "f4")

    data = bytes(chain.encode(values))

    assert data[:2] == bytes([1, 2])
    assert len(data) == 2 + 2 * 16 + 4
    np.testing.assert_array_equal(chain.decode(data), values)


@pytest.mark.parametrize(
    ("dtype", "members", "problem"),
    [
        ("f4", {}, r"^configuration\.data_type: .*required"),
        ("f4", {"data_type": "int7"}, r"^configuration\.data_type: expected the name of a type"),
        ("f4", {"data_type": "bool"}, r"^configuration\.data_type: "),
        ("f4", {"data_type": "complex64"}, r"^configuration\.data_type: "),
        ("f4", {"data_type": "string"}, r"^configuration\.data_type: "),
        ("f4", {"data_type": {"name": "int8", "configuration": {"a": 1}}}, r"data_type: "),
        ("f4", {"data_type": 8}, r"^configuration\.data_type: "),
        ("f4", {"data_type": "int8", "rounding": "up"}, r"^configuration\.rounding: "),
        ("f4", {"data_type": "int8", "out_of_range": "error"}, r"^configuration\.out_of_range: "),
        ("i2", {"data_type": "float32", "out_of_range": "wrap"}, "^out_of_range: only integers"),
        ("f4", {"data_type": "int8", "scalar_map": []}, r"^configuration\.scalar_map: "),
        ("f4", {"data_type": "int8", "scalar_map": {"en": []}}, r"scalar_map\.en: no such member"),
        ("f4", {"data_type": "int8", "scalar_map": {"encode": 1}}, r"scalar_map\.encode: expected"),
        ("f4", {"data_type": "int8", "scalar_map": {"encode": [[1]]}}, r"encode\[0\]: expected \["),
        (
            "f4", {"data_type": "int8", "scalar_map": {"encode": [[0, 0], [1, 300]]}},
            r"^scalar_map\.encode\[1\]: expected an integer from -128 to 127",
        ),
        (
            "f4", {"data_type": "int8", "scalar_map": {"decode": [["NaN", 0]]}},
            r"^scalar_map\.decode\[0\]: expected an integer",
        ),
        ("f4", {"data_type": "int8", "casting": "same"}, r"^configuration\.casting: no such"),
        ("?", {"data_type": "int8"}, 'codec "cast_value" casts integers and floats, not bool'),
        ("c8", {"data_type": "int8"}, 'codec "cast_value" casts'),
        ("<U3", {"data_type": "int8"}, 'codec "cast_value" casts'),
        ("<M8[s]", {"data_type": "int8"}, 'codec "cast_value" casts'),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(dtype: str, members: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bound(dtype, **members)
