"""For how long nothing, or next to nothing, may happen in an exchange, and who sees to it.

Not how long it may take: a large value over a slow link is fine as long as enough of it moves. One
timer looks after all exchanges of a store, which costs a fraction of a timer for each. The
invariant: an exchange in which nothing moved for the limit, or less than the rate while something
was on its way, ends with a `Failure` at most a quarter of the limit later; a cancellation by
anybody else stays one.
"""

from __future__ import annotations

import asyncio
import math
import os
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from tensorstore_py._net.failures import Failure, Patience
from tensorstore_py.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StallGuard", "Watch", "least_rate", "stall_limit_s"]

_DEFAULT_S: Final = 60.0
#: The reference's name for the same limit.
_VARIABLE: Final = "TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS"
_RATE_VARIABLE: Final = "TENSORSTORE_CURL_LOW_SPEED_LIMIT_BYTES"
#: In bytes a second. So low that 32 exchanges at a time get on over the slowest of lines.
_DEFAULT_RATE: Final = 100.0


def stall_limit_s() -> float:
    """The limit in seconds: what the environment says, else 60."""
    try:
        found = float(os.environ.get(_VARIABLE, ""))
    except ValueError:
        return _DEFAULT_S
    return found if found > 0 else _DEFAULT_S


def least_rate() -> float:
    """How many bytes a second have to move: what the environment says, else 100; 0 for any."""
    try:
        found = float(os.environ.get(_RATE_VARIABLE, ""))
    except ValueError:
        return _DEFAULT_RATE
    return found if 0 <= found < math.inf else _DEFAULT_RATE


class StallGuard:
    """Watches over exchanges.

    Args:
        limit_s: for how long nothing may move.
        least_rate: how many bytes a second have to move while something does, in each span of
            `limit_s`; 0 for any.
    """

    def __init__(self, limit_s: float, least_rate: float = 0.0) -> None:
        self.limit_s = limit_s
        self.least_rate = least_rate
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
        now = loop.time()
        here = [watch for watch in self._watches if watch.loop is loop]
        for watch in here:
            watch.look()
            watch.judge(now)
        if here:
            loop.call_later(self.limit_s / 4, self._round, loop)
        else:
            self._rounds.discard(loop)


class Watch:
    """One exchange, watched over.

    A span of the rate begins when something begins to move, and anew whenever enough for a whole
    span did. While the server thinks, nothing moves and only the stall counts.

    Attributes:
        loop: where it runs.
        moved: the loop's time when something last moved; `move()` sets it.
        count: how many bytes moved in this span.
    """

    __slots__ = (
        "_guard",
        "_is_receiving",
        "_others",
        "_since",
        "_slow",
        "_stalled",
        "_task",
        "_unsent",
        "_waiting",
        "count",
        "loop",
        "moved",
    )

    def __init__(self, guard: StallGuard) -> None:
        self._guard = guard
        self._stalled = False
        self._slow = False
        self._task: asyncio.Task[object] | None
        self._others = 0
        self._unsent: Callable[[], int] | None = None
        self._waiting = 0
        self._is_receiving = False
        self._since = 0.0
        self.loop: asyncio.AbstractEventLoop
        self.moved = 0.0
        self.count = 0

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self.loop = asyncio.get_running_loop()
        self.moved = self._since = self.loop.time()
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
            raise self._failure() from None

    def move(self, size: int = 0) -> None:
        """Something came or went: so many bytes."""
        self.moved = self.loop.time()
        self.count += size

    def receives(self) -> None:
        """The answer begins."""
        if not self._is_receiving:
            self._is_receiving = True
            self.moved = self._since = self.loop.time()
            self.count = 0

    def awaits(self) -> None:
        """What came was not the answer yet, so the server thinks on."""
        self._is_receiving = False
        self.move()

    def sends(self, unsent: Callable[[], int], waiting: int) -> None:
        """Something is on its way out: it moves if what `unsent` says changes from `waiting`."""
        self._unsent, self._waiting = unsent, waiting

    def sent(self, size: int) -> None:
        """So much more was given to be sent."""
        self.moved = self.loop.time()
        self._waiting += size

    def look(self) -> None:
        """See whether more was sent."""
        unsent = 0 if self._unsent is None else self._unsent()
        gone = self._waiting - unsent
        self._waiting = unsent
        if gone:
            self.move(gone)

    def judge(self, now: float) -> None:
        """Give up if too little moved.

        Args:
            now: the loop's time.
        """
        guard, unsent = self._guard, self._waiting
        is_flowing = guard.least_rate > 0 and (self._is_receiving or unsent > 0)
        if now - self.moved >= guard.limit_s:
            self.give_up()
        elif not is_flowing or self.count >= guard.least_rate * guard.limit_s:
            self._since, self.count = now, 0
        elif now - self._since >= guard.limit_s:
            self._slow = True
            self.give_up()

    def give_up(self) -> None:
        """Nothing moved for too long, or too little."""
        if self._task is not None and not self._stalled:
            self._stalled = True
            self._others = self._task.cancelling()
            self._task.cancel()

    def _failure(self) -> Failure:
        guard = self._guard
        if self._slow:
            return Failure(
                f"only {self.count} bytes moved in {guard.limit_s:g} s, which is less than "
                f"{guard.least_rate:g} a second ({_RATE_VARIABLE})",
                UnavailableError,
                Patience.LITTLE,
                may_have_run=True,
            )
        return Failure(
            f"nothing moved for {guard.limit_s:g} s",
            UnavailableError,
            Patience.FULL,
            may_have_run=True,
        )
