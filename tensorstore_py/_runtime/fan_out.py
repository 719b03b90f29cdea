"""Fan-out: one body for many steps, several at a time, in either execution mode.

Inline: the calling thread drains the steps itself; up to `width - 1` workers are asked to help,
as far as the scheduling rule (`interpreter_lock`) finds it worth it, and are not waited for until
the steps run out, so nested fan-outs cannot starve a small pool. Loop: `width` tasks pull from the
same steps; never a task a step. The first error stops everything; a cancelled operation stops
between two steps. No step object outlives its step.

`offload`, `to_thread` and `within` are how one body calls another part of the work where its mode
differs: a computation, a function that may wait, a body of the other mode.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import islice
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tensorstore_py._runtime.awaitable_bridge import loop_waiter
from tensorstore_py._runtime.execution import Job, current_job, run_inline, run_within
from tensorstore_py._runtime.executors import (
    Executor,
    computations,
    operations,
    parts,
    waiters,
    waiting_width,
)
from tensorstore_py._runtime.executors import width as executor_width
from tensorstore_py._runtime.interpreter_lock import SHARE_BYTES, interpreter_lock, worth_sharing
from tensorstore_py._runtime.signals import acquire, give_way, pending

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator

__all__ = ["fan_out", "offload", "to_thread", "within"]

S = TypeVar("S")
T = TypeVar("T")

#: Steps of fewer bytes may be over before a thread has woken up.
_SHORT_BYTES = 2**16

#: A thread takes a quarter of its share of the steps at a time, so that threads finish together; at
#: most so many, so that a generator of many steps is never held in memory. Without an interpreter
#: lock it is a quarter of the share of what is left: with one, to take less made raw reads slower.
_BATCH = 16

#: So small a part of the steps is a batch by which is judged whether two threads are worth it. Of
#: fewer steps than that one alone decides, if it takes so many times as long as it has to.
_FEW = 64
_CLEARLY = 3.0


async def fan_out(
    inline: bool,
    steps: Iterable[S],
    work: Callable[[S], Coroutine[Any, Any, None]],
    *,
    count: int,
    width: int | None = None,
    step_bytes: int | None = None,
    step_pieces: int | None = None,
    awaited: bool = False,
    waiting: bool = False,
) -> None:
    """Run `work(step)` for every step, in no promised order, several at a time.

    Args:
        inline: the execution mode of `work`.
        steps: what to work on; consumed lazily.
        work: the body of one step.
        count: how many steps there are.
        width: how many run at a time; the width of an executor by default, and at most when inline.
        step_bytes: how much data a step computes on, if that is what it costs. Waking a thread
            costs as much as decoding some hundred KiB, so less is not shared out.
        step_pieces: how many pieces a step works on one after the other, if they may be too short
            to be shared out: steps are then done alone until they take long enough. By default
            steps of some KiB are such pieces, and others are not.
        awaited: workers may be waiting for this very work, so help comes from other threads.
        waiting: inline steps wait for a device for a good part of their time, so that more of them
            are done at a time than there are cores, by threads of their own.

    Raises:
        Whatever the first failing step raised; steps not begun by then are dropped.
    """
    wide = min(count, executor_width() if width is None else width)
    if inline:
        wide = min(wide, waiting_width() if waiting else executor_width())
        if step_bytes is not None:
            wide = min(wide, max(1, count * step_bytes // SHARE_BYTES))
            if step_pieces is None and step_bytes < _SHORT_BYTES:
                step_pieces = 1
        if wide <= 1:
            await _alone(steps, work)
            return
        drain = _Drain(iter(steps), work, count, wide)
        helpers = waiters if waiting else parts if awaited else operations
        await drain.run(helpers, step_pieces)
    elif wide <= 1:
        for step in steps:
            await work(step)
    else:
        await _pump(iter(steps), work, wide)


async def _alone(steps: Iterable[S], work: Callable[[S], Coroutine[Any, Any, None]]) -> None:
    """An inline fan-out that no other thread is to help."""
    job = current_job()
    for step in steps:
        if job is not None and job.cancelled:
            break
        await work(step)
        if pending():
            await give_way()
    if job is not None and job.cancelled:
        raise asyncio.CancelledError


class _Drain(Generic[S]):
    """One inline fan-out, shared by the calling thread and its helpers."""

    __slots__ = ("_batch", "_count", "_error", "_finished", "_helpers", "_job", "_left", "_lock",
                 "_open", "_over", "_steps", "_work")  # fmt: skip

    def __init__(
        self,
        steps: Iterator[S],
        work: Callable[[S], Coroutine[Any, Any, None]],
        count: int,
        width: int,
    ) -> None:
        self._steps = steps
        self._work = work
        self._count = self._left = count
        self._helpers = width - 1
        self._batch = max(1, min(_BATCH, count // (4 * max(1, width))))
        self._lock = Lock()
        self._open = 0
        self._error: BaseException | None = None
        self._over = False
        self._finished = Lock()
        self._job: Job[Any] | None = current_job()

    async def run(self, executor: Executor, pieces: int | None) -> None:
        """Drain until no step is left and no helper is inside one."""
        if self._helpers > 0 and (
            pieces is None or not interpreter_lock() or await self._drained_alone(pieces)
        ):
            for _ in range(self._helpers):
                executor.submit(self._help)
        await self._drain()
        await self._join()
        self._over = True
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # or the traceback would keep this frame, and so the output, alive
        if self._job is not None and self._job.cancelled:
            raise asyncio.CancelledError

    async def _drained_alone(self, pieces: int) -> bool:
        """Drain until pieces take long enough for helpers to be worth it; returns whether they do.

        The very first one meets memory that was never touched, which may take longer than all else,
        and any of them may meet a busy machine: so the quicker of two batches in a row
        counts. Chunks that are missing take no time, and say nothing of others: so the judging
        goes on.
        """
        batch = self._batch
        tried = max(1, min(batch, self._count // _FEW))
        before = 0.0
        self._batch = tried
        while True:
            began = perf_counter()
            done = await self._drain_once()
            if not done:
                return False
            took = (perf_counter() - began) / (done * pieces)
            alone = took / _CLEARLY if self._count <= _FEW else 0.0
            if worth_sharing(min(took, max(before, alone))):
                self._batch = batch
                return True
            before = took
            self._batch = tried if worth_sharing(took) else batch

    def _stopped(self) -> bool:
        return (
            self._over or self._error is not None or (self._job is not None and self._job.cancelled)
        )

    def _help(self) -> None:
        run_within(self._job, lambda: run_inline(self._drain()))

    def _take(self) -> list[S]:
        """The next steps, and this thread is counted as inside; empty when there are none left."""
        with self._lock:
            if self._stopped():
                return []
            try:
                size = self._batch
                if not interpreter_lock():
                    size = max(1, min(size, self._left // (4 * (self._helpers + 1))))
                taken = list(islice(self._steps, size))
            except BaseException as error:  # planning failed: that is the outcome
                self._error = error
                return []
            self._left -= len(taken)
            if taken:
                if self._open == 0:
                    self._finished.acquire()
                self._open += 1
            return taken

    async def _drain(self) -> None:
        while await self._drain_once():
            pass

    async def _drain_once(self) -> int:
        """Do the next steps; returns how many there were."""
        work = self._work
        taken = self._take()
        if not taken:
            return 0
        try:
            for step in taken:
                if self._stopped():
                    break
                await work(step)
                if pending():
                    await give_way()
        except BaseException as error:  # re-raised by the caller's thread
            with self._lock:
                if self._error is None:
                    self._error = error
            if isinstance(error, GeneratorExit):  # the whole body is being closed
                raise
        finally:
            with self._lock:
                self._open -= 1
                if self._open == 0:
                    self._finished.release()
        return len(taken)

    async def _join(self) -> None:
        """Wait for helpers that are inside a batch; ones that never began find nothing to do."""
        while True:
            await acquire(self._finished)
            self._finished.release()
            with self._lock:
                if self._open == 0:
                    return


async def _pump(
    steps: Iterator[S], work: Callable[[S], Coroutine[Any, Any, None]], width: int
) -> None:
    failed = False

    async def pump() -> None:
        nonlocal failed
        try:
            for step in steps:
                # Cancelling reaches only pumps that suspend; this reaches all of them.
                if failed:
                    return
                await work(step)
        except BaseException:
            failed = True
            raise

    tasks = [asyncio.ensure_future(pump()) for _ in range(width)]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def offload(inline: bool, function: Callable[[], T]) -> T:
    """Run CPU work off the loop: on a thread for loop bodies, right here for inline ones.

    Args:
        inline: the caller's execution mode.
        function: waits for no other work, nor for memory that such work may hold.
    """
    if inline:
        return function()
    return await _on_thread(computations, function)


async def to_thread(function: Callable[[], T]) -> T:
    """Run a function that may wait, for other work or for memory, off the loop."""
    return await _on_thread(operations, function)


async def within(here: bool, there: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await a body of mode `there` from one of mode `here`, without blocking the event loop.

    If the caller is cancelled, a body elsewhere that has begun stops at its next step, and that is
    waited for: so what fails, or is tried again, is not overtaken by what it has begun.

    Args:
        here: whether the caller is inline; then the body must be, too.
        there: whether the body is.
        body: makes the coroutine.
    """
    if not there or here:
        return await body()
    over, finish = loop_waiter()

    async def followed() -> T:
        try:
            return await body()
        finally:
            finish()

    job = Job(followed)
    future = job.future  # before it begins, since a job that is done knows none
    job.start_as_part()
    try:
        return await future
    except asyncio.CancelledError:
        while not (job.withdrawn or over.done()):
            with suppress(asyncio.CancelledError):  # once is enough
                await asyncio.shield(over)
        raise


async def _on_thread(executor: Executor, function: Callable[[], T]) -> T:
    waiter, wake = loop_waiter()
    values: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            values.append(function())
        except BaseException as error:  # raised where it is awaited
            errors.append(error)
        wake()

    executor.submit(work)
    await waiter
    if errors:
        raise errors.pop()
    return values[0]
