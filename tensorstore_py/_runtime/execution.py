"""Execution: from a call of the public API to a running body, in one of two modes.

- *inline*: the body never suspends and may block its thread. It is a job that either a worker or
  the first thread that asks for its result runs to its end, without an event loop: an `async def`
  whose awaits never really wait runs to its end on the first `send(None)`.
- *loop*: the body waits and never blocks. It is a task on the library's event loop.

So one body serves local stores and remote ones. If an inline body suspends, that is an error of
programming and is named at once, never a hang. The exception is `give_way`: a body that suspends
there goes on in another thread, if what runs it is a job.
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

from tensorstore_py._runtime.executors import continuations, parts
from tensorstore_py._runtime.future import Future, OnInterrupt, Settleable, Work
from tensorstore_py._runtime.loop import loop_turns
from tensorstore_py._runtime.signals import GIVE_WAY, uninterrupted
from tensorstore_py._runtime.submission_queue import enqueue, flush, flush_others

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence
    from contextvars import Context

    from tensorstore_py._runtime.interpreter_lock import GrainEstimate
    from tensorstore_py._runtime.loop_turns import LoopTurns

__all__ = [
    "Deferred",
    "GaveWay",
    "InlineSuspendError",
    "Job",
    "Paced",
    "PendingBody",
    "completion_of",
    "current_job",
    "run_inline",
    "run_now",
    "run_within",
    "start",
]

T = TypeVar("T")


class InlineSuspendError(RuntimeError):
    """Code that was declared inline awaited something that really waits."""


class GaveWay(Exception):  # noqa: N818 - not an error
    """The rest of a body is to go on in another thread, where it is run again."""


def run_inline(coro: Coroutine[Any, Any, T], *, movable: bool = False) -> T:
    """Run to its end, on this thread, a coroutine whose awaits all complete at once.

    If it is `movable`, the rest of it can go on in another thread.

    Raises:
        InlineSuspendError: it suspended; the store or driver must be declared `inline = False`.
        GaveWay: it is movable, and a signal waits for this thread.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run_inline(answer())
        42
    """
    try:
        while (waited_on := coro.send(None)) is GIVE_WAY:
            if movable:
                break
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    if waited_on is GIVE_WAY:
        raise GaveWay
    coro.close()
    name = getattr(coro, "__qualname__", repr(coro))
    raise InlineSuspendError(
        f"{name} suspended (on {waited_on!r}) in an inline context; "
        f"declare its store or driver `inline = False` to run it on the event loop"
    )


@uninterrupted
def run_now(body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run an inline body that takes next to no time, here and at once."""
    return run_inline(body())


class PendingBody(ABC):
    """A body that registers what it is to do before it begins, so that others can count on it.

    Example:
        >>> class Registered(PendingBody):
        ...     async def __call__(self):
        ...         return 42
        ...
        ...     def withdraw(self):
        ...         print("withdrawn")
        >>> start(True, Registered()).cancel()
        withdrawn
        True
    """

    __slots__ = ()

    @property
    def short(self) -> bool:
        """Whether it is better done by one thread with others of its kind (`GrainEstimate`)."""
        return False

    @abstractmethod
    async def __call__(self) -> object:
        """The work."""

    @abstractmethod
    def withdraw(self) -> None:
        """It will never begin: its Future was cancelled before."""


class Paced(PendingBody, Generic[T]):
    """A body of a kind of which the last ones tell whether it is short.

    Args:
        pace: of its kind.
    """

    __slots__ = ("_pace",)

    def __init__(self, pace: GrainEstimate) -> None:
        self._pace = pace

    @property
    def short(self) -> bool:
        return self._pace.short

    async def __call__(self) -> T:
        pace = self._pace
        if not pace.samples():
            return await self.work()
        began = pace.begin()
        result = await self.work()
        pace.end(began, 1)
        return result

    @abstractmethod
    async def work(self) -> T:
        """What it does."""

    def withdraw(self) -> None:
        """Nothing is known of it before it begins."""


