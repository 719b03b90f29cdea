"""Subscript helpers: the objects behind `x.label[...]`, `x.translate_to[...]` and their like.

A helper remembers its parent and a function of the key. The parsers of keys that several classes
share live here too. Nothing here knows about domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import numpy as np

from tensorstore_py._index.interval import int64_or_none
from tensorstore_py._index.numpy_terms import IndexMode
from tensorstore_py._index.operations import IndexVector

__all__ = [
    "IndexSubscript",
    "Subscript",
    "parse_implicit",
    "parse_index_vector",
    "parse_labels",
]

Result_co = TypeVar("Result_co", covariant=True)


class Subscript(Generic[Result_co]):
    """`parent.name[key]` as `function(key)`; its repr says which parent and name."""

    __slots__ = ("_function", "_name", "_parent")
    __iter__ = None
    """Without this, Python would iterate by calling `__getitem__` with 0, 1, 2, …"""

    def __init__(self, parent: object, name: str, function: Callable[[object], Result_co]) -> None:
        self._parent = parent
        self._name = name
        self._function = function

    def __getitem__(self, key: object) -> Result_co:
        return self._function(key)

    def __repr__(self) -> str:
        return f"{self._parent!r}.{self._name}"


class _Assignable(Protocol):
    def _assign_index(self, index: object, mode: IndexMode, source: object) -> None: ...


class IndexSubscript(Subscript[Result_co]):
    """`x.oindex[...]` and `x.vindex[...]`; they assign too where the parent can."""

    __slots__ = ("_mode",)

    def __init__(
        self, parent: _Assignable, mode: IndexMode, function: Callable[[object], Result_co]
    ) -> None:
        super().__init__(parent, mode, function)
        self._mode: IndexMode = mode

    def __setitem__(self, index: object, source: object) -> None:
        parent: _Assignable = self._parent  # type: ignore[assignment]
        parent._assign_index(index, self._mode, source)


def parse_index_vector(key: object) -> IndexVector:
    """An integer or None, or a sequence of these; TypeError otherwise."""
    if key is None:
        return None
    number = int64_or_none(key)
    if number is not None:
        return number
    if isinstance(key, Iterable) and not isinstance(key, str | bytes):
        numbers = tuple((item, int64_or_none(item)) for item in key)
        if all(item is None or number is not None for item, number in numbers):
            return tuple(number for _, number in numbers)
    raise TypeError(f"Expected an integer, None or a sequence of these, but received {key!r}")


def parse_labels(key: object) -> tuple[str, ...]:
    """A label or a sequence of labels; TypeError otherwise."""
    if isinstance(key, str):
        return (key,)
    if isinstance(key, Iterable):
        labels = tuple(key)
        if all(isinstance(item, str) for item in labels):
            return labels
    raise TypeError(f"Expected a label or a sequence of labels, but received {key!r}")


def parse_implicit(key: object) -> tuple[bool | None, bool | None]:
    """A bool for both bounds, or `lower:upper` with None for a bound to leave alone."""
    if not isinstance(key, slice):
        flag = _parse_flag(key)
        return flag, flag
    if key.step is not None:
        raise TypeError(f"mark_bounds_implicit takes lower:upper without a step, not {key!r}")
    return _parse_flag(key.start), _parse_flag(key.stop)


def _parse_flag(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.bool_ | int):
        return bool(value)
    raise TypeError(f"mark_bounds_implicit takes bools or None, not {value!r}")
