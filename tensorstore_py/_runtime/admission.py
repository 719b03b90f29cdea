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
from functools import partial
from operator import attrgetter
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.signals import acquire
from tensorstore_py._runtime.workers import width

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Bytes", "Places", "Slots"]

#: Who waits for how many bytes, and how to wake them.
_Queue: TypeAlias = "deque[tuple[int, Callable[[], object]]]"

#: A thread works on one chunk at a time, and there are fewer threads than this: what is smaller
#: than such a part of the limit cannot exceed it together.
_THREADS: Final = max(64, 3 * width())

#: More threads than this are never inside at once, whatever the limit.
_MOST: Final = 4096


class Places(Forkable):
    """At most `limit` threads at a time; the others wait.

    Args:
        limit: a positive number.

    Attributes:
        limit: as given.
        enter: take a place; blocks while there is none.
        leave: give it back.

    Example:
        >>> places = Places(2)
        >>> with places:
        ...     places.free
        1
    """

    enter: Callable[[], object]
    leave: Callable[[], object]

    if TYPE_CHECKING:

        def __enter__(self) -> None: ...

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None: ...

    else:
        # `with` calls methods of the queue: no instruction of Python lies between taking a place
        # and the block, and none is called. `put` takes the kind of an error for an item.
        __enter__ = property(attrgetter("_queue.get"))
        __exit__ = property(attrgetter("_queue.put"))

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        queue: SimpleQueue[object] = SimpleQueue()
        for _ in range(min(self.limit, _MOST)):
            queue.put(None)
        self._queue = queue
        self.enter = queue.get
        self.leave = partial(queue.put, None)

    def enter_now(self) -> bool:
        """Take a place if there is one, without waiting. Returns whether there was."""
        try:
            self._queue.get_nowait()
        except Empty:
            return False
        return True

    @property
    def free(self) -> int:
        """How many places nobody holds, about."""
        return self._queue.qsize()


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


#: Numbers of the two queues of a budget; blocks are looked at first, see `_Ledger.fits`.
_BLOCKS: Final = 0
_CHUNKS: Final = 1


class _Ledger(Forkable):
    """Who holds what of one budget, and who waits for it; to be used under `lock`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        self.lock = Lock()
        self.held = [0, 0]
        self.waiting: tuple[_Queue, _Queue] = (deque(), deque())

    def take(self, kind: int, size: int) -> bool:
        if self.waiting[kind] or not self.fits(kind, size):
            return False
        self.held[kind] += size
        return True

    def fits(self, kind: int, size: int) -> bool:
        """Whether `size` more may go in.

        Who holds a block goes on to take chunks, so a chunk is let in wherever no other is. As
        long as there are blocks, chunks have half of the budget: that leaves the other half free.
        """
        blocks, chunks = self.held
        half = self.limit // 2
        if kind == _CHUNKS:
            copying = blocks or self.waiting[_BLOCKS]
            return not chunks or chunks + size <= self.limit - (half if copying else 0)
        if blocks and blocks + size > half:
            return False
        return not chunks or blocks + chunks + size <= self.limit

    def release(self, kind: int, size: int) -> None:
        self.held[kind] -= size
        self.admit()

    def admit(self) -> None:
        """Let in who is first in line and fits now."""
        for kind, waiting in enumerate(self.waiting):
            while waiting and self.fits(kind, waiting[0][0]):
                size, wake = waiting.popleft()
                self.held[kind] += size
                wake()


class Bytes:
    """At most `limit` bytes in flight, first come, first served.

    What is larger than the whole limit goes alone.

    Args:
        limit: a positive number.

    Attributes:
        limit: as given.

    Example:
        >>> from tensorstore_py._runtime.inline import run_inline
        >>> budget = Bytes(10)
        >>> run_inline(budget.take(True, 7))
        >>> budget.held
        7
        >>> budget.release(7)
    """

    __slots__ = ("_kind", "_ledger", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kind = _CHUNKS
        self._ledger = _Ledger(limit)

    @property
    def blocks(self) -> Bytes:
        """Half of this budget, for blocks that are held while their chunks take from this one.

        What they hold counts here, too, yet both go on at any limit.
        """
        blocks = Bytes.__new__(Bytes)
        blocks.limit = max(1, self.limit // 2)
        blocks._kind = _BLOCKS
        blocks._ledger = self._ledger
        return blocks

    @property
    def held(self) -> int:
        """How many bytes are in flight now."""
        return self._ledger.held[self._kind]

    def matters(self, inline: bool, size: int) -> bool:
        """Whether work of that temperament on `size` bytes at a time has to be counted at all."""
        return not inline or size * _THREADS > self.limit

    async def _acquire(self, size: int) -> None:
        ledger, bell = self._ledger, Lock()
        with ledger.lock:
            if ledger.take(self._kind, size):
                return
            bell.acquire()
            ledger.waiting[self._kind].append((size, bell.release))
        await acquire(bell)

    async def _acquire_on_loop(self, size: int) -> None:
        ledger = self._ledger
        with ledger.lock:
            if ledger.take(self._kind, size):
                return
            loop = asyncio.get_running_loop()
            turn: asyncio.Future[None] = loop.create_future()

            def settle() -> None:
                if not turn.done():  # the waiter may have gone
                    turn.set_result(None)

            def wake() -> None:
                loop.call_soon_threadsafe(settle)  # it may come from a thread

            entry = (size, wake)
            ledger.waiting[self._kind].append(entry)
        try:
            await turn
        except BaseException:
            self._give_up(entry)
            raise

    async def take(self, inline: bool, size: int) -> None:
        """Take `size` bytes; blocks the thread, or suspends the task, until they are free.

        Args:
            inline: the temperament of the body that waits.
            size: how many bytes; more than the limit go alone.
        """
        if inline:
            await self._acquire(size)
        else:
            await self._acquire_on_loop(size)

    def release(self, size: int) -> None:
        """Give `size` bytes back, and let in who fits now."""
        with self._ledger.lock:
            self._ledger.release(self._kind, size)

    def _give_up(self, entry: tuple[int, Callable[[], object]]) -> None:
        ledger, kind = self._ledger, self._kind
        with ledger.lock:
            if entry in ledger.waiting[kind]:
                ledger.waiting[kind].remove(entry)
                ledger.admit()
            else:  # let in just now
                ledger.release(kind, entry[0])
