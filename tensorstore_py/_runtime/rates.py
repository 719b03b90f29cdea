"""How many a second: a bucket of tokens that fills with time, and tasks that wait for theirs.

The live value of the resources that limit a rate, for tasks of the library's loop. Whoever waits is
told at once when its turn is, so nothing polls, and turns come in the order of asking. The clock is
given, so that tests count instead of waiting. The invariant: over any span, no more turns are given
than the rate allows plus what had accrued unused, which is never more than `Rate.MOST_UNUSED`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

__all__ = ["Rate", "Rates"]

#: Who may ask so many times as often as at first is not limited any more.
_MOST_DOUBLINGS: Final = 40.0


class Rate:
    """At most so many turns a second.

    Args:
        per_second: at the start; a positive number.
        doubling_s: the rate doubles in that time, again and again; 0 to stay.
        now: a clock, in seconds.
        sleep: waits that many seconds.

    Attributes:
        per_second: as given.

    Example:
        >>> from tensorstore_py._runtime.inline import run_inline
        >>> waits = []
        >>> async def sleep(seconds):
        ...     waits.append(seconds)
        >>> rate = Rate(4, now=lambda: 0.0, sleep=sleep)
        >>> for _ in range(3):
        ...     run_inline(rate.turn())
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

    async def turn(self) -> None:
        """Wait for a turn; who is cancelled while waiting gives it back."""
        now = self._now()
        if self._doubling_s and now - self._began > _MOST_DOUBLINGS * self._doubling_s:
            return
        accrued = self._accrued(now) - self._accrued(self._seen)
        # What somebody waits for is below zero; the rest is unused.
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
        """How many turns there were for from the beginning until then."""
        elapsed = now - self._began
        if not self._doubling_s:
            return elapsed * self.per_second
        return self._growth() * math.expm1(math.log(2) * elapsed / self._doubling_s)

    def _when(self, accrued: float) -> float:
        """When there will have been so many turns."""
        if not self._doubling_s:
            return self._began + accrued / self.per_second
        return self._began + self._doubling_s * math.log1p(accrued / self._growth()) / math.log(2)

    def _growth(self) -> float:
        """How many turns the first doubling takes."""
        return self.per_second * self._doubling_s / math.log(2)


class Rates(NamedTuple):
    """The rates that a service may be asked at.

    Attributes:
        read: of reads and listings; None for no limit.
        write: of writes and deletes; None for no limit.
    """

    read: Rate | None = None
    write: Rate | None = None
