"""Fork hygiene: a forked child starts clean.

Threads do not survive a fork, and a lock that one of them held stays locked for good in the
child. So whatever owns threads or locks registers here how to begin again, and futures
remember the epoch they were born in.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Forkable", "epoch", "on_fork"]

_resets: list[Callable[[], None]] = []
_forkables: WeakSet[Forkable] = WeakSet()
_epoch = [0]


class Forkable:
    """An object with a lock in it, which `after_fork` replaces in the child."""

    def __init__(self) -> None:
        _forkables.add(self)

    def after_fork(self) -> None:
        """Begin again in the child. Runs on its only thread."""


def epoch() -> int:
    """How many forks lie between the first process and this one."""
    return _epoch[0]


def on_fork(reset: Callable[[], None]) -> None:
    """Run `reset` in every forked child, before any of its code."""
    _resets.append(reset)


def _child() -> None:
    _epoch[0] += 1
    for reset in _resets:
        reset()
    for forkable in list(_forkables):
        forkable.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_child)
