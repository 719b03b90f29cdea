"""When to try again: delays, what the server asks for, limits.

What follows a failed attempt, decided by `RetryState.delay_after` in this order:

| the failure | next attempt |
|---|---|
| `NONE`, or the third one of `LITTLE` | none |
| more than `max_retries` | none |
| a closed connection, or one that a write may have gone through by: the first time | at once |
| the server says when, later than in five minutes, or than the deadline | none |
| the server says when | then, or after the usual delay if that is longer |
| any other | after the retries resource's delay, with its jitter |

The budget is shared by everything that talks to one server: while it is empty, most requests fail,
and retries wait as long as they ever do instead of adding to the crowd. The invariant: a request is
sent at most once more than the limit says.

A program that waits for a server must not look as if it hung: what is waited for is logged as a
warning after a few seconds, and now and then, once for all requests to that server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final
from weakref import WeakValueDictionary

from tensorstore_py._net.failures import Failure, Retryability

if TYPE_CHECKING:
    from tensorstore_py._spec.limits import RetriesModel

__all__ = ["HttpTiming", "RetryBudget", "RetryState"]

_logger: Final = logging.getLogger("tensorstore_py.network")
#: For so long retries go unnoticed, and after a warning for so long.
_QUIET_S: Final = 3.0
_BETWEEN_S: Final = 30.0
#: A server that asks to wait for longer than that: the user is told so at once.
LONGEST_WISH_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class HttpTiming:
    """The clock and the pause that retrying goes by; tests bring their own.

    Attributes:
        now: seconds since the epoch.
        sleep: waits that many seconds.
    """

    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


class RetryBudget:
    """How many quick retries a server gets; earned back by answers. When it was last warned of it.

    Example:
        >>> budget = RetryBudget(1)
        >>> budget.take(), budget.take()
        (True, False)
    """

    EARNED: Final = 0.2
    _by_origin: ClassVar[WeakValueDictionary[str, RetryBudget]] = WeakValueDictionary()

    def __init__(self, tokens: float = 500.0) -> None:
        self._most = tokens
        self._left = tokens
        self._warned = float("-inf")

    @classmethod
    def of(cls, origin: str) -> RetryBudget:
        """The one for a server."""
        found = cls._by_origin.get(origin)
        if found is None:
            found = cls._by_origin[origin] = cls()
        return found

    def take(self) -> bool:
        """Take a token for a quick retry, if there is one."""
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def earn(self) -> None:
        """The server answered."""
        self._left = min(self._most, self._left + self.EARNED)

    def take_warning(self, now: float) -> bool:
        """Whether it is time to warn (again) that requests to the server wait."""
        if 0 <= now - self._warned < _BETWEEN_S:
            return False
        self._warned = now
        return True


class RetryState:
    """How one request went so far.

    Args:
        retries: how often, and after which delays.
        budget: of the server.
        deadline: seconds since the epoch after which no attempt may begin; None for no limit.
        eager: whether the first attempt that may have been carried out is followed by another one
            at once.

    Attributes:
        attempts: how many have failed.
        ambiguous: one of them may have been carried out.
        lost: of one of these no answer came at all.
    """

    __slots__ = (
        "_began",
        "_budget",
        "_deadline",
        "_eager",
        "_excused",
        "_prompted",
        "_retries",
        "_unlikely",
        "ambiguous",
        "attempts",
        "lost",
    )

    def __init__(
        self,
        retries: RetriesModel,
        budget: RetryBudget,
        deadline: float | None = None,
        *,
        eager: bool = False,
    ) -> None:
        self._retries = retries
        self._budget = budget
        self._deadline = deadline
        self._eager = eager
        self._prompted = False
        self._unlikely = 0
        self._began: float | None = None
        self._excused: set[object] = set()
        self.attempts = 0
        self.ambiguous = False
        self.lost = False

    def may_excuse(self, reason: object) -> bool:
        """Whether an attempt that failed for a reason of ours need not count; once for each."""
        if reason in self._excused:
            return False
        self._excused.add(reason)
        return True

    def delay_after(self, failure: Failure, now: float) -> float | None:
        """How long to wait before the next attempt; None if there is to be none."""
        self.attempts += 1
        self.ambiguous = self.ambiguous or failure.may_have_run
        self.lost = self.lost or (failure.may_have_run and failure.response is None)
        if failure.retryability is not Retryability.FULL:
            self._unlikely += 1
            if self._unlikely > failure.retryability.value:
                return None
        if self.attempts > self._retries.max_retries:
            return None
        eager = self._eager and failure.may_have_run and failure.wait_s is None
        if (failure.is_prompt or eager) and not self._prompted:
            self._prompted = True
            return 0.0
        delay = self._retries.delay_s(self.attempts - 1)
        if not self._budget.take():
            delay = max(delay, self._retries.max_delay.seconds)
        if failure.wait_s is not None:
            if failure.wait_s > LONGEST_WISH_S:
                return None
            delay = max(delay, failure.wait_s)
        if self._deadline is not None and now + delay > self._deadline:
            return None
        return delay

    def warn(self, delay: float, now: float, problem: Callable[[], str]) -> None:
        """Log what is waited for, if that takes long already, or will.

        Args:
            delay: until the next attempt, in seconds.
            now: seconds since the epoch.
            problem: says what could not be done, and why.
        """
        if self._began is None:
            self._began = now
        if now + delay - self._began < _QUIET_S or not self._budget.take_warning(now):
            return
        _logger.warning(
            "still waiting: %s (attempt %d in %.0f s)", problem(), self.attempts + 1, delay
        )
