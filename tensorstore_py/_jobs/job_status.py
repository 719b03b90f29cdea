"""`JobStatus`: how far a planned job is, as its manifests tell; for people and as JSON.

Each step has a manifest of its own, which is not there before the step's turn has come. Of workers
only those are known that have claimed something; those that finished are only counted by what is
done.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from tensorstore_py._jobs.documents import Document
from tensorstore_py._jobs.job_plan import step_document
from tensorstore_py._jobs.report import as_json, time_text
from tensorstore_py._plan.document import document_place, stages_of
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import Parts
from tensorstore_py._plan.plan import size_text
from tensorstore_py._plan.status import Status, status_of
from tensorstore_py._runtime.execution import start
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import NotFoundError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._jobs.job import Job, JobStep
    from tensorstore_py._plan.document import DocumentPlace
    from tensorstore_py._plan.steps import Stage

__all__ = ["JobStatus", "StepStatus", "job_status"]

State = Literal["planned", "running", "partly done", "done"]
_SHOWN = 20


class StepStatus(NamedTuple):
    """How far each stage of a step is; none: its turn has not come. `bytes` is of all elements."""

    operation: str
    stages: tuple[Status, ...]
    bytes: int

    @property
    def state(self) -> State:
        """Of all stages."""
        states = [each.state for each in self.stages]
        if states and all(each == "done" for each in states):
            return "done"
        if "running" in states:
            return "running"
        return "planned" if all(each == "planned" for each in states) else "partly done"

    @property
    def bytes_done(self) -> int:
        """Of the elements that are done."""
        return sum(each.bytes_done for each in self.stages)

    @property
    def rate(self) -> float:
        """Bytes a second of the workers that are alive."""
        return sum(worker.rate for each in self.stages for worker in each.workers if worker.alive)

    @property
    def seconds_left(self) -> float | None:
        """At this rate; None: no worker is at work."""
        return (self.bytes - self.bytes_done) / self.rate if self.rate else None

    def to_json(self) -> JsonObject:
        """It as JSON."""
        count = {
            name: sum(getattr(each, name) for each in self.stages)
            for name in ("parts", "parts_done", "claimed", "abandoned", "tasks", "tasks_done",
                         "failed")
        }  # fmt: skip
        return {
            "operation": self.operation,
            "state": self.state,
            **count,
            "bytes": self.bytes,
            "bytes_done": self.bytes_done,
            "bytes_per_second": round(self.rate),
            "seconds_left": self.seconds_left,
            "failures": [as_json(each) for stage in self.stages for each in stage.failures],
            "workers": [
                {**worker._asdict(), "bytes_per_second": round(worker.rate)}
                for stage in self.stages
                for worker in stage.workers
            ],
        }

    def __str__(self) -> str:
        if not self.stages:
            return f"{self.operation}: planned when what is before it is done"
        json = self.to_json()
        percent = f"{self.bytes_done / self.bytes:.0%}, " if self.bytes else ""
        size = f"{size_text(self.bytes_done)} of {size_text(self.bytes)}"
        held = f"{json['claimed']:,} claimed, {json['abandoned']:,} abandoned"
        lines = [
            f"{self.operation}: {self.state}, {percent}{size}",
            f"  tasks: {json['tasks_done']:,} of {json['tasks']:,} done",
            f"  parts: {json['parts_done']:,} of {json['parts']:,} done, {held}",
        ]
        if self.rate:
            left = "" if self.seconds_left is None else f", {time_text(self.seconds_left)} left"
            lines.append(f"  rate: {size_text(self.rate)}/s{left}")
        workers = [worker for stage in self.stages for worker in stage.workers]
        for worker in workers[:_SHOWN]:
            alive = "" if worker.alive else ", not heard of"
            lines.append(
                f"  worker {worker.host} {worker.pid}: {worker.tasks:,} tasks, "
                f"{size_text(worker.bytes)}, {size_text(worker.rate)}/s{alive}"
            )
        lines += _more(len(workers), "workers")
        failures = [each for stage in self.stages for each in stage.failures]
        if failures:
            lines.append(f"  damaged: {json['failed']:,} tasks could not be done")
            lines += [f"    {each}" for each in failures[:_SHOWN]]
            lines += _more(len(failures), "damaged")
        return "\n".join(lines)


class JobStatus(NamedTuple):
    """How far a job is."""

    steps: tuple[StepStatus, ...]

    @property
    def state(self) -> State:
        """Of all steps."""
        states = [each.state for each in self.steps]
        for state in ("running", "partly done"):
            if state in states:
                return state
        if all(each == "done" for each in states):
            return "done"
        return "planned" if all(each == "planned" for each in states) else "partly done"

    @property
    def failed(self) -> int:
        """How many tasks could not be done, since what they read is damaged."""
        return sum(status.failed for each in self.steps for status in each.stages)

    def to_json(self) -> JsonObject:
        """It as JSON."""
        return {"state": self.state, "steps": [each.to_json() for each in self.steps]}

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.steps)


def job_status(job: Job, document: Document) -> JobStatus:
    """How far a planned job is.

    Raises UnsupportedError: nothing can be recorded there.
    """
    steps = []
    for number, step in enumerate(job.steps):
        where = document_place(step_document(document, number).spec(), Context())
        steps.append(start(False, partial(_step_status, step, where)).result())
    return JobStatus(tuple(steps))


async def _step_status(step: JobStep, where: DocumentPlace) -> StepStatus:
    try:
        stored = await Manifest(where.store, where.key, Parts(0)).load()
    except NotFoundError:
        return StepStatus(step.operation, (), 0)
    stages = stages_of(stored.get("stages"))
    found = []
    for number, stage in enumerate(stages):
        manifest = Manifest(where.store, where.key, Parts(stage.count), stage=number)
        await manifest.load()
        found.append(await status_of(manifest, partial(_bytes_of, stage)))
    return StepStatus(step.operation, tuple(found), sum(_size(each) for each in stages))


def _size(stage: Stage) -> int:
    return sum(step.progress_bytes * step.blocks.size for step in stage.steps)


def _bytes_of(stage: Stage, tasks: range) -> int:
    """Of some tasks, in proportion: to look at each of millions takes long."""
    return sum(
        stage.steps[run.step].progress_bytes
        * (stage.steps[run.step].blocks.size * run.stop // stage.steps[run.step].blocks.count
           - stage.steps[run.step].blocks.size * run.start // stage.steps[run.step].blocks.count)
        for run in stage.runs(tasks.start, tasks.stop)
    )  # fmt: skip


def _more(count: int, what: str) -> list[str]:
    return [f"  and {count - _SHOWN:,} more {what}"] if count > _SHOWN else []
