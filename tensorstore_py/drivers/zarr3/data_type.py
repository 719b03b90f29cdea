"""Zarr version 3 data types: a `data_type` member, and what of each element is opened.

A type is kept as it was written, so that metadata reads back as it was, with the packed NumPy type
of one element in native byte order: bytes are the serializer's business, values `fill_value`'s.
Types with a configuration have their parsers in `named_type`; records are put together here, since
their fields are of any type. What is opened of an element is an `ElementView`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tensorstore_py.drivers.zarr3.named_type import (
    NAMED,
    PLAIN,
    of_numpy,
    raw_name,
    type_name,
)
from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.plugin import LARGEST_ELEMENT, ElementView, describe, dtype, freeze, thaw

__all__ = ["StoredField", "StoredType"]

_RECORDS = ("struct", "structured")
_KNOWN = (*PLAIN, *NAMED, *_RECORDS, "r8", "r16")
_BYTE = np.dtype("V1")


@dataclass(frozen=True, slots=True)
class StoredField:
    """One field of a record.

    Attributes:
        name: the field's name.
        type: its type, which may be a record.
        offset: bytes in front of it in each element.
    """

    name: str
    type: StoredType
    offset: int

    def view(self, asked: dtype | None = None) -> ElementView:
        """The field as a view of the element that it is part of."""
        return replace(self.type.view(asked=asked), name=self.name).inside(self.offset, (), ())


@dataclass(frozen=True, slots=True)
class StoredType:
    """A data type.

    Attributes:
        name: as in metadata, without its configuration.
        json: as metadata writes it, frozen.
        stored: the NumPy type of one element, packed, in native byte order.
        fields: of a record.

    Example:
        >>> StoredType.parse("uint16").view().data_type
        dtype("uint16")
        >>> times = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
        >>> fields = [{"name": "x", "data_type": "r16"}, {"name": "when", "data_type": times}]
        >>> record = StoredType.parse({"name": "struct", "configuration": {"fields": fields}})
        >>> record.view().data_type
        dtype([["x", "V2"], ["when", "datetime64[s]"]])
        >>> record.view("x").inner_shape, record.view("when").offset
        ((2,), 2)
    """

    name: str
    json: object
    stored: np.dtype[np.generic]
    fields: tuple[StoredField, ...] = ()

    @classmethod
    def parse(cls, json: object) -> StoredType:
        """The type for a `data_type` member, or for that of a field.

        Args:
            json: a name, `{"name", "configuration"}`, or a list of a record's fields.

        Raises:
            SpecError: another form, an unknown name, or a wrong configuration; has the path.
        """
        if isinstance(json, StoredType):
            return json
        if isinstance(json, dtype):
            return cls.of(json)
        if isinstance(json, str):
            return _by_name(json)
        if isinstance(json, list | tuple):
            return _record("struct", json)
        if not isinstance(json, Mapping) or not isinstance(json.get("name"), str):
            raise SpecError(f"{describe(json)} is not supported; {_examples()}")
        for member in json:
            if member not in ("name", "configuration", "must_understand"):
                raise SpecError("no such member (only name, configuration)", (member,))
        name, configuration = json["name"], json.get("configuration", {})
        if not isinstance(configuration, Mapping):
            raise SpecError(
                f"expected an object, but found {describe(configuration)}", ("configuration",)
            )
        try:
            return _configured(name, configuration)
        except SpecError as error:
            raise error.inside("configuration") if error.path else error from None

    @classmethod
    def of(cls, data_type: dtype) -> StoredType:
        """The type that new arrays of `data_type` get.

        Raises:
            SpecError: this format has no type for it.

        Example:
            >>> StoredType.of(dtype("ustring")).to_json()
            'string'
            >>> StoredType.of(dtype("U2")).to_json()
            {'configuration': {'length_bytes': 8}, 'name': 'fixed_length_utf32'}
        """
        if data_type.is_record:
            return _record_of(data_type.array_dtype)
        if data_type.name in ("char", "byte"):
            raise SpecError(
                f'data type "{data_type.name}" cannot be stored in this format: text and bytes '
                'have a length here; ask for dtype "S4" or "V4", or for "metadata": '
                '{"data_type": "r32"} to see them as bytes with one more dimension'
            )
        json = type_name(data_type)
        if json is None:
            raise SpecError(
                f'data type "{data_type.name}" cannot be stored in this format; {_examples()}'
            )
        return cls.parse(json)

    @property
    def is_record(self) -> bool:
        """Whether elements have named fields."""
        return bool(self.fields)

    @property
    def has_byte_order(self) -> bool:
        """Whether it matters in which order the bytes of an element are."""
        if self.stored.kind in "iufcmM":
            return self.stored.itemsize > 1
        return self.stored.kind == "U" or (
            self.stored.isbuiltin == 2 and self.stored.itemsize > 1  # bfloat16
        )

    @property
    def size_bytes(self) -> int:
        """Bytes of one element, all fields together."""
        return self.stored.itemsize

    @property
    def is_raw(self) -> bool:
        """Whether elements are bytes that nothing is known of."""
        return self.stored.kind == "V" and not self.fields and self.stored.isbuiltin != 2

    @property
    def data_type(self) -> dtype:
        """The type of a whole element where that is one value; raw bytes are `V4` and the like."""
        return dtype(f"V{self.size_bytes}" if self.is_raw else self.stored)

    @property
    def units(self) -> Iterator[int]:
        """The element's bytes in units that a byte order turns around, in order."""
        if self.fields:
            for field in self.fields:
                yield from field.type.units
            return
        size, kind = self.stored.itemsize, self.stored.kind
        unit = {"c": size // 2, "U": 4, "S": 1}.get(kind, 1 if self.is_raw else size)
        yield from (unit,) * (size // unit)

    def view(
        self, name: str | None = None, *, asked: dtype | None = None, as_void: bool = False
    ) -> ElementView:
        """What to open of each element.

        Args:
            name: a field's name, or a path such as `"a.b"` to a nested one. None: the only field,
                or all fields together as a record.
            asked: wanted data type. It tells a record from its only field, and raw bytes as one
                value from bytes with one more dimension.
            as_void: the element's bytes, whatever they mean.

        Raises:
            SpecError: no such field.
        """
        if as_void:
            if self.stored.hasobject:
                raise SpecError("elements have no fixed number of bytes", ("open_as_void",))
            return ElementView("", dtype("byte"), _BYTE, (self.size_bytes,), (1,))
        if name is None:
            record = asked is not None and asked.is_record and asked == self.stored
            if len(self.fields) == 1 and not record:
                return self.fields[0].view(asked)
            return self._whole(asked)
        found = self.find(name, asked)
        if found is not None:
            return found
        if not self.fields:
            raise SpecError(f'no field "{name}": {self.name} has no named fields', ("field",))
        names = ", ".join(f'"{field.name}"' for field in self.fields)
        raise SpecError(f'no field "{name}", only {names}', ("field",))

    def find(self, path: str, asked: dtype | None = None) -> ElementView | None:
        """The view of a field by its name or path, or None."""
        for field in self.fields:
            if field.name == path:
                return field.view(asked)
        for field in self.fields:
            if path.startswith(f"{field.name}."):
                found = field.type.find(path[len(field.name) + 1 :], asked)
                if found is not None:
                    nested = f"{field.name}.{found.name}"
                    return replace(found, name=nested).inside(field.offset, (), ())
        return None

    def to_json(self) -> object:
        """The type as metadata writes it."""
        return thaw(self.json)

    def _whole(self, asked: dtype | None) -> ElementView:
        if self.name in ("variable_length_bytes", "bytes"):
            return ElementView("", dtype("string"), self.stored)
        if self.stored.hasobject:
            return ElementView("", dtype("ustring"), self.stored)
        if self.is_raw and (asked is None or asked.name != f"V{self.size_bytes}"):
            return ElementView("", dtype("byte"), _BYTE, (self.size_bytes,), (1,))
        return ElementView("", self.data_type, self.stored)


def _by_name(name: str) -> StoredType:
    if name in PLAIN:
        return StoredType(name, name, PLAIN[name])
    size = raw_name(name)
    if size is not None:
        return StoredType(name, name, np.dtype(f"V{size}"))
    if name in NAMED or name in _RECORDS:
        raise SpecError(f'data type "{name}" needs a configuration; {_examples()}')
    raise SpecError(f'data type "{name}" is not supported{_meant(name)}')


def _meant(name: str) -> str:
    """A hint for a name that is none: what NumPy means by it, or the nearest one."""
    try:
        found = dtype(name).name
    except SpecError:
        found = ""
    return f'; say "{found}"' if found in PLAIN else did_you_mean(name, _KNOWN)


def _configured(name: str, configuration: Mapping[str, object]) -> StoredType:
    if name in _RECORDS:
        for member in configuration:
            if member != "fields":
                raise SpecError("no such member (only fields)", (member,))
        fields = configuration.get("fields")
        if not isinstance(fields, list | tuple):
            raise SpecError(
                f"expected an array of fields, but found {describe(fields)}", ("fields",)
            )
        try:
            return _record(name, fields)
        except SpecError as error:
            raise error.inside("fields") from None
    if name in NAMED:
        stored = NAMED[name](configuration)
        json = {"configuration": configuration, "name": name}
        return StoredType(name, freeze(json), stored)
    found = _by_name(name)
    for member in configuration:
        raise SpecError(f'"{name}" has nothing to configure', (member,))
    return found


def _record(name: str, fields: list[object] | tuple[object, ...]) -> StoredType:
    """The type for fields, written as objects or as pairs, whatever the record's name is."""
    if not fields:
        raise SpecError("expected at least one field")
    found: list[StoredField] = []
    offset = 0
    for position, json in enumerate(fields):
        try:
            field = _field(json, offset)
        except SpecError as error:
            raise error.inside(position) from None
        if any(field.name == other.name for other in found):
            raise SpecError(f'field name "{field.name}" occurs more than once', (position,))
        found.append(field)
        offset += field.type.size_bytes
        if offset > LARGEST_ELEMENT:
            raise SpecError(f"an element has more than {LARGEST_ELEMENT} bytes", (position,))
    return _joined(name, found)


def _joined(name: str, fields: list[StoredField]) -> StoredType:
    """The record of fields. `structured` is the form of zarr-python 3.1, which reads no other."""
    listed: list[object] = [
        [field.name, field.type.to_json()]
        if name == "structured"
        else {"data_type": field.type.to_json(), "name": field.name}
        for field in fields
    ]
    stored = np.dtype([(field.name, field.type.stored) for field in fields])
    json = freeze({"configuration": {"fields": listed}, "name": name})
    return StoredType(name, json, stored, tuple(fields))


def _field(json: object, offset: int) -> StoredField:
    path: tuple[str | int, str | int] = ("name", "data_type")
    if isinstance(json, list | tuple) and len(json) == 2:
        path = (0, 1)
        name, encoded = json
    elif isinstance(json, Mapping) and json.keys() == {"name", "data_type"}:
        name, encoded = json["name"], json["data_type"]
    else:
        raise SpecError(
            f'expected {{"name", "data_type"}} or [name, data type], but found {describe(json)}'
        )
    if not isinstance(name, str) or not name:
        raise SpecError(f"expected a field name, but found {describe(name)}", (path[0],))
    try:
        found = StoredType.parse(encoded)
        if found.stored.hasobject:
            raise SpecError(f'a field cannot be a "{found.name}", which has no fixed size')
    except SpecError as error:
        raise error.inside(path[1]) from None
    return StoredField(name, found, offset)


def _record_of(record: np.dtype[np.generic]) -> StoredType:
    fields: list[StoredField] = []
    offset = 0
    for name in record.names or ():
        assert record.fields is not None
        inner = record.fields[name][0]
        if inner.shape:
            raise SpecError(
                f'field "{name}" is an array of shape {list(inner.shape)}, which records in this '
                "format cannot hold: give the array one more dimension, or use driver zarr"
            )
        nested = _record_of(inner) if inner.names else StoredType.parse(of_numpy(inner))
        fields.append(StoredField(name, nested, offset))
        offset += inner.itemsize
    return _joined("struct", fields)


def _examples() -> str:
    return (
        "supported are " + ", ".join(f'"{name}"' for name in PLAIN) + ', "r8", "r16" and so on, '
        'and by {"name", "configuration"} ' + ", ".join(f'"{name}"' for name in (*NAMED, *_RECORDS))
    )
