"""The library's one event loop, with a thread of its own, started at first use.

It alone owns sessions, sockets and loop semaphores, so nothing ever crosses loops, whatever
loops the user runs. A program that touches only local stores never starts it. A forked child
begins without one; at exit it is stopped, cancelling what is pending, and never waited for long.
Which thread runs it at a time is said in `loop_turns`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import selectors
import socket
import sys
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py._runtime import future as _future
from tensorstore_py._runtime.fork import on_fork
from tensorstore_py._runtime.loop_turns import LoopTurns
from tensorstore_py.errors import FailedPreconditionError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["EXIT_GRACE_S", "is_running", "library_loop", "loop_turns", "on_loop_end"]

EXIT_GRACE_S: Final = 5.0

_last_steps: list[Callable[[], Coroutine[Any, Any, None]]] = []


class _Loop:
    def __init__(self) -> None:
        self.lock = Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.turns: LoopTurns | None = None
        self.thread: Thread | None = None
        self.ended = False

    def get(self) -> LoopTurns:
        if self.turns is not None and not self.ended:
            return self.turns
        with self.lock:
            if self.ended or sys.is_finalizing():
                # It was stopped at exit; starting another thread might wait for ever.
                raise FailedPreconditionError(
                    "the interpreter is ending: this store needs an event loop, and it is too late "
                    "to start one; use it, or close it, before the program ends"
                )
            if self.turns is None:
                loop = _new_loop()
                turns = LoopTurns(loop)
                ready = Event()
                self.thread = Thread(
                    target=_run, args=(loop, turns, ready), name="tensorstore_py-loop", daemon=True
                )
                self.thread.start()
                ready.wait()
                self.loop, self.turns = loop, turns
            return self.turns

    def stop(self) -> None:
        turns, thread = self.turns, self.thread
        if turns is not None and thread is not None:
            turns.end()
            thread.join(EXIT_GRACE_S)
        self.ended = True

    def forget(self) -> None:
        """In a forked child: the thread is gone, and the loop's descriptors are the parent's."""
        if self.loop is not None and not self.ended:
            _left_behind.append(self.loop)
            _sever(self.loop)
        self.lock = Lock()
        self.loop = self.turns = None
        self.thread = None
        self.ended = sys.is_finalizing()
        _future.loop_thread[0] = None


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        # What it needs, tried: a loop that is not finished complains when it is finalised.
        with selectors.DefaultSelector():
            for each in socket.socketpair():
                each.close()
        return asyncio.new_event_loop()
    except OSError as error:
        raise UnavailableError(
            f"no event loop could be started ({error}); close files, or raise the limit of open "
            "ones, and try again"
        ) from error


def _run(loop: asyncio.AbstractEventLoop, turns: LoopTurns, ready: Event) -> None:
    asyncio.set_event_loop(loop)
    try:
        turns.run(ready.set)
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=EXIT_GRACE_S))
        for step in _last_steps:
            loop.run_until_complete(step())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _sever(loop: asyncio.AbstractEventLoop) -> None:
    """Make what a forked child still does to its parent's loop go nowhere.

    Whatever of it is finalised in the child, now or when that ends, would take the parent's sockets
    out of the parent's epoll, which both share, and say goodbye on its encrypted connections. So
    the child's copies of these descriptors are replaced: the numbers stay, and lead to nothing.
    """
    loop.set_exception_handler(lambda *_: None)
    selector = getattr(loop, "_selector", None)
    # A kqueue does not survive a fork, and what loops of other makers have is not known here.
    if sys.platform != "linux" or not isinstance(selector, selectors.EpollSelector):
        return
    with socket.socket() as unconnected, select.epoll() as empty:
        for key in selector.get_map().values():
            os.dup2(unconnected.fileno(), key.fd, inheritable=False)
        os.dup2(empty.fileno(), selector.fileno(), inheritable=False)


#: Loops of parents: kept, so that their tasks are not finalised while there is work to do.
_left_behind: list[asyncio.AbstractEventLoop] = []
_own = _Loop()


def library_loop() -> asyncio.AbstractEventLoop:
    """The library's loop, running."""
    turns = _own.get()
    turns.attend()
    assert _own.loop is not None
    return _own.loop


def loop_turns() -> LoopTurns:
    """The turns of the library's loop: what begins work there, and can run it."""
    return _own.get()


def on_loop_end(step: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `step()` on the library's loop before it ends, after everything else on it."""
    _last_steps.append(step)


def is_running() -> bool:
    """Whether the loop thread was started in this process."""
    return _own.loop is not None


on_fork(_own.forget)
atexit.register(_own.stop)
