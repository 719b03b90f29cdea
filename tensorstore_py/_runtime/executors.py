"""Named executors: a few threads for each kind of work, by what the work may wait for.

    executor       work                                      may wait for
    operations     operations, and helpers of their fan-outs  memory, locks, all below
    waiters        such helpers, where the steps wait for a   the same
                   device for a good part of their time
    continuations  what a thread left because of a signal,    the same; as many threads as needed
                   or to begin other work meanwhile
    parts          parts of work that holds memory which      memory of the same operation,
                   new operations wait for                    computations
    computations   plain functions that the loop hands over   nothing

So work that holds what other work waits for always finds a thread. Threads are daemons and start on
demand, up to `width()` an executor, and `waiting_width()` waiters. At exit, submitted work is
finished within `EXIT_GRACE_S`; what is still running then is abandoned, so that exit never hangs,
and work that is submitted later runs at once in the thread that submits it, since no thread can be
started any more. A forked child begins with no threads and empty queues.

`thread_pool` and `process_pool` make executors of the standard library for one block of code.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, Thread, local, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.fork import on_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor as StandardExecutor

__all__ = [
    "EXIT_GRACE_S",
    "Executor",
    "computations",
    "continuations",
    "on_worker",
    "operations",
    "parts",
    "process_pool",
    "submissions",
    "thread_pool",
    "waiters",
    "waiting_width",
    "width",
]

EXIT_GRACE_S: Final = 30.0

#: Threads that wait for a device, for each that computes.
_WAITING: Final = 4


class _Here(local):
    worker: bool = False


class Executor:
    """Daemon threads that run what is submitted, in that order.

    Attributes:
        threads: those that were started.
        unfinished: how many submitted functions have not returned.
        submitted: how many functions were submitted.
        closed: whether what is submitted runs in the thread that submits it.
    """

    def __init__(self, name: str, most: Callable[[], int]) -> None:
        self.name = name
        self.most = most
        self.after_fork()
        on_fork(self.after_fork)

    def after_fork(self) -> None:
        """Begin with no threads and an empty queue."""
        self._lock = Lock()
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.threads: list[Thread] = []
        self.unfinished = 0
        self.submitted = 0
        # Where nothing was used before the exit began, nobody says when it does.
        self.closed = sys.is_finalizing() or not main_thread().is_alive()

    def submit(self, work: Callable[[], None]) -> None:
        """Run `work` on a thread of this executor, some time. It must not raise."""
        with self._lock:
            self.submitted += 1
            enqueued = not self.closed and self._enqueue(work)
        if not enqueued:
            work()

    def _enqueue(self, work: Callable[[], None]) -> bool:
        """Have a thread do it; False: there is none, and none can be started."""
        if len(self.threads) < min(self.unfinished + 1, self.most()):
            name = f"tensorstore_py-{self.name}-{len(self.threads)}"
            thread = Thread(target=self._serve, args=(self._queue,), name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more, or the interpreter is ending
                if not self.threads:
                    return False
            else:
                self.threads.append(thread)
        # Counted until its end: a thread between two functions must never pass for an idle one.
        self.unfinished += 1
        self._queue.put(work)
        return True

    def _serve(self, queue: SimpleQueue[Callable[[], None] | None]) -> None:
        _here.worker = True
        while True:
            work = queue.get()
            if work is None:
                return
            work()
            del work  # an idle thread must not keep the last result alive
            with self._lock:
                self.unfinished -= 1

    def close(self, until: float) -> None:
        """Finish what was submitted, or give it up at that moment."""
        with self._lock:
            self.closed = True
            for _ in self.threads:
                self._queue.put(None)
        for thread in self.threads:
            thread.join(max(0.0, until - monotonic()))


def width() -> int:
    """How many threads an executor has at most: one for each core that this process may use."""
    return _width


def waiting_width() -> int:
    """How many threads work at a time on what mostly waits for a device, at most."""
    return _WAITING * _width


def on_worker() -> bool:
    """Whether this is a thread of an executor."""
    return _here.worker


def submissions() -> int:
    """How often work was submitted in this process: what tests of the hot path count."""
    return sum(each.submitted for each in _executors)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


_here = _Here()
_width = _cores()
operations: Final = Executor("worker", width)
waiters: Final = Executor("waiter", waiting_width)
continuations: Final = Executor("successor", lambda: sys.maxsize)
parts: Final = Executor("carrier", width)
computations: Final = Executor("computer", width)
#: Each may need those after it.
_executors = (operations, waiters, continuations, parts, computations)


@atexit.register
def _close() -> None:
    until = monotonic() + EXIT_GRACE_S
    for each in _executors:
        each.close(until)


@contextmanager
def thread_pool(workers: int | None = None) -> Iterator[StandardExecutor]:
    """Threads of this process, until the end of the block."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few programs need it

    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def process_pool(workers: int | None = None) -> Iterator[StandardExecutor]:
    """Processes of this machine, until the end of the block.

    They are spawned: a forked copy of a process with threads has locks that no thread releases. If
    the block ends by an exception, Ctrl-C for instance, they are ended, too: what runs there has to
    be such that it can be done again.
    """
    import multiprocessing  # noqa: PLC0415 - programs that make none need not pay for it
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_die_quietly
    )
    try:
        yield pool
    except BaseException:
        for each in set(multiprocessing.active_children()) - before:
            each.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _die_quietly() -> None:
    """Ctrl-C goes to all processes of a terminal; only the one that waits has something to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
