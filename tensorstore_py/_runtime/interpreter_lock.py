"""What is done only because the threads of an interpreter take turns: the scheduling rule.

Threads of an interpreter with a lock run its code one at a time, and a thread that waits for its
turn sleeps. To wake it costs a *thread switch*: under a hypervisor that has to wake a core, 20 µs
and more. So there is one rule, for all work:

    The thread that asks for work does it, unless a second thread ends it sooner, and that is so
    if a piece of the work takes several times as long as a thread switch.

The cost of a switch is measured once (`switch_cost_s`). How long a piece takes, its *grain*, is
known in one of three ways, and each is asked for in one place:

    place             a piece           its grain is judged by        if it is too small
    fan_out, large    SHARE_BYTES of    that many bytes are decoded   there are no more helpers
      steps             data              in several switches           than such pieces
    fan_out, small    a step, or a      the steps before in the       the calling thread goes on
      steps             chunk of it       same fan-out                  alone (`worth_sharing`)
    submission_queue  an operation      the operations before of      it is run by its caller, or
                                          its kind (`GrainEstimate`)    by one worker instead of all

A system call sets the interpreter free for a moment, and so wakes a thread that finds it taken
again. Stretches of many short ones are made one after the other for that reason (`IoLock`).

An interpreter without a lock (`sys._is_gil_enabled()` of Python 3.13 and later) has none of this: a
switch is taken to cost nothing, so that no piece that is measured is too small, no operation is
short, and an `IoLock` lets all threads in. Only `SHARE_BYTES` stays: to wake a thread takes time.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache
from threading import Lock, Thread
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.fork import Forkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "SHARE_BYTES",
    "GrainEstimate",
    "IoLock",
    "interpreter_lock",
    "share",
    "switch_cost_s",
    "worth_sharing",
]

#: One thread for every so many bytes that the steps of a fan-out compute on.
SHARE_BYTES: Final = 2**19

#: To share pieces of one operation pays where a piece takes so many times as long as a switch.
_WORTH = 2.5

#: An operation on one small chunk opens, reads, closes and decodes: so often do threads that do
#: such operations side by side hand the interpreter over to each other.
_SWITCHES = 8.0

#: By so many pieces in a row is judged how long one takes; at first, and from then on.
_FIRST_PIECES = 2
_MORE_PIECES = 8

#: Once it is known how long they take, one of so many operations is measured: clocks of threads
#: are slow.
_SAMPLE = 8

_BOUTS = 6
_ROUNDS = 5

#: How long to wait for an `IoLock`, and how many stretches after that do not take it at all.
_PATIENCE_S: Final = 0.002
_FREE: Final = 64


def interpreter_lock() -> bool:
    """Whether threads of this interpreter take turns."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or enabled()


def switch_cost_s() -> float:
    """The time from one thread's releasing a lock to another's having it, in s; 0: not considered.

    The median of some rounds; of several bouts the longest, each with a thread of its own: two
    threads that happen to be on one core have the lock sooner, but then they do not run at a time.
    """
    # An extension that was not made for it turns the lock on when it is imported, at any time.
    return _measured_switch_s() if interpreter_lock() else 0.0


@cache
def _measured_switch_s() -> float:
    return max(_bout() for _ in range(_BOUTS))


def _bout() -> float:
    there, back = Lock(), Lock()
    there.acquire()
    back.acquire()

    def answer() -> None:
        for _ in range(_ROUNDS):
            there.acquire()
            back.release()

    other = Thread(target=answer, name="tensorstore_py-switch-cost", daemon=True)
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


def worth_sharing(piece_s: float) -> bool:
    """Whether two threads do the pieces of an operation, which take so long, faster than one."""
    return piece_s >= _WORTH * switch_cost_s()


#: What `share` keeps.
_shared: list[object] = []


def share(objects: Iterable[object]) -> None:
    """Have threads find these objects as keys of a dict without waiting for each other.

    They are kept for good. An interpreter without a lock looks into a dict without a lock of the
    dict only if it can take hold of the key that it finds there; and of an object that one thread
    alone has ever held, another thread cannot. So here another thread takes hold of them.

    Args:
        objects: iterated over in that thread.
    """
    if not interpreter_lock():
        holder = Thread(target=_shared.extend, args=(objects,), name="tensorstore_py-share")
        holder.start()
        holder.join()


class GrainEstimate:
    """How long operations of one kind take a thread, going by those that were done last.

    Of several the quickest counts: any of them may have waited for something. The time that a
    thread computes does not grow because others are in its way; the time that it waits, as for a
    disk, others may use.

    Attributes:
        short: whether they are better done by one thread, which also finds out.
    """

    __slots__ = ("_computed", "_every", "_left", "_passed", "_skipped", "short")

    def __init__(self) -> None:
        self.short = interpreter_lock()
        self._skipped = 0
        self._every = 1
        self._forget(_FIRST_PIECES)

    def _forget(self, until: int) -> None:
        self._left = until
        self._computed = self._passed = float("inf")

    def samples(self) -> bool:
        """Whether the next piece is to be measured, where each is an operation of its own."""
        self._skipped += 1  # about
        if self._skipped < self._every:
            return False
        self._skipped = 0
        return True

    def begin(self) -> tuple[float, float]:
        """Some pieces are begun on this thread; what to give to `end`."""
        return perf_counter(), thread_time()

    def end(self, began: tuple[float, float], pieces: int) -> None:
        """So many pieces are done, one after the other. Threads may call it at a time."""
        self._passed = min(self._passed, (perf_counter() - began[0]) / pieces)
        self._computed = min(self._computed, (thread_time() - began[1]) / pieces)
        self._left -= 1  # about
        if self._left <= 0:
            switches_s = _SWITCHES * switch_cost_s()
            self._every = _SAMPLE
            self.short = self._computed < switches_s and self._passed < 2 * switches_s
            self._forget(_MORE_PIECES)


class IoLock(Forkable):
    """A best-effort lock for stretches of many short system calls; meanwhile others compute.

    No thread waits long: where a stretch turns out to be slow, as on a disk that is busy, threads
    go on without the lock.
    """

    def __init__(self) -> None:
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        self._lock = Lock()
        self._free = 0

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """A stretch of calls whose thread has the lock, or has waited for it long enough."""
        if self._free > 0:
            self._free -= 1  # threads may miscount it together, even to below zero: it is a hint
            yield
            return
        if not interpreter_lock():
            yield
            return
        if not self._lock.acquire(timeout=_PATIENCE_S):
            self._free = _FREE
            yield
            return
        try:
            yield
        finally:
            self._lock.release()
