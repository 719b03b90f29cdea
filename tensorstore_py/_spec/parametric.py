"""Data types with a parameter: dates with a unit, text and bytes of a fixed length, records.

The reference has none of them, the formats do. A name is NumPy's where it has a readable one
(`datetime64[ns]`, `U10`, `S4`, `V16`); a record's name is the JSON text of its fields, each
`[name, type]` or `[name, type, shape]`. Values are packed and in native byte order.

Only the way between names and NumPy types lives here; what a data type is, is `dtype`'s business.
"""

from __future__ import annotations

import json
import re
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LARGEST_ELEMENT", "field_types_json", "numpy_of_name", "parametric_name"]

NumpyType = np.dtype[np.generic]

_TIME = re.compile(
    r"(datetime64|timedelta64)(\[([1-9]\d{0,8})?(Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as)\])?"
)
_FIXED = re.compile(r"([USV])([1-9]\d{0,8})", re.ASCII)
#: Bytes of an element. More is a mistake, and would take memory before anything is read.
LARGEST_ELEMENT: Final = 2**26
_LETTERS = {"datetime64": "M8", "timedelta64": "m8"}


def parametric_name(numpy_type: NumpyType, name_of: Callable[[NumpyType], str]) -> str | None:
    """The name of a NumPy type; None if it has no parameter.

    Args:
        numpy_type: any byte order, any padding.
        name_of: the name of a field's type, whatever that is.

    Example:
        >>> parametric_name(np.dtype(">M8[10us]"), str)
        'datetime64[10us]'
        >>> parametric_name(np.dtype("<U3"), str), parametric_name(np.dtype("<u2"), str)
        ('U3', None)
    """
    if numpy_type.kind in "mM":
        return str(numpy_type.newbyteorder("="))
    if numpy_type.names is not None:
        return json.dumps(field_types_json(numpy_type, name_of))
    if numpy_type.kind == "U" and numpy_type.itemsize:
        return f"U{numpy_type.itemsize // 4}"
    if numpy_type.kind in "SV" and numpy_type.itemsize > 1 and numpy_type.type is not None:
        return f"{numpy_type.kind}{numpy_type.itemsize}"
    return None


def field_types_json(
    numpy_type: NumpyType, name_of: Callable[[NumpyType], str]
) -> list[list[object]]:
    """The fields of a record: `[name, type]` or `[name, type, shape]`; records nest."""
    fields: list[list[object]] = []
    for name in numpy_type.names or ():
        assert numpy_type.fields is not None
        inner = numpy_type.fields[name][0]
        base, shape = inner.base, list(inner.shape)
        kind: object = name_of(base) if base.names is None else field_types_json(base, name_of)
        fields.append([name, kind, shape] if shape else [name, kind])
    return fields


def numpy_of_name(name: object, type_of: Callable[[str], NumpyType]) -> NumpyType | None:
    """The NumPy type for a name, or for a record's JSON; None if the name has no parameter.

    Args:
        name: a name, the JSON text of a record's fields, or these fields themselves.
        type_of: the NumPy type for a field's type name.

    Raises:
        SpecError: a record without fields, with a field named twice, or of a wrong form; elements
            of more than `LARGEST_ELEMENT` bytes.

    Example:
        >>> numpy_of_name("timedelta64[ms]", np.dtype)
        dtype('<m8[ms]')
        >>> numpy_of_name([["x", "uint16"], ["y", "uint8", [2, 3]]], np.dtype)
        dtype([('x', '<u2'), ('y', 'u1', (2, 3))])
    """
    if isinstance(name, str):
        time = _TIME.fullmatch(name)
        if time is not None:
            return np.dtype(_LETTERS[time[1]] + (time[2] or ""))
        fixed = _FIXED.fullmatch(name)
        if fixed is not None:
            _check_size(int(fixed[2]) * (4 if fixed[1] == "U" else 1))
            return np.dtype(name)
        if not name.startswith("[["):
            return None
        try:
            name = json.loads(name)
        except (ValueError, RecursionError) as error:
            raise SpecError(f"a record's data type is not valid JSON: {error}") from None
    if not isinstance(name, list | tuple):
        return None
    return _record(name, type_of)


def _record(
    fields: list[object] | tuple[object, ...], type_of: Callable[[str], NumpyType]
) -> NumpyType:
    if not fields:
        raise SpecError("a record needs at least one field")
    members: list[tuple[str, NumpyType, tuple[int, ...]]] = []
    size = 0
    for position, field in enumerate(fields):
        if (
            not isinstance(field, list | tuple)
            or len(field) not in (2, 3)
            or not isinstance(field[0], str)
            or not field[0]
        ):
            raise SpecError(
                f'expected a field, ["name", "type"] or ["name", "type", [2, 3]], '
                f"but found {describe(field)}",
                (position,),
            )
        if any(field[0] == known for known, _, _ in members):
            raise SpecError(f'the field "{field[0]}" is there twice', (position, 0))
        inner, shape = _field_type(field[1], position, type_of), _shape(field, position)
        size += inner.itemsize * prod(shape)
        try:
            _check_size(size)
        except SpecError as error:
            raise error.inside(position) from None
        members.append((field[0], inner, shape))
    return np.dtype(members)


def _check_size(size: int) -> None:
    if size > LARGEST_ELEMENT:
        raise SpecError(f"an element has more than {LARGEST_ELEMENT} bytes")


def _field_type(json: object, position: int, type_of: Callable[[str], NumpyType]) -> NumpyType:
    try:
        if not isinstance(json, str):
            inner = numpy_of_name(json, type_of)
            if inner is None:
                raise SpecError(f"expected a data type, but found {describe(json)}")
            return inner
        found = type_of(json)
    except SpecError as error:
        raise error.inside(position, 1) from None
    if found.hasobject:
        raise SpecError(f'a record cannot hold "{json}", which has no fixed size', (position, 1))
    return found


def _shape(field: list[object] | tuple[object, ...], position: int) -> tuple[int, ...]:
    shape = field[2] if len(field) == 3 else ()
    if not isinstance(shape, list | tuple) or any(
        isinstance(extent, bool) or not isinstance(extent, int) or extent < 1 for extent in shape
    ):
        raise SpecError(f"expected positive extents, but found {describe(shape)}", (position, 2))
    return tuple(extent for extent in shape if isinstance(extent, int))