def _withdraw(body: object) -> None:
    if isinstance(body, PendingBody):
        body.withdraw()


class _Here(local):
    job: Job[Any] | None = None


_here = _Here()

#: In the place of the Future of a job that has begun.
_NONE: Future[Any] = Future()


class Job(Work, Generic[T]):
    """Inline work that is run once, by the first thread that comes to it.

    Attributes:
        cancelled: its result is no longer wanted.
        withdrawn: it never begins, since it was cancelled before.
        future: of its result, until it is run: a job that is done keeps no result alive.
    """

    __slots__ = (
        "__weakref__", "_body", "_enqueued", "_lock", "cancelled", "future", "on_interrupt",
        "withdrawn",
    )  # fmt: skip

    def __init__(
        self,
        body: Callable[[], Coroutine[Any, Any, T]],
        *,
        on_interrupt: OnInterrupt = OnInterrupt.CONTINUE,
    ) -> None:
        self.on_interrupt = on_interrupt
        self._body: Callable[[], Coroutine[Any, Any, T]] | None = body
        self._enqueued = False
        self.cancelled = self.withdrawn = False
        self.future: Future[T] = Future()
        self._lock = self.future._lock
        self.future._work = self

    @property
    def begun(self) -> bool:
        """Whether a thread runs it, or did, or none is to."""
        return self._body is None

    @property
    def short(self) -> bool:
        """As for `PendingBody`."""
        body = self._body
        return isinstance(body, PendingBody) and body.short

    def enqueue(self) -> None:
        """Have it run soon, by a worker or by the thread that asks for its result."""
        self._enqueued = True
        enqueue(self)

    def start(self) -> None:
        """Have a worker begin it now: its result is awaited by what does not run it."""
        if self._body is not None:
            if not self._enqueued:
                self.enqueue()
            flush()

    def start_as_part(self) -> None:
        """Have it run on a thread for parts of other work."""
        self._enqueued = True
        parts.submit(self.run_on_worker)

    def run(self) -> bool:
        """Run it in the thread that waits for it; workers begin what else waits in the queue.

        If a signal comes, the rest of the work may go on in another thread (see `signals`).
        """
        return self._run(alone=False)

    def run_on_worker(self) -> None:
        """Run it in a worker, which a `SystemExit` in user code must not take down."""
        try:
            self._run(alone=True)
        except (KeyboardInterrupt, SystemExit):
            pass  # the Future carries it to the thread that waits

    def _run(self, *, alone: bool) -> bool:
        with self._lock:
            body, self._body = self._body, None
        if body is None:
            return False
        if not alone and not (isinstance(body, PendingBody) and body.short):
            flush_others()
        future, self.future = self.future, _NONE
        self._go_on(body(), future)
        return True

    def _go_on(self, coro: Coroutine[Any, Any, T], future: Future[T]) -> None:
        """Run the work, or what is left of it, on this thread."""
        outer, _here.job = _here.job, self
        try:
            value = run_inline(coro, movable=True)
        except GaveWay:
            if self.on_interrupt is OnInterrupt.CONTINUE_UNTIL_EXIT:
                _left_reads.add(self)
            continuations.submit(partial(copy_context().run, self._continue, coro, future))
        except BaseException as error:  # the error is the outcome
            future._fail(error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
        else:
            future._fulfil(value)
        finally:
            _here.job = outer

    def _continue(self, coro: Coroutine[Any, Any, T], future: Future[T]) -> None:
        try:
            self._go_on(coro, future)
        except (KeyboardInterrupt, SystemExit):
            pass  # the Future carries it to the thread that waits

    def cancel(self) -> None:
        """Ask the running body to stop between two steps."""
        self.cancelled = True
        with self._lock:
            body, self._body = self._body, None
            self.withdrawn = body is not None
        _withdraw(body)


#: Reads that go on although the thread that waited for them was interrupted.
_left_reads: WeakSet[Job[Any]] = WeakSet()


@atexit.register  # which is before the end of the threads that they run on
def _cancel_left_reads() -> None:
    for job in list(_left_reads):
        job.cancel()


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
    on_interrupt: OnInterrupt = OnInterrupt.CONTINUE,
) -> Future[T]:
    """Begin `body()`, which is called once, where it runs: in a thread, or on the loop."""
    if inline:
        job: Job[T] = Job(body, on_interrupt=on_interrupt)
        future = job.future
        job.enqueue()
        return future
    task = _LoopTask(loop_turns(), body)
    task.on_interrupt = on_interrupt
    task.begin_soon()
    return task.future


