import itertools
import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorstore_py.codecs.exact_numbers.arithmetic import (
    OutOfRange,
    Rounding,
    UnrepresentableError,
    cast_numbers,
    integer_bounds,
)
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    ArrayToArray,
    ChunkType,
)
from tensorstore_py.plugin.driver import (
    bind_chain,
    parse_codec_json,
)
from tensorstore_py.testing.codecs import CodecSuite, chunk_type


def bound_cast_value(dtype: str, fill_value: object = 0, **members: object) -> ArrayToArray:
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
        codec = bound_cast_value("float64", data_type="int8", rounding=rounding)
        assert codec.encode(values).tolist() == wanted
        assert codec.encoded.dtype == np.int8
        assert codec.decode(codec.encode(values)).tolist() == wanted


def test_numbers_out_of_range() -> None:
    values = np.array([128.0, -129.0, 127])

    with pytest.raises(ValueError, match=r'"cast_value": 128\.0 is no number of type int8; say by'):
        bound_cast_value("float64", data_type="int8").encode(values)
    clamp = bound_cast_value("float64", data_type="int8", out_of_range="clamp")
    wrap = bound_cast_value("float64", data_type="int8", out_of_range="wrap")
    assert clamp.encode(values).tolist() == [127, -128, 127]
    assert wrap.encode(values).tolist() == [-128, 127, 127]


def test_numbers_of_the_map_come_first() -> None:
    codec = bound_cast_value(
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

    codec = bound_cast_value("float32", np.nan, data_type="uint8", scalar_map=maps)

    assert codec.encoded.fill_value.tolist() == 255
    with pytest.raises(SpecError, match=r"the fill value cannot be stored: nan is no number"):
        bound_cast_value("float32", np.nan, data_type="uint8")
    with pytest.raises(SpecError, match=r"fill value 0\.5 would come back as 0\.0: map it by"):
        bound_cast_value("float32", 0.5, data_type="uint8")
    with pytest.raises(SpecError, match=r"the fill value cannot be stored: 300 is no number"):
        bound_cast_value("int16", 300, data_type="uint8")


def test_what_is_stored_and_does_not_fit_is_data_loss_cast_value() -> None:
    codec = bound_cast_value("uint8", data_type="int16")

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
def test_what_makes_no_sense_is_refused_cast_value(
    dtype: str, members: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        bound_cast_value(dtype, **members)


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


def bound_scale_offset(dtype: object, fill_value: object = 0, **members: object) -> ArrayToArray:
    codec: Any = parse_codec_json("zarr3", {"name": "scale_offset", "configuration": members})
    found = codec.bind(chunk_type((3,), dtype, fill_value))
    assert isinstance(found, ArrayToArray)
    return found


def test_the_offset_is_subtracted_first() -> None:
    codec = bound_scale_offset("float32", 10, offset=5, scale=0.1)

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
        bound_scale_offset(dtype, members.get("offset", 0), **members).encode(array)
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
def test_what_is_stored_and_does_not_fit_is_data_loss_scale_offset(
    dtype: str, members: dict[str, Any], stored: list[float], problem: str
) -> None:
    codec = bound_scale_offset(dtype, members.get("offset", 0), **members)

    with pytest.raises(DataLossError, match=f"what is stored does not fit: .*{problem}"):
        codec.decode(np.array(stored).astype(dtype))


def test_infinities_and_nan_pass() -> None:
    codec = bound_scale_offset("f4", offset=1, scale=2)
    values = np.array([np.inf, -np.inf, np.nan], "f4")

    assert codec.encode(values).tobytes() == values.tobytes()
    assert codec.decode(values).tobytes() == values.tobytes()


def test_without_members_it_does_nothing() -> None:
    codec = bound_scale_offset("f8")
    values = np.arange(3.0)

    assert codec.encode(values) is values
    assert codec.decode(values) is values
    assert codec.view_of(values) is values
    assert bound_scale_offset("f8", scale=2).view_of(values) is None


def test_empty_chunks_are_taken() -> None:
    codec = bound_scale_offset("i2", offset=1, scale=2)

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
def test_what_makes_no_sense_is_refused_scale_offset(
    dtype: str, members: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        bound_scale_offset(dtype, **members)


MODES: tuple[Rounding, ...] = (
    "nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away",
)  # fmt: skip


SMALL_FLOATS = [
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
]  # fmt: skip


INTEGERS = ["int2", "uint2", "int4", "uint4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def typed(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def all_numbers(name: str) -> list[float]:
    """Every finite number of a type of up to 16 bits, sorted."""
    dtype = typed(name)
    bits = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
    if "float4" in name or "float6" in name:
        bits = bits[: 2 ** int(name[5])]
    values = bits.view(dtype).astype(np.float64)
    return sorted(set(values[np.isfinite(values)].tolist()))


def neighbour(value: float, known: list[float], mode: Rounding) -> float:
    """What exact arithmetic says; `known` is sorted and goes on at both sides of the value."""
    low, high = known[bisect_right(known, value) - 1], known[bisect_left(known, value)]
    if low == high:
        return low
    down, up = Fraction(value) - Fraction(low), Fraction(high) - Fraction(value)
    if mode == "towards-negative" or (mode == "towards-zero" and value > 0):
        return low
    if mode in {"towards-positive", "towards-zero"}:
        return high
    if down != up:
        return low if down < up else high
    if mode == "nearest-away":
        return high if value > 0 else low
    # Mantissas are numbered one by one in a sorted list, even and odd in turn.
    return low if (bisect_left(known, low) - bisect_left(known, 0.0)) % 2 == 0 else high


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*SMALL_FLOATS, "int4", "uint2"])
def test_rounding_is_that_of_exact_arithmetic(name: str, mode: Rounding) -> None:
    known = all_numbers(name) if name in SMALL_FLOATS else None
    if known is None:
        bounds = integer_bounds(typed(name))
        assert bounds is not None
        known = [float(each) for each in range(bounds[0], bounds[1] + 1)]
    inside = [(a + b) / 2 for a, b in itertools.pairwise(known)]
    near = [math.nextafter(each, way) for each in inside for way in (-math.inf, math.inf)]
    values = [*known, *inside, *near]

    found = cast_numbers(np.array(values), typed(name), rounding=mode).astype(np.float64)

    assert found.tolist() == [neighbour(each, known, mode) for each in values]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "precision"), [("f4", 24), ("f2", 11), ("bfloat16", 8)])
