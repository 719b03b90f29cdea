"""Who runs the library's loop: its own thread, or in turns the threads that wait for results.

A thread that waits has nothing else to do, and runs the loop itself meanwhile: so a request goes
out and its answer comes in without the interpreter changing hands, which takes longer than all else
about a small one. The loop's own thread runs it whenever nobody does:

    the loop is  run by                what is begun           until
    attended     its own thread        wakes it, once a batch  a thread waits that can run it, and
                                                               nothing waits that cannot
    driven       a thread that waits   wakes it, once a batch  that has its result, or a signal came
    lent         nobody, for a tick    waits for the tick      a thread waits that can run it, a
                                                               tick passed, something waits that
                                                               cannot

What cannot run it is what awaits a result, polls, or waits with a limit. While the loop is lent,
its own thread looks once a tick whether there was another turn. So threads that ask for one thing
after the other take turns at no cost, and nothing on the loop waits for longer than two ticks
because of them.

The invariant: one thread at a time runs the loop, and begins what was submitted, in order; if none
does, the loop's own thread looks within two ticks. A signal ends the turn of the main thread, which
then waits as any other does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from queue import Empty, SimpleQueue
from threading import Lock, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

from tensorstore_py._runtime import future as _future
from tensorstore_py._runtime.signals import notified, pending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["TICK_S", "LoopTurns", "Turn"]

#: For so long the loop is left to threads that take turns.
TICK_S: Final = 0.001
#: So rarely its own thread looks while one turn goes on and on.
_LONGEST_S: Final = 0.05


class Turn(Protocol):
    """What is done on the loop.

    Attributes:
        is_wanted: something waits for it that cannot run the loop.
        is_over: it is done.
    """

    is_wanted: bool
    is_over: bool

    def begin(self) -> None:
        """Begin it; called by the thread that runs the loop."""


class LoopTurns:
    """See the head of this file.

    Args:
        loop: not running.

    Attributes:
        loop: as given.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        # Other loops expect to stay on one thread.
        self._is_shared = isinstance(loop, asyncio.SelectorEventLoop)
        self._lock = Lock()
        #: Held by the thread that runs the loop.
        self._baton = Lock()
        #: True: attend to the loop now; False: look again.
        self._bell: SimpleQueue[bool] = SimpleQueue()
        self._waiting: deque[Turn] = deque()
        self._is_posted = False
        self._is_attended = False
        self._is_driven = False
        self._is_ending = False
        self._turns = 0
        self._wanted = 0
        self._driver_waits_for: Turn | None = None

    # By any thread.

    def submit(self, turns: Iterable[Turn]) -> None:
        """Have them begun soon, one right after the other."""
        self._waiting.extend(turns)
        with self._lock:
            is_run = self._is_attended or self._is_driven or self._is_ending
            if not is_run or (self._is_posted and not self._is_ending):
                return
            self._is_posted = True
        self.loop.call_soon_threadsafe(self._begin_waiting)

    def want(self, turn: Turn) -> None:
        """Something waits for it that cannot run the loop."""
        with self._lock:
            if turn.is_over or turn.is_wanted:
                return
            turn.is_wanted = True
            self._wanted += 1
        self.attend()

    def attend(self) -> None:
        """Have the loop run by its own thread, if no other one does."""
        if not (self._is_attended or self._is_driven):
            self._bell.put(True)

    def drive(self, turn: Turn) -> None:
        """Run the loop on this thread until that is over, if this is not in the way of others.

        Or until a signal comes.
        """
        if not self._is_shared or asyncio._get_running_loop() is not None:
            return
        with self._lock:
            is_attended = self._is_attended
            if self._is_driven or self._is_ending or (is_attended and self._wanted):
                return
            self._is_driven = True
            self._turns += 1
        if is_attended:
            self.loop.call_soon_threadsafe(self.loop.stop)
        began = monotonic()
        try:
            while not self._baton.acquire(timeout=_LONGEST_S):
                if pending():
                    return
            try:
                self._run_until(turn)
            finally:
                _future.loop_thread[0] = None
                self._baton.release()
        finally:
            self._leave(began)

    def _run_until(self, turn: Turn) -> None:
        loop = self.loop
        _future.loop_thread[0] = get_ident()
        self._driver_waits_for = turn
        try:
            self._begin_waiting()
            with notified(self._interrupt):
                while not (turn.is_over or self._is_ending or pending()):
                    loop.run_forever()
        finally:
            self._driver_waits_for = None

    def _leave(self, began: float) -> None:
        with self._lock:
            self._is_driven = False
            wanted = self._wanted
        if wanted:
            self._bell.put(True)
        elif monotonic() - began > TICK_S:
            self._bell.put(False)

    def _interrupt(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)

    # By the thread that runs the loop.

    def over(self, turn: Turn) -> None:
        """It is done."""
        with self._lock:
            if turn.is_over:
                return
            turn.is_over = True
            self._wanted -= turn.is_wanted
        if turn is self._driver_waits_for:
            self.loop.stop()

    def _begin_waiting(self) -> None:
        with self._lock:
            self._is_posted = False
        waiting = self._waiting
        while waiting:
            waiting.popleft().begin()

    # By the loop's own thread.

    def run(self, ready: Callable[[], object]) -> None:
        """Run the loop whenever nobody else does, until `end`; `ready` is called on it."""
        self.loop.call_soon(ready)
        while not self._is_ending:
            with self._lock:
                self._is_attended = not self._is_driven
            if self._is_attended:
                with self._baton:
                    _future.loop_thread[0] = get_ident()
                    self._begin_waiting()
                    self.loop.run_forever()
                    _future.loop_thread[0] = None
                    with self._lock:
                        self._is_attended = False
            self._lend()
        self._baton.acquire()
        _future.loop_thread[0] = get_ident()
        self._begin_waiting()
        # Whatever asked it to stop has to be behind it: it is run to its end now.
        self.loop.stop()
        self.loop.run_forever()

    def _lend(self) -> None:
        """Leave the loop to others until nobody takes a turn."""
        wait_s, seen = TICK_S, -1
        while not self._is_ending:
            try:
                is_asked = self._bell.get(timeout=wait_s)
            except Empty:
                is_asked = False
            is_driven, turns = self._is_driven, self._turns
            if not is_driven and (is_asked or turns == seen):
                return
            wait_s = min(2 * wait_s, _LONGEST_S) if is_driven and turns == seen else TICK_S
            seen = turns

    # By the thread that ends the interpreter.

    def end(self) -> None:
        """Have `run` return."""
        self._is_ending = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._bell.put(True)
