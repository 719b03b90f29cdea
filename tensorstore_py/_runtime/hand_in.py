"""Handing jobs to the pool without waking a thread for each.

The commonest call is `store[...].read().result()`: the caller runs the job itself, and a worker
woken for it would only fight for the interpreter. So a new job waits here until its Future is
awaited or polled, until somebody asks for the result of another one, or until a tick passes without
new ones; whatever comes first has workers take all that waits. So a program may ask for many things
before the first one begins: that is what reads that share a chunk need, and a thread that holds the
interpreter. A ticker keeps that last promise, and sleeps when nothing was handed in for a while.
The one invariant: every job is here or begun, and what is here has a worker or the ticker coming;
also if a signal comes in the middle of `hand_in`, which is too short to be shielded from them.
"""

from __future__ import annotations

import atexit
from collections import deque
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Final, Protocol

from tensorstore_py._runtime.fork import on_fork
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py._runtime.workers import is_closed, submit, width

__all__ = ["TICK_S", "Handable", "hand_in", "send_all", "send_others"]

#: A job waits until nothing more was asked for in that time; at most so many times as long.
TICK_S: Final = 0.001
_PATIENCE: Final = 5
_MORE_PATIENCE: Final = 20  # with short jobs: beginning them would hold up who is asking
_IDLE_TICKS: Final = 20

#: A worker takes so many jobs, and then lets other work have its turn.
_TURN: Final = 16


class Handable(Protocol):
    """A job that can be run once, by anybody."""

    @property
    def begun(self) -> bool:
        """Whether somebody runs it, or did, or nobody is to."""

    @property
    def short(self) -> bool:
        """Whether threads would only be in each other's way."""

    def run(self) -> None:
        """Run it, if nobody has begun it; must not raise."""


class _Desk:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.waiting: deque[Handable] = deque()
        self.lock = Lock()
        self.bell: SimpleQueue[None] = SimpleQueue()
        self.awake = False
        self.ticker: Thread | None = None
        self.takers = 0
        self.asked = 0

    def hand_in(self, job: Handable) -> None:
        self.waiting.append(job)
        self.asked += 1  # about: all that matters is whether it changes
        if is_closed():
            self.take()
            return
        if not self.awake:
            if self.ticker is None:
                self.hire()
            self.bell.put(None)

    def send(self, most: int) -> bool:
        """See to it that up to `most` workers take what waits; whether anything does."""
        with self.lock:
            self.drop_begun()
            missing = min(len(self.waiting), 1 if self.is_short() else most) - self.takers
            if missing <= 0:
                return bool(self.waiting)
            self.takers += missing
        for _ in range(missing):
            submit(self.take_turn)
        return True

    def is_short(self) -> bool:
        """Whether the job that is next is."""
        try:
            return self.waiting[0].short
        except IndexError:
            return False

    def drop_begun(self) -> bool:
        """Forget jobs that need no worker; whether there were any."""
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

    def is_emptied(self) -> bool:
        """Whether those who asked are running short jobs themselves, one after the other."""
        with self.lock:
            return self.drop_begun() and not self.takers and self.is_short()

    def take_turn(self) -> None:
        """What a worker does: it runs some jobs, and comes again if there are more."""
        self.take(_TURN)
        with self.lock:
            self.takers = max(0, self.takers - 1)  # it may be a forked child that goes on here
        if is_closed():
            self.take()
        elif self.waiting:
            self.send(width())

    def take(self, most: int = -1) -> None:
        """Run jobs until there are none left, or that many were run."""
        while most:
            try:
                job = self.waiting.popleft()
            except IndexError:
                return
            job.run()
            del job  # or it would stay alive with its result
            most -= 1

    @uninterrupted
    def hire(self) -> None:
        with self.lock:
            if self.ticker is None:
                name = "tensorstore_py-ticker"
                self.ticker = Thread(target=self.tick, args=(self.bell,), name=name, daemon=True)
                self.ticker.start()

    def tick(self, bell: SimpleQueue[None]) -> None:
        while True:
            bell.get()
            self.awake = True
            idle = patience = asked = 0
            while idle < _IDLE_TICKS:
                sleep(TICK_S)
                most = _MORE_PATIENCE if self.is_short() else _PATIENCE
                if self.asked != asked and patience < most:
                    # Whoever is asking goes on asking.
                    asked, patience = self.asked, patience + 1
                    continue
                patience = 0
                if self.is_emptied():
                    continue
                idle = 0 if self.send(width()) else idle + 1
            self.awake = False
            # A job handed in just before that line saw a ticker awake and rang no bell.
            if self.waiting:
                bell.put(None)


_desk = _Desk()


def hand_in(job: Handable) -> None:
    """Have `job` run soon, on whichever thread is best."""
    _desk.hand_in(job)


def send_all() -> None:
    """Have workers begin whatever was handed in: somebody waits for it without running it."""
    _desk.send(width())


def send_others() -> None:
    """The same, by a thread that runs one of the jobs itself, and so is one of those at work.

    If it goes on like this it has run all short ones sooner than with help.
    """
    if _desk.waiting and not _desk.is_short():
        _desk.send(max(1, width() - 1))


on_fork(_desk.reset)
atexit.register(send_all)