def test_large_integers_are_rounded_once(name: str, precision: int, mode: Rounding) -> None:
    unit = 1 << (62 - precision)
    middle = (1 << 62) + (unit << 1)
    values = [middle + step for step in (-1, 0, 1, unit, unit + 1, 2 * unit, 3 * unit, 4 * unit)]
    if name == "f2":  # 65504 is all that it has
        values = [4097, 4098, 4099, 4100, 4102, 2049, 2051, 65503]
    known = sorted(
        {float(each) for each in np.arange(0, 65505, dtype="f2")}
        if name == "f2"
        else {float(middle + step * 2 * unit) for step in range(-3, 6)}
    )
    parity = {each: int(Fraction(each) / (2 * unit)) if name != "f2" else 0 for each in known}

    for sign, dtype in ((1, "u8"), (1, "i8"), (-1, "i8")):
        array = np.array([sign * each for each in values], dtype)
        found = cast_numbers(array, typed(name), rounding=mode).astype(np.float64)
        for value, each in zip(array.tolist(), found.tolist(), strict=True):
            low = max((k for k in (sign * k for k in known) if k <= value), default=None)
            high = min((k for k in (sign * k for k in known) if k >= value), default=None)
            assert low is not None
            assert high is not None
            exact = abs(value - int(low)), abs(int(high) - value)
            downwards = mode == "towards-negative" or (mode == "towards-zero" and sign > 0)
            if low == high or downwards:
                wanted = low
            elif mode in ("towards-positive", "towards-zero"):
                wanted = high
            elif exact[0] != exact[1]:
                wanted = low if exact[0] < exact[1] else high
            elif mode == "nearest-away":
                wanted = high if sign > 0 else low
            elif name == "f2":
                wanted = float(np.float64(value).astype("f2"))
            else:
                wanted = low if parity[abs(low)] % 2 == 0 else high
            assert each == wanted, (value, each, wanted)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_clamp_and_wrap(source: str, target: str) -> None:
    given, wanted = integer_bounds(typed(source)), integer_bounds(typed(target))
    assert given is not None
    assert wanted is not None
    some = {*given, *wanted, 0, 1, given[0] + 1, given[1] - 1, wanted[1] + 1, wanted[0] - 1}
    values = sorted(each for each in some if given[0] <= each <= given[1])
    plain = np.array(values, "u8" if source == "u8" else "i8")
    array = plain.astype("i1" if "int" in source else source).astype(typed(source))

    clamped = cast_numbers(array, typed(target), out_of_range="clamp")
    wrapped = cast_numbers(array, typed(target), out_of_range="wrap")

    size = wanted[1] - wanted[0] + 1
    assert clamped.dtype == wrapped.dtype == typed(target)
    assert [int(each) for each in clamped] == [min(max(v, wanted[0]), wanted[1]) for v in values]
    assert [int(each) for each in wrapped] == [(v - wanted[0]) % size + wanted[0] for v in values]
    for value, each in zip(values, array, strict=True):
        if wanted[0] <= value <= wanted[1]:
            assert int(cast_numbers(np.array([each]), typed(target))[0]) == value
        else:
            with pytest.raises(UnrepresentableError, match=f"{value} is no number of type"):
                cast_numbers(np.array([each]), typed(target))


