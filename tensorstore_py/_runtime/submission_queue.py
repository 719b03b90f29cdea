"""Deferred submission queue: operations wait here until a worker is worth waking.

The commonest call is `store[...].read().result()`: the calling thread runs the operation itself,
and a worker that was woken for it would only compete for the interpreter. So a new job waits here.
It leaves the queue when the first of these happens:

    event                                        the job is run by   sent for the rest of the queue
    a thread asks for its result                 that thread         all workers but one; for short
                                                                       jobs none
    its Future is awaited, polled or forced      a worker            all workers; for short jobs one
    a tick passes without new jobs,              a worker            all workers; for short jobs one
      or `_MOST_TICKS` pass
    ... in which callers ran short jobs,         its caller          none
      one after the other

A job is short if the scheduling rule says so (`interpreter_lock`). So a program may ask for many
things before the first one begins, which is what reads that share a chunk need, and is not held up
by workers while it goes on asking. Where there is no interpreter lock workers hold nothing up, and
jobs wait for one tick at most. A ticker thread sees to the ticks, and sleeps when it has nothing to
do.

The invariant: every job is here or begun, and what is here has a worker or the ticker coming; also
if a signal comes in the middle of `enqueue`, which is too short to be shielded from them.
"""

from __future__ import annotations

import atexit
from collections import deque
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Final, Protocol

from tensorstore_py._runtime.executors import operations, width
from tensorstore_py._runtime.fork import on_fork
from tensorstore_py._runtime.interpreter_lock import interpreter_lock
from tensorstore_py._runtime.signals import uninterrupted

__all__ = ["TICK_S", "Runnable", "enqueue", "flush", "flush_others"]

#: A job waits until a tick passes without new ones; at most so many ticks.
TICK_S: Final = 0.001
_MOST_TICKS: Final = 20

#: After so many ticks without jobs the ticker sleeps until the next one.
_IDLE_TICKS: Final = 20

#: A worker takes so many jobs, and then gives other submitted work a chance.
_BATCH: Final = 16


class Runnable(Protocol):
    """A job that can be run once, by any thread."""

    @property
    def begun(self) -> bool:
        """Whether a thread runs it, or did, or none is to."""

    @property
    def short(self) -> bool:
        """Whether threads would only be in each other's way."""

    def run_on_worker(self) -> None:
        """Run it, if it has not begun; must not raise."""


class SubmissionQueue:
    """See the head of this file."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Begin empty, with no ticker."""
        self.waiting: deque[Runnable] = deque()
        self.lock = Lock()
        self.bell: SimpleQueue[None] = SimpleQueue()
        self.awake = False
        self.ticker: Thread | None = None
        self.workers = 0
        self.enqueued = 0

    def enqueue(self, job: Runnable) -> None:
        """Add a job."""
        self.waiting.append(job)
        self.enqueued += 1  # about: all that matters is whether it changes
        if operations.closed:
            self._run_all()
            return
        if not self.awake:
            if self.ticker is None:
                self._start_ticker()
            self.bell.put(None)

    def flush(self, most: int) -> bool:
        """See to it that up to `most` workers take what waits; whether anything does."""
        with self.lock:
            self._drop_begun()
            missing = min(len(self.waiting), 1 if self.is_short() else most) - self.workers
            if missing <= 0:
                return bool(self.waiting)
            self.workers += missing
        for _ in range(missing):
            operations.submit(self._work)
        return True

    def is_short(self) -> bool:
        """Whether the job that is next is."""
        try:
            return self.waiting[0].short
        except IndexError:
            return False

    def _drop_begun(self) -> bool:
        """Forget jobs at the head that need no worker; whether there were any."""
        waiting, found = self.waiting, False
        while True:
            try:
                job = waiting.popleft()
            except IndexError:
                return found
            if not job.begun:
                waiting.appendleft(job)
                return found
            found = True

    def _is_emptied_by_callers(self) -> bool:
        """Whether callers run short jobs themselves, one after the other."""
        with self.lock:
            return self._drop_begun() and not self.workers and self.is_short()

    def _work(self) -> None:
        """What a worker does: it runs some jobs, and is submitted again if there are more."""
        self._run_all(_BATCH)
        with self.lock:
            self.workers = max(0, self.workers - 1)  # it may be a forked child that goes on here
        if operations.closed:
            self._run_all()
        elif self.waiting:
            self.flush(width())

    def _run_all(self, most: int = -1) -> None:
        """Run jobs until there are none left, or that many were run."""
        while most:
            try:
                job = self.waiting.popleft()
            except IndexError:
                return
            job.run_on_worker()
            del job  # or it would stay alive with its result
            most -= 1

    @uninterrupted
    def _start_ticker(self) -> None:
        with self.lock:
            if self.ticker is None:
                name = "tensorstore_py-ticker"
                self.ticker = Thread(target=self.tick, args=(self.bell,), name=name, daemon=True)
                self.ticker.start()

    def tick(self, bell: SimpleQueue[None]) -> None:
        """What the ticker does, for good."""
        most = _MOST_TICKS if interpreter_lock() else 0
        while True:
            bell.get()
            self.awake = True
            idle = waited = enqueued = 0
            while idle < _IDLE_TICKS:
                sleep(TICK_S)
                if self.enqueued != enqueued and waited < most:
                    enqueued, waited = self.enqueued, waited + 1
                    continue
                waited = 0
                if self._is_emptied_by_callers():
                    continue
                idle = 0 if self.flush(width()) else idle + 1
            self.awake = False
            # A job enqueued just before that line saw a ticker awake and rang no bell.
            if self.waiting:
                bell.put(None)


_queue = SubmissionQueue()


def enqueue(job: Runnable) -> None:
    """Have `job` run soon, on the thread that the table at the head of this file says."""
    _queue.enqueue(job)


def flush() -> None:
    """Have workers begin what waits: a result is awaited, and not by a thread that runs it."""
    _queue.flush(width())


def flush_others() -> None:
    """The same, by a thread that runs one of the jobs itself, and so counts as a worker.

    If it goes on like this it has run all short ones sooner than with help.
    """
    if _queue.waiting and not _queue.is_short():
        _queue.flush(max(1, width() - 1))


on_fork(_queue.after_fork)
atexit.register(flush)
