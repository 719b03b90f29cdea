"""Data types: one public handle per type, and the table they come from.

The table is open: a `DataType` record added with `add_data_type` is a type like any other. No
conversions of arrays live here. Invariant: there is one `dtype` object per name.

Some types have a parameter: dates with a unit, text and bytes of a fixed length, records. The
reference has none of them, the formats do. A name is NumPy's where it has a readable one
(`datetime64[ns]`, `U10`, `S4`, `V16`); a record's name is the JSON text of its fields, each
`[name, type]` or `[name, type, shape]`. Values are packed and in native byte order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias

import ml_dtypes
import numpy as np

from tensorstore_py._display.public_name import public
from tensorstore_py._spec.json_value import describe, freeze, thaw
from tensorstore_py._spec.model import MemberType
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "LARGEST_ELEMENT",
    "DTypeLike",
    "DataType",
    "add_data_type",
    "dtype",
    "field_types_json",
    "numpy_of_name",
    "parametric_name",
]

NumpyType = np.dtype[np.generic]

_TIME = re.compile(
    r"(datetime64|timedelta64)(\[([1-9]\d{0,8})?(Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as)\])?"
)
_FIXED = re.compile(r"([USV])([1-9]\d{0,8})", re.ASCII)
#: Bytes of an element. More is a mistake, and would take memory before anything is read.
LARGEST_ELEMENT: Final = 2**26
_LETTERS = {"datetime64": "M8", "timedelta64": "m8"}


def parametric_name(numpy_type: NumpyType, name_of: Callable[[NumpyType], str]) -> str | None:
    """The name of a NumPy type with a parameter, in any byte order; None if it has none.

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

    `name` may also be the JSON text of a record's fields, or these fields themselves.

    Raises SpecError: a record without fields, with a field named twice, or of a wrong form; or
        elements of more than `LARGEST_ELEMENT` bytes.

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


@dataclass(frozen=True, slots=True)
class DataType:
    """What is known of one data type.

    Attributes:
        kind: one of `b` boolean, `i` signed, `u` unsigned, `f` float, `c` complex, `M` date,
            `m` time difference, `U` text of a fixed length, `S` and `V` bytes of a fixed number
            (records are `V`, too), `O` Python objects of no fixed size.
        array_dtype: the NumPy type of arrays that hold it.
    """

    name: str
    numpy_dtype: np.dtype[np.generic]
    scalar: type
    kind: str
    array_dtype: np.dtype[np.generic]

    @property
    def itemsize(self) -> int:
        """Bytes of one element in an array in memory."""
        return self.array_dtype.itemsize


