"""What it costs that one thread wakes another: measured once, when somebody first asks.

Threads of this interpreter take turns holding it, and whoever waits for a turn sleeps. How long it
takes to wake them is the machine's: under a hypervisor that has to wake a core, 20 µs and more.
Work in pieces that are not much longer than this is done sooner by one thread alone.
"""

from __future__ import annotations

import sys
from functools import cache
from threading import Lock, Thread
from time import perf_counter, thread_time

__all__ = ["Pace", "handover_s", "worth_sharing"]

_BOUTS = 6
_ROUNDS = 5

#: By so many pieces in a row is judged how long one takes; at first, and from then on.
_TRIED = 2
_REMEMBERED = 8

#: Sharing work out pays where a piece takes so many times as long as a handover.
_WORTH = 2.5

#: A piece that opens, reads, closes and decodes hands the interpreter over so often.
_TURNS = 8.0


def worth_sharing(piece_s: float) -> bool:
    """Whether two threads do pieces of work that take so long faster than one."""
    return piece_s >= _WORTH * handover_s()


class Pace:
    """How long pieces of one kind of work take a thread, going by those that were done last.

    Of several the quickest counts: any of them may have waited for something. What a thread has
    computed is no longer for others being in its way; what it waits for, as for a disk, others may
    use.

    Attributes:
        short: whether they are better done by one thread, which also finds out.

    Example:
        >>> pace = Pace()
        >>> for _ in range(10):
        ...     began = pace.begin()
        ...     pace.end(began, 1)
        >>> pace.short
        True
    """

    __slots__ = ("_computed", "_left", "_passed", "short")

    def __init__(self) -> None:
        self.short = True
        self._forget(_TRIED)

    def _forget(self, until: int) -> None:
        self._left = until
        self._computed = self._passed = float("inf")

    def begin(self) -> tuple[float, float]:
        """Some pieces are begun on this thread; what to give to `end`."""
        return perf_counter(), thread_time()

    def end(self, began: tuple[float, float], pieces: int) -> None:
        """So many pieces are done, one after the other. Threads may call it at a time."""
        self._passed = min(self._passed, (perf_counter() - began[0]) / pieces)
        self._computed = min(self._computed, (thread_time() - began[1]) / pieces)
        self._left -= 1  # about
        if self._left <= 0:
            in_turns = _TURNS * handover_s()
            self.short = self._computed < in_turns and self._passed < 2 * in_turns
            self._forget(_REMEMBERED)


@cache
def handover_s() -> float:
    """The time from one thread's setting a lock free to another's having it, in s.

    The median of some rounds; of several bouts the longest, each with a thread of its own: two
    threads that happen to be on one core have the lock sooner, but then nothing is done at a time.

    Example:
        >>> 0 < handover_s() < 1
        True
    """
    return max(_bout() for _ in range(_BOUTS))


def _bout() -> float:
    there, back = Lock(), Lock()
    there.acquire()
    back.acquire()

    def answer() -> None:
        for _ in range(_ROUNDS):
            there.acquire()
            back.release()

    other = Thread(target=answer, name="tensorstore_py-handover", daemon=True)
    try:
        if sys.is_finalizing():  # it would never begin
            return float("inf")
        other.start()
    except RuntimeError:  # no thread can be had, so none can share the work
        return float("inf")
    rounds = []
    for _ in range(_ROUNDS):
        began = perf_counter()
        there.release()
        back.acquire()
        rounds.append(perf_counter() - began)
    other.join()
    return sorted(rounds)[_ROUNDS // 2] / 2
