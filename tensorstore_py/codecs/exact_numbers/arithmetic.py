"""Numbers of one type as numbers of another, with nothing left to chance.

Which way is rounded, and what becomes of numbers that the other type cannot hold, is said by the
caller and holds for every pair of types, the small ones of machine learning included. Between
floats the arithmetic is done in 64 bits, which all of them fit in exactly; integers that do not are
rounded as integers first. The invariant: a number that cannot be had is an error, never another.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tensorstore_py.plugin.codec import Array

__all__ = ["OutOfRange", "Rounding", "UnrepresentableError", "cast_numbers", "integer_bounds"]

Rounding = Literal[
    "nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"
]
OutOfRange = Literal["clamp", "wrap"]
_Floats = NDArray[np.float64]

#: The integers of fewer than eight bits, which have not much arithmetic.
_SMALL = frozenset(
    np.dtype(each) for each in (ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4)
)
#: Every integer up to here is a 64-bit float.
_EXACT = 2**53


class UnrepresentableError(ValueError):
    """A number that the other type does not have."""


@cache
def integer_bounds(dtype: np.dtype[np.generic]) -> tuple[int, int] | None:
    """Least and greatest number of an integer type; None for any other type.

    Example:
        >>> integer_bounds(np.dtype("i1")), integer_bounds(np.dtype("f4"))
        ((-128, 127), None)
    """
    try:
        info = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        return None
    return int(info.min), int(info.max)


def cast_numbers(
    array: Array,
    target: np.dtype[np.generic],
    *,
    rounding: Rounding = "nearest-even",
    out_of_range: OutOfRange | None = None,
) -> Array:
    """The same numbers in another type.

    Args:
        array: integers or real floats.
        target: such a type, too.
        rounding: which neighbour a number becomes that the other type does not have.
        out_of_range: what becomes of numbers beyond the greatest and least: these themselves or
            infinity ("clamp"), or what they are modulo the number of integers ("wrap").

    Raises:
        UnrepresentableError: a number that is not to be had, NaN or infinity among them.

    Example:
        >>> cast_numbers(np.array([0.5, 1.5, 300.0]), np.dtype("u1"), out_of_range="clamp")
        array([  0,   2, 255], dtype=uint8)
    """
    if array.dtype == target or np.can_cast(array.dtype, target, "safe"):
        return array.astype(target, copy=False)
    to_integers = integer_bounds(target) is not None
    if integer_bounds(array.dtype) is not None:
        integers = array if array.dtype.kind in "iu" else array.astype(np.int64)
        if to_integers:
            return _integers_to_integers(integers, target, out_of_range)
        return _to_floats(_exact_floats(integers, target, rounding), target, rounding, out_of_range)
    values: _Floats = array.astype(np.float64)
    if to_integers:
        return _floats_to_integers(values, target, rounding, out_of_range)
    return _to_floats(values, target, rounding, out_of_range)


def _integers_to_integers(
    array: Array, target: np.dtype[np.generic], out_of_range: OutOfRange | None
) -> Array:
    low, high = _bounds(target)
    outside = (array < low) | (array > high)  # type: ignore[operator]
    if outside.any():
        if out_of_range is None:
            raise _not_in(array[outside][0], target)
        if out_of_range == "wrap":
            return _modulo(array.astype(np.int64).view(np.uint64), target)
        least, greatest = _bounds(array.dtype)
        array = np.clip(array, max(low, least), min(high, greatest))
    return _small(array, target)


def _floats_to_integers(
    values: _Floats, target: np.dtype[np.generic], rounding: Rounding, out_of_range: str | None
) -> Array:
    finite = np.isfinite(values)
    if not finite.all():
        raise _not_in(values[~finite][0], target)
    low, high = _bounds(target)
    rounded = _rounded(values, rounding)
    # Powers of two, or 0: exact in floats, unlike the greatest integer itself.
    below, above = rounded < float(low), rounded >= float(high + 1)
    if not (below | above).any():
        return _from_floats(rounded, target)
    if out_of_range is None:
        raise _not_in(values[below | above][0], target)
    if out_of_range == "wrap":
        rest = np.fmod(rounded, 2.0**64)
        magnitude = np.abs(rest).astype(np.uint64)
        return _modulo(np.where(rest < 0, ~magnitude + np.uint64(1), magnitude), target)
    inside = _from_floats(np.where(below | above, 0, rounded), target)
    inside[below] = _small(np.array(low), target)
    inside[above] = _small(np.array(high, np.uint64), target)
    return inside


def _exact_floats(array: Array, target: np.dtype[np.generic], rounding: Rounding) -> _Floats:
    """Integers as 64-bit floats; rounded for the target already, if they are too large for that."""
    exact: _Floats = array.astype(np.float64)
    if array.dtype.itemsize < 8 or not array.size:
        return exact
    if int(array.max()) <= _EXACT and int(array.min()) >= -_EXACT:
        return exact
    negative = array < 0  # type: ignore[operator]
    bits = array.view(np.uint64)
    magnitude = np.where(negative, ~bits + np.uint64(1), bits)
    # Without the bit below the highest one nothing can round up to the next power of two.
    length = np.frexp((magnitude & ~(magnitude >> np.uint64(1))).astype(np.float64))[1]
    shift = np.maximum(length - _format(target).precision, 0).astype(np.uint64)
    kept = magnitude >> shift
    rest = magnitude - (kept << shift)
    half = (np.uint64(1) << shift) >> np.uint64(1)
    if rounding == "nearest-even":
        up = (rest > half) | ((rest == half) & (kept & np.uint64(1) == 1))
    elif rounding == "nearest-away":
        up = rest >= half
    else:
        upwards = {"towards-zero": False, "towards-positive": ~negative}.get(rounding, negative)
        up = (rest > 0) & upwards
    kept = kept + (up & (shift > 0)).astype(np.uint64)
    rounded: _Floats = np.ldexp(np.where(negative, -1.0, 1.0) * kept, shift.astype(np.int64))
    return rounded


def _to_floats(
    values: _Floats, target: np.dtype[np.generic], rounding: Rounding, out_of_range: str | None
) -> Array:
    form = _format(target)
    finite = np.isfinite(values)
    if form.precision < 53:
        exponents = np.maximum(np.frexp(values)[1] - form.precision, form.least_exponent)
        exponents = np.where(finite, exponents, 0)
        values = np.ldexp(_rounded(np.ldexp(values, -exponents), rounding), exponents)
    nan = np.isnan(values)
    if not form.has_nan and nan.any():
        raise _not_in(np.nan, target)
    if not form.has_infinity and not (finite | nan).all():
        raise _not_in(values[~(finite | nan)][0], target)
    outside = finite & ((values > form.greatest) | (values < form.least))
    if outside.any():
        if out_of_range != "clamp":
            raise _not_in(values[outside][0], target)
        low, high = form.least, form.greatest
        if form.has_infinity:
            low, high = -np.inf, np.inf
        values = np.where(outside, np.where(values > 0, high, low), values)
    return values.astype(target)


def _rounded(values: _Floats, rounding: Rounding) -> _Floats:
    """To whole numbers; the sign of zero is kept."""
    if rounding == "nearest-even":
        return np.rint(values)
    if rounding == "towards-positive":
        return np.ceil(values)
    if rounding == "towards-negative":
        return np.floor(values)
    whole: _Floats = np.trunc(values)
    if rounding == "towards-zero":
        return whole
    with np.errstate(invalid="ignore"):  # infinities
        away = np.abs(values - whole) >= 0.5
    return whole + np.copysign(away, values)


def _from_floats(whole: _Floats, target: np.dtype[np.generic]) -> Array:
    """Whole numbers within the bounds of an integer type."""
    return _small(whole.astype(np.uint64 if target.kind == "u" else np.int64), target)


def _modulo(bits: NDArray[np.uint64], target: np.dtype[np.generic]) -> Array:
    """Numbers in two's complement of 64 bits, without those that the target has no room for."""
    low, high = _bounds(target)
    width = (high - low).bit_length()
    kept = bits & np.uint64(2**width - 1)
    if not low:
        return _small(kept, target)
    sign = np.uint64(1 << (width - 1))
    return _small(((kept ^ sign) - sign).view(np.int64), target)


