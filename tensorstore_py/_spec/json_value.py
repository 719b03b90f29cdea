"""Python objects to plain JSON values, and typed values back to JSON.

`freeze` is the way in: whatever a caller may pass as JSON (numpy numbers, tuples, mappings,
objects with `to_json`) becomes None, bool, int, float, str, tuple and dict. Arrays become tuples,
so that nothing parsed can change afterwards. `thaw` is the way out: lists and sorted dicts.
`Model`s and context resources pass through `freeze` as they are: they may be bound to a context,
which JSON could not carry. NaN and infinities pass; who cannot take them says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from math import isnan
from os import PathLike
from typing import Protocol, TypeAlias

import numpy as np

from tensorstore_py.errors import SpecError

__all__ = ["Json", "SpecValue", "Unset", "describe", "freeze", "same_json", "thaw"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_PLAIN = frozenset({bool, int, float, str})
_DEEPEST = 100


class Unset(Enum):
    """The default of a member for which JSON `null` means something: absent is not null."""

    UNSET = "unset"


class SpecValue(Protocol):
    """A typed value that passes `freeze` as it is and prints itself; told by its method."""

    def spec_json(self, include_defaults: bool) -> object:
        """Its JSON; `include_defaults` as in `to_json`."""


def freeze(value: object, depth: int = _DEEPEST) -> object:
    """`value` as plain JSON with tuples for arrays.

    Raises:
        SpecError: a mapping or sequence that contains itself, or is nested too deeply.
        OverflowError: an integer that 64 bits cannot hold.
        TypeError: an object that has no JSON form.

    Example:
        >>> freeze({"shape": [np.int64(3), 4], "order": "C"})
        {'shape': (3, 4), 'order': 'C'}
    """
    kind = type(value)
    if kind is str or kind is float or kind is bool or value is None:
        return value
    if isinstance(value, int):
        return _integer(int(value))
    if depth <= 0:
        raise SpecError("nested too deeply to be JSON; does the value contain itself?")
    if isinstance(value, dict):
        return {
            key if type(key) is str else str(key): freeze(inner, depth - 1)
            for key, inner in value.items()
        }
    if isinstance(value, tuple | list):
        return tuple([freeze(inner, depth - 1) for inner in value])
    return _freeze_other(value, depth)


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**64:
        raise OverflowError(f"{value} does not fit 64 bits, so it has no JSON form here")
    return value


def _freeze_other(value: object, depth: int) -> object:
    if isinstance(value, float | str):
        return float(value) if isinstance(value, float) else str(value)
    if isinstance(value, np.generic):
        return freeze(value.item(), depth - 1)
    if isinstance(value, type | np.dtype):
        return _data_type_name(value)
    if hasattr(value, "spec_json") or isinstance(value, PathLike):
        return value  # what a local path means depends on the member
    to_json = getattr(value, "to_json", None)
    if callable(to_json):
        return freeze(to_json(), depth - 1)
    if isinstance(value, np.ndarray):
        return freeze(value.tolist(), depth - 1)
    if isinstance(value, Mapping):
        return freeze(dict(value), depth - 1)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return tuple([freeze(inner, depth - 1) for inner in value])
    if hasattr(value, "__index__"):
        return _integer(int(value))
    raise TypeError(f"an object of type {type(value).__name__!r} cannot be converted to JSON")


def _data_type_name(value: type | np.dtype[np.generic]) -> str:
    """The name of a data type that stands where JSON has its name."""
    known = isinstance(value, np.dtype) or issubclass(value, np.generic)
    if not known and value not in (bool, int, float, complex):
        raise TypeError(f"{value!r} cannot be converted to JSON; write the name of a data type")
    found = np.dtype(value)
    return found.name if found.kind in "biufcV" else found.str


def thaw(value: object, include_defaults: bool = False) -> object:
    """`value` as JSON: arrays as lists, members sorted by name, typed values printed.

    Example:
        >>> thaw({"b": (1, 2), "a": None})
        {'a': None, 'b': [1, 2]}
    """
    if value is None or type(value) in _PLAIN:
        return value
    spec_json = getattr(value, "spec_json", None)
    if spec_json is not None:
        return spec_json(include_defaults)
    if isinstance(value, dict):
        return {name: thaw(value[name], include_defaults) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [thaw(inner, include_defaults) for inner in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return thaw(value.tolist(), include_defaults)
    to_json = getattr(value, "to_json", None)
    if callable(to_json):
        return thaw(to_json(), include_defaults)
    raise TypeError(f"an object of type {type(value).__name__!r} has no JSON form")


def same_json(one: object, other: object) -> bool:
    """Whether two values are equal, where NaN is equal to itself.

    Example:
        >>> same_json({"a": [float("nan")]}, {"a": (float("nan"),)})
        True
    """
    if one == other:
        return True
    if isinstance(one, float) and isinstance(other, float):
        return isnan(one) and isnan(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return False


def describe(value: object, width: int = 60) -> str:
    """`value` as JSON text for an error message, cut to `width` characters.

    Example:
        >>> describe(("a", None, True))
        '["a",null,true]'
    """
    text = _text(value, 6)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _text(value: object, depth: int) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int | float):
        return repr(value)
    if depth <= 0:
        return "…"
    if isinstance(value, Mapping):
        inner = (f"{_text(str(key), 1)}:{_text(item, depth - 1)}" for key, item in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(item, depth - 1) for item in value) + "]"
    return repr(value)
