"""Zarr data types as `.zarray` writes them: `"<u2"`, `"|S3"`, or a list of named fields.

Fields are packed without padding and may have fields of their own. Names and byte orders are kept
as they were written, so that metadata reads back as it was. What of an element is opened, and how
it looks in an array, is `ElementView`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    describe,
    dtype,
)
from tensorstore_py.plugin.driver import (
    LARGEST_ELEMENT,
    ElementView,
)

__all__ = ["StoredField", "StoredType"]

_SIZES = {
    "b": (1,),
    "i": (1, 2, 4, 8),
    "u": (1, 2, 4, 8),
    "f": (2, 4, 8),
    "c": (8, 16),
}
#: Types that NumPy's notation has no letters for are written by name, in little endian order.
_BY_NAME = frozenset(
    [
        "bfloat16",
        "float4_e2m1fn",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "int2",
        "int4",
        "uint2",
        "uint4",
    ]
)
_PATTERN = re.compile(r"([<>|])([biufcSVU])(\d{1,10})", re.ASCII)
_TIME = re.compile(r"[<>][mM]8\[([1-9]\d{0,8})?(Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as)\]")
_OBJECT = "|O"
_HINTS = {
    "m": 'time differences state their unit, as "<m8[s]"',
    "M": 'dates state their unit, as "<M8[ns]"',
    "O": 'Python objects are "|O"',
    "U": 'text states its length and byte order, as "<U8"',
}


@dataclass(frozen=True, slots=True)
class StoredField:
    """One field of a data type; a scalar data type has one, without a name.

    Attributes:
        name: the field's name; "" for the only field of a scalar type.
        encoded: its type as written, without its shape.
        shape: its shape as written; None if none was.
        stored: the NumPy type of one element of it, byte order included.
        offset: bytes in front of the field in each element.
    """

    name: str
    encoded: str | StoredType
    shape: tuple[int, ...] | None
    stored: np.dtype[np.generic]
    offset: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of the field in each stored element."""
        return self.stored.itemsize * prod(self.shape or ())

    def view(self, asked: dtype | None = None) -> ElementView:
        """The field as a view of the element that it is part of.

        Args:
            asked: wanted data type. Text and raw bytes of a fixed length are seen as one value of
                that length only if it says so; Python objects are of that type.
        """
        shape = self.shape or ()
        return self._base(asked).inside(self.offset, shape, strides_of(shape, self.stored))

    def nested(self, path: str) -> ElementView | None:
        """The view of a field of this field; None if there is none of that name."""
        if isinstance(self.encoded, str):
            return None
        view = self.encoded.find(path)
        if view is None:
            return None
        shape = self.shape or ()
        name = f"{self.name}.{view.name}"
        return replace(view, name=name).inside(self.offset, shape, strides_of(shape, self.stored))

    def to_json(self) -> list[object]:
        """The field as metadata writes it."""
        encoded = self.encoded if isinstance(self.encoded, str) else self.encoded.to_json()
        json: list[object] = [self.name, encoded]
        if self.shape is not None:
            json.append(list(self.shape))
        return json

    def _base(self, asked: dtype | None) -> ElementView:
        kind, size = self.stored.kind, self.stored.itemsize
        if kind == "O":
            return ElementView(self.name, asked or dtype("object"), self.stored)
        if kind not in "SV" or self.stored.names is not None or self.encoded in _BY_NAME:
            return ElementView(self.name, dtype(self.stored), self.stored)
        if asked is not None and asked.name == f"{kind}{size}":
            return ElementView(self.name, asked, self.stored)
        one = np.dtype(f"{kind}1")
        return ElementView(self.name, dtype("char" if kind == "S" else "byte"), one, (size,), (1,))


