"""A worker: it claims a part, does its tasks, records that, and goes on until nothing is left.

It runs on the event loop; tasks that block run on other threads, short ones several at a time. A
few lanes take tasks from one part, and the lane that finds it empty claims the next, so all are
busy and few parts are claimed. An error that is not about one damaged region stops the worker: what
runs ends, what is done stays done, and other workers can claim the rest at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tensorstore_py._plan.claims import ClaimedPart, Claims, PartSearch, TaskResult
from tensorstore_py._plan.parts import BEGIN, END
from tensorstore_py._plan.record import MOST_FAILURES, Failure, Owner
from tensorstore_py._plan.work import Work, WorkerOutcome, failed_tasks
from tensorstore_py._runtime.execution import current_job
from tensorstore_py._runtime.fan_out import fan_out, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._plan.manifest import Manifest
    from tensorstore_py._plan.record import Record

__all__ = ["Worker"]

#: So many seconds of short tasks are handed to a thread at a time, and at most so many tasks.
_HANDED_S: Final = 0.02
_MOST_HANDED: Final = 64
#: After an error or when it is cancelled, a worker tries to release its parts for so long.
_RELEASE_S: Final = 5.0


def _ignored(tasks: int) -> None:
    del tasks


class Worker:
    """See the head of this file.

    Args:
        manifest: what all workers share; the plan is stored or loaded already.
        work: what is to be done.
        width: how many tasks run at a time.
        share: which of how many equal shares to begin with; by default it begins anywhere.
        wait: whether to wait for what other workers are at, in case they are lost; False: return
            as soon as other workers have claimed all that is left.
        only_begin: do what comes before all tasks, if no worker has, and none of them.
        on_progress: called on the event loop with how many more tasks are known to be done, here or
            elsewhere.
        owner: by default a worker of this process.
    """

    def __init__(
        self,
        manifest: Manifest,
        work: Work,
        *,
        width: int = 1,
        share: tuple[int, int] | None = None,
        wait: bool = True,
        only_begin: bool = False,
        on_progress: Callable[[int], object] | None = None,
        owner: Owner | None = None,
    ) -> None:
        self._manifest = manifest
        self._work = work
        self._width = width
        self._wait = wait
        self._only_begin = only_begin
        self._owner = Owner.new() if owner is None else owner
        self._on_progress = _ignored if on_progress is None else on_progress
        parts = manifest.parts
        self._search = PartSearch(
            parts.count,
            range(parts.count) if share is None else parts.share(*share),
            manifest.clock.chance,
            anywhere=share is None,
        )
        self._clock = manifest.clock
        self._current: ClaimedPart | None = None
        self._handed = 1
        self._error: Exception | None = None

    async def run(self) -> WorkerOutcome:
        """Do what there is to do; once.

        Raises:
            DataLossError: all is done but tasks of which the error names some; what they read is
                damaged. The next run tries them again.
            UnsupportedError: the store cannot write on condition.
            Exception: what a task ended with; a note names it, and where it was.
        """
        owner, began = self._owner, self._clock.now()
        owner.enter()
        claims = self._claims = Claims(
            self._manifest,
            owner,
            self._search,
            self._work,
            wait=self._wait,
            on_progress=self._on_progress,
        )
        self._taking = asyncio.Lock()
        keeping = asyncio.ensure_future(self._keep())
        try:
            end = await self._all()
        except BaseException as error:
            await self._let_go(error)
            raise
        finally:
            keeping.cancel()
            owner.leave()
        seconds = self._clock.now() - began
        if end is None:
            return WorkerOutcome("partly done", *claims.done[:2], seconds)
        if end.failed:
            parts, where = self._manifest.parts, self._manifest.where
            raise failed_tasks(end.failures, end.failed, parts.tasks, where)
        result = None if end.result is None else self._work.from_json(end.result)
        return WorkerOutcome("done", *claims.done[:2], seconds, result)

    async def _keep(self) -> None:
        """Renew what is claimed, until it is cancelled."""
        try:
            await self._claims.keep()
        except Exception as error:  # noqa: BLE001 - raised when what runs has ended
            self._stop(error)

    async def _all(self) -> Record | None:
        """Everything; returns the record of its end, None if others are at it."""
        claims = self._claims
        if await claims.is_over():
            return claims.end
        if await claims.once(BEGIN, self._begin) is None or self._only_begin:
            return None
        while True:
            await fan_out(False, range(self._width), self._lane, count=self._width,
                          width=self._width)  # fmt: skip
            if self._error is not None:
                raise self._error
            if claims.end is not None:
                return claims.end
            if not claims.left():
                return await claims.once(END, self._end)
            if not self._wait:
                return None

    async def _begin(self, held: ClaimedPart) -> None:
        if self._work.begin is not None:
            await self._work.begin(held.again)

    async def _end(self, held: ClaimedPart) -> None:
        """What is done after all parts, and what all of them have come to."""
        claims, record = self._claims, held.record
        failed = sorted(claims.failed.items())
        record.failures = [each for _, part in failed for each in part.failures][:MOST_FAILURES]
        record.failed = sum(part.failed for _, part in failed)
        record.result = None
        result = await self._merged() if self._work.merge is not None else None
        if self._work.end is not None:
            await self._work.end(result)
        record.result = None if result is None else self._work.to_json(result)

    async def _merged(self) -> object:
        """The results of all parts, merged in their order."""
        claims, manifest, work = self._claims, self._manifest, self._work
        results = dict(claims.results)
        results.update((part, record.result) for part, record in claims.failed.items())
        others = [part for part in range(manifest.parts.count) if part not in results]

        async def read(part: int) -> None:
            record = (await manifest.read(part)).record
            results[part] = None if record is None else record.result

        await fan_out(False, others, read, count=len(others), width=manifest.width)
        merged: object = None
        for _, result in sorted(results.items()):
            if result is not None:
                merged = work.merged(merged, work.from_json(result))
        return merged

    # Tasks.

    async def _lane(self, lane: int) -> None:
        """Run one task after the other."""
        del lane
        try:
            while (taken := await self._take()) is not None:
                held, tasks = taken
                await self._follow(held, tasks, await self._run(tasks))
        except Exception as error:  # noqa: BLE001 - raised when the other lanes have ended
            self._stop(error)

    async def _take(self) -> tuple[ClaimedPart, list[int]] | None:
        """The next tasks, of the part at hand or another one; None: there are none."""
        async with self._taking:
            while self._error is None:
                held = self._current
                if held is not None:
                    tasks = held.take(self._handed)
                    if tasks:
                        return held, tasks
                    self._current = None
                    if held.complete:  # its former owner had done all of it
                        await self._claims.finish(held)
                self._current = await self._claims.next()
                if self._current is None:
                    break
        return None

    async def _run(self, tasks: list[int]) -> list[TaskResult]:
        if self._work.inline:
            return await within(False, True, lambda: self._each(tasks))
        return await self._each(tasks)

    async def _each(self, tasks: list[int]) -> list[TaskResult]:
        """Run some, until one has an error."""
        work, now, job = self._work, self._clock.now, current_job()
        ran: list[TaskResult] = []
        for task in tasks:
            if self._error is not None or (job is not None and job.cancelled):
                break
            began = now()
            try:
                result = await work.run(task)
            except work.damaged as error:
                failure = Failure(task, work.region(task), str(error))
                ran.append(TaskResult(task, now() - began, failure=failure))
            except Exception as error:  # noqa: BLE001 - raised when what runs has ended
                ran.append(TaskResult(task, now() - began, error=error))
                break
            else:
                ran.append(TaskResult(task, now() - began, result))
        return ran

    async def _follow(self, held: ClaimedPart, tasks: list[int], ran: list[TaskResult]) -> None:
        """Tasks have ended: record it, if it is time to."""
        done, size = held.note(len(tasks), ran, self._work)
        slowest = max((each.seconds for each in ran), default=0.0)
        self._claims.did(held, done, size, slowest)
        for each in ran:
            if each.error is not None:
                self._stop(self._named(each.task, each.error))
        if self._error is not None:
            return
        if self._work.inline and ran:
            mean = sum(each.seconds for each in ran) / len(ran)
            fair = len(self._manifest.parts[held.part]) // (2 * self._width)
            self._handed = max(1, min(_MOST_HANDED, fair, int(_HANDED_S / max(mean, 1e-9))))
        if held.complete:
            await self._claims.finish(held)
        else:
            await self._claims.renew(held, early=True)

    def _named(self, task: int, error: Exception) -> Exception:
        error.add_note(
            f"in task {task} ({self._work.region(task)}), {self._owner}; what was done stays done: "
            f"remove the cause and run the same again, which goes on from {self._manifest.where}"
        )
        return error

    def _stop(self, error: Exception) -> None:
        """Begin nothing more."""
        if self._error is None:
            self._error = error
        if not self._claims.stopped.done():
            self._claims.stopped.set_result(None)

    async def _let_go(self, error: BaseException) -> None:
        """Release what is held, so that others need not wait until it counts as abandoned."""
        try:
            await asyncio.wait_for(self._claims.release(), _RELEASE_S)
        except Exception as failed:  # noqa: BLE001 - there is another error to tell of
            error.add_note(f"its parts could not be released ({failed}): others will wait for them")