def _small(array: Array, target: np.dtype[np.generic]) -> Array:
    """Integers within the bounds of the target, which may be of a type without much arithmetic."""
    if target in _SMALL:
        array = array.astype(np.int8)
    return array.astype(target)


def _bounds(dtype: np.dtype[np.generic]) -> tuple[int, int]:
    bounds = integer_bounds(dtype)
    assert bounds is not None
    return bounds


class _Format(NamedTuple):
    """What numbers a type of floats has.

    Attributes:
        precision: bits of the mantissa, with the one that is not stored.
        least_exponent: of the power of two that all its numbers are multiples of.
        least: the number that no other is below.
        greatest: the number that no other is above.
        has_nan: whether it has something that is no number.
        has_infinity: whether it has infinities.
    """

    precision: int
    least_exponent: int
    least: float
    greatest: float
    has_nan: bool
    has_infinity: bool


@cache
def _format(dtype: np.dtype[np.generic]) -> _Format:
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        infinity, nan = np.array([np.inf, np.nan]).astype(dtype).astype(np.float64)
    return _Format(
        int(info.nmant) + 1,
        int(np.frexp(float(info.smallest_subnormal))[1]) - 1,
        float(info.min),
        float(info.max),
        bool(np.isnan(nan)),
        bool(np.isinf(infinity)),
    )


def _not_in(value: object, target: np.dtype[np.generic]) -> UnrepresentableError:
    return UnrepresentableError(f"{value} is no number of type {target}")
