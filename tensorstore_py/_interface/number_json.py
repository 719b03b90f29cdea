"""Numbers and truth values as version 3 metadata writes them, to scalars and back.

Numbers are numbers, booleans are booleans. What JSON has no number for is a string: `"NaN"` (one
particular NaN of the type), `"Infinity"`, `"-Infinity"`, or the value's bits in hexadecimal, which
is how every other NaN is written. A complex number is a pair of such values. A value read and
written again has the same bits. Fill values are written so, and numbers among a codec's members.
Types that are no numbers are the format's business.
"""

from __future__ import annotations

import re
from math import copysign, inf, isnan, nan
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tensorstore_py._spec.dtype import dtype

    Scalar = NDArray[np.generic]

__all__ = ["number_to_json", "parse_number"]

_NAMED = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
#: Bits of the floats that have fewer than a byte.
_SMALL_FLOATS = {"float4_e2m1fn": 0xF, "float6_e2m3fn": 0x3F, "float6_e3m2fn": 0x3F}
_PARTS: dict[str, type[np.generic]] = {"complex64": np.float32, "complex128": np.float64}


def parse_number(json: object, data_type: dtype) -> Scalar:
    """The array of rank 0 for the value of a `fill_value` member, or of a field in it.

    Args:
        json: as in metadata.
        data_type: of kind `b`, `i`, `u`, `f` or `c`.

    Raises:
        SpecError: not a value of that type.

    Example:
        >>> from tensorstore_py._spec.dtype import dtype
        >>> parse_number("0x3f800000", dtype("float32"))
        array(1., dtype=float32)
        >>> parse_number([1, "-Infinity"], dtype("complex64"))
        array(1.-infj, dtype=complex64)
    """
    kind, target = data_type.kind, data_type.array_dtype
    if kind == "b":
        if not isinstance(json, bool):
            raise SpecError(f"expected true or false, but found {describe(json)}")
        return np.array(json)
    if kind in "iu":
        return _integer(json, target)
    if kind == "f":
        return _real(json, target)
    if not isinstance(json, list | tuple) or len(json) != 2:
        raise SpecError(f"expected [real, imaginary], but found {describe(json)}")
    pair: Scalar = np.empty(2, _PARTS[data_type.name])
    for position, part in enumerate(json):
        try:
            pair[position] = _real(part, pair.dtype)
        except SpecError as error:
            raise error.inside(position) from None
    return pair.view(target).reshape(())


def number_to_json(value: Scalar) -> object:
    """A scalar as metadata writes it.

    Example:
        >>> import numpy as np
        >>> number_to_json(np.array(np.nan, "float32")), number_to_json(np.array(7, "int8"))
        ('NaN', 7)
        >>> number_to_json(np.array(0x7FA00000, "uint32").view("float32"))
        '0x7fa00000'
    """
    kind = value.dtype.kind
    if kind == "c":
        parts = value.reshape(1).view(_PARTS[value.dtype.name])
        return [_real_to_json(parts[:1]), _real_to_json(parts[1:])]
    if kind in "biu":
        return value.item()
    if kind != "f" and _integer_range(value.dtype) is not None:
        return int(value)
    return _real_to_json(value.reshape(1))


def _integer(json: object, target: np.dtype[np.generic]) -> Scalar:
    bounds = _integer_range(target)
    assert bounds is not None
    low, high = bounds
    if isinstance(json, float) and json.is_integer():
        json = int(json)
    if isinstance(json, bool) or not isinstance(json, int) or not low <= json <= high:
        raise SpecError(f"expected an integer from {low} to {high}, but found {describe(json)}")
    return np.array(json, target)


def _integer_range(target: np.dtype[np.generic]) -> tuple[int, int] | None:
    """Least and greatest value of an integer type; None for any other type."""
    try:
        info = ml_dtypes.iinfo(target)  # type: ignore[no-untyped-call]
    except ValueError:
        return None
    return int(info.min), int(info.max)


def _real(json: object, target: np.dtype[np.generic]) -> Scalar:
    number: object = json
    if isinstance(json, str):
        number = _NAMED.get(json)
        if number is None:
            return _from_bits(json, target)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise SpecError(
            f'expected a number, "NaN", "Infinity", "-Infinity" or "0x…" bits, '
            f"but found {describe(json)}"
        )
    if target.name == "float8_e8m0fnu" and not number:
        # The type has no zero; its least value stands for it, which is also what new chunks hold.
        return np.zeros((), np.uint8).view(target)
    with np.errstate(over="ignore"):
        return np.array(number, np.float64).astype(target)


def _from_bits(text: str, target: np.dtype[np.generic]) -> Scalar:
    size = target.itemsize
    if not _HEX.fullmatch(text) or len(text) > 2 + 2 * size:
        raise SpecError(
            f'expected "NaN", "Infinity", "-Infinity" or "0x" with up to {2 * size} hexadecimal '
            f"digits, but found {describe(text)}"
        )
    bits = int(text, 16) & _SMALL_FLOATS.get(target.name, -1)
    return np.array(bits, f"u{size}").view(target)


def _real_to_json(value: Scalar) -> object:
    """One real number, in an array of length 1."""
    number = float(value[0])
    if value.dtype.name == "float8_e8m0fnu" and not value.view(np.uint8)[0]:
        return 0.0  # as it is read
    if number in (inf, -inf):
        return "Infinity" if copysign(1, number) > 0 else "-Infinity"
    if not isnan(number):
        return number
    bits = value.view(f"u{value.dtype.itemsize}")
    usual = np.array([nan]).astype(value.dtype).view(bits.dtype)
    if bits[0] == usual[0]:
        return "NaN"
    return f"0x{int(bits[0]):0{2 * value.dtype.itemsize}x}"
