"""The fill value: JSON, the bytes of one stored element, and an array of what is opened of it.

In memory a fill value is always the bytes of one stored element, whatever its data type; null (no
fill value) is None. Numbers are written as JSON numbers, with names for NaN and the infinities;
dates and time differences as the number of their units, text as text, and what JSON has no notation
for (bytes, several fields) as base64. The fill value of Python objects, which have no bytes, is the
JSON text that metadata writes for them.
"""

from __future__ import annotations

import base64
import binascii
import json as json_module
import math

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    describe,
    dtype,
)
from tensorstore_py.plugin.driver import (
    ElementView,
    normalised,
    thaw,
)

__all__ = ["field_fill_value", "fill_value_json", "fill_value_of", "parse_fill_value"]

_NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
#: Least and greatest value of the integer types that NumPy has no limits for.
_SMALL = {"int2": (-2, 1), "int4": (-8, 7), "uint2": (0, 3), "uint4": (0, 15)}
_NOT_A_TIME = "NaT"
_BY_BYTES = "SV"
#: What missing elements of variable length are if metadata does not say.
_EMPTY: dict[str, object] = {"ustring": "", "string": b""}


def parse_fill_value(
    stored_type: StoredType, json: object, objects: dtype | None = None
) -> bytes | None:
    r"""The fill value that metadata states; None for null.

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
    if stored_type.holds_objects:
        return _object_text(objects or dtype("object"), json)
    kind = _notation(stored_type)
    value: complex
    if kind in _BY_BYTES:
        return _from_base64(stored_type, json)
    view = stored_type.view()
    if kind == "U":
        return _text(view, json)
    if kind in "mM":
        return _element(view, _time(json))
    if kind == "b":
        value = _boolean(json)
    elif kind in "iu":
        value = _integer(view, json)
    elif kind == "f":
        value = _float(json)
    elif isinstance(json, str):
        return _from_base64(stored_type, json)
    else:
        value = _complex(json)
    return _element(view, value)


def fill_value_json(stored_type: StoredType, fill_value: bytes | None) -> object:
    r"""The fill value as metadata writes it.

    Example:
        >>> fill_value_json(StoredType.parse("<f4"), b"\x00\x00\xc0\x7f")
        'NaN'
    """
    if fill_value is None:
        return None
    if stored_type.holds_objects:
        json: object = json_module.loads(fill_value)
        return json
    kind = _notation(stored_type)
    if kind in _BY_BYTES:
        return base64.b64encode(fill_value).decode("ascii")
    value = field_fill_value(stored_type.view(), fill_value)
    if kind == "U":
        return str(value)
    if kind in "mM":
        return int(value.view(np.int64))
    if kind == "c":
        return [_float_json(value.real.item()), _float_json(value.imag.item())]
    if kind == "f":
        return _float_json(float(value[()]))
    return bool(value) if kind == "b" else int(value)


def field_fill_value(view: ElementView, fill_value: bytes | None) -> NDArray[np.generic]:
    """What is opened of an element is filled with, as an array; read-only.

    Args:
        view: what is opened.
        fill_value: of whole elements; None for what stands for it where metadata has none.

    Returns:
        An array of the view's native type and inner shape, or of rank 0 where it is the same
        everywhere.
    """
    value: NDArray[np.generic]
    if view.stored.hasobject:
        value = np.fromiter([_object(view.data_type, fill_value)], np.dtype(object)).reshape(())
    elif fill_value is None:
        value = np.zeros((), view.native)
    else:
        value = np.array(normalised(view.of(fill_value), view.native), copy=True)
    value.flags.writeable = False
    return value


def fill_value_of(stored_type: StoredType, view: ElementView, value: NDArray[np.generic]) -> bytes:
    """The fill value for values of what is opened.

    Raises:
        SpecError: there is more to an element than the view, or the shape is another.
    """
    if stored_type.holds_objects:
        return _text_of_object(view.data_type, value[()])
    if view.size_bytes != stored_type.size_bytes:
        raise SpecError(
            "a schema speaks of one field, but the fill value is of all of them: state it in "
            '"metadata": {"fill_value": …}, as base64'
        )
    return np.ascontiguousarray(view.broadcast(value)).astype(view.stored).tobytes()


def _notation(stored_type: StoredType) -> str:
    """The kind of type by which a fill value is written; "V" for base64.

    Of 4-bit floats the reference thinks that JSON has no notation for them.
    """
    if stored_type.is_structured:
        return "V"
    stored = stored_type.fields[0].stored
    if stored.kind in "SV" and stored.isbuiltin != 2:
        return stored.kind
    data_type = dtype(stored)
    return "V" if data_type.name == "float4_e2m1fn" else data_type.kind


def _element(view: ElementView, value: object) -> bytes:
    # Overflow to infinity is what rounding to a narrower type means here.
    with np.errstate(over="ignore"):
        return np.array(value).astype(view.native).astype(view.stored).tobytes()


def _text(view: ElementView, json: object) -> bytes:
    length = view.stored.itemsize // 4
    if not isinstance(json, str) or len(json) > length:
        raise SpecError(f"expected text of at most {length} characters, but found {describe(json)}")
    return np.array(json, view.stored).tobytes()


def _time(json: object) -> int:
    if json == _NOT_A_TIME:
        return -(2**63)
    value = int(json) if isinstance(json, float) and json.is_integer() else json
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise SpecError(
            f'expected a whole number of units or "{_NOT_A_TIME}", but found {describe(json)}'
        )
    return value


def _from_base64(stored_type: StoredType, json: object) -> bytes:
    size = stored_type.size_bytes
    data = None
    if isinstance(json, str):
        data = _decoded(json)
        if data is not None and _notation(stored_type) == "S" and len(json) % 4 == 0:
            # Text of fixed length ends at its last non-null character: zarr-python writes no more.
            data = data.ljust(size, b"\0")
    if data is None or len(data) != size:
        raise SpecError(f"expected {size} bytes in base64, but found {describe(json)}")
    stored = stored_type.stored
    if stored.names is None:
        return data
    whole = np.frombuffer(data, stored).reshape(())
    return normalised(whole, stored).tobytes()


def _decoded(text: str) -> bytes | None:
    """What the base64 text stands for, with or without "=" at its end; None if it is none."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _object_text(data_type: dtype, json: object) -> bytes:
    """The JSON text of an object's fill value, in the one form that metadata writes.

    Raises:
        SpecError: no such objects.
    """
    name = data_type.name
    if name in _EMPTY and json in (0, "") and not isinstance(json, bool):
        # The default of zarr-python before version 3, which it stored as an empty string.
        json = ""
    elif name == "ustring" and not isinstance(json, str):
        raise SpecError(f"expected a string, but found {describe(json)}")
    elif name == "string" and (not isinstance(json, str) or _decoded(json) is None):
        raise SpecError(f"expected a byte string in base64, but found {describe(json)}")
    return json_module.dumps(thaw(json), sort_keys=True).encode()


def _text_of_object(data_type: dtype, value: object) -> bytes:
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode("ascii")
    try:
        return _object_text(data_type, value)
    except TypeError:
        raise SpecError(
            f"fill_value: {value!r} cannot be written in metadata, which is JSON"
        ) from None


def _object(data_type: dtype, text: bytes | None) -> object:
    if text is None:
        return _EMPTY.get(data_type.name)
    value: object = json_module.loads(text)
    if data_type.name == "string":
        assert isinstance(value, str)
        return _decoded(value)
    return value


def _boolean(json: object) -> bool:
    if not isinstance(json, bool):
        raise SpecError(f"expected true or false, but found {describe(json)}")
    return json


def _integer(view: ElementView, json: object) -> int:
    low, high = _limits(view)
    value = json
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SpecError(f"expected an integer from {low} to {high}, but found {describe(json)}")
    return value


def _limits(view: ElementView) -> tuple[int, int]:
    if view.data_type.name in _SMALL:
        return _SMALL[view.data_type.name]
    limits = np.iinfo(np.dtype(view.native).str)
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
