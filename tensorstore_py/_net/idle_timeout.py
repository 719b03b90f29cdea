"""The idle timeout: for how long nothing, or next to nothing, may move in an attempt.

Not how long it may take: a large value over a slow link is fine as long as enough of it moves. One
timer looks after all attempts of a store, which costs a fraction of a timer for each. The
invariant: an attempt in which nothing moved for the limit, or less than the rate while something
was on its way, ends with a `Failure` at most a quarter of the limit later; a cancellation of the
task by other code stays one.
"""

from __future__ import annotations

import asyncio
import math
import os
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from tensorstore_py._net.failures import Failure, Retryability
from tensorstore_py.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IdleTimeout", "IdleTimeouts", "idle_limit_s", "least_rate"]

_DEFAULT_S: Final = 60.0
#: The reference's name for the same limit.
_VARIABLE: Final = "TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS"
_RATE_VARIABLE: Final = "TENSORSTORE_CURL_LOW_SPEED_LIMIT_BYTES"
#: In bytes a second. So low that 32 requests at a time get on over the slowest of lines.
_DEFAULT_RATE: Final = 100.0


def idle_limit_s() -> float:
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


class IdleTimeouts:
    """The idle timeouts of a store.

    Args:
        limit_s: for how long nothing may move.
        least_rate: how many bytes a second have to move while something does, in each span of
            `limit_s`; 0 for any.

    Attributes:
        active: those of the attempts under way.
        rounds: the loops whose attempts are looked after.
    """

    def __init__(self, limit_s: float, least_rate: float = 0.0) -> None:
        self.limit_s = limit_s
        self.least_rate = least_rate
        self.active: set[IdleTimeout] = set()
        self.rounds: set[asyncio.AbstractEventLoop] = set()

    def watch(self) -> IdleTimeout:
        """For one attempt: `with timeouts.watch() as idle`."""
        return IdleTimeout(self)

    def begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to look after the attempts of a loop."""
        self.rounds.add(loop)
        loop.call_later(self.limit_s / 4, self._round, loop)

    def _round(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        here = [idle for idle in self.active if idle.loop is loop]
        for idle in here:
            idle.look()
            idle.judge(now)
        if here:
            loop.call_later(self.limit_s / 4, self._round, loop)
        else:
            self.rounds.discard(loop)


class IdleTimeout:
    """That of one attempt.

    A span of the rate begins when something begins to move, and anew whenever enough for a whole
    span did. While the server thinks, nothing moves and only the stall counts.

    Attributes:
        loop: where it runs.
        moved: the loop's time when something last moved; `progress()` sets it.
        count: how many bytes moved in this span.
    """

    __slots__ = (
        "_gave_up",
        "_is_receiving",
        "_others",
        "_since",
        "_slow",
        "_task",
        "_timeouts",
        "_unsent",
        "_waiting",
        "count",
        "loop",
        "moved",
    )

    def __init__(self, timeouts: IdleTimeouts) -> None:
        self._timeouts = timeouts
        self._gave_up = False
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
        self.loop = loop = asyncio.get_running_loop()
        self.moved = self._since = loop.time()
        timeouts = self._timeouts
        timeouts.active.add(self)
        if loop not in timeouts.rounds:
            timeouts.begin_round(loop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timeouts.active.discard(self)
        if not self._gave_up or self._task is None:
            return
        # As `asyncio.timeout` does: unless other code cancelled the task, too, it goes on.
        ours = self._task.uncancel() <= self._others
        if ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise self._failure() from None

    def progress(self, size: int = 0) -> None:
        """Something came or went: so many bytes."""
        self.moved = self.loop.time()
        self.count += size

    def received(self, size: int) -> None:
        """So many bytes of the answer came."""
        self.moved = now = self.loop.time()
        if self._is_receiving:
            self.count += size
        else:
            self._is_receiving = True
            self._since = now
            self.count = 0

    def awaits(self) -> None:
        """What came was not the answer yet, so the server thinks on."""
        self._is_receiving = False
        self.progress()

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
            self.progress(gone)

    def judge(self, now: float) -> None:
        """Give up if too little moved."""
        timeouts, unsent = self._timeouts, self._waiting
        is_flowing = timeouts.least_rate > 0 and (self._is_receiving or unsent > 0)
        if now - self.moved >= timeouts.limit_s:
            self.give_up()
        elif not is_flowing or self.count >= timeouts.least_rate * timeouts.limit_s:
            self._since, self.count = now, 0
        elif now - self._since >= timeouts.limit_s:
            self._slow = True
            self.give_up()

    def give_up(self) -> None:
        """Nothing moved for too long, or too little."""
        if self._task is not None and not self._gave_up:
            self._gave_up = True
            self._others = self._task.cancelling()
            self._task.cancel()

    def _failure(self) -> Failure:
        timeouts = self._timeouts
        if self._slow:
            return Failure(
                f"only {self.count} bytes moved in {timeouts.limit_s:g} s, which is less than "
                f"{timeouts.least_rate:g} a second ({_RATE_VARIABLE})",
                UnavailableError,
                Retryability.LITTLE,
                may_have_run=True,
            )
        return Failure(
            f"nothing moved for {timeouts.limit_s:g} s",
            UnavailableError,
            Retryability.FULL,
            may_have_run=True,
        )
