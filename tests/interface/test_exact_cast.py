import itertools
import math
from bisect import bisect_left, bisect_right
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tensorstore_py._interface.exact_cast import (
    OutOfRange,
    Rounding,
    UnrepresentableError,
    cast_numbers,
    integer_bounds,
)

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
