"""Handing jobs to the pool without waking a thread for each.

The commonest call is `store[...].read().result()`: the caller runs the job itself, and a worker
woken for it would only fight for the interpreter. So a new job waits here until its Future is
awaited or polled, until another job is handed in, or for one tick; whatever comes first sends it
to the pool. A ticker thread keeps that last promise and sleeps when nothing was handed in for a
while. The one invariant: every job is here, at the pool, or begun; none is lost or kept.
"""

from __future__ import annotations

import atexit
from collections import deque
from threading import Event, Lock, Thread
from time import sleep
from typing import Final, Protocol

from tensorstore_py._runtime.fork import on_fork
from tensorstore_py._runtime.workers import is_closed, submit

__all__ = ["TICK_S", "Handable", "hand_in"]

#: The longest that a job waits for somebody to ask for its result.
TICK_S: Final = 0.001
_IDLE_TICKS: Final = 20


class Handable(Protocol):
    """A job that can be run once, by anybody."""

    def claim_for_pool(self) -> bool:
        """Whether it still has to be sent to the pool; true for one caller only."""

    def run(self) -> None:
        """Run it, if nobody has begun it; must not raise."""


class _Desk:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.waiting: deque[Handable] = deque()
        self.lock = Lock()
        self.bell = Event()
        self.awake = False
        self.ticker: Thread | None = None

    def hand_in(self, job: Handable) -> None:
        self.waiting.append(job)
        if is_closed():
            self.send_all()
            return
        if len(self.waiting) > 1:
            self.send_one()
        if not self.awake:
            self.awake = True
            if self.ticker is None:
                self.hire()
            self.bell.set()

    def send_one(self) -> bool:
        """Send the job that waited longest; whether there was one."""
        try:
            job = self.waiting.popleft()
        except IndexError:
            return False
        if job.claim_for_pool():
            submit(job.run)
        return True

    def hire(self) -> None:
        with self.lock:
            if self.ticker is None:
                name = "tensorstore_py-ticker"
                self.ticker = Thread(target=self.tick, args=(self.bell,), name=name, daemon=True)
                self.ticker.start()

    def tick(self, bell: Event) -> None:
        while True:
            bell.wait()
            bell.clear()
            idle = 0
            while idle < _IDLE_TICKS:
                sleep(TICK_S)
                idle = 0 if self.send_all() else idle + 1
            self.awake = False
            # A job handed in just before that line saw a ticker awake and rang no bell.
            if self.waiting:
                self.awake = True
                bell.set()

    def send_all(self) -> bool:
        """Send every waiting job; whether there were any.

        Under the lock, so that at exit nothing is between here and the pool when the pool closes.
        """
        sent = False
        with self.lock:
            while self.send_one():
                sent = True
        return sent


_desk = _Desk()


def hand_in(job: Handable) -> None:
    """Have `job` run soon, on whichever thread is best."""
    _desk.hand_in(job)


on_fork(_desk.reset)
atexit.register(_desk.send_all)
