"""A read under way, and those who wait for it instead of reading the same themselves.

Whoever began it is its leader. The others learn when it is over, by blocking their thread or by
suspending their task, and decide for themselves whether what was found is of use to them. Nothing
here is locked: the cache pool, which keeps flights by key, holds its mutex around what needs it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from tensorstore_py._runtime.signals import acquire

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Flight"]

T = TypeVar("T")


class Flight(Generic[T]):
    """See the head of this file.

    Attributes:
        count: how many read; more than one where nobody waits for the other.
        outdated: what is being read was written to meanwhile.
        found: what the leader found; None until it is over, and if it failed.
    """

    __slots__ = ("_wake", "count", "found", "outdated")

    def __init__(self) -> None:
        self.count = 0
        self.outdated = False
        self.found: T | None = None
        self._wake: list[Callable[[], object]] = []

    def join(self, inline: bool) -> Lock | asyncio.Future[None]:
        """What to give to `over`; the pool's mutex is held, so the end is not missed."""
        if inline:
            lock = Lock()
            lock.acquire()
            self._wake.append(lock.release)
            return lock
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._wake.append(partial(loop.call_soon_threadsafe, _settle, future))
        return future

    @staticmethod
    async def over(joined: Lock | asyncio.Future[None]) -> None:
        """Wait for the end; the mutex is not held."""
        if isinstance(joined, asyncio.Future):
            await joined
        else:
            await acquire(joined)

    def land(self) -> None:
        """Wake all who wait. Nobody can join any more."""
        for wake in self._wake:
            wake()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():  # whoever waited may have been cancelled
        future.set_result(None)