class _LoopTask(Work, Generic[T]):
    """Work for the library's loop, begun there once; not before it is waited for if `deferred`.

    A thread that waits for it runs the loop meanwhile, if it can (see `loop_turns`).
    """

    __slots__ = (
        "_body", "_context", "_deferred", "_task", "_turns", "future", "is_over", "is_wanted",
        "on_interrupt",
    )  # fmt: skip

    def __init__(
        self,
        turns: LoopTurns,
        body: Callable[[], Coroutine[Any, Any, T]],
        *,
        deferred: bool = False,
    ) -> None:
        self._turns = turns
        self._body: Callable[[], Coroutine[Any, Any, T]] | None = body
        self._deferred = deferred
        self.on_interrupt = OnInterrupt.CONTINUE
        self._context: Context | None = None
        self._task: asyncio.Task[None] | None = None
        self.is_over = self.is_wanted = False
        self.future: Future[T] = Future()
        self.future._work = self

    @staticmethod
    @uninterrupted
    def begin_all(tasks: Sequence[_LoopTask[Any]]) -> None:
        """Begin them in one step, from any thread."""
        for task in tasks:
            task._context = copy_context()
        tasks[0]._turns.submit(tasks)

    def begin_soon(self) -> None:
        """Begin it, from any thread."""
        self.begin_all((self,))

    def run(self) -> bool:
        if self._deferred:
            self.begin_soon()
        outer, _here.job = _here.job, None
        try:
            self._turns.drive(self)
        finally:
            _here.job = outer
        return self.is_over

    def start(self) -> None:
        if self._deferred:
            self.begin_soon()
        self._turns.want(self)

    def begin(self) -> None:
        """Begin it, on the loop, unless it was begun or cancelled."""
        if self._task is None and not self.future._settled():
            loop = self._turns.loop
            self._task = loop.create_task(self._follow(), context=self._context)

    async def _follow(self) -> None:
        body, self._body = self._body, None
        assert body is not None  # a task begins once
        try:
            self.future._fulfil(await body())
        except BaseException as error:  # the error is the outcome
            self.future._fail(error)
        self._turns.over(self)

    def cancel(self) -> None:
        self._turns.loop.call_soon_threadsafe(self._cancel)
        self._turns.attend()

    def _cancel(self) -> None:
        body, self._body = self._body, None
        _withdraw(body)
        if self._task is not None:
            self._task.cancel()
        self._turns.over(self)


class Deferred(Generic[T]):
    """An operation that is begun later, together with others.

    Attributes:
        future: of its result; to wait for it begins the operation, too.
    """

    __slots__ = ("_work", "future")

    def __init__(self, inline: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work: Job[T] | _LoopTask[T] = (
            Job(body) if inline else _LoopTask(loop_turns(), body, deferred=True)
        )
        self.future = self._work.future

    @staticmethod
    @uninterrupted
    def begin_all(operations: Iterable[Deferred[Any]]) -> None:
        """Begin them; those on the loop in one step, so that none is ahead of the others."""
        tasks = []
        for operation in operations:
            if isinstance(operation._work, Job):
                operation._work.enqueue()
            else:
                tasks.append(operation._work)
        if tasks:
            _LoopTask.begin_all(tasks)


def completion_of(future: Future[Any]) -> Future[None]:
    """A Future that is done when `future` is, with its error but without its value."""
    settle: Settleable[None] = Settleable()
    return settle.follow(future)
