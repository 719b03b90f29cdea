"""Zarr version 3 data types: a `data_type` member, and what of each element is opened.

A type is kept as it was written, so that metadata reads back as it was, with the packed NumPy type
of one element in native byte order: bytes are the serializer's business, values `fill_value`'s.
Some types are a name, some have a configuration; of several names for a type, new metadata
has the one that most implementations read. What is opened of an element is an `ElementView`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final

import numpy as np

from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.plugin.codec import (
    Level,
    describe,
    dtype,
)
from tensorstore_py.plugin.driver import (
    LARGEST_ELEMENT,
    ElementView,
    freeze,
    thaw,
)

__all__ = ["NAMED", "PLAIN", "StoredField", "StoredType", "of_numpy", "raw_name", "type_name"]

NumpyType = np.dtype[np.generic]

_SAME_HERE = """
    bool int2 int4 int8 uint8 int16 uint16 int32 uint32 int64 uint64
    float8_e3m4 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz
    float8_e8m0fnu float4_e2m1fn float16 bfloat16 float32 float64 complex64 complex128
    uint2 uint4 float6_e2m3fn float6_e3m2fn float8_e4m3
"""
#: Types that are a name.
PLAIN: Final[dict[str, NumpyType]] = {
    **{name: dtype(name).array_dtype for name in _SAME_HERE.split()},
    "complex_float32": np.dtype(np.complex64),
    "complex_float64": np.dtype(np.complex128),
    "string": np.dtype(object),
    "bytes": np.dtype(object),
    "variable_length_bytes": np.dtype(object),
}
_RAW = re.compile(r"r([1-9]\d{0,9})", re.ASCII)
_UNIT = re.compile(r"Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as|generic")
_TIME = re.compile(r"(datetime64|timedelta64)(?:\[(\d*)([A-Za-z]+)\])?")
_SCALE = Level(1, 2**31 - 1)
_LETTERS = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}


def _time(name: str) -> Callable[[Mapping[str, object]], NumpyType]:
    def parse(configuration: Mapping[str, object]) -> NumpyType:
        _check_members(configuration, ("unit", "scale_factor"))
        unit = configuration["unit"]
        if not isinstance(unit, str) or not _UNIT.fullmatch(unit):
            raise SpecError(
                f'expected a unit such as "ns" or "D", but found {describe(unit)}', ("unit",)
            )
        try:
            scale = _SCALE.check(configuration["scale_factor"])
        except SpecError as error:
            raise error.inside("scale_factor") from None
        if unit == "generic":
            return np.dtype(_LETTERS[name])
        return np.dtype(f"{_LETTERS[name]}[{scale}{unit}]")

    return parse


def _fixed(letter: str, unit: int) -> Callable[[Mapping[str, object]], NumpyType]:
    def parse(configuration: Mapping[str, object]) -> NumpyType:
        _check_members(configuration, ("length_bytes",))
        try:
            size = Level(unit, LARGEST_ELEMENT).check(configuration["length_bytes"])
            if size % unit:
                raise SpecError(f"expected a multiple of {unit}, but found {size}")
        except SpecError as error:
            raise error.inside("length_bytes") from None
        return np.dtype(f"{letter}{size // unit}")

    return parse


#: Types with a configuration, by parsers of it.
NAMED: Final[dict[str, Callable[[Mapping[str, object]], NumpyType]]] = {
    "numpy.datetime64": _time("numpy.datetime64"),
    "numpy.timedelta64": _time("numpy.timedelta64"),
    "fixed_length_utf32": _fixed("U", 4),
    "null_terminated_bytes": _fixed("S", 1),
    "raw_bytes": _fixed("V", 1),
}


def raw_name(name: str) -> int | None:
    """The number of bytes that a name such as `"r16"` stands for; None for any other name.

    Raises:
        SpecError: no whole number of bytes.

    Example:
        >>> raw_name("r24"), raw_name("float16")
        (3, None)
    """
    found = _RAW.fullmatch(name)
    if found is None:
        return None
    bits = int(found[1])
    if bits % 8 or bits // 8 > LARGEST_ELEMENT:
        raise SpecError(
            f'data type "{name}" is not supported: expected "r" and a multiple of 8 up to '
            f'{8 * LARGEST_ELEMENT}, such as "r16"'
        )
    return bits // 8


def type_name(data_type: dtype) -> object:
    """What new metadata calls a type that is no record; None if the format has none for it.

    Example:
        >>> type_name(dtype("float32")), type_name(dtype("V3"))
        ('float32', {'name': 'raw_bytes', 'configuration': {'length_bytes': 3}})
    """
    if data_type.name in PLAIN and data_type.kind != "O":
        return data_type.name
    if data_type.kind == "O":
        return {"ustring": "string", "string": "bytes"}.get(data_type.name)
    if data_type.name in ("char", "byte"):
        return None
    return of_numpy(data_type.array_dtype)


def of_numpy(found: NumpyType) -> object:
    """What metadata calls a NumPy type that is no record and has a fixed size."""
    if found.kind in "SV" and found.isbuiltin != 2:
        name = "null_terminated_bytes" if found.kind == "S" else "raw_bytes"
        return {"name": name, "configuration": {"length_bytes": found.itemsize}}
    if found.kind == "U":
        return {
            "name": "fixed_length_utf32",
            "configuration": {"length_bytes": found.itemsize},
        }
    name = dtype(found).name
    time = _TIME.fullmatch(name)
    if time is None:
        return name
    scale, unit = int(time[2] or 1), time[3] or "generic"
    return {
        "name": f"numpy.{time[1]}",
        "configuration": {"unit": unit, "scale_factor": scale},
    }


def _check_members(configuration: Mapping[str, object], required: tuple[str, ...]) -> None:
    for name in configuration:
        if name not in required:
            raise SpecError(f"no such member (only {', '.join(required)})", (name,))
    for name in required:
        if name not in configuration:
            raise SpecError("this member is required", (name,))


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
    @lru_cache(maxsize=256)
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
        if name is None and self.stored.kind in "biufc" and self.name in PLAIN:
            return _plain_view(self.name)
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
        return _plain(name)
    size = raw_name(name)
    if size is not None:
        return StoredType(name, name, np.dtype(f"V{size}"))
    if name in NAMED or name in _RECORDS:
        raise SpecError(f'data type "{name}" needs a configuration; {_examples()}')
    raise SpecError(f'data type "{name}" is not supported{_meant(name)}')


@cache
def _plain(name: str) -> StoredType:
    """A type of `PLAIN`, of which there are few."""
    return StoredType(name, name, PLAIN[name])


@cache
def _plain_view(name: str) -> ElementView:
    """What is opened of its elements: all of each."""
    stored = PLAIN[name]
    return ElementView("", dtype(stored), stored)


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
