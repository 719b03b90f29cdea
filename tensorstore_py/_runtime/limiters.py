"""Limiters: how many may be inside at a time, how many bytes in flight, how many a second.

The live values of the context resources that limit something. All that is bound to the same
resource shares one limiter, so the limit holds for all of it together.

| limiter | limits | those that wait |
|---|---|---|
| `ThreadLimiter` | threads inside; two calls of a C queue if there is room | threads |
| `Semaphore` | tasks of the library's loop inside | tasks |
| `MemoryBudget` | bytes in flight | threads and tasks |
| `RateLimiter` | beginnings a second | tasks |

A place of the first two is held around one leaf of the work (one file operation, one decode, one
request) and never while waiting for another place of its kind; bytes are acquired before places.
So no limit and no nesting can deadlock. In a forked child all limiters are free.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from operator import attrgetter
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from tensorstore_py._runtime.awaitable_bridge import loop_waiter
from tensorstore_py._runtime.executors import width
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.signals import acquire

__all__ = ["MemoryBudget", "RateLimiter", "RateLimits", "Semaphore", "ThreadLimiter"]

#: How many bytes are waited for, and what wakes the one that waits.
_Queue: TypeAlias = "deque[tuple[int, Callable[[], object]]]"

#: A thread works on one chunk at a time, and there are fewer threads than this: what is smaller
#: than such a part of the limit cannot exceed it together.
_THREADS: Final = max(64, 3 * width())

#: More threads than this are never inside at once, whatever the limit.
_MOST: Final = 4096


class ThreadLimiter(Forkable):
    """At most `limit` threads at a time; the others wait.

    Args:
        limit: a positive number.

    Attributes:
        limit: as given.
        acquire: take a place; blocks while there is none.
        release: give it back.

    Example:
        >>> limiter = ThreadLimiter(2)
        >>> with limiter:
        ...     limiter.available
        1
    """

    acquire: Callable[[], object]
    release: Callable[[], object]

    if TYPE_CHECKING:

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

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
        self.acquire = queue.get
        self.release = partial(queue.put, None)

    def try_acquire(self) -> bool:
        """Take a place if there is one, without waiting. Returns whether there was."""
        try:
            self._queue.get_nowait()
        except Empty:
            return False
        return True

    @property
    def available(self) -> int:
        """How many places are free, about."""
        return self._queue.qsize()


class Semaphore(Forkable):
    """At most `limit` tasks of the library's loop at a time, first come, first served.

    A task that is cancelled while it waits leaves the queue; one that is cancelled inside gives its
    place to the next.

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
        self._free = self.limit
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._free:  # and so nobody waits
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self._pass_on()
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            raise

    async def __aexit__(self, *error: object) -> None:
        if self._waiting:
            self._pass_on()
        else:
            self._free += 1

    def _pass_on(self) -> None:
        """Give a place to the first that waits for one; it has it before it goes on."""
        waiting = self._waiting
        while waiting:
            waiter = waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1


#: Numbers of the two queues of a budget; blocks are looked at first, see `_Ledger.fits`.
_BLOCKS: Final = 0
_CHUNKS: Final = 1


class _Ledger(Forkable):
    """What is held of one budget, and what waits for it; to be used under `lock`."""

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

        Work that holds a block goes on to take chunks, so a chunk is let in wherever no other is.
        As long as there are blocks, chunks have half of the budget: the other half is theirs.
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
        """Let in what is first in its queue and fits now."""
        for kind, waiting in enumerate(self.waiting):
            while waiting and self.fits(kind, waiting[0][0]):
                size, wake = waiting.popleft()
                self.held[kind] += size
                wake()


