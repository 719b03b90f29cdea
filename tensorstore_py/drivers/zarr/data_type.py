"""Zarr data types as `.zarray` writes them: `"<u2"`, `"|S3"`, or a list of named fields.

Fields are packed without padding. A field of fixed-length text or raw bytes is seen as characters
or bytes with one more dimension, and a field with a shape of its own has those dimensions too;
together they are the field's inner dimensions. Names and byte orders are kept as they were
written, so that metadata reads back as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import describe, dtype

__all__ = ["StoredField", "StoredType"]

_KINDS = {
    "b": ("bool", (1,)),
    "i": ("int", (1, 2, 4, 8)),
    "u": ("uint", (1, 2, 4, 8)),
    "f": ("float", (2, 4, 8)),
    "c": ("complex", (8, 16)),
}
_FLEXIBLE = {"S": "char", "V": "byte"}
#: Types that NumPy's notation has no letters for are written by name, in little endian order.
_BY_NAME = frozenset(
    [
        "bfloat16",
        "float4_e2m1fn",
        "float8_e3m4",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "int2",
        "int4",
    ]
)
_PATTERN = re.compile(r"([<>|])([A-Za-z])(\d+)", re.ASCII)
_NOT_SUPPORTED = {
    "m": "time differences",
    "M": "dates",
    "U": "fixed-length Unicode text",
    "O": "Python objects",
}


@dataclass(frozen=True, slots=True)
class StoredField:
    """One field of a data type; a scalar data type has one, without a name.

    Attributes:
        name: the field's name; "" for the only field of a scalar type.
        encoded: its scalar type as written.
        stated_shape: its shape as written; None if none was.
        data_type: the element type as users see it.
        endian: byte order of the stored elements.
        inner_shape: the dimensions that the field adds to the array's.
        offset: bytes in front of the field in each stored element.
    """

    name: str
    encoded: str
    stated_shape: tuple[int, ...] | None
    data_type: dtype
    endian: Literal["little", "big"]
    inner_shape: tuple[int, ...]
    offset: int = 0

    @property
    def native(self) -> np.dtype[np.generic]:
        """The NumPy type of the field's elements in memory."""
        return self.data_type.array_dtype

    @property
    def stored(self) -> np.dtype[np.generic]:
        """The NumPy type of the field's elements as stored."""
        return self.native.newbyteorder(">") if self.endian == "big" else self.native

    @property
    def size_bytes(self) -> int:
        """Bytes of the field in each stored element."""
        size = self.native.itemsize
        for extent in self.inner_shape:
            size *= extent
        return size


@dataclass(frozen=True, slots=True)
class StoredType:
    """A whole data type.

    Attributes:
        fields: one or more; exactly one nameless field for a scalar type.

    Example:
        >>> StoredType.parse(">i4").field(None).data_type
        dtype("int32")
        >>> pair = StoredType.parse([["x", "<u2", [2, 3]], ["y", "|S4"]])
        >>> pair.size_bytes, pair.field("y").inner_shape, pair.field("y").offset
        (16, (4,), 12)
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
            return cls((_scalar("", json, None, 0),))
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
            fields.append(field)
        return cls(tuple(fields))

    @classmethod
    def of(cls, data_type: dtype) -> StoredType:
        """The scalar type that new arrays of `data_type` get, in native byte order.

        Raises:
            SpecError: this format has no type for it.

        Example:
            >>> from tensorstore_py.plugin import dtype
            >>> StoredType.of(dtype("uint8")).to_json(), StoredType.of(dtype("int4")).to_json()
            ('|u1', 'int4')
        """
        name = data_type.name
        if name in _BY_NAME:
            return cls.parse(name)
        if data_type.kind not in _KINDS:
            raise SpecError(
                f"data type {name} has no counterpart in zarr version 2; text and bytes of fixed "
                'length are created with "metadata": {"dtype": "|S4"} or "|V4"',
                ("dtype",),
            )
        return cls.parse(data_type.numpy_dtype.str)

    @property
    def is_structured(self) -> bool:
        """Whether the fields have names."""
        return bool(self.fields[0].name)

    @property
    def size_bytes(self) -> int:
        """Bytes of one stored element, all fields together."""
        return self.fields[-1].offset + self.fields[-1].size_bytes

    def field(self, name: str | None) -> StoredField:
        """The field to open.

        Args:
            name: its name; None where there is only one.

        Raises:
            SpecError: no such field, or no name where there are several.
        """
        names = ", ".join(f'"{field.name}"' for field in self.fields)
        if name is None:
            if len(self.fields) > 1:
                raise SpecError(f'this data type has several fields: pass "field", one of {names}')
            return self.fields[0]
        if not self.is_structured:
            raise SpecError(
                f'no field "{name}": the data type {self.to_json()} has no named fields',
                ("field",),
            )
        for field in self.fields:
            if field.name == name:
                return field
        raise SpecError(f'no field "{name}", only {names}', ("field",))

    def to_json(self) -> str | list[list[object]]:
        """The type as metadata writes it."""
        if not self.is_structured:
            return self.fields[0].encoded
        json: list[list[object]] = []
        for field in self.fields:
            item: list[object] = [field.name, field.encoded]
            if field.stated_shape is not None:
                item.append(list(field.stated_shape))
            json.append(item)
        return json


def _named(json: object, offset: int) -> StoredField:
    if not isinstance(json, list | tuple) or len(json) not in (2, 3):
        raise SpecError(
            f"expected [name, data type] or [name, data type, shape], but found {describe(json)}"
        )
    name, encoded = json[:2]
    if not isinstance(name, str) or not name:
        raise SpecError(f"expected a field name, but found {describe(name)}", (0,))
    if isinstance(encoded, list | tuple):
        raise SpecError(f'the nested fields of field "{name}" are not supported', (1,))
    shape = None
    if len(json) == 3:
        shape = _shape(json[2])
    try:
        return _scalar(name, encoded, shape, offset)
    except SpecError as error:
        raise error.inside(1) from None


def _shape(json: object) -> tuple[int, ...]:
    if not isinstance(json, list | tuple) or not all(
        isinstance(extent, int) and not isinstance(extent, bool) and extent > 0 for extent in json
    ):
        raise SpecError(f"expected an array of positive integers, but found {describe(json)}", (2,))
    return tuple(json)


def _scalar(name: str, encoded: object, shape: tuple[int, ...] | None, offset: int) -> StoredField:
    if not isinstance(encoded, str):
        raise SpecError(f"expected a data type, but found {describe(encoded)}")
    outer = shape or ()
    if encoded in _BY_NAME:
        return StoredField(name, encoded, shape, dtype(encoded), "little", outer, offset)
    match = _PATTERN.fullmatch(encoded)
    if match is not None:
        order, letter, digits = match.groups()
        size = int(digits)
        endian: Literal["little", "big"] = "big" if order == ">" else "little"
        if letter in _FLEXIBLE:
            kind = dtype(_FLEXIBLE[letter])
            return StoredField(name, encoded, shape, kind, "little", (*outer, size), offset)
        prefix, sizes = _KINDS.get(letter, ("", ()))
        if size in sizes and (order != "|" or size == 1):
            word = prefix if letter == "b" else f"{prefix}{8 * size}"
            return StoredField(name, encoded, shape, dtype(word), endian, outer, offset)
    why = _NOT_SUPPORTED.get(encoded[1:2]) if encoded[:1] in "<>|" else None
    raise SpecError(
        f"{describe(encoded)} is no supported data type"
        + (f" ({why})" if why else '; examples: "|b1", "<u2", ">f4", "bfloat16"')
    )
