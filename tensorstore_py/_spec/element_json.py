"""One element of a parametric data type, from and to JSON: dates, fixed text and bytes, records.

A date is ISO 8601 text, a time difference a whole number of its units, both may be `"NaT"`; text is
text; bytes are text if they are ASCII throughout and base64 after `base64:` otherwise; a record is
an object of its fields. Arrays of elements are `fill_value`'s business, a format's own notation
that format's.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, cast

import numpy as np

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parametric_from_json", "parametric_to_json"]

NumpyType = np.dtype[np.generic]
Array = np.ndarray[tuple[int, ...], NumpyType]
_BASE64 = "base64:"


def parametric_from_json(
    json: object, numpy_type: NumpyType, read: Callable[[object, NumpyType], object]
) -> object:
    """The element, as something that can be assigned to an array of `numpy_type`.

    Args:
        json: as `freeze` gives it.
        numpy_type: of kind `m`, `M`, `U`, `S` or `V`.
        read: for the fields of a record that are of another kind.

    Raises:
        SpecError: of a wrong type, too long, or a field is missing or unknown.
    """
    kind = numpy_type.kind
    if kind in "mM":
        return _time(json, numpy_type)
    if kind == "U":
        if not isinstance(json, str) or len(json) > numpy_type.itemsize // 4:
            raise SpecError(
                f"expected text of at most {numpy_type.itemsize // 4} characters, "
                f"but found {describe(json)}"
            )
        return json
    if numpy_type.names is not None:
        return _record(json, numpy_type, read)
    if numpy_type.itemsize == 0 or kind not in "SV":
        raise SpecError(f"no JSON form of {numpy_type} values is known here")
    return _bytes(json, numpy_type)


def _time(json: object, numpy_type: NumpyType) -> object:
    if isinstance(json, bool) or not isinstance(json, int | str):
        raise SpecError(f'expected a whole number, "NaT" or a date, but found {describe(json)}')
    try:
        if isinstance(json, str) and json.lstrip("-").isdigit() and numpy_type.kind == "m":
            json = int(json)
        if isinstance(json, int):
            return np.array(json, np.int64).view(numpy_type)[()]
        return np.array(json, numpy_type)[()]
    except (ValueError, OverflowError) as error:
        raise SpecError(f"{describe(json)} is no {numpy_type}: {error}") from None


def _bytes(json: object, numpy_type: NumpyType) -> object:
    size = numpy_type.itemsize
    if not isinstance(json, str):
        raise SpecError(f"expected text or base64 text, but found {describe(json)}")
    try:
        if json.startswith(_BASE64):
            data = base64.b64decode(json[len(_BASE64) :], validate=True)
        else:
            data = json.encode("ascii")
    except (UnicodeEncodeError, binascii.Error):
        raise SpecError(
            f'{describe(json)} is neither ASCII text nor "{_BASE64}" and base64 text'
        ) from None
    if len(data) > size:
        raise SpecError(f"expected at most {size} bytes, but found {len(data)}: {describe(json)}")
    return np.array(data.ljust(size, b"\0"), f"S{size}").view(numpy_type)[()]


def _record(
    json: object, numpy_type: NumpyType, read: Callable[[object, NumpyType], object]
) -> object:
    assert numpy_type.names is not None
    assert numpy_type.fields is not None
    if not isinstance(json, dict):
        raise SpecError(
            f"expected an object with the fields {list(numpy_type.names)}, "
            f"but found {describe(json)}"
        )
    for name in json:
        if name not in numpy_type.names:
            raise SpecError(f"no such field; there are {list(numpy_type.names)}", (name,))
    out = np.zeros((), numpy_type)
    for name in numpy_type.names:
        if name not in json:
            raise SpecError(f'the field "{name}" is missing')
        inner = numpy_type.fields[name][0]
        try:
            _assign(_field(out, name), json[name], inner.base, inner.shape, read)
        except SpecError as error:
            raise error.inside(name) from None
    return out[()]


def _assign(
    out: Array,
    json: object,
    numpy_type: NumpyType,
    shape: tuple[int, ...],
    read: Callable[[object, NumpyType], object],
) -> None:
    if not shape:
        if _is_parametric(numpy_type):
            out[...] = parametric_from_json(json, numpy_type, read)  # type: ignore[assignment]
        else:
            out[...] = read(json, numpy_type)  # type: ignore[assignment]
        return
    if not isinstance(json, tuple) or len(json) != shape[0]:
        raise SpecError(f"expected an array of {shape[0]} elements, but found {describe(json)}")
    for position, item in enumerate(json):
        try:
            _assign(
                out[position : position + 1].reshape(shape[1:]), item, numpy_type, shape[1:], read
            )
        except SpecError as error:
            raise error.inside(position) from None


def parametric_to_json(array: Array, write: Callable[[np.generic], object]) -> object:
    """The JSON of one element; the inverse of `parametric_from_json`.

    Args:
        array: the element, as an array of rank 0.
        write: for the fields of a record that are of another kind.
    """
    numpy_type = array.dtype
    kind = numpy_type.kind
    if kind in "MU":
        return str(array)
    if kind == "m":
        return "NaT" if np.isnat(array) else int(array.view(np.int64))
    if numpy_type.names is not None:
        return {name: _field_to_json(_field(array, name), write) for name in numpy_type.names}
    data = array.tobytes()
    text = data.rstrip(b"\0")
    if text.isascii() and all(byte >= 32 for byte in text) and not text.startswith(b"base64:"):
        return text.decode("ascii")
    return _BASE64 + base64.b64encode(data).decode("ascii")


def _field_to_json(array: Array, write: Callable[[np.generic], object]) -> object:
    if array.ndim:
        return [_field_to_json(array[place, ...], write) for place in range(len(array))]
    if _is_parametric(array.dtype):
        return parametric_to_json(array, write)
    return write(_scalar(array))


def _field(array: Array, name: str) -> Array:
    """A view of one field."""
    return cast("np.ndarray[tuple[int, ...], np.dtype[np.void]]", array)[name]


def _scalar(array: Array) -> np.generic:
    return cast("np.generic", array[()])


def _is_parametric(numpy_type: NumpyType) -> bool:
    return numpy_type.kind in "mMUSV" and numpy_type.isbuiltin != 2
