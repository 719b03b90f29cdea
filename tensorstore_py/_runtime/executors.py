"""Executors that are made here, and end with what they were made for.

Processes are spawned: a forked copy of a process with threads has locks that nobody will open. When
what they were made for ends by an exception, Ctrl-C for instance, they are not waited for: tasks may
be done again.
"""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["process_pool", "thread_pool"]


@contextmanager
def thread_pool(workers: int | None = None) -> Iterator[Executor]:
    """Threads of this process.

    Args:
        workers: how many; by default as `concurrent.futures` says.
    """
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def process_pool(workers: int | None = None) -> Iterator[Executor]:
    """Processes of this machine.

    Args:
        workers: how many; by default one for each processor.
    """
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
