"""Exclusion: a mutex that survives forks, and a per-key gate for both temperaments.

The gate keeps writers of one key in one process from racing each other through
read-modify-write loops. It is about saving work: correctness across processes and machines
comes from conditional writes, not from here.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING

from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.signals import acquire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from types import TracebackType
    from typing import Any

__all__ = ["Gate", "Mutex"]


class Mutex(Forkable):
    """A lock for short critical sections; a forked child finds it free.

    Attributes:
        lock: what is locked.

    Example:
        >>> mutex = Mutex()
        >>> with mutex:
        ...     pass
    """

    def __init__(self) -> None:
        self.lock = Lock()
        super().__init__()

    if TYPE_CHECKING:

        def __enter__(self) -> None: ...

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None: ...

    else:
        # The lock's own methods: no instruction of Python lies between locking it and the block.
        __enter__ = property(attrgetter("lock.__enter__"))
        __exit__ = property(attrgetter("lock.__exit__"))

    def after_fork(self) -> None:
        self.lock = Lock()


class _Turn:
    """The lock of one key and how many hold or await it."""

    __slots__ = ("lock", "users")

    def __init__(self, lock: Lock | asyncio.Lock) -> None:
        self.lock = lock
        self.users = 0


class Gate(Forkable):
    """At most one holder a key.

    Args:
        inline: True blocks the thread that waits; False suspends the task.

    Example:
        >>> from tensorstore_py._runtime.inline import run_inline
        >>> gate = Gate(inline=True)
        >>> async def enter() -> str:
        ...     async with gate.hold("key"):
        ...         return "in"
        >>> run_inline(enter())
        'in'
    """

    def __init__(self, *, inline: bool) -> None:
        self._inline = inline
        self._mutex = Lock()
        self._turns: dict[object, _Turn] = {}
        super().__init__()

    @asynccontextmanager
    async def hold(self, key: object) -> AsyncIterator[None]:
        """Enter alone; others with the same key wait."""
        with self._mutex:
            turn = self._turns.get(key)
            if turn is None:
                turn = self._turns[key] = _Turn(Lock() if self._inline else asyncio.Lock())
            turn.users += 1
        try:
            if isinstance(turn.lock, asyncio.Lock):
                async with turn.lock:
                    yield
            else:
                await acquire(turn.lock)
                try:
                    yield
                finally:
                    turn.lock.release()
        finally:
            with self._mutex:
                turn.users -= 1
                if not turn.users:
                    del self._turns[key]

    def _seize(self, free: Iterable[object]) -> list[Any]:
        """Enter for keys that nobody holds or awaits, on threads only; the mutex is held."""
        seized = list(free)
        for key in seized:
            lock = Lock()
            lock.acquire()
            turn = self._turns[key] = _Turn(lock)
            turn.users = 1
        return seized

    def let_go(self, seized: Iterable[object]) -> None:
        """Leave keys that were entered by `_seize`."""
        with self._mutex:
            for key in seized:
                turn = self._turns[key]
                turn.users -= 1
                if not turn.users:
                    del self._turns[key]
                turn.lock.release()

    def after_fork(self) -> None:
        self._mutex = Lock()
        self._turns = {}
