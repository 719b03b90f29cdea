"""The fill value: JSON, the bytes of one stored element, and an array of one field.

In memory a fill value is always the bytes of one stored element, whatever its data type; null (no
fill value) is None. Numbers are written as JSON numbers, with names for NaN and the infinities;
what JSON has no notation for (text, raw bytes, several fields) as base64.
"""

from __future__ import annotations

import base64
import binascii
import math

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr.data_type import StoredField, StoredType
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import describe

__all__ = ["field_fill_value", "fill_value_json", "fill_value_of", "parse_fill_value"]

_NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
#: Value bits of the integer types that NumPy has no limits for.
_SMALL = {"int2": 2, "int4": 4}


def parse_fill_value(stored_type: StoredType, json: object) -> bytes | None:
    r"""The fill value that metadata states.

    Raises:
        SpecError: not a value of the type.

    Example:
        >>> parse_fill_value(StoredType.parse(">u2"), 258)
        b'\x01\x02'
        >>> parse_fill_value(StoredType.parse("|S2"), "aGk=")
        b'hi'
    """
    if json is None:
        return None
    if not _is_number(stored_type):
        return _from_base64(stored_type, json)
    field = stored_type.fields[0]
    kind = field.data_type.kind
    value: complex
    if kind == "b":
        value = _boolean(json)
    elif kind in "iu":
        value = _integer(field, json)
    elif kind == "f":
        value = _float(json)
    elif isinstance(json, str):
        return _from_base64(stored_type, json)
    else:
        value = _complex(json)
    return _element(field, value)


def fill_value_json(stored_type: StoredType, fill_value: bytes | None) -> object:
    r"""The fill value as metadata writes it.

    Example:
        >>> fill_value_json(StoredType.parse("<f4"), b"\x00\x00\xc0\x7f")
        'NaN'
    """
    if fill_value is None:
        return None
    if not _is_number(stored_type):
        return base64.b64encode(fill_value).decode("ascii")
    field = stored_type.fields[0]
    value = field_fill_value(field, fill_value)
    kind = field.data_type.kind
    if kind == "c":
        return [_float_json(value.real.item()), _float_json(value.imag.item())]
    if kind == "f":
        return _float_json(float(value[()]))
    return bool(value) if kind == "b" else int(value)


def field_fill_value(field: StoredField, fill_value: bytes) -> NDArray[np.generic]:
    """What the field is filled with: an array of its native type and inner shape, read-only."""
    stored: NDArray[np.generic] = np.ndarray(
        field.inner_shape, field.stored, fill_value, field.offset
    )
    if field.native == np.bool_:
        # A stored truth value may be any byte, but NumPy computes with 0 and 1.
        stored = np.asarray(stored.view(np.uint8) != 0)
    value = stored.astype(field.native)
    value.flags.writeable = False
    return value


def fill_value_of(stored_type: StoredType, value: NDArray[np.generic]) -> bytes:
    """The fill value for values of the only field.

    Args:
        stored_type: a type with one field.
        value: of the field's data type, of any shape that broadcasts to its inner shape.

    Raises:
        SpecError: several fields, or another shape.
    """
    if len(stored_type.fields) > 1:
        raise SpecError(
            "a schema speaks of one field, but the fill value is of all of them: state it in "
            '"metadata": {"fill_value": …}, as base64'
        )
    (field,) = stored_type.fields
    while value.ndim > len(field.inner_shape) and value.shape[0] == 1:
        value = value[0]
    try:
        full = np.broadcast_to(value, field.inner_shape)
    except ValueError:
        raise SpecError(
            f"a fill value of shape {list(value.shape)} does not broadcast to the data type's "
            f"inner shape {list(field.inner_shape)}"
        ) from None
    return np.ascontiguousarray(full).astype(field.stored).tobytes()


def _is_number(stored_type: StoredType) -> bool:
    """Whether JSON has a notation for the values (of 4-bit floats the reference thinks not)."""
    data_type = stored_type.fields[0].data_type
    return (
        not stored_type.is_structured
        and data_type.kind in "biufc"
        and data_type.name != "float4_e2m1fn"
    )


def _is_text(stored_type: StoredType) -> bool:
    return not stored_type.is_structured and stored_type.fields[0].data_type.kind == "S"


def _element(field: StoredField, value: complex) -> bytes:
    # Overflow to infinity is what rounding to a narrower type means here.
    with np.errstate(over="ignore"):
        return np.array(value).astype(field.native).astype(field.stored).tobytes()


def _from_base64(stored_type: StoredType, json: object) -> bytes:
    size = stored_type.size_bytes
    data = None
    if isinstance(json, str):
        data = _decoded(json)
        if data is not None and _is_text(stored_type) and len(json) % 4 == 0:
            # Text of fixed length ends at its last non-null character: zarr-python writes no more.
            data = data.ljust(size, b"\0")
    if data is None or len(data) != size:
        raise SpecError(f"expected {size} bytes in base64, but found {describe(json)}")
    fields = [field for field in stored_type.fields if field.native == np.bool_]
    if fields:
        changed = bytearray(data)
        for field in fields:
            value = field_fill_value(field, data)
            changed[field.offset : field.offset + field.size_bytes] = value.tobytes()
        data = bytes(changed)
    return data


def _decoded(text: str) -> bytes | None:
    """What the base64 text stands for, with or without "=" at its end; None if it is none."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _boolean(json: object) -> bool:
    if not isinstance(json, bool):
        raise SpecError(f"expected true or false, but found {describe(json)}")
    return json


def _integer(field: StoredField, json: object) -> int:
    low, high = _limits(field)
    value = json
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SpecError(f"expected an integer from {low} to {high}, but found {describe(json)}")
    return value


def _limits(field: StoredField) -> tuple[int, int]:
    bits = _SMALL.get(field.data_type.name)
    if bits is not None:
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    limits = np.iinfo(np.dtype(field.native).str)
    return int(limits.min), int(limits.max)


def _float(json: object) -> float:
    if isinstance(json, str):
        if json in _NAMED:
            return _NAMED[json]
        try:
            value = float(json)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            return value
    elif isinstance(json, int | float) and not isinstance(json, bool):
        return float(json)
    names = ", ".join(f'"{name}"' for name in _NAMED)
    raise SpecError(f"expected a number or one of {names}, but found {describe(json)}")


def _complex(json: object) -> complex:
    if not isinstance(json, list | tuple) or len(json) != 2:
        raise SpecError(f"expected [real part, imaginary part], but found {describe(json)}")
    parts: list[float] = []
    for position, part in enumerate(json):
        try:
            parts.append(_float(part))
        except SpecError as error:
            raise error.inside(position) from None
    return complex(*parts)


def _float_json(value: float) -> float | str:
    for name, special in _NAMED.items():
        if value == special or (math.isnan(value) and math.isnan(special)):
            return name
    return value
