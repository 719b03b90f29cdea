"""The names of Zarr version 3 data types, and the NumPy types that they stand for.

Most types are a name; some have a configuration, which is checked here. The other direction says
what new metadata calls a type: of several names the one that most implementations read. Records
are `data_type`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import LARGEST_ELEMENT, Level, describe, dtype

__all__ = ["NAMED", "PLAIN", "of_numpy", "raw_name", "type_name"]

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
