"""Work that a Future is the result of, as far as the Future needs to know it.

Whoever asks for the result may do the work, want it begun, or no longer want it. How it is done and
where is its own business.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Attached", "WhenLeft", "Work"]


class WhenLeft(Enum):
    """What becomes of work when a signal handler raised in the thread that waits for it."""

    #: It goes on to its end, and so it does when the process ends: it may change something.
    GOES_ON = auto()
    #: It goes on, but the end of the process stops it: it changes nothing.
    GOES_ON_UNTIL_EXIT = auto()
    #: It is cancelled: it consists of many changes, each of them whole, and can be continued.
    STOPS = auto()


class Work:
    """What a Future is the result of, as far as it is to be begun or stopped."""

    __slots__ = ()

    when_left = WhenLeft.GOES_ON

    def claim(self) -> bool:
        """Do it on this thread if nobody has begun it; whether it was done."""
        return False

    def stop(self) -> None:
        """Nobody wants it any more."""

    def hurry(self) -> None:
        """Begin it elsewhere now."""


class Attached(Work):
    """Work by its functions."""

    __slots__ = ("_claim", "_hurry", "_stop")

    def __init__(
        self,
        claim: Callable[[], bool] | None,
        stop: Callable[[], None],
        hurry: Callable[[], None] | None,
    ) -> None:
        self._claim = claim
        self._stop = stop
        self._hurry = hurry

    def claim(self) -> bool:
        return self._claim is not None and self._claim()

    def stop(self) -> None:
        self._stop()

    def hurry(self) -> None:
        if self._hurry is not None:
            self._hurry()
