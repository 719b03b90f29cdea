"""Handles: objects that stand for work under way, such as futures, promises and transactions.

A handle is neither a value nor the value that it stands for. To copy or pickle one is an error. A
Future that is used as if it were its result raises an error that names the remedy: the result's
names are descriptors, one for each, and not `__getattr__`, with which every attribute that exists
would take five times as long on Python 3.11. Type checkers do not see them, so they go on finding
such mistakes, and so does `hasattr`. Truth, equality and hashing stay those of any object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Handle", "MistakenForValue", "stands_for"]

C = TypeVar("C", bound=type)

_REMEDY: Final = "call .result() or await it first"

_ELEMENTS: Final = "getitem setitem delitem len"
_NUMBERS: Final = """
    abs add and divmod float floordiv ge gt int invert le lshift lt matmul mod mul neg or pos pow
    radd rand rdivmod rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv
    rxor sub truediv xor
"""


class Handle:
    """Base of handles, whose copies would share half of their state.

    Example:
        >>> import copy
        >>> class Pump(Handle):
        ...     pass
        >>> copy.copy(Pump())
        Traceback (most recent call last):
        ...
        TypeError: a Pump can be neither copied nor pickled, since it stands for work under way; ...
    """

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"a {type(self).__name__} can be neither copied nor pickled, since it stands for work "
            "under way; use the object itself, and make another one in another process"
        )


class _Absent:
    """An attribute that the value has, and its Future does not."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, future: object, cls: type) -> NoReturn:
        raise AttributeError(f"a Future has no attribute {self._name!r}; {_REMEDY}")


class MistakenForValue:
    """The base of `Future` that knows the mistakes.

    Example:
        >>> from tensorstore_py import Future
        >>> Future(3) + 1
        Traceback (most recent call last):
            ...
        TypeError: a Future is not a number; call .result() or await it first
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        # It would be asked for its length otherwise.
        return True

    def __dir__(self) -> list[str]:
        cls = type(self)
        absent = {name for name, found in vars(MistakenForValue).items()
                  if isinstance(found, _Absent) and name not in vars(cls)}  # fmt: skip
        return [name for name in super().__dir__() if name not in absent]


def stands_for(cls: C) -> C:
    """Futures give values of this class: its public attributes are asked for by mistake.

    Example:
        >>> from tensorstore_py import Future
        >>> Future(3).shape
        Traceback (most recent call last):
            ...
        AttributeError: a Future has no attribute 'shape'; call .result() or await it first
    """
    for name in dir(cls):
        if not name.startswith("_"):
            setattr(MistakenForValue, name, _Absent(name))
    return cls


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refuse(*operands: object, **options: object) -> NoReturn:
        raise TypeError(f"a Future {what}; {_REMEDY}")

    return refuse


def _refuse(names: str, what: str) -> None:
    for name in names.split():
        setattr(MistakenForValue, f"__{name}__", _refusing(what))


_refuse("array", "is no array")
_refuse(_ELEMENTS, "has no elements")
_refuse(_NUMBERS, "is not a number")
_refuse("enter exit", "cannot be used in a with statement")
stands_for(np.ndarray)
