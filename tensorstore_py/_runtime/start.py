"""Start an operation: the one bridge from a call on the public face to a running body.

An inline body becomes a job that either a worker thread or the first thread that asks for its
result runs to its end. A loop body becomes a task on the library's loop.
"""

from __future__ import annotations

import asyncio
import atexit
from abc import ABC, abstractmethod
from contextvars import copy_context
from functools import partial
from threading import local
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from tensorstore_py._runtime.future import Future, Settleable
from tensorstore_py._runtime.hand_in import hand_in, send_all, send_others
from tensorstore_py._runtime.inline import GaveWay, run_inline
from tensorstore_py._runtime.loop import library_loop
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py._runtime.work import WhenLeft, Work
from tensorstore_py._runtime.workers import carry_on, take_over

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

__all__ = [
    "Announced",
    "Deferred",
    "Job",
    "current_job",
    "run_now",
    "run_within",
    "start",
    "together",
]

T = TypeVar("T")


class _Here(local):
    job: Job[Any] | None = None


_here = _Here()


_NOBODY: Future[Any] = Future()


class Announced(ABC):
    """A body that others count on before it begins.

    Example:
        >>> class Told(Announced):
        ...     async def __call__(self):
        ...         return 42
        ...
        ...     def withdraw(self):
        ...         print("never mind")
        >>> start(True, Told()).cancel()
        never mind
        True
    """

    __slots__ = ()

    @property
    def short(self) -> bool:
        """Whether it takes so little time that threads would only be in each other's way."""
        return False

    @abstractmethod
    async def __call__(self) -> object:
        """The work."""

    @abstractmethod
    def withdraw(self) -> None:
        """It will never begin: its Future was cancelled before."""


def _withdraw(body: object) -> None:
    if isinstance(body, Announced):
        body.withdraw()