class MemoryBudget:
    """At most `limit` bytes in flight, first come, first served.

    What is larger than the whole limit goes alone.

    Args:
        limit: a positive number.

    Attributes:
        limit: as given.

    Example:
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> budget = MemoryBudget(10)
        >>> run_inline(budget.acquire(True, 7))
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
    def blocks(self) -> MemoryBudget:
        """Half of this budget, for blocks that are held while their chunks take from this one.

        What they hold counts here, too, yet both go on at any limit.
        """
        blocks = MemoryBudget.__new__(MemoryBudget)
        blocks.limit = max(1, self.limit // 2)
        blocks._kind = _BLOCKS
        blocks._ledger = self._ledger
        return blocks

    @property
    def held(self) -> int:
        """How many bytes are in flight now."""
        return self._ledger.held[self._kind]

    def matters(self, inline: bool, size: int) -> bool:
        """Whether work of that mode on `size` bytes at a time has to be counted at all."""
        return not inline or size * _THREADS > self.limit

    async def acquire(self, inline: bool, size: int) -> None:
        """Take `size` bytes; blocks the thread, or suspends the task, until they are free.

        Args:
            inline: the execution mode of the body that waits.
            size: how many bytes; more than the limit go alone.
        """
        if inline:
            await self._acquire_on_thread(size)
        else:
            await self._acquire_on_loop(size)

    async def _acquire_on_thread(self, size: int) -> None:
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
            waiter, wake = loop_waiter()
            entry = (size, wake)
            ledger.waiting[self._kind].append(entry)
        try:
            await waiter
        except BaseException:
            self._give_up(entry)
            raise

    def release(self, size: int) -> None:
        """Give `size` bytes back, and let in what fits now."""
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


#: A rate that has doubled so often limits nothing any more.
_MOST_DOUBLINGS: Final = 40.0


class RateLimiter:
    """At most so many beginnings a second: a bucket of tokens that fills with time.

    A task that waits is told at once how long, so nothing polls, and tasks go on in the order in
    which they asked. Over any span no more begin than the rate allows plus what had accrued unused,
    which is never more than `MOST_UNUSED`.

    Args:
        per_second: at the start; a positive number.
        doubling_s: the rate doubles in that time, again and again; 0 to stay.
        now: a clock, in seconds; tests give one that counts.
        sleep: waits that many seconds.

    Attributes:
        per_second: as given.

    Example:
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> waits = []
        >>> async def sleep(seconds):
        ...     waits.append(seconds)
        >>> rate = RateLimiter(4, now=lambda: 0.0, sleep=sleep)
        >>> for _ in range(3):
        ...     run_inline(rate.acquire())
        >>> waits
        [0.25, 0.5, 0.75]
    """

    #: The reference's: after a pause so many may go at once, or a thousand seconds' worth if less.
    MOST_UNUSED: Final = 2000.0

    def __init__(
        self,
        per_second: float,
        doubling_s: float = 0.0,
        *,
        now: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[object]] | None = None,
    ) -> None:
        self.per_second = per_second
        self._doubling_s = doubling_s
        self._now = time.monotonic if now is None else now
        self._sleep = asyncio.sleep if sleep is None else sleep
        self._most = min(1000 * per_second, self.MOST_UNUSED)
        self._began = self._seen = self._now()
        self._tokens = 0.0

    async def acquire(self) -> None:
        """Wait for a token; a task that is cancelled while it waits gives it back."""
        now = self._now()
        if self._doubling_s and now - self._began > _MOST_DOUBLINGS * self._doubling_s:
            return
        accrued = self._accrued(now) - self._accrued(self._seen)
        # Tokens that are waited for are below zero; the others are unused.
        self._tokens = min(self._most, self._tokens + accrued) - 1
        self._seen = now
        if self._tokens >= 0:
            return
        try:
            await self._sleep(self._when(self._accrued(now) - self._tokens) - now)
        except asyncio.CancelledError:
            self._tokens += 1
            raise

    def _accrued(self, now: float) -> float:
        """How many tokens there were from the beginning until then."""
        elapsed = now - self._began
        if not self._doubling_s:
            return elapsed * self.per_second
        return self._growth() * math.expm1(math.log(2) * elapsed / self._doubling_s)

    def _when(self, accrued: float) -> float:
        """When there will have been so many tokens."""
        if not self._doubling_s:
            return self._began + accrued / self.per_second
        return self._began + self._doubling_s * math.log1p(accrued / self._growth()) / math.log(2)

    def _growth(self) -> float:
        """How many tokens the first doubling takes."""
        return self.per_second * self._doubling_s / math.log(2)


class RateLimits:
    """The rates that a service may be asked at.

    Args:
        read_rate: of reads and listings, a second; None for no limit.
        write_rate: of writes and deletes, a second; None for no limit.
        doubling_s: see `RateLimiter`.
        now: see `RateLimiter`.
        sleep: see `RateLimiter`.

    Attributes:
        read: of reads and listings; None for no limit.
        write: of writes and deletes; None for no limit.
    """

    def __init__(
        self,
        read_rate: float | None = None,
        write_rate: float | None = None,
        doubling_s: float = 0.0,
        *,
        now: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[object]] | None = None,
    ) -> None:
        self.read, self.write = (
            None if rate is None else RateLimiter(rate, doubling_s, now=now, sleep=sleep)
            for rate in (read_rate, write_rate)
        )
