"""Admission: how many may be inside at a time, and how many bytes may be in flight.

The live values of the context resources that limit something. Whoever is bound to the same
resource shares one object, so the limit holds for all of them together. A place is held around one
leaf of the work (one file operation, one decode, one request) and never while waiting for another
place of its kind, so no limit and no nesting can deadlock. Bytes are taken before places are.

`Places` is for threads, and costs two calls of a C queue when nobody waits; `Slots` is for tasks of
the library's loop; `Bytes` is for both. In a forked child all of them are free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.fork import Forkable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Bytes", "Places", "Slots"]

#: A thread works on one chunk at a time, and there are fewer threads than this: what is smaller
#: than such a part of the limit cannot exceed it together.
_THREADS: Final = 64

#: More threads than this are never inside at once, whatever the limit.
_MOST: Final = 4096


class Places(Forkable):
    """At most `limit` threads at a time; the others wait.

    Args:
        limit: a positive number.

    Attributes:
        limit: as given.
        enter: take a place; blocks while there is none.

    Example:
        >>> places = Places(2)
        >>> with places:
        ...     places.free
        1
    """

    enter: Callable[[], object]

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        queue: SimpleQueue[None] = SimpleQueue()
        for _ in range(min(self.limit, _MOST)):
            queue.put(None)
        self._queue = queue
        self.enter = queue.get

    def leave(self) -> None:
        """Give a place back."""
        self._queue.put(None)

    @property
    def free(self) -> int:
        """How many places nobody holds, about."""
        return self._queue.qsize()

    def __enter__(self) -> None:
        self._queue.get()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._queue.put(None)


class Slots(Forkable):
    """At most `limit` tasks of the library's loop at a time, first come, first served.

    A task that is cancelled while it waits leaves the queue; one that is cancelled inside gives its
    slot to the next.

    Args:
        limit: a positive number.

    Attributes:
        limit: as given.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        self._semaphore = asyncio.Semaphore(self.limit)

    async def __aenter__(self) -> None:
        await self._semaphore.acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._semaphore.release()


class Bytes(Forkable):
    """At most `limit` bytes in flight, first come, first served.

    What is larger than the whole limit goes alone.

    Args:
        limit: a positive number.

    Attributes:
        limit: as given.
        held: how many bytes are in flight now.

    Example:
        >>> budget = Bytes(10)
        >>> budget.acquire(7)
        >>> budget.held
        7
        >>> budget.release(7)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        self.held = 0
        self._lock = Lock()
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()

    def matters(self, inline: bool, size: int) -> bool:
        """Whether work of that temperament on `size` bytes at a time has to be counted at all."""
        return not inline or size * _THREADS > self.limit

    def acquire(self, size: int) -> None:
        """Take `size` bytes; blocks the thread until they are free."""
        bell = Lock()
        with self._lock:
            if self._take(size):
                return
            bell.acquire()
            self._waiting.append((size, bell.release))
        bell.acquire()

    async def acquire_on_loop(self, size: int) -> None:
        """Take `size` bytes; suspends the task until they are free."""
        with self._lock:
            if self._take(size):
                return
            loop = asyncio.get_running_loop()
            turn: asyncio.Future[None] = loop.create_future()

            def settle() -> None:
                if not turn.done():  # the waiter may have gone
                    turn.set_result(None)

            def wake() -> None:
                loop.call_soon_threadsafe(settle)  # it may come from a thread

            entry = (size, wake)
            self._waiting.append(entry)
        try:
            await turn
        except BaseException:
            self._give_up(entry, size)
            raise

    async def take(self, inline: bool, size: int) -> None:
        """Take `size` bytes the way that a body of that temperament waits."""
        if inline:
            self.acquire(size)
        else:
            await self.acquire_on_loop(size)

    def release(self, size: int) -> None:
        """Give `size` bytes back, and let in who fits now."""
        with self._lock:
            self.held -= size
            self._admit()

    def _take(self, size: int) -> bool:
        if self._waiting or (self.held and self.held + size > self.limit):
            return False
        self.held += size
        return True

    def _admit(self) -> None:
        while self._waiting:
            size, wake = self._waiting[0]
            if self.held and self.held + size > self.limit:
                return
            self._waiting.popleft()
            self.held += size
            wake()

    def _give_up(self, entry: tuple[int, Callable[[], object]], size: int) -> None:
        with self._lock:
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:  # let in just now
                self.held -= size
            self._admit()
