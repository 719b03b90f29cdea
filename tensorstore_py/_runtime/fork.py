"""Fork and exit hygiene: where all other threads are gone, the library starts clean.

Threads do not survive a fork, and a lock that one of them held stays locked for good in the
child. The same is true of daemon threads when the interpreter ends: the last finalizers run alone.
So whatever owns threads or locks registers here how to begin again, and futures remember the epoch
they were born in.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING
from weakref import ref

from tensorstore_py.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Forkable", "begin_again_at_end", "check_threads", "epoch", "on_fork"]

_resets: list[Callable[[], None]] = []
#: A `WeakSet` would run code of Python for each object that is made, and for each that goes.
_forkables: set[ref[Forkable]] = set()
_forget = _forkables.discard
_epoch = [0]
_ended = [False]


class Forkable:
    """An object with a lock in it, which `after_fork` replaces where other threads are gone."""

    def __init__(self) -> None:
        _forkables.add(ref(self, _forget))

    def after_fork(self) -> None:
        """Begin again, on the only thread."""


def epoch() -> int:
    """How often all other threads were lost since the first process began."""
    return _epoch[0]


def on_fork(reset: Callable[[], None]) -> None:
    """Run `reset` in every forked child before any of its code, and when the interpreter ends."""
    _resets.append(reset)


def begin_again_at_end() -> None:
    """Start clean if the interpreter is ending. To be called before work is begun."""
    if sys.is_finalizing() and not _ended[0]:
        _ended[0] = True
        _begin_again()


def check_threads() -> None:
    """Refuse to wait for another thread when the interpreter is ending.

    Raises:
        FailedPreconditionError: it is, and no other thread runs any more.
    """
    if sys.is_finalizing():
        raise FailedPreconditionError(
            "the interpreter is ending: the thread that this waits for is gone; "
            "wait for the result, or close the store, before the program ends"
        )


def _begin_again() -> None:
    _epoch[0] += 1
    for reset in _resets:
        reset()
    for each in list(_forkables):
        if (forkable := each()) is not None:
            forkable.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
