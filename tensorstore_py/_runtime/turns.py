"""Turns: threads that make many short system calls do it one after the other.

Each such call sets the interpreter free for a moment. If another thread is waiting for it, it is
woken, finds it taken again, and falls asleep: the one is slowed down and the other kept waiting. So
such a stretch of calls is made in turns, and the others meanwhile compute. Nobody waits long: where
a stretch turns out to be slow, as on a disk that is busy, threads go on without their turn.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.fork import Forkable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Turns"]

#: How long to wait for a turn.
_PATIENCE_S: Final = 0.002

#: How many stretches go without turns after one that had to wait too long.
_FREE: Final = 64


class Turns(Forkable):
    """Who has the turn.

    Example:
        >>> turns = Turns()
        >>> with turns.mine():
        ...     pass
    """

    def __init__(self) -> None:
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        self._lock = Lock()
        self._free = 0

    @contextmanager
    def mine(self) -> Iterator[None]:
        """A stretch of calls that has the turn, or has waited for it long enough."""
        if self._free > 0:
            self._free -= 1  # threads may miscount it together, even to below zero: it is a hint
            yield
            return
        if not self._lock.acquire(timeout=_PATIENCE_S):
            self._free = _FREE
            yield
            return
        try:
            yield
        finally:
            self._lock.release()
