"""Single-flight: one caller fetches something, the others that want the same wait for it.

The others learn when the fetch is over, by blocking their thread or by suspending their task, and
decide for themselves whether what was found is of use to them. Nothing here is locked: the table
that keeps these objects by key holds its mutex around `register` and before `complete`, so that no
waiter is registered after the end.
"""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from tensorstore_py._runtime.awaitable_bridge import loop_waiter
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.signals import acquire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

__all__ = ["SingleFlight", "SingleFlights"]

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """A fetch under way, and those who wait for it.

    Attributes:
        count: how many fetch; more than one where callers do not wait for each other.
        outdated: what is being fetched was written to meanwhile.
        found: what the fetch found; None until it is over, and if it failed.
    """

    __slots__ = ("_wake", "count", "found", "outdated")

    def __init__(self) -> None:
        self.count = 0
        self.outdated = False
        self.found: T | None = None
        self._wake: list[Callable[[], object]] = []

    def register(self, inline: bool) -> Lock | asyncio.Future[None]:
        """A waiter, for `wait`; the caller holds the mutex of the table."""
        if inline:
            lock = Lock()
            lock.acquire()
            self._wake.append(lock.release)
            return lock
        waiter, wake = loop_waiter()
        self._wake.append(wake)
        return waiter

    @staticmethod
    async def wait(waiter: Lock | asyncio.Future[None]) -> None:
        """Wait for the end; the caller does not hold the mutex."""
        if isinstance(waiter, asyncio.Future):
            await waiter
        else:
            await acquire(waiter)

    def complete(self) -> None:
        """Wake all waiters. No more can be registered."""
        for wake in self._wake:
            wake()


class SingleFlights(Forkable, Generic[T]):
    """Fetches under way, by what they fetch.

    Args:
        inline: the execution mode of the fetches, and so of the wait.

    Example:
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> async def fetch() -> int:
        ...     return 42
        >>> run_inline(SingleFlights(inline=True).get("key", lambda: None, fetch))
        42
    """

    def __init__(self, *, inline: bool) -> None:
        self._inline = inline
        self._mutex = Mutex()
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        self._flights: dict[Hashable, SingleFlight[T]] = {}  # they went on in the parent

    async def get(
        self,
        key: Hashable,
        kept: Callable[[], T | None],
        fetch: Callable[[], Awaitable[T]],
        will_do: Callable[[T], bool] | None = None,
    ) -> T:
        """What is kept, or what is fetched: of any number who ask at a time by one of them.

        Args:
            key: what it is.
            kept: gives what is kept, or None.
            fetch: gives it anew.
            will_do: whether what somebody else has fetched is of use; by default it is.
        """
        while True:
            with self._mutex:
                found = kept()
                if found is not None:
                    return found
                flight = self._flights.get(key)
                if flight is None:
                    flight = self._flights[key] = SingleFlight()
                    break
                joined = flight.register(self._inline)
            await flight.wait(joined)
            found = flight.found
            if found is not None and (will_do is None or will_do(found)):
                return found
        try:
            found = flight.found = await fetch()
        finally:
            with self._mutex:
                del self._flights[key]
            flight.complete()
        return found
