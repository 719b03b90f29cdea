"""What it costs that one thread wakes another: measured once, when somebody first asks.

Threads of this interpreter take turns holding it, and whoever waits for a turn sleeps. How long it
takes to wake them is the machine's: under a hypervisor that has to wake a core, 20 µs and more.
Work in pieces that are not much longer than this is done sooner by one thread alone.
"""

from __future__ import annotations

from functools import cache
from threading import Lock, Thread
from time import perf_counter

__all__ = ["handover_s", "worth_sharing"]

_ROUNDS = 12

#: Sharing work out pays where a piece takes so many times as long as a handover.
_WORTH = 4.0


def worth_sharing(piece_s: float) -> bool:
    """Whether two threads do pieces of work that take so long faster than one."""
    return piece_s >= _WORTH * handover_s()


@cache
def handover_s() -> float:
    """The time from one thread's setting a lock free to another's having it, in s; the least seen.

    Example:
        >>> 0 < handover_s() < 1
        True
    """
    there, back = Lock(), Lock()
    there.acquire()
    back.acquire()

    def answer() -> None:
        for _ in range(_ROUNDS):
            there.acquire()
            back.release()

    other = Thread(target=answer, name="tensorstore_py-handover", daemon=True)
    try:
        other.start()
    except RuntimeError:  # no thread can be had: then there is nobody to share with, either
        return float("inf")
    least = float("inf")
    for _ in range(_ROUNDS):
        began = perf_counter()
        there.release()
        back.acquire()
        least = min(least, perf_counter() - began)
    other.join()
    return least / 2
