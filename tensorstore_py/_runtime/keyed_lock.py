"""Locks: a mutex that survives forks, and a keyed lock for both execution modes.

The keyed lock keeps writers of one key in one process from repeating each other's read-modify-write
attempts. It saves work: correctness across processes and machines comes from conditional writes.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import islice
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from tensorstore_py._runtime import signals
from tensorstore_py._runtime.fork import Forkable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

__all__ = ["KeyedLock", "Mutex"]

K = TypeVar("K")


class Mutex(Forkable):
    """A lock for short critical sections; a forked child finds it free.

    Attributes:
        lock: what is locked.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        super().__init__()

    if TYPE_CHECKING:

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

    else:
        # The lock's own methods: no instruction of Python lies between locking it and the block.
        __enter__ = property(attrgetter("lock.__enter__"))
        __exit__ = property(attrgetter("lock.__exit__"))

    def after_fork(self) -> None:
        self.lock = Lock()


class _Entry:
    """The lock of one key, and how many callers hold or await it."""

    __slots__ = ("lock", "users")

    def __init__(self, lock: Lock | asyncio.Lock) -> None:
        self.lock = lock
        self.users = 1


class KeyedLock(Forkable):
    """At most one holder a key; a key that is neither held nor awaited takes no memory.

    Args:
        inline: True blocks the thread that waits; False suspends the task.

    Example:
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> lock = KeyedLock(inline=True)
        >>> async def enter() -> str:
        ...     async with lock.acquire("key"):
        ...         return "in"
        >>> run_inline(enter())
        'in'
    """

    def __init__(self, *, inline: bool) -> None:
        self._inline = inline
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        self._mutex = Lock()
        self._entries: dict[object, _Entry] = {}

    @asynccontextmanager
    async def acquire(self, key: object) -> AsyncIterator[None]:
        """Hold a key in the block; others that want the same key wait."""
        with self._mutex:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry(Lock() if self._inline else asyncio.Lock())
            else:
                entry.users += 1
        try:
            if isinstance(entry.lock, asyncio.Lock):
                async with entry.lock:
                    yield
            else:
                await signals.acquire(entry.lock)
                try:
                    yield
                finally:
                    entry.lock.release()
        finally:
            with self._mutex:
                self._leave(key, entry)

    def try_acquire(self, keys: Iterable[K], most: int | None = None) -> list[K]:
        """Hold those keys, or the first `most` of them, that are neither held nor awaited.

        For inline locks.

        Returns:
            The keys that are held now, for `release`.
        """
        with self._mutex:
            return self._seize(keys, most)

    def _seize(self, keys: Iterable[K], most: int | None = None) -> list[K]:
        """`try_acquire` for a subclass that holds `_mutex`."""
        entries = self._entries
        acquired = list(islice((key for key in keys if key not in entries), most))
        for key in acquired:
            lock = Lock()
            lock.acquire()
            entries[key] = _Entry(lock)
        return acquired

    def release(self, keys: Iterable[object]) -> None:
        """Let go of keys that `try_acquire` returned."""
        with self._mutex:
            for key in keys:
                entry = self._entries[key]
                self._leave(key, entry)
                entry.lock.release()

    def _leave(self, key: object, entry: _Entry) -> None:
        entry.users -= 1
        if not entry.users:
            del self._entries[key]