@pytest.mark.parametrize("target", INTEGERS)
def test_floats_become_integers(target: str) -> None:
    bounds = integer_bounds(typed(target))
    assert bounds is not None
    low, high = bounds
    values = [low - 1.0, float(low), -0.4, 0.5, 1.4, float(high + 1), 1e30, -(2.0**70), 2.0**63]
    size = high - low + 1

    clamped = cast_numbers(np.array(values), typed(target), out_of_range="clamp")
    wrapped = cast_numbers(np.array(values), typed(target), out_of_range="wrap")

    whole = [int(np.rint(value)) for value in values]
    assert [int(each) for each in clamped] == [min(max(v, low), high) for v in whole]
    assert [int(each) for each in wrapped] == [(v - low) % size + low for v in whole]
    with pytest.raises(UnrepresentableError):
        cast_numbers(np.array(values), typed(target))
    ways: tuple[OutOfRange | None, ...] = (None, "clamp", "wrap")
    for value, way in itertools.product((np.nan, np.inf, -np.inf), ways):
        with pytest.raises(UnrepresentableError, match=f"{value} is no number"):
            cast_numbers(np.array([1, value]), typed(target), out_of_range=way)


@pytest.mark.parametrize("target", [*SMALL_FLOATS, "bfloat16", "f2", "f4"])
def test_floats_beyond_the_greatest(target: str) -> None:
    greatest = float(ml_dtypes.finfo(typed(target)).max)
    values = np.array([greatest, -greatest, 2 * greatest, -2 * greatest])
    with np.errstate(over="ignore", invalid="ignore"):
        infinite = np.isinf(np.array([np.inf]).astype(typed(target)).astype("f8"))[0]

    found = cast_numbers(values, typed(target), out_of_range="clamp").astype("f8").tolist()

    limit = np.inf if infinite else greatest
    assert found == [greatest, -greatest, limit, -limit]
    with pytest.raises(UnrepresentableError, match="is no number of type"):
        cast_numbers(values, typed(target))
    if infinite:
        assert cast_numbers(np.array([-np.inf]), typed(target)).astype("f8").tolist() == [-np.inf]
    else:
        with pytest.raises(UnrepresentableError, match="inf is no number of type"):
            cast_numbers(np.array([np.inf]), typed(target), out_of_range="clamp")


def test_what_is_no_number_stays_so_where_it_can() -> None:
    nan = np.array([np.nan])

    for target in ("f2", "f4", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"):
        assert np.isnan(cast_numbers(nan, typed(target)).astype("f8")).all()
    for target in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
        with pytest.raises(UnrepresentableError, match="nan is no number"):
            cast_numbers(nan, typed(target), out_of_range="clamp")


def test_powers_of_two_have_neither_zero_nor_signs() -> None:
    target = typed("float8_e8m0fnu")

    assert cast_numbers(np.array([1.0, 3.1, 0.25, 5]), target).astype("f8").tolist() == [
        1, 4, 0.25, 4,
    ]  # fmt: skip
    for value in (0.0, -1.0):
        with pytest.raises(UnrepresentableError):
            cast_numbers(np.array([value]), target)
    assert (
        cast_numbers(np.array([0.0, -1.0]), target, out_of_range="clamp").astype("f8").tolist()
        == [2.0**-127] * 2
    )


def test_the_sign_of_zero_is_kept() -> None:
    for mode in MODES:
        found = cast_numbers(np.array([-0.0, 0.0]), typed("float8_e4m3"), rounding=mode)
        assert np.signbit(found.astype("f8")).tolist() == [True, False]


def test_every_shape_is_taken() -> None:
    assert cast_numbers(np.array(2.5), np.dtype("i1")).tolist() == 2
    assert cast_numbers(np.zeros((0, 3)), np.dtype("i1")).shape == (0, 3)
    assert cast_numbers(np.zeros((0,), "i8"), np.dtype("f4")).shape == (0,)
    whole = np.arange(4, dtype="u1")
    assert cast_numbers(whole, np.dtype("u1")) is whole