@public
class dtype(MemberType):  # noqa: N801 - the reference's name
    """A data type.

    Args:
        dtype: a name, a NumPy data type or scalar type, or one of `bool`, `int`, `float`,
            `complex`, `bytes` and `str`. Beyond the reference's: NumPy's spelling of a name
            (`<f4`, `double`; the byte order is dropped), `datetime64[UNIT]`,
            `timedelta64[UNIT]`, `U10` (text of a fixed length), `S10` and `V10` (bytes), and
            records, by a structured NumPy type or by the list of their fields.

    Raises:
        SpecError: no data type corresponds.
        TypeError: not something that could name a data type.

    Example:
        >>> dtype("int32"), dtype(np.float32), dtype(str)
        (dtype("int32"), dtype("float32"), dtype("ustring"))
        >>> dtype("bfloat16")(1.5)
        1.5
        >>> dtype([["x", "uint16"], ["when", "datetime64[s]"]]).numpy_dtype
        dtype([('x', '<u2'), ('when', '<M8[s]')])
    """

    _schema_name: ClassVar[str] = "dtype"
    __slots__ = ("record",)
    record: DataType
    _by_name: ClassVar[dict[str, dtype]] = {}

    def __new__(cls, dtype: DTypeLike) -> Self:
        """The one object for that data type."""
        if isinstance(dtype, cls):
            return dtype
        name = dtype if isinstance(dtype, str) else _name_of(dtype)
        found = cls._by_name.get(name) or _parametric(name) or _by_numpy_name(name)
        if found is None:
            hint = _hint(name, cls._by_name)
            raise SpecError(f'No TensorStore data type with name: "{name}"{hint}')
        assert isinstance(found, cls)
        return found

    @classmethod
    def parse(cls, json: object) -> dtype:
        """The data type for a JSON value, that is a name.

        Raises:
            SpecError: not a string, or no such name.
        """
        if isinstance(json, dtype):
            return json
        if isinstance(json, list | tuple):
            return cls(_name_of(json))
        if not isinstance(json, str):
            raise SpecError(f"expected the name of a data type, but found {describe(json)}")
        return cls(json)

    @property
    def name(self) -> str:
        """The name in JSON, e.g. `"int32"`."""
        return self.record.name

    @property
    def numpy_dtype(self) -> np.dtype[np.generic]:
        """The corresponding NumPy data type; `object` for strings and JSON."""
        return self.record.numpy_dtype

    @property
    def array_dtype(self) -> np.dtype[np.generic]:
        """The NumPy data type of arrays: `numpy_dtype`, but one byte each for char and byte."""
        return self.record.array_dtype

    @property
    def __numpy_dtype__(self) -> np.dtype[np.generic]:
        """What `numpy.dtype` makes of it, from NumPy 2.4 on: the type of arrays that are read."""
        return self.record.array_dtype

    @property
    def type(self) -> type:
        """The Python type of one element, e.g. `numpy.int32`."""
        return self.record.scalar

    @property
    def kind(self) -> str:
        """NumPy-like letter for the kind of type, see `DataType`."""
        return self.record.kind

    @property
    def itemsize(self) -> int:
        """Bytes of one element in an array in memory."""
        return self.record.itemsize

    @property
    def has_readings(self) -> bool:
        """Whether stored elements can be read as this type, and as another one too.

        Text, bytes and records can: as one value, character by character, or by their fields.
        """
        return self.kind in "OSUV" and self.name not in ("char", "byte")

    @property
    def is_record(self) -> bool:
        """Whether elements have named fields."""
        return self.record.numpy_dtype.names is not None

    def to_json(self) -> object:
        """The name; a record's fields as a list."""
        if self.is_record:
            return field_types_json(self.record.numpy_dtype, _field_type_name)
        return self.record.name

    def __call__(self, arg: object) -> object:
        """`arg` as one element of this type."""
        if self.record.name == "json":
            return thaw(freeze(arg))
        if self.record.kind in "MmU" or self.is_record:
            return np.array(arg, self.record.array_dtype)[()]
        return self.record.scalar(arg)

    def array(self, value: object) -> NDArray[np.generic]:
        """`value` as a NumPy array of this type.

        Raises:
            ValueError, TypeError, OverflowError: an element cannot be converted.
        """
        if isinstance(value, np.ndarray):
            return value.astype(self.record.array_dtype, casting="safe", copy=False)
        return np.array(value, dtype=self.record.array_dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return self is other
        if isinstance(other, list | tuple):
            return NotImplemented
        try:
            return self is dtype(other)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.record.name)

    def __repr__(self) -> str:
        if self.is_record:
            return f"dtype({self.record.name})"
        return f'dtype("{self.record.name}")'

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return dtype, (self.record.name,)

    _from_member = parse


# `numpy.dtype` asks for this name before NumPy 2.4, and other libraries still do. Within the class
# it would hide the class from annotations.
setattr(dtype, "dtype", dtype.__numpy_dtype__)  # noqa: B010

DTypeLike: TypeAlias = "dtype | str | np.dtype[np.generic] | type | Sequence[Sequence[object]]"

_PYTHON_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    complex: "complex128",
    bytes: "string",
    str: "ustring",
}
_NUMPY_NAMES: dict[np.dtype[np.generic], str] = {}


def add_data_type(record: DataType) -> dtype:
    """Make a record a data type: `dtype(record.name)` finds it from now on.

    Raises ValueError: the name is taken.
    """
    if record.name in dtype._by_name:
        raise ValueError(f'data type "{record.name}" exists already')
    made = object.__new__(dtype)
    made.record = record
    if record.kind not in "OSV":
        _NUMPY_NAMES[record.numpy_dtype] = record.name
    return dtype._by_name.setdefault(record.name, made)


