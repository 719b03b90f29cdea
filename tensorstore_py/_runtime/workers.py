"""The worker pools: a few threads for each kind of work, by what it may wait for.

What is begun anew may wait for memory (`submit`). What the loop hands over for work that holds
memory must not stand behind that: a part of a copy, which may take more of it, has a pool of its
own (`carry_on`), and plain computations, which wait for nobody, have another (`compute`). So
whoever holds what others wait for finds a thread. Threads are daemons and start on demand, up to
`width()` in each pool; what a thread that got a signal leaves to others (`take_over`) has as many
as it needs, since it may wait for anything. At exit, handed-in work is finished within
`EXIT_GRACE_S`; what is still running then is abandoned, so that exit never hangs, and work handed
in later runs at once where it is handed in, since no thread can be started any more. A forked child
starts with no threads and empty queues.
"""

from __future__ import annotations

import atexit
import os
import sys
from queue import SimpleQueue
from threading import Lock, Thread, local
from time import monotonic
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.fork import on_fork

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "EXIT_GRACE_S",
    "carry_on",
    "compute",
    "is_closed",
    "on_worker",
    "submissions",
    "submit",
    "take_over",
    "width",
]

EXIT_GRACE_S: Final = 30.0


class _Here(local):
    worker: bool = False


class _Pool:
    def __init__(self, name: str, most: Callable[[], int]) -> None:
        self.name = name
        self.most = most
        self.reset()

    def reset(self) -> None:
        self.lock = Lock()
        self.queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.threads: list[Thread] = []
        self.unfinished = 0
        self.submitted = 0
        self.closed = sys.is_finalizing()

    def submit(self, work: Callable[[], None]) -> None:
        with self.lock:
            self.submitted += 1
            enqueued = not self.closed and self._enqueue(work)
        if not enqueued:
            work()

    def _enqueue(self, work: Callable[[], None]) -> bool:
        """Have a thread do it; False: there is none, and none can be started."""
        if len(self.threads) < min(self.unfinished + 1, self.most()):
            name = f"tensorstore_py-{self.name}-{len(self.threads)}"
            thread = Thread(target=self._serve, args=(self.queue,), name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more, or the interpreter is ending
                if not self.threads:
                    return False
            else:
                self.threads.append(thread)
        # Counted from hand-in to end: a thread between two jobs must never pass for a free one.
        self.unfinished += 1
        self.queue.put(work)
        return True

    def _serve(self, queue: SimpleQueue[Callable[[], None] | None]) -> None:
        _here.worker = True
        while True:
            work = queue.get()
            if work is None:
                return
            work()
            del work  # an idle thread must not keep the last result alive
            with self.lock:
                self.unfinished -= 1

    def close(self, until: float) -> None:
        with self.lock:
            self.closed = True
            for _ in self.threads:
                self.queue.put(None)
        for thread in self.threads:
            thread.join(max(0.0, until - monotonic()))


_here = _Here()


def width() -> int:
    """How many worker threads there are at most: one a core this process may use."""
    return _width


def on_worker() -> bool:
    """Whether this thread is one of the pools'."""
    return _here.worker


def is_closed() -> bool:
    """Whether the process is at its end, so that what is submitted runs on the caller's thread."""
    return _pool.closed


def submit(work: Callable[[], None]) -> None:
    """Run `work` on a worker thread, some time. It must not raise."""
    _pool.submit(work)


def carry_on(work: Callable[[], None]) -> None:
    """`submit` for a part of other work, which may hold memory that new work waits for."""
    _carrying.submit(work)


def compute(work: Callable[[], None]) -> None:
    """`submit` for work that waits for no other work, nor for memory that such work may hold."""
    _computing.submit(work)


def take_over(work: Callable[[], None]) -> None:
    """`submit` for the rest of work that its thread has left in the middle."""
    _taking_over.submit(work)


def submissions() -> int:
    """How often work was handed in to this process: what the laws about the hot path count."""
    return sum(pool.submitted for pool in _pools)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


_width = _cores()
_pool = _Pool("worker", width)
_taking_over = _Pool("successor", lambda: sys.maxsize)
_carrying = _Pool("carrier", width)
_computing = _Pool("computer", width)
_pools = (_pool, _taking_over, _carrying, _computing)  # each may need those after it


def _close() -> None:
    until = monotonic() + EXIT_GRACE_S
    for pool in _pools:
        pool.close(until)


for _each in _pools:
    on_fork(_each.reset)
atexit.register(_close)
