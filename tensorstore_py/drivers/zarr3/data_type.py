"""The data types that Zarr version 3 metadata can name, and the data types they are here.

A type's name in metadata is its name here; the table says which names that is true for. Values
are `fill_value`'s business, bytes the `bytes` codec's. A type of another form (named fields, raw
bytes) is an entry in the table or a branch of `parse_data_type`, nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.plugin import describe, dtype

__all__ = ["check_data_type", "parse_data_type"]

_NAMES = frozenset(
    {
        "bool",
        "int2",
        "int4",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float8_e3m4",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e4m3b11fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    }
)


def parse_data_type(json: object) -> dtype:
    """The data type for a `data_type` member.

    Args:
        json: a name, or `{"name", "configuration"}` with nothing to configure.

    Raises:
        SpecError: another form, or a name that has no data type here.

    Example:
        >>> parse_data_type("uint16")
        dtype("uint16")
        >>> parse_data_type({"name": "bool", "configuration": {}})
        dtype("bool")
    """
    if isinstance(json, dtype):
        return check_data_type(json)
    if isinstance(json, Mapping) and isinstance(json.get("name"), str):
        configuration = json.get("configuration", {})
        if set(json) <= {"name", "configuration"} and configuration == {}:
            return parse_data_type(json["name"])
    if not isinstance(json, str):
        raise SpecError(f"{describe(json)} is not supported; {_supported()}")
    if json not in _NAMES:
        raise SpecError(f'data type "{json}" is not supported{did_you_mean(json, _NAMES)}')
    return dtype(json)


def check_data_type(data_type: dtype) -> dtype:
    """`data_type` if metadata can name it.

    Raises:
        SpecError: it cannot.
    """
    if data_type.name not in _NAMES:
        raise SpecError(
            f'data type "{data_type.name}" cannot be stored in this format; {_supported()}'
        )
    return data_type


def _supported() -> str:
    return "supported are " + ", ".join(f'"{name}"' for name in sorted(_NAMES))