def _name_of(like: object) -> str:
    if isinstance(like, type) and like in _PYTHON_TYPES:
        return _PYTHON_TYPES[like]
    if isinstance(like, list | tuple):
        record = numpy_of_name(like, _numpy_type)
        assert record is not None
        like = record
    if not isinstance(like, np.dtype | type):
        raise TypeError(
            f"expected a data type name, a NumPy data type or a scalar type, but found {like!r}"
        )
    found = np.dtype(like)
    # A field of text or bytes of length one or none, or raw bytes, is a character or a byte.
    if found.kind == "S" and found.itemsize <= 1:
        return "char"
    if found.kind == "V" and found.names is None and found not in _NUMPY_NAMES:
        return "byte"
    parametric = parametric_name(found, _field_type_name)
    if parametric is not None and found not in _NUMPY_NAMES:
        return parametric
    name = _NUMPY_NAMES.get(found.newbyteorder("=") if found.isnative is False else found)
    if name is None:
        raise SpecError(f"No TensorStore data type corresponding to NumPy dtype: {found!r}")
    return name


def _by_numpy_name(name: str) -> dtype | None:
    """The data type of NumPy's spelling of a name, such as `<f4`; the byte order is dropped.

    Its names for text, bytes and objects of no given length mean several things here.
    """
    try:
        meant = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    if meant.kind == "O" or (meant.kind in "USV" and not meant.itemsize) or meant.names:
        return None
    canonical = _name_of(meant)
    return dtype._by_name.get(canonical) or _parametric(canonical)


def _hint(name: str, known: Iterable[str]) -> str:
    """The nearest name."""
    if name in ("str", "U", "unicode", "utf8"):
        return ' (did you mean "ustring"?)'
    return did_you_mean(name, (each for each in known if each[0] != "["))


def _field_type_name(numpy_type: np.dtype[np.generic]) -> str:
    """The name of a record's field type; bytes of a fixed number keep their number."""
    plain = numpy_type.kind == "V" and numpy_type.names is None
    if plain and numpy_type not in _NUMPY_NAMES and numpy_type.itemsize > 1:
        return f"V{numpy_type.itemsize}"
    return _name_of(numpy_type)


def _numpy_type(name: str) -> np.dtype[np.generic]:
    return dtype(name).array_dtype


def _parametric(name: str) -> dtype | None:
    """The data type of a name with a parameter; made when first asked for."""
    numpy_type = numpy_of_name(name, _numpy_type)
    if numpy_type is None:
        return None
    # Spellings that mean the same, such as "datetime64[1s]", are one type.
    canonical = _field_type_name(numpy_type)
    if canonical != name:
        return dtype(canonical)
    record = DataType(name, numpy_type, numpy_type.type, numpy_type.kind, numpy_type)
    made = object.__new__(dtype)
    made.record = record
    return dtype._by_name.setdefault(name, made)


def _add_numpy(name: str, scalar: type[np.generic]) -> None:
    numpy_dtype: np.dtype[np.generic] = np.dtype(scalar)
    kind: str = numpy_dtype.kind
    if kind == "V":
        kind = {"i": "i", "u": "u"}.get(name[0], "f")
    add_data_type(DataType(name, numpy_dtype, scalar, kind, numpy_dtype))


_NUMPY_TYPES = """
    bool int8 uint8 int16 uint16 int32 uint32 int64 uint64
    float16 float32 float64 complex64 complex128
"""
_ML_TYPES = """
    int2 int4 bfloat16 float4_e2m1fn float8_e3m4 float8_e4m3fn float8_e4m3fnuz
    float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
"""
# The reference has none of these, but Zarr's registry of data types names them.
_ML_TYPES += "uint2 uint4 float6_e2m3fn float6_e3m2fn float8_e4m3"
for _name in _NUMPY_TYPES.split():
    _add_numpy(_name, getattr(np, _name))
for _name in _ML_TYPES.split():
    _add_numpy(_name, getattr(ml_dtypes, _name))
_OBJECT: np.dtype[np.generic] = np.dtype(object)
add_data_type(DataType("string", _OBJECT, bytes, "O", _OBJECT))
add_data_type(DataType("ustring", _OBJECT, str, "O", _OBJECT))
add_data_type(DataType("json", _OBJECT, np.object_, "O", _OBJECT))
# What pickles and ragged arrays decode to; the reference has no such type.
add_data_type(DataType("object", _OBJECT, np.object_, "O", _OBJECT))
add_data_type(DataType("char", np.dtype("S"), np.bytes_, "S", np.dtype("S1")))
add_data_type(DataType("byte", np.dtype("V"), np.void, "V", np.dtype("V1")))
