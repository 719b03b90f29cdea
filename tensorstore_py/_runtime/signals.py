"""Signals and the main thread: its work is not interrupted, its waiting is.

A Python signal handler runs on the main thread, between any two instructions, and may raise there:
`KeyboardInterrupt`, `SystemExit`, a time-out. No code can be right at every instruction. So while
the main thread does work of this library (`enter` to `leave`), a stand-in takes the place of the
handlers; it notes which signals came, and `leave` calls their handlers. What they raise comes out
of the call as if the signal had come right after it. Other threads never run signal handlers.

No signal waits for long. `Future.result` waits outside the work. Work that has to wait, or does one
step after another, looks whether a signal came (`acquire`, `give_way`): then another thread does
the rest, and the main thread waits outside. Functions of the user are called with the handlers in
place (`lifted`). What is left are single steps, of one chunk or one call of the system; if a signal
comes again in one, after `PATIENCE_S`, its handler runs at once.
"""

from __future__ import annotations

import signal as _names
import sys
import time
from contextlib import contextmanager
from functools import wraps
from threading import get_ident, main_thread
from time import monotonic
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from tensorstore_py._runtime.fork import begin_again_at_end, on_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from signal import getsignal, signal
    from threading import Lock
    from types import FrameType
else:
    # The functions of `signal` make enums of numbers, in Python: `enter` and `leave` would take
    # ten times as long. The stubs of the standard library do not know `_signal`.
    from _signal import getsignal, signal

__all__ = [
    "GIVE_WAY",
    "PATIENCE_S",
    "acquire",
    "check_signals",
    "deferring",
    "enter",
    "give_way",
    "leave",
    "lifted",
    "notified",
    "pause",
    "pending",
    "step_aside",
    "uninterrupted",
]

P = ParamSpec("P")
T = TypeVar("T")

#: After this time a signal that comes again is no longer deferred.
PATIENCE_S: Final = 2.0

#: So often a thread that has to wait within work looks whether a signal came.
_LOOK_S: Final = 0.05

#: What a coroutine yields to `run_inline` when the rest of it may go on in another thread.
GIVE_WAY: Final = object()

