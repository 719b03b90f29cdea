"""Retries of optimistic changes: how often, and how long to wait in between.

An optimistic change looks at what is stored, and stores on the condition that it is still that. It
is tried again when others were faster, so there has to be an end, and a wait that spreads those
that lost: they return at random moments of a span that doubles with each attempt ("full jitter").
`RetryPolicy` says how often and how long, `Attempts` counts for one operation, and `Clock` is where
time and chance come from, so that tests count waits instead of waiting. The invariant: every
operation ends after so many attempts, with an error that says how many there were.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from tensorstore_py._runtime.signals import give_way
from tensorstore_py.errors import AbortedError, TensorStoreError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONFLICTS", "DOUBTS", "Attempts", "Clock", "RetryPolicy"]

# Of the system: a program that seeds `random`, in all its processes alike, changes nothing here,
# and its own sequence is not disturbed.
_CHANCE = random.SystemRandom()


class Clock:
    """Time and chance."""

    def now(self) -> float:
        """Seconds, from some moment on."""
        return time.monotonic()

    def chance(self) -> float:
        """A number in [0, 1)."""
        return _CHANCE.random()

    def block(self, seconds: float) -> None:
        """Wait on this thread."""
        time.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        """Wait in a task of the event loop."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try, and how long to wait in between.

    Args:
        attempts: how many there are at most.
        fruitless: how many of them in a row may find the state that the one before found: then
            others were not faster, and more attempts would not help.
        initial_s: the longest wait after the first attempt; doubled after each further one.
        longest_s: the longest wait of all.
        deadline_s: after how many seconds no further attempt is begun; None for no limit.

    Attributes:
        clock: the one of the process; tests replace it.

    Example:
        >>> policy = RetryPolicy(attempts=3, initial_s=0.1, longest_s=0.3)
        >>> [policy.longest_wait_s(number) for number in (1, 2, 3)]
        [0.1, 0.2, 0.3]
    """

    clock: ClassVar[Clock] = Clock()

    attempts: int = 1000
    fruitless: int = 32
    initial_s: float = 0.0005
    longest_s: float = 1.0
    deadline_s: float | None = None

    def begin(self, action: str, where: Callable[[], str], *, inline: bool) -> Attempts:
        """The attempts of one operation.

        Args:
            action: what is tried, as a verb.
            where: names the key; only called for an error.
            inline: whether a wait blocks the thread, as inline stores do.
        """
        return Attempts(self, action, where, inline)

    def longest_wait_s(self, failed: int) -> float:
        """The longest wait after so many attempts."""
        return min(self.longest_s, self.initial_s * 2.0 ** min(failed - 1, 64))


#: Others changed it first. Whenever one loses another one wins, so all get through in the end: the
#: waits thin the crowd out until an attempt in a few succeeds. A thousand are for the worst luck.
CONFLICTS: Final = RetryPolicy()
#: The answer to a conditional write was lost, so that it is not known whether it was made.
DOUBTS: Final = RetryPolicy(attempts=9, fruitless=9, initial_s=0.01)


class Attempts:
    """The attempts of one operation.

    Attributes:
        failed: how many were in vain so far.

    Example:
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> policy = RetryPolicy(attempts=2, initial_s=0)
        >>> attempts = policy.begin("update", lambda: '"a"', inline=True)
        >>> run_inline(attempts.lost(b"1"))
        >>> run_inline(attempts.lost(b"2"))
        Traceback (most recent call last):
        ...
        tensorstore_py.errors.AbortedError: cannot update "a": others changed it first, ...
    """

    __slots__ = (
        "_action", "_began", "_fruitless", "_inline", "_policy", "_seen", "_where", "failed",
    )  # fmt: skip

    def __init__(
        self, policy: RetryPolicy, action: str, where: Callable[[], str], inline: bool
    ) -> None:
        self._policy = policy
        self._action = action
        self._where = where
        self._inline = inline
        self._began: float | None = None
        self._seen: object = None
        self._fruitless = 0
        self.failed = 0

    async def lost(self, seen: object = None, error: TensorStoreError | None = None) -> None:
        """An attempt was in vain: wait before the next one.

        It rested on what it had `seen`, such as a generation; None if that is not known.

        Raises:
            AbortedError: it was the last one, and others were faster each time.
            UnavailableError: again and again it was refused although nothing had changed.
            TensorStoreError: `error`, if there is one.
        """
        policy, clock = self._policy, RetryPolicy.clock
        if self._began is None:
            self._began = clock.now()
        self.failed += 1
        same = seen is not None and seen == self._seen
        self._fruitless = self._fruitless + 1 if same else 1
        self._seen = seen
        wait_s = clock.chance() * policy.longest_wait_s(self.failed)
        late = (
            policy.deadline_s is not None and clock.now() + wait_s > self._began + policy.deadline_s
        )
        if self.failed >= policy.attempts or self._fruitless >= policy.fruitless or late:
            raise (self._error(same) if error is None else error) from None
        if not wait_s:
            return
        if self._inline:
            clock.block(wait_s)
            await give_way()
        else:
            await clock.pause(wait_s)

    def _error(self, same: bool) -> TensorStoreError:
        begin = f"cannot {self._action} {self._where()}"
        if same:
            return UnavailableError(
                f"{begin}: it was refused {self._fruitless} times in a row as changed by others, "
                f"although each time what was stored was the same ({self.failed} attempts); look "
                f"for a cache in between or a store that does not heed conditions, or try later",
                self.failed,
            )
        return AbortedError(
            f"{begin}: others changed it first, {self.failed} times (attempt {self.failed}); try "
            f"again when fewer change it at a time",
            self.failed,
        )
