"""An event loop whose time jumps: hours of waiting take as long as what is computed in between.

Nothing but timers may be waited for. What would wait for ever is an error at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Instead of waiting, it says that the time has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("all tasks wait for something that never comes")
        if timeout > 0:
            self.now += timeout
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """See the head of this file."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        # Timers that are due within less count as due, and time has to get there.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._jumping.now


def simulated(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in no time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
