"""`run_job`: the steps of a job one after the other, and what came of them.

A step that is not done ends the job: those after it may read what it was to write. Nothing is
raised for what goes wrong in a step; the report tells of it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from tensorstore_py._jobs.job_plan import plan_step
from tensorstore_py._jobs.report import Report, StepReport
from tensorstore_py._plan.running import run_call
from tensorstore_py._runtime.progress import Told
from tensorstore_py.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    TensorStoreError,
)

if TYPE_CHECKING:
    from tensorstore_py._jobs.job import Job, JobStep
    from tensorstore_py._plan.plan import Plan
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import Progress
    from tensorstore_py._spec.context import Context

__all__ = ["Watcher", "run_job"]

#: After Ctrl-C, what was begun gets so long to end.
_LEAVE_S = 5.0


class Watcher(Protocol):
    """Who is told how far a job is."""

    def begin(self, title: str) -> None:
        """A step begins."""

    def __call__(self, progress: Progress) -> object:
        """It is so far."""

    def close(self) -> None:
        """It is over."""


def run_job(job: Job, executor: object, watcher: Watcher) -> Report:
    """Run a job.

    Args:
        job: it, or a plan of it.
        executor: who runs the tasks; None: this process.
        watcher: who is told.
    """
    report = Report(
        [StepReport(each.operation) for each in job.steps],
        job.description,
        job.engine.to_json(),
    )
    context, began = job.bound_context(), time.monotonic()
    for number, (step, told) in enumerate(zip(job.steps, report.steps, strict=True), 1):
        of = f" ({number} of {len(job.steps)})" if len(job.steps) > 1 else ""
        watcher.begin(f"{step.operation}{of}")
        try:
            _Step(step, told, watcher).run(context, executor)
        finally:
            watcher.close()
        report.seconds = time.monotonic() - began
        if told.state != "done":
            break
    return report


class _Step:
    """One step, as it runs."""

    def __init__(self, step: JobStep, report: StepReport, watcher: Watcher) -> None:
        self._step = step
        self._report = report
        self._watcher = watcher
        self._began = False

    def _told(self, progress: Progress) -> None:
        self._began = True
        self._report.bytes = progress.bytes_done
        self._report.bytes_total = progress.bytes_total
        self._report.chunks = progress.chunks_done
        self._watcher(progress)

    def run(self, context: Context | None, executor: object) -> None:
        """Run it; the report tells what came of it."""
        report, began = self._report, time.monotonic()
        report.state = "running"
        future: Future[Any] | None = None
        try:
            future = self._begin(context, executor)
            report.result = future.result()
            report.state = "done"
        except KeyboardInterrupt:
            report.state, report.error = "interrupted", "interrupted"
            if future is not None:
                _leave(future)
        except (TensorStoreError, OSError) as error:
            # Damaged regions are told when all else is done; other damage, before anything is.
            partly = isinstance(error, DataLossError) and self._began
            report.state = "partly done" if partly else "failed"
            report.error = _said(error)
        finally:
            report.seconds = time.monotonic() - began

    def _begin(self, context: Context | None, executor: object) -> Future[Any]:
        step = self._step
        told = Told(self._told, step.operation)
        if step.plan is not None:
            check_unchanged(step.plan)
            return run_call(step.plan.call, executor, told, step.plan.stages)
        return run_call(step.call(context), executor, told)


def check_unchanged(plan: Plan) -> None:
    """Compare a plan with what would be planned now, before anything is made.

    Raises:
        FailedPreconditionError: something has changed; names it.
    """
    call = plan.call
    try:
        fresh = plan_again(call)
    except AlreadyExistsError as error:
        raise FailedPreconditionError(
            f"the target has changed since the plan was made: {error}"
        ) from error
    for stage, other in zip(plan.stages, fresh.stages, strict=True):
        for step, now in zip(stage.steps, other.steps, strict=False):
            if step.to_json() != now.to_json():
                raise _changed(step.name)
        if len(stage.steps) != len(other.steps):
            raise _changed("")