class Job(Work, Generic[T]):
    """Inline work that is run once, by whoever comes first.

    Args:
        body: makes the coroutine.
        when_left: what becomes of it if the thread that waits for it is interrupted.

    Attributes:
        cancelled: nobody wants it any more.
        future: of its result, until it is run: a job that is done keeps no result alive.
    """

    __slots__ = (
        "__weakref__", "_body", "_handed_in", "_lock", "cancelled", "future",
        "when_left",
    )  # fmt: skip

    def __init__(
        self,
        body: Callable[[], Coroutine[Any, Any, T]],
        *,
        when_left: WhenLeft = WhenLeft.GOES_ON,
    ) -> None:
        self.when_left = when_left
        self._body: Callable[[], Coroutine[Any, Any, T]] | None = body
        self._handed_in = False
        self.cancelled = False
        self.future: Future[T] = Future()
        self._lock = self.future._lock
        self.future._work = self

    @property
    def begun(self) -> bool:
        """Whether somebody runs it, or did, or nobody is to."""
        return self._body is None

    @property
    def short(self) -> bool:
        """As for `Announced`."""
        body = self._body
        return isinstance(body, Announced) and body.short

    def hand_in(self) -> None:
        """Have it run soon, by a worker or by who asks for its result."""
        self._handed_in = True
        hand_in(self)

    def claim(self) -> bool:
        """Run it for a thread that waits for it; workers begin what else was handed in."""
        return self.run_here(alone=False)

    def run_here(self, *, alone: bool = True) -> bool:
        """Run the work on this thread if no thread has begun it. Returns whether it was begun.

        If a signal comes, the rest of the work may go on in another thread (see `signals`).
        """
        with self._lock:
            body, self._body = self._body, None
        if body is None:
            return False
        if not alone and not (isinstance(body, Announced) and body.short):
            send_others()
        future, self.future = self.future, _NOBODY
        self._go_on(body(), future)
        return True

    def _go_on(self, coro: Coroutine[Any, Any, T], future: Future[T]) -> None:
        """Run the work, or what is left of it, on this thread."""
        outer, _here.job = _here.job, self
        try:
            value = run_inline(coro, movable=True)
        except GaveWay:
            if self.when_left is WhenLeft.GOES_ON_UNTIL_EXIT:
                _left_reads.add(self)
            take_over(partial(copy_context().run, self._take_over, coro, future))
        except BaseException as error:  # the error is the outcome
            future._fail(error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
        else:
            future._fulfil(value)
        finally:
            _here.job = outer

    def _take_over(self, coro: Coroutine[Any, Any, T], future: Future[T]) -> None:
        try:
            self._go_on(coro, future)
        except (KeyboardInterrupt, SystemExit):
            pass  # the Future carries it to the thread that waits

    def run(self) -> None:
        """`run_here` for a worker, which a `SystemExit` in user code must not take down."""
        try:
            self.run_here()
        except (KeyboardInterrupt, SystemExit):
            pass  # the Future carries it to whoever waits

    def hurry(self) -> None:
        """Have a worker begin it now: somebody waits for it without running it."""
        if self._body is not None:
            if not self._handed_in:
                self.hand_in()
            send_all()

    def carry_on(self) -> None:
        """Have it run on a thread for parts of other work."""
        self._handed_in = True
        carry_on(self.run)

    def stop(self) -> None:
        """Ask the running body to stop between two steps."""
        self.cancelled = True
        with self._lock:
            body, self._body = self._body, None
        _withdraw(body)


#: Reads that go on although the thread that waited for them was interrupted.
_left_reads: WeakSet[Job[Any]] = WeakSet()


@atexit.register  # which is before the end of the threads that they run on
def _stop_left_reads() -> None:
    for job in list(_left_reads):
        job.stop()


def current_job() -> Job[Any] | None:
    """The job that this thread runs, if any: fan-out watches its `cancelled`."""
    return _here.job


def run_within(job: Job[Any] | None, function: Callable[[], None]) -> None:
    """Run `function` on this thread as a part of `job`, so that it sees its cancellation."""
    outer, _here.job = _here.job, job
    try:
        function()
    finally:
        _here.job = outer


def start(
    inline: bool,
    body: Callable[[], Coroutine[Any, Any, T]],
    *,
    when_left: WhenLeft = WhenLeft.GOES_ON,
) -> Future[T]:
    """Begin `body()` where its temperament says, and return its Future.

    Args:
        inline: True: it never suspends; False: it runs on the library's loop.
        body: makes the coroutine; called once, where it runs.
        when_left: what becomes of it if the thread that waits for it is interrupted.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> start(True, answer).result()
        42
    """
    if inline:
        job: Job[T] = Job(body, when_left=when_left)
        future = job.future
        job.hand_in()
        return future
    task = _LoopTask(library_loop(), body)
    task.when_left = when_left
    task.begin_soon()
    return task.future


@uninterrupted
def run_now(body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run an inline body that takes next to no time, here and at once.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run_now(answer)
        42
    """
    return run_inline(body())


class _LoopTask(Work, Generic[T]):
    """Work for the library's loop, begun there once.

    Args:
        loop: that loop.
        body: the work.
        waits: until somebody waits for it.

    Attributes:
        future: of its result.
    """

    __slots__ = ("_body", "_loop", "_task", "_waits", "future", "when_left")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        body: Callable[[], Coroutine[Any, Any, T]],
        *,
        waits: bool = False,
    ) -> None:
        self._loop = loop
        self._body: Callable[[], Coroutine[Any, Any, T]] | None = body
        self._waits = waits
        self.when_left = WhenLeft.GOES_ON
        self._task: asyncio.Task[None] | None = None
        self.future: Future[T] = Future()
        self.future._work = self

    @uninterrupted
    def begin_soon(self) -> None:
        """Begin it, from any thread."""
        self._loop.call_soon_threadsafe(self.begin, context=copy_context())

    def hurry(self) -> None:
        if self._waits:
            self.begin_soon()

    def begin(self) -> None:
        """Begin it, on the loop, unless it was begun or cancelled."""
        if self._task is None and not self.future._settled():
            self._task = self._loop.create_task(self._follow())

    async def _follow(self) -> None:
        body, self._body = self._body, None
        assert body is not None  # a task begins once
        try:
            self.future._fulfil(await body())
        except BaseException as error:  # the error is the outcome
            self.future._fail(error)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        body, self._body = self._body, None
        _withdraw(body)
        if self._task is not None:
            self._task.cancel()


class Deferred(Generic[T]):
    """An operation that is begun later, together with others.

    Args:
        inline: as for `start`.
        body: as for `start`.

    Attributes:
        future: of its result; who waits for it before it was begun begins it.
    """

    __slots__ = ("_work", "future")

    def __init__(self, inline: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work: Job[T] | _LoopTask[T] = (
            Job(body) if inline else _LoopTask(library_loop(), body, waits=True)
        )
        self.future = self._work.future

    @staticmethod
    @uninterrupted
    def begin_all(operations: Iterable[Deferred[Any]]) -> None:
        """Begin them; those on the loop in one step, so that none is ahead of the others."""
        tasks = []
        for operation in operations:
            if isinstance(operation._work, Job):
                operation._work.hand_in()
            else:
                tasks.append(operation._work)

        def begin() -> None:
            for task in tasks:
                task.begin()

        if tasks:
            library_loop().call_soon_threadsafe(begin, context=copy_context())


def together(future: Future[Any]) -> Future[None]:
    """A Future that is done when `future` is, with its error but without its value."""
    settle: Settleable[None] = Settleable()

    def follow(done: Future[Any]) -> None:
        error = done.error()
        if error is None:
            settle.value(None)
        else:
            settle.error(error)

    settle.attach(future.claim, lambda: None, future.force)
    future.follow(follow)
    return settle.future
