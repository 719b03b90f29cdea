"""For how long nothing may happen in an exchange, and who sees to it.

Not how long it may take: a large value over a slow link is fine as long as something of it moves.
One timer looks after all exchanges of a store, which costs a fraction of a timer for each. The
invariant: an exchange in which nothing moved for the limit, and at most a quarter of it more, ends
with a `Failure`; a cancellation by anybody else stays one.
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from tensorstore_py._net.failures import Failure, Patience
from tensorstore_py.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StallGuard", "Watch", "stall_limit_s"]

_DEFAULT_S: Final = 60.0
#: The reference's name for the same limit.
_VARIABLE: Final = "TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS"


def stall_limit_s() -> float:
    """The limit in seconds: what the environment says, else 60."""
    try:
        found = float(os.environ.get(_VARIABLE, ""))
    except ValueError:
        return _DEFAULT_S
    return found if found > 0 else _DEFAULT_S


class StallGuard:
    """Watches over exchanges.

    Args:
        limit_s: for how long nothing may move.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._watches: set[Watch] = set()
        self._rounds: set[asyncio.AbstractEventLoop] = set()

    def watch(self) -> Watch:
        """For one exchange: `with guard.watch() as watch`."""
        return Watch(self)

    def add(self, watch: Watch) -> None:
        """Begin to look after it."""
        self._watches.add(watch)
        if watch.loop not in self._rounds:
            self._rounds.add(watch.loop)
            watch.loop.call_later(self.limit_s / 4, self._round, watch.loop)

    def drop(self, watch: Watch) -> None:
        """It is over."""
        self._watches.discard(watch)

    def _round(self, loop: asyncio.AbstractEventLoop) -> None:
        too_old = loop.time() - self.limit_s
        here = [watch for watch in self._watches if watch.loop is loop]
        for watch in here:
            watch.look()
            if watch.moved <= too_old:
                watch.give_up()
        if here:
            loop.call_later(self.limit_s / 4, self._round, loop)
        else:
            self._rounds.discard(loop)


class Watch:
    """One exchange, watched over.

    Attributes:
        loop: where it runs.
        moved: the loop's time when something last moved; `move()` sets it.
    """

    __slots__ = ("_guard", "_others", "_stalled", "_task", "_unsent", "_waiting", "loop", "moved")

    def __init__(self, guard: StallGuard) -> None:
        self._guard = guard
        self._stalled = False
        self._task: asyncio.Task[object] | None
        self._others = 0
        self._unsent: Callable[[], int] | None = None
        self._waiting = 0
        self.loop: asyncio.AbstractEventLoop
        self.moved = 0.0

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self.loop = asyncio.get_running_loop()
        self.moved = self.loop.time()
        self._guard.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._guard.drop(self)
        if not self._stalled or self._task is None:
            return
        # As `asyncio.timeout` does: unless somebody else cancelled the task, too, it goes on.
        ours = self._task.uncancel() <= self._others
        if ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise Failure(
                f"nothing moved for {self._guard.limit_s:g} s",
                UnavailableError,
                Patience.FULL,
                may_have_run=True,
            ) from None

    def move(self) -> None:
        """Something came or went."""
        self.moved = self.loop.time()

    def sends(self, unsent: Callable[[], int], waiting: int) -> None:
        """Something is on its way out: it moves if what `unsent` says changes from `waiting`."""
        self._unsent, self._waiting = unsent, waiting

    def look(self) -> None:
        """See whether more was sent."""
        if self._unsent is not None:
            waiting = self._unsent()
            if waiting != self._waiting:
                self._waiting = waiting
                self.move()

    def give_up(self) -> None:
        """Nothing moved for too long."""
        if self._task is not None and not self._stalled:
            self._stalled = True
            self._others = self._task.cancelling()
            self._task.cancel()
