"""Executors that are made here, and end with what they were made for.

Processes are spawned: a forked copy of a process with threads has locks that nobody will open. If
what they were made for ends by an exception, Ctrl-C for instance, they are ended, too: what runs
there has to be such that it can be done again.
"""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

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