@dataclass(frozen=True, slots=True)
class StoredType:
    """A whole data type.

    Attributes:
        fields: one or more; exactly one nameless field for a scalar type.

    Example:
        >>> StoredType.parse(">i4").view().data_type
        dtype("int32")
        >>> pair = StoredType.parse([["x", "<u2", [2, 3]], ["y", [["a", "|S4"], ["b", "<f4"]]]])
        >>> pair.size_bytes, pair.view("x").inner_shape, pair.view("y.b").offset
        (20, (2, 3), 16)
        >>> pair.view("y").data_type
        dtype([["a", "S4"], ["b", "float32"]])
    """

    fields: tuple[StoredField, ...]

    @classmethod
    def parse(cls, json: object) -> StoredType:
        """The type for its JSON.

        Raises:
            SpecError: not a data type, or one that is not supported; the path names the field.
        """
        if isinstance(json, StoredType):
            return json
        if isinstance(json, str):
            return cls((StoredField("", json, None, _scalar(json)),))
        if not isinstance(json, list | tuple):
            raise SpecError(
                f"expected a data type or an array of named fields, but found {describe(json)}"
            )
        if not json:
            raise SpecError("expected at least one field")
        fields: list[StoredField] = []
        for position, item in enumerate(json):
            offset = fields[-1].offset + fields[-1].size_bytes if fields else 0
            try:
                field = _named(item, offset)
            except SpecError as error:
                raise error.inside(position) from None
            if any(other.name == field.name for other in fields):
                raise SpecError(f'field name "{field.name}" occurs more than once', (position,))
            if field.offset + field.size_bytes > LARGEST_ELEMENT:
                raise SpecError(f"an element has more than {LARGEST_ELEMENT} bytes", (position,))
            fields.append(field)
        return cls(tuple(fields))

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, data_type: dtype) -> StoredType:
        """The type that new arrays of `data_type` get, in native byte order.

        Raises:
            SpecError: this format has no type for it.

        Example:
            >>> from tensorstore_py.plugin.codec import dtype
            >>> StoredType.of(dtype("uint8")).to_json(), StoredType.of(dtype("ustring")).to_json()
            ('|u1', '|O')
            >>> StoredType.of(dtype([["x", "int16"], ["when", "datetime64[s]"]])).to_json()
            [['x', '<i2'], ['when', '<M8[s]']]
        """
        if data_type.name in ("char", "byte"):
            raise SpecError(
                f"data type {data_type.name} has no counterpart in zarr version 2: text and bytes "
                'have a length here; ask for dtype "S4" or "V4", or for "metadata": '
                '{"dtype": "|S4"} to see them as characters with one more dimension',
                ("dtype",),
            )
        return cls.parse(_encoded(data_type.array_dtype))

    @property
    def is_structured(self) -> bool:
        """Whether the fields have names."""
        return bool(self.fields[0].name)

    @property
    def holds_objects(self) -> bool:
        """Whether elements are Python objects, of no fixed size."""
        return self.fields[0].stored.hasobject

    @property
    def size_bytes(self) -> int:
        """Bytes of one stored element, all fields together."""
        return self.fields[-1].offset + self.fields[-1].size_bytes

    @property
    def stored(self) -> np.dtype[np.generic]:
        """The NumPy type of a whole stored element."""
        if not self.is_structured:
            return self.fields[0].stored
        return np.dtype([(field.name, field.stored, field.shape or ()) for field in self.fields])

    def view(
        self, name: str | None = None, *, asked: dtype | None = None, as_void: bool = False
    ) -> ElementView:
        """What to open of each element.

        Args:
            name: a field's name, or a path such as `"a.b"` to a nested one. None: the only field,
                or all fields together as a record.
            asked: wanted data type. It tells a record from its only field, and one value of a
                fixed length from characters.
            as_void: the element's bytes, whatever they mean.

        Raises:
            SpecError: no such field.
        """
        if as_void:
            return self._as_void()
        if name is None:
            record = asked is not None and asked.is_record and asked == self.stored
            if len(self.fields) > 1 or (record and self.is_structured):
                return ElementView("", self._record(), self.stored)
            return self.fields[0].view(asked)
        found = self.find(name, asked) if self.is_structured else None
        if found is not None:
            return found
        if not self.is_structured:
            raise SpecError(
                f'no field "{name}": the data type {describe(self.to_json())} has no named fields',
                ("field",),
            )
        names = ", ".join(f'"{field.name}"' for field in self.fields)
        raise SpecError(f'no field "{name}", only {names}', ("field",))

    def find(self, path: str, asked: dtype | None = None) -> ElementView | None:
        """The view of a field by its name or path, or None."""
        for field in self.fields:
            if field.name == path:
                return field.view(asked)
        for field in self.fields:
            if path.startswith(f"{field.name}."):
                found = field.nested(path[len(field.name) + 1 :])
                if found is not None:
                    return found
        return None

    def to_json(self) -> str | list[list[object]]:
        """The type as metadata writes it."""
        encoded = self.fields[0].encoded
        if isinstance(encoded, str) and not self.is_structured:
            return encoded
        return [field.to_json() for field in self.fields]

    def _as_void(self) -> ElementView:
        if self.holds_objects:
            raise SpecError("Python objects have no fixed number of bytes", ("open_as_void",))
        return ElementView("", dtype("byte"), np.dtype("V1"), (self.size_bytes,), (1,))

    def _record(self) -> dtype:
        try:
            return dtype(self.stored)
        except SpecError as error:
            names = ", ".join(f'"{field.name}"' for field in self.fields)
            raise SpecError(
                f'these fields cannot be opened together ({error}): pass "field", one of {names}'
            ) from None


