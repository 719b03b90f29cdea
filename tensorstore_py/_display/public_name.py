"""The names of public classes: where users import them from, not the files they are written in.

The class says so itself, since it can be met before its name is: a program that calls `ts.open` has
a `TensorStore`, and may pickle it, without ever asking for `ts.TensorStore`. What a class gets here
is read by `repr`, by documentation and by pickle; it changes nothing about how the class works.
Hence the decorator stands outermost, over those that look into the class's own module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["public", "public_in"]

C = TypeVar("C", bound=type)


def public(cls: C) -> C:
    """Let a class say that it is from the package: in tracebacks, documentation and pickles.

    Errors stay with their module, whose name says what they are.

    Example:
        >>> @public
        ... class Lamp: ...
        >>> Lamp
        <class 'tensorstore_py.Lamp'>
    """
    cls.__module__ = "tensorstore_py"
    return cls


def public_in(holder: str) -> Callable[[C], C]:
    """The same for a class that is an attribute of a public one.

    Example:
        >>> @public_in("Lamp")
        ... class Socket: ...
        >>> Socket
        <class 'tensorstore_py.Lamp.Socket'>
    """

    def decorate(cls: C) -> C:
        cls.__qualname__ = f"{holder}.{cls.__name__}"
        return public(cls)

    return decorate
