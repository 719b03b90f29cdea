"""Which data type converts to which, and how: plain functions on arrays, element by element.

Numbers convert to each other as in C (floats are cut to integers, integers wrap around, complex
numbers lose their imaginary part), to text, and to JSON and back; text converts to JSON and back.
Text never converts to numbers. Types that the reference has not (dates, fixed text, records)
follow NumPy's rule "same kind"; fixed text counts as text.

A conversion that a value does not survive is an error only where it is checked element by element:
JSON and Python objects to anything, and bytes that are no UTF-8.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import Array, dtype, element_from_json, freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["conversion"]

NUMBERS = "biufc"
TEXT = frozenset({"string", "ustring"})
BYTES = frozenset({"char", "byte"})


def conversion(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    """The function that converts arrays of `source` to `target`; None if there is none.

    Example:
        >>> convert = conversion(dtype("float32"), dtype("uint8"))
        >>> convert(np.array([1.9, 300], np.float32))
        array([ 1, 44], dtype=uint8)
        >>> conversion(dtype("string"), dtype("uint8")) is None
        True
    """
    if source is target:
        return _same
    if source.kind in NUMBERS:
        return _from_numbers(source, target)
    if source.name in TEXT:
        return _from_text(source, target)
    if source.name == "json":
        if target.kind == "c" or target.name in BYTES or target.kind not in f"{NUMBERS}O":
            return None
        return (
            None if target.name == "object" else partial(_each, partial(_of_json, target), target)
        )
    if source.name in BYTES or target.name in BYTES:
        return partial(_view, target) if {source.name, target.name} <= BYTES else None
    return _from_parametric(source, target)


def _from_numbers(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    if target.kind in NUMBERS:
        if source.kind == "c" and target.kind == "b":
            return None
        return partial(_number, target)
    if target.name in TEXT:
        return None if source.kind == "b" else partial(_each, partial(_text, target), target)
    if target.name == "json":
        return partial(_each, _json_of_number, target)
    if target.kind in "mM" and source.kind in "iu":
        return partial(_through_int64, target)
    return None


def _from_text(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    decode = source.name == "string"
    if target.name == "string":
        return partial(_each, _encode, target)
    if target.name in ("ustring", "json"):
        return partial(_each, _decode, target) if decode else partial(_retype, target)
    if target.kind == "U":
        return partial(_fixed, target, decode)
    return None


def _from_parametric(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    if source.name == "object" and target.kind == "O":
        return partial(_each, partial(_of_object, target), target)
    if source.kind == "U" and target.name in ("ustring", "json"):
        return partial(_retype, target)
    if source.kind == "U" and target.name == "string":
        return partial(_each, _encode, target)
    if source.kind in "mM" and target.kind == "i" and target.itemsize == 8:
        return partial(_view, target)
    if source.kind == target.kind and np.can_cast(
        source.array_dtype, target.array_dtype, "same_kind"
    ):
        return partial(_retype, target)
    return None


def _same(array: Array) -> Array:
    return array


def _view(target: dtype, array: Array) -> Array:
    return np.ascontiguousarray(array).view(target.array_dtype).reshape(array.shape)


def _retype(target: dtype, array: Array) -> Array:
    return array.astype(target.array_dtype)


def _fixed(target: dtype, decode: bool, array: Array) -> Array:
    texts = [_decode(element) if decode else element for element in array.flat]
    longest = max((len(str(text)) for text in texts), default=0)
    if longest > target.itemsize // 4:
        raise SpecError(f"text of length {longest} does not fit data type {target.name}")
    return np.array(texts, target.array_dtype).reshape(array.shape)


def _number(target: dtype, array: Array) -> Array:
    """As a cast in C: cut towards zero, then wrapped around."""
    wanted = target.array_dtype
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and target.kind != "c":
            array = array.real
        floating = target.kind != "b" and dtype(array.dtype).kind == "f"
        # a float beyond a narrow integer is undefined in C; through a wide one it wraps
        if floating and target.kind in "iu" and target.itemsize <= 2:
            array = array.astype(np.float64).astype(np.int32)
        elif floating and target.name == "uint32":
            array = array.astype(np.float64).astype(np.int64)
        if target.name in ("int2", "int4", "uint2", "uint4"):
            mask = (1 << int(target.name[-1])) - 1
            half = mask // 2 + 1 if target.kind == "i" else 0
            array = (((array.astype(np.int64) + half) & mask) - half).astype(np.int8)
        # extension types know the way to few others
        elif array.dtype.isbuiltin == 2 and (target.kind in "biuc" or wanted.isbuiltin == 2):
            array = array.astype(np.int64 if dtype(array.dtype).kind in "iu" else np.float64)
        if wanted.isbuiltin == 2 and array.dtype.kind in "iu":
            array = array.astype(np.float64)
        return array.astype(wanted)


def _through_int64(target: dtype, array: Array) -> Array:
    return array.astype(np.int64).view(target.array_dtype)


def _each(function: Callable[[object], object], target: dtype, array: Array) -> Array:
    out = np.empty(array.shape, target.array_dtype)
    flat = out.reshape(-1)
    for place, element in enumerate(array.flat):
        flat[place] = function(element)
    return out


def _encode(element: object) -> object:
    return element.encode() if isinstance(element, str) else element


def _decode(element: object) -> object:
    if not isinstance(element, bytes):
        return element
    try:
        return element.decode()
    except UnicodeDecodeError as error:
        raise SpecError(f"{element!r} is not UTF-8 text: {error.reason}") from None


def _of_json(target: dtype, element: object) -> object:
    if target.name == "string":
        if not isinstance(element, str):
            raise SpecError(f"expected a string, but found {element!r}")
        return element.encode()
    return element_from_json(freeze(element), target)


def _of_object(target: dtype, element: object) -> object:
    if target.name == "json":
        try:
            return thaw(freeze(element))
        except TypeError as error:
            raise SpecError(str(error)) from None
    if not isinstance(element, str | bytes):
        raise SpecError(f"expected text to convert to {target.name}, but found {element!r}")
    return _encode(element) if target.name == "string" else _decode(element)


def _json_of_number(element: object) -> object:
    value = element.item() if isinstance(element, np.generic) else element
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, bool | int | float):
        return value
    number = float(value)  # type: ignore[arg-type]  # an extension type's scalar
    return int(number) if dtype(type(element)).kind == "i" else number


def _text(target: dtype, element: object) -> object:
    text = _number_text(element)
    return text.encode() if target.name == "string" else text


def _number_text(element: object) -> str:
    kind = dtype(type(element)).kind
    if kind in "iu":
        return str(int(element))  # type: ignore[call-overload]
    if isinstance(element, np.complexfloating):
        return f"({_number_text(element.real)},{_number_text(element.imag)})"
    # six digits where they say it all, as the reference prints; else as many as it takes
    value = float(element)  # type: ignore[arg-type]
    text = f"{value:g}"
    back = np.array(float(text)).astype(type(element))
    same = back == element or value != value  # noqa: PLR0124 - NaN
    return text if same else str(element)