#: The signals that tell a program something, not those of faults or of job control. `enter` looks
#: at the handler of each, so real-time signals, whose handlers hardly ever raise, are left out.
_NUMBERS: Final = tuple(
    int(getattr(_names, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGVTALRM", "SIGPROF",
                 "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGBREAK")
    if hasattr(_names, name)
)  # fmt: skip


class _Main:
    """What is known of the main thread; only that thread changes it."""

    def __init__(self) -> None:
        self.ident = main_thread().ident
        self.depth = 0
        self.pending: list[int] = []
        self.since = 0.0
        #: Called when a signal comes within work.
        self.notify: Callable[[], object] | None = None
        #: The handlers as they were found last, and those of them that the stand-in replaces.
        self.found: Sequence[tuple[int, object]] = [(number, None) for number in _NUMBERS]
        self.replaced: list[tuple[int, Callable[[int, FrameType | None], object]]] = []

    def look(self) -> None:
        found = [(number, getsignal(number)) for number in _NUMBERS]
        # The stand-in is found where a signal came while it was put in place or taken away.
        kept = dict(self.replaced)
        handlers = [
            (number, kept.get(number) if handler is _stand_in else handler)
            for number, handler in found
        ]
        self.replaced = [(number, handler) for number, handler in handlers if callable(handler)]
        self.found = found

    def handler(self, number: int) -> Callable[[int, FrameType | None], object]:
        return next(handler for each, handler in self.replaced if each == number)

    def restore(self) -> None:
        for number, handler in self.replaced:
            if getsignal(number) is _stand_in:
                signal(number, handler)

    def call(self) -> None:
        """Call the handlers of the signals that came, each even if the one before raises."""
        number = self.pending.pop(0)
        try:
            self.handler(number)(number, sys._getframe(1))
        finally:
            if self.pending:
                self.call()

    def after_fork(self) -> None:
        """The thread that forked is the main thread now, in the middle of whatever it does."""
        if get_ident() != self.ident:
            self.ident = get_ident()
            self.depth = 0
            self.pending.clear()
            self.notify = None
            self.restore()


_main = _Main()
on_fork(_main.after_fork)


def _stand_in(number: int, frame: FrameType | None) -> None:
    main = _main
    if not main.depth:  # it was just being put in place, or taken away
        handler = main.handler(number)
        signal(number, handler)
        handler(number, frame)
    elif not main.pending:
        main.since = monotonic()
        main.pending.append(number)
        if main.notify is not None:
            main.notify()
    elif number not in main.pending:
        main.pending.append(number)
    elif monotonic() - main.since >= PATIENCE_S:
        main.pending.remove(number)
        main.handler(number)(number, frame)


def enter() -> bool:
    """Begin work that signals do not interrupt. Returns whether to `leave`: not on other threads.

    May raise what a signal handler raises; then nothing was begun.

    Example:
        >>> began = enter()
        >>> try:
        ...     deferring()
        ... finally:
        ...     if began:
        ...         leave()
        True
    """
    main = _main
    if get_ident() != main.ident:
        return False
    if main.depth:
        main.depth += 1
        return True
    if sys.is_finalizing():
        begin_again_at_end()
    for number, handler in main.found:
        if getsignal(number) is not handler:
            main.look()
            break
    try:
        for number, _ in main.replaced:
            signal(number, _stand_in)
        main.depth = 1
    except BaseException:
        main.restore()
        raise
    return True


def leave() -> None:
    """End what `enter` began, and call the handlers of signals that came meanwhile."""
    main = _main
    if main.depth > 1:
        main.depth -= 1
        return
    main.depth = 0
    try:
        main.restore()
    except BaseException:  # of a handler that is back already
        main.restore()
        raise
    finally:
        if main.pending:
            main.call()


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """A function that signals do not interrupt."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        began = enter()
        try:
            return function(*args, **kwargs)
        finally:
            if began:
                leave()

    return call


@contextmanager
def notified(call: Callable[[], object]) -> Iterator[None]:
    """Have `call` called, between any two instructions, when a signal comes: on the main thread."""
    main = _main
    if get_ident() != main.ident:
        yield
        return
    outer, main.notify = main.notify, call
    try:
        yield
    finally:
        main.notify = outer


@contextmanager
def lifted() -> Iterator[None]:
    """Signal handlers run at once, within work: for functions of the user."""
    main = _main
    depth = main.depth
    if not depth or get_ident() != main.ident:
        yield
        return
    main.depth = 1
    leave()
    try:
        yield
    finally:
        enter()
        main.depth = depth


def deferring() -> bool:
    """Whether this is the main thread, within work."""
    return _main.depth > 0 and get_ident() == _main.ident


def pending() -> bool:
    """Whether this is the main thread, and a signal came."""
    return bool(_main.pending) and get_ident() == _main.ident


def check_signals() -> None:
    """Call the handlers of signals that came, where what they raise does no harm."""
    if pending():
        _main.call()


def pause(seconds: float) -> None:
    """Sleep in work that blocks its thread; signal handlers may raise here."""
    if not deferring():
        time.sleep(seconds)
        return
    while seconds > 0:
        time.sleep(min(seconds, _LOOK_S))
        check_signals()
        seconds -= _LOOK_S


@coroutine
def give_way() -> Generator[object, Any, None]:
    """If a signal came, have the rest of the work go on in another thread.

    To be awaited by inline bodies, where they hold nothing that belongs to the thread.
    """
    if pending():
        yield GIVE_WAY


@coroutine
def step_aside() -> Generator[object, Any, None]:
    """Have the rest of a job go on in another thread, so that this one can begin the next job.

    To be awaited by inline bodies before they wait for long, where `give_way` may be.
    """
    yield GIVE_WAY


async def acquire(lock: Lock) -> None:
    """Wait for a lock that may be held for long; another thread waits on if a signal comes."""
    while not lock.acquire(timeout=_LOOK_S if deferring() else -1):
        await give_way()
