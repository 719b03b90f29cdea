"""`run_job`: the steps of a job one after the other, and what came of them.

A step that is not done ends the job: those after it may read what it was to write. What goes wrong
in a step is not raised; the report tells of it.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tensorstore_py._jobs.job_plan import step_document
from tensorstore_py._jobs.report import Report, StepReport
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.recorded import store_plan, stored_plan, work_on
from tensorstore_py._plan.running import StageProgress, run_call, shared_context
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    SpecError,
    TensorStoreError,
)

if TYPE_CHECKING:
    from tensorstore_py._jobs.documents import Document
    from tensorstore_py._jobs.job import Job, JobStep
    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.document import DocumentPlace
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import Progress

__all__ = ["Part", "Watcher", "run_job"]

#: After Ctrl-C, what was begun gets so long to end.
_LEAVE_S = 5.0


class Watcher(Protocol):
    """What shows how far a job is."""

    def begin(self, title: str) -> None:
        """A step begins."""

    def __call__(self, progress: Progress) -> object:
        """It is so far."""

    def close(self) -> None:
        """It is over."""


class Part(NamedTuple):
    """Which of several workers this one is: it begins with its share, and then helps others.

    With `wait` it waits for what others are at, in case they are lost.
    """

    number: int
    of: int
    wait: bool = True

    @classmethod
    def parse(cls, text: str) -> Part:
        """What a user says.

        Raises SpecError: it is no part.

        Example:
            >>> Part.parse("3/64")
            Part(number=3, of=64, wait=True)
        """
        number, slash, of = text.partition("/")
        if not slash or not number.isdecimal() or not of.isdecimal():
            raise SpecError(f"expected a part such as 3/64, not {text!r}")
        part = cls(int(number), int(of))
        if part.number >= part.of:
            last = f"; the last one of {of} is {part.of - 1}/{of}" if part.of else ""
            raise SpecError(f"there is no part {text}: they are numbered from 0 on{last}")
        return part

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def run_job(
    job: Job,
    executor: object,
    watcher: Watcher,
    manifest: Document | None = None,
    part: Part | None = None,
) -> Report:
    """Run a job, or a plan of it, of which the manifest is its document.

    With a `part` this process works as one of several workers, which needs a manifest.
    """
    report = Report([StepReport(each.operation) for each in job.steps], job.description)
    context, began = job.bound_context(), time.monotonic()
    for number, (step, step_report) in enumerate(zip(job.steps, report.steps, strict=True)):
        of = f" ({number + 1} of {len(job.steps)})" if len(job.steps) > 1 else ""
        where = None if manifest is None else step_document(manifest, number)
        watcher.begin(f"{step.operation}{of}")
        try:
            _Step(step, step_report, watcher, where, part).run(context, executor)
        finally:
            watcher.close()
        report.seconds = time.monotonic() - began
        if step_report.state != "done":
            break
    return report


class _Step:
    """One step, as it runs."""

    def __init__(
        self,
        step: JobStep,
        report: StepReport,
        watcher: Watcher,
        where: Document | None,
        part: Part | None,
    ) -> None:
        self._step = step
        self._report = report
        self._watcher = watcher
        self._where = where
        self._part = part
        self._began = False

    def run(self, context: Context | None, executor: object) -> None:
        """Run it; the report tells what came of it."""
        report, began = self._report, time.monotonic()
        report.state = "running"
        future: Future[Any] | None = None
        try:
            future = self._begin(context, executor)
            result = future.result()
            if result is _LEFT:
                report.state, report.error = "partly done", "other workers are at the rest"
            else:
                report.state, report.result = "done", result
        except KeyboardInterrupt:
            report.state, report.error = "interrupted", "interrupted"
            if future is not None:
                _leave(future)
        except (TensorStoreError, OSError) as error:
            # Damaged regions are reported when all else is done; other damage, before anything is.
            partly = isinstance(error, DataLossError) and self._began
            report.state = "partly done" if partly else "failed"
            report.error = "\n".join([str(error), *getattr(error, "__notes__", ())])
        finally:
            report.seconds = time.monotonic() - began

    def _begin(self, context: Context | None, executor: object) -> Future[Any]:
        reporter = Reporter(self._on_progress, self._step.operation)
        where = None
        if self._where is not None:
            where = document_place(self._where.spec(), context or Context())
        if self._part is None or executor is not None:
            return run_call(self._step.call(context), executor, reporter, where)
        assert where is not None  # a part has a manifest
        share = _StepShare(self._step, where, self._part, reporter, self._report)
        return start(False, share.run, on_interrupt=OnInterrupt.CANCEL)

    def _on_progress(self, progress: Progress) -> None:
        self._began = True
        self._report.bytes_done = progress.bytes_done
        self._report.bytes_total = progress.bytes_total
        self._report.chunks_done = progress.chunks_done
        self._watcher(progress)


#: What a worker's share comes to if others are at the rest.
_LEFT = object()


class _StepShare(NamedTuple):
    """A worker's share of a step."""

    step: JobStep
    where: DocumentPlace
    part: Part
    reporter: Reporter
    report: StepReport

    async def run(self) -> object:
        """Work on it; gives the step's result, if it has one that is made of those of its tasks."""
        call, stages = await self._find()
        steps = [step for stage in stages for step in stage.steps]
        self.reporter.begin(
            sum(step.progress_bytes * step.blocks.size for step in steps),
            sum(step.blocks.chunks for step in steps),
            len(steps),
        )
        share = StageProgress(stages, self.reporter)
        outcomes, is_done = await work_on(
            call,
            stages,
            self.where,
            shared_context(),
            on_progress=share.advance,
            share=(self.part.number, self.part.of),
            wait=self.part.wait,
        )
        mine = [done for outcome in outcomes for done in outcome.steps.values()]
        self.report.tasks_here = sum(done.tasks for done in mine)
        self.report.bytes_here = sum(done.bytes for done in mine)
        if not is_done:
            return _LEFT
        share.finish()
        if all(done.result is None for done in mine):
            return None
        await call.stages()  # what it needs to know to make a result
        return call.result(outcomes)

    async def _find(self) -> tuple[Call[Any], tuple[Stage, ...]]:
        """The step's plan: that which is stored, or else one that is stored now."""
        try:
            return await stored_plan(self.where)
        except NotFoundError:
            pass
        call = self.step.call(None)
        try:
            return call, await store_plan(call, self.where, portable=True)
        except (AlreadyExistsError, FailedPreconditionError):
            # Or another process was faster, and has even begun.
            with suppress(NotFoundError):
                return await stored_plan(self.where)
            raise


def _leave(future: Future[Any]) -> None:
    """The job was cancelled: what was begun is ended, so that others need not wait for it."""
    future.cancel()
    with suppress(Exception, CancelledError):
        future.exception(timeout=_LEAVE_S)
