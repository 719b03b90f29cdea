"""Waits that are counted instead of waited: the clock of tests of what is tried again.

    with CountedWaits() as waits:
        ...  # an update that loses to others again and again
    assert len(waits.seconds) == 999

It is the process's clock of `RetryPolicy` as long as it is entered, so that no test need wait for a
back-off, and every test can say how many there were. Chance is as long as a wait can be.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tensorstore_py._runtime.retry import Clock, RetryPolicy

__all__ = ["CountedWaits"]


class CountedWaits(Clock):
    """A clock that passes only by the waits that are asked of it.

    Args:
        chance: how much of each span is waited, from 0 to 1.

    Attributes:
        seconds: the waits, in order.

    Example:
        >>> with CountedWaits() as waits:
        ...     RetryPolicy.clock.block(0.5)
        >>> waits.seconds
        [0.5]
    """

    def __init__(self, chance: float = 1.0) -> None:
        self.seconds: list[float] = []
        self._chance = chance
        self._before: list[Clock] = []

    def now(self) -> float:
        return sum(self.seconds)

    def chance(self) -> float:
        return self._chance

    def block(self, seconds: float) -> None:
        self.seconds.append(seconds)

    async def pause(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def __enter__(self) -> Self:
        self._before.append(RetryPolicy.clock)
        RetryPolicy.clock = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        RetryPolicy.clock = self._before.pop()
