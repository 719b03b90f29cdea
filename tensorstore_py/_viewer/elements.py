"""Elements on the wire: which numbers a tile has for elements of a type, and how they are written.

A tile is an array of one of NumPy's plain types, little-endian, which the page draws; what has no
number (text, JSON, bytes, records without a chosen field) is shown as text only.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tensorstore_py.errors import SpecError

__all__ = ["PARTS", "TileForm", "as_text", "tile_form"]

# Any: arrays of whichever type.
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

#: What is drawn of complex numbers.
PARTS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "magnitude": np.abs,
    "phase": np.angle,
    "real": np.real,
    "imaginary": np.imag,
}

_LONGEST: Final = 200


class TileForm(NamedTuple):
    """How elements become numbers.

    Attributes:
        wire: the type on the wire, such as `"u2"`; `""`: they have no numbers.
        fields: the names of a record's fields, `""` for all of it.
        parts: what can be drawn of complex numbers.
        is_time: whether numbers are times, whose text is not the number.
    """

    wire: str
    fields: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    is_time: bool = False

    def numbers(self, elements: Array, field: str, part: str) -> Array:
        """The numbers of elements, of the type on the wire."""
        if field:
            elements = elements[field]
        if self.parts:
            elements = PARTS[part](elements)
        if elements.dtype.kind in "mM":
            elements = elements.view(np.int64)
        return np.ascontiguousarray(elements.astype(f"<{self.wire}", copy=False))


def tile_form(dtype: np.dtype[Any], field: str = "", part: str = "") -> TileForm:
    """How elements of a type are drawn.

    Args:
        dtype: NumPy's type of them.
        field: of a record.
        part: of complex numbers.

    Raises:
        SpecError: there is no such field or part.
    """
    fields = dtype.names or ()
    if field and field not in fields:
        raise SpecError(f'there is no field "{field}"; there are {", ".join(fields) or "none"}')
    if part and part not in PARTS:
        raise SpecError(f'there is no part "{part}"; there are {", ".join(PARTS)}')
    inner = dtype[field] if field else dtype
    wire = _wire(inner)
    parts = tuple(PARTS) if inner.kind == "c" else ()
    return TileForm(wire, fields, parts, inner.kind in "mM")


def _wire(dtype: np.dtype[Any]) -> str:
    if dtype.shape or dtype.names is not None:
        return ""
    kind, size = dtype.kind, dtype.itemsize
    if kind == "b":
        return "u1"
    if kind in "mM":
        return "i8"
    if kind in "iu":
        return f"{kind}{size}"
    if kind == "c":
        return "f4" if size <= 8 else "f8"
    if kind == "f":
        return "f4" if size <= 4 else "f8"
    # Small types that NumPy does not have itself.
    fitting = (each for each in ("u1", "i1", "f4") if np.can_cast(dtype, each))
    return next(fitting, "")


def as_text(element: object) -> str:
    r"""An element for people, in one line.

    Example:
        >>> as_text(np.float32(0.1)), as_text(np.int64(2**62)), as_text("a\nb"), as_text(b"\x00a")
        ('0.1', '4611686018427387904', 'a\\nb', "b'\\x00a'")
    """
    if isinstance(element, np.generic | np.ndarray) and element.dtype.kind in "biufcmM":
        found = str(element)
    elif isinstance(element, np.void) and element.dtype.names is not None:
        inner = (f"{name}: {as_text(element[name])}" for name in element.dtype.names)
        found = f"{{{', '.join(inner)}}}"
    elif isinstance(element, np.void):
        found = f"0x{element.tobytes().hex()}"
    elif isinstance(element, str):
        found = json.dumps(element, ensure_ascii=False)[1:-1].replace('\\"', '"')
    elif isinstance(element, bytes):
        found = repr(element) if len(element) <= _LONGEST else base64.b64encode(element).decode()
    elif isinstance(element, dict | list | bool | int | float | None):
        found = json.dumps(element, ensure_ascii=False, default=str)
    else:
        found = str(element)
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 1]}…"