def strides_of(shape: tuple[int, ...], item: np.dtype[np.generic]) -> tuple[int, ...]:
    """Strides of a packed array in C order."""
    strides: list[int] = []
    size = item.itemsize
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


def _encoded(found: np.dtype[np.generic]) -> object:
    """A NumPy type as metadata writes it."""
    if found.names is not None:
        fields: list[list[object]] = []
        for name in found.names:
            assert found.fields is not None
            inner = found.fields[name][0]
            shape = [list(inner.shape)] if inner.shape else []
            fields.append([name, _encoded(inner.base), *shape])
        return fields
    name = dtype(found).name if found.kind not in "SVO" or found.isbuiltin == 2 else ""
    return name if name in _BY_NAME else found.str


def _named(json: object, offset: int) -> StoredField:
    if not isinstance(json, list | tuple) or len(json) not in (2, 3):
        raise SpecError(
            f"expected [name, data type] or [name, data type, shape], but found {describe(json)}"
        )
    name, encoded = json[:2]
    if not isinstance(name, str) or not name:
        raise SpecError(f"expected a field name, but found {describe(name)}", (0,))
    shape = _shape(json[2]) if len(json) == 3 else None
    try:
        if isinstance(encoded, list | tuple):
            inner = StoredType.parse(encoded)
            return StoredField(name, inner, shape, inner.stored, offset)
        if not isinstance(encoded, str):
            raise SpecError(f"expected a data type, but found {describe(encoded)}")
        stored = _scalar(encoded)
        if stored.hasobject:
            raise SpecError(
                f'field "{name}" would hold Python objects, which have no fixed size: store them '
                "in an array of their own"
            )
    except SpecError as error:
        raise error.inside(1) from None
    return StoredField(name, encoded, shape, stored, offset)


def _shape(json: object) -> tuple[int, ...]:
    if not isinstance(json, list | tuple) or not all(
        isinstance(extent, int) and not isinstance(extent, bool) and 0 < extent < 2**31
        for extent in json
    ):
        raise SpecError(f"expected an array of positive integers, but found {describe(json)}", (2,))
    return tuple(json)


def _scalar(encoded: str) -> np.dtype[np.generic]:
    if encoded in _BY_NAME:
        return dtype(encoded).array_dtype
    if encoded == _OBJECT or _TIME.fullmatch(encoded):
        return np.dtype(encoded)
    match = _PATTERN.fullmatch(encoded)
    if match is not None:
        order, letter, digits = match.groups()
        size = int(digits)
        if letter in "SUV" and size * (4 if letter == "U" else 1) > LARGEST_ELEMENT:
            raise SpecError(
                f"elements of {describe(encoded)} have more than {LARGEST_ELEMENT} bytes"
            )
        if letter in "SV":
            return np.dtype(f"{letter}{size}")
        if letter == "U" and order != "|" and size > 0:
            return np.dtype(encoded)
        if size in _SIZES.get(letter, ()) and (order != "|" or size == 1):
            return np.dtype(encoded)
    hint = _HINTS.get(encoded[1:2]) if encoded[:1] in ("<", ">", "|", "=") else None
    raise SpecError(
        f"{describe(encoded)} is no supported data type; "
        + (hint or _spelling(encoded) or 'examples: "|b1", "<u2", ">f4", "<M8[ns]", "bfloat16"')
    )


def _spelling(name: str) -> str | None:
    """How the format spells the name of one of NumPy's types, such as `uint16`."""
    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    return f'say "{found.str}"' if found.kind in "biufcmM" else None
