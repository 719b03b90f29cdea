"""The worker pool: a few threads that run inline work and CPU work.

Threads start on demand, up to `width()`, and are daemons. At exit, work that was handed in is
finished within `EXIT_GRACE_S`; what is still running then is abandoned, so that exit never
hangs, and work handed in later runs at once where it is handed in, since no thread can be started
any more. A forked child starts with no threads and an empty queue.
"""

from __future__ import annotations

import atexit
import os
from queue import SimpleQueue
from threading import Lock, Thread, local
from time import monotonic
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.fork import on_fork

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EXIT_GRACE_S", "is_closed", "on_worker", "submissions", "submit", "width"]

EXIT_GRACE_S: Final = 30.0


class _Here(local):
    worker: bool = False


class _Pool:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lock = Lock()
        self.queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.threads: list[Thread] = []
        self.unfinished = 0
        self.submitted = 0
        self.closed = False

    def submit(self, work: Callable[[], None]) -> None:
        with self.lock:
            self.submitted += 1
            closed = self.closed
            if not closed:
                self._enqueue(work)
        if closed:
            work()

    def _enqueue(self, work: Callable[[], None]) -> None:
        # Counted from hand-in to end: a thread between two jobs must never pass for a free one.
        self.unfinished += 1
        if len(self.threads) < min(self.unfinished, width()):
            name = f"tensorstore_py-worker-{len(self.threads)}"
            thread = Thread(target=self._serve, args=(self.queue,), name=name, daemon=True)
            self.threads.append(thread)
            thread.start()
        self.queue.put(work)

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

    def close(self) -> None:
        with self.lock:
            self.closed = True
            for _ in self.threads:
                self.queue.put(None)
        until = monotonic() + EXIT_GRACE_S
        for thread in self.threads:
            thread.join(max(0.0, until - monotonic()))


_here = _Here()


def width() -> int:
    """How many worker threads there are at most: one a core this process may use."""
    return _width


def on_worker() -> bool:
    """Whether this thread is one of the pool's."""
    return _here.worker


def is_closed() -> bool:
    """Whether the process is at its end, so that what is submitted runs on the caller's thread."""
    return _pool.closed


def submit(work: Callable[[], None]) -> None:
    """Run `work` on a worker thread, some time. It must not raise."""
    _pool.submit(work)


def submissions() -> int:
    """How often `submit` was called in this process: what the laws about the hot path count."""
    return _pool.submitted


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


_width = _cores()
_pool = _Pool()
on_fork(_pool.reset)
atexit.register(_pool.close)
