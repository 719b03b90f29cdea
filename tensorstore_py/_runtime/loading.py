"""Imports at first use, whichever thread is the first.

An import holds the lock of a module while it waits for the locks of those that it imports. Two
threads that begin at different ends, one at a package and one at a module in it, would wait for
each other; Python finds out, and one of them gets a module that is not finished. So of modules of
this package that are imported when they are needed one thread imports at a time.
"""

from __future__ import annotations

from _thread import RLock
from importlib import import_module
from typing import TYPE_CHECKING

from tensorstore_py._runtime.fork import on_fork

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load"]


class _Turn:
    """Whose turn it is to import."""

    def __init__(self) -> None:
        self.begin_again()

    def begin_again(self) -> None:
        self.lock = RLock()


_turn = _Turn()
on_fork(_turn.begin_again)


def load(name: str) -> ModuleType:
    """The module of that name, at its end.

    Args:
        name: of a module of this package, dotted and absolute.

    Example:
        >>> load("tensorstore_py.errors").SpecError.__name__
        'SpecError'
    """
    with _turn.lock:
        return import_module(name)
