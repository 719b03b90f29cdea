"""A job that is planned, as a document: what `tspy plan` writes, and what workers read.

It is the plan of the first step, as `ts.Plan.to_json` says it, with the rest of the job. What a
later step reads may be what an earlier one writes, so it is planned when its turn comes, and its
plan is stored beside. Each of these documents is the manifest of its step, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py._jobs.job import Job, JobStep
from tensorstore_py._plan.plan import Plan
from tensorstore_py._plan.steps import check_portable
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._jobs.documents import Document
    from tensorstore_py._plan.call import Call
    from tensorstore_py._runtime.future import Future

__all__ = ["is_plan", "plan_json", "plan_text", "planned", "planned_of_json", "step_document"]

#: The member that tells a plan from other documents: its version.
_PLAN: Final = "tensorstore_py_plan"
#: What the plan of a job has besides the plan of its first step.
_JOB: Final = "job"
#: Of that: the steps after the first one.
_LATER: Final = "then"


def is_plan(json: JsonObject) -> bool:
    """Whether a document is a plan."""
    return _PLAN in json


def step_document(document: Document, number: int) -> Document:
    """Where the plan and manifest of a step are."""
    return document.beside(f".steps/{number + 1}.json") if number else document


def planned(job: Job) -> Job:
    """The same job, with what workers need to know of its first step.

    Raises:
        Whatever the first step finds out about its ends before it begins.
    """
    context = job.bound_context()
    first, *later = job.steps
    plan = _plan(first.call(context)).result()
    steps = [JobStep(first.operation, first.options, plan)]
    steps += [JobStep(each.operation, each.call(context).request()) for each in later]
    return job._replace(steps=tuple(steps), context=None)


def _plan(call: Call[object]) -> Future[Plan]:
    async def body() -> Plan:
        return Plan(call, await call.stages())

    return start(False, body, on_interrupt=OnInterrupt.CANCEL)


def plan_text(job: Job) -> str:
    """What a planned job is going to do, for people."""
    lines = [job.description] if job.description else []
    for number, step in enumerate(job.steps, 1):
        later = f"{step.operation}: planned when what is before it is done"
        text = later if step.plan is None else str(step.plan)
        lines.append(f"{number}. {text}" if len(job.steps) > 1 else text)
    return "\n".join(lines)


def plan_json(job: Job) -> JsonObject:
    """The document of a planned job.

    Raises:
        UnsupportedError: it needs what only this process has.
        SpecError: it says credentials.
    """
    first, *later = job.steps
    assert first.plan is not None  # of a planned job
    rest: JsonObject = {
        "description": job.description,
        "engine": job.engine.to_json(),
        "progress": job.progress,
        "report": None if job.report is None else str(job.report.where),
        _LATER: [_step_json(each) for each in later],
    }
    said = {name: value for name, value in rest.items() if value not in (None, "", [])}
    return {**first.plan.to_json(), _JOB: said}


def _step_json(step: JobStep) -> JsonObject:
    arguments = dict(step.options)
    check_portable(arguments, step.operation)
    return {"operation": step.operation, "arguments": arguments}


def planned_of_json(json: JsonObject) -> Job:
    """What `plan_json`, or `ts.Plan.to_json`, made of one.

    Raises SpecError: it is something else; has the path to the member.
    """
    plan = Plan.from_json(json)
    rest = json.get(_JOB, {})
    if not isinstance(rest, dict):
        raise SpecError("expected an object", (_JOB,))
    later = rest.get(_LATER, [])
    if not isinstance(later, list):
        raise SpecError("expected a list of steps", (_JOB, _LATER))
    job = Job.parse_rest({name: each for name, each in rest.items() if name != _LATER}, None, None)
    return job._replace(
        steps=(
            JobStep(plan.operation, {}, plan),
            *(_step(each, number) for number, each in enumerate(later)),
        )
    )


def _step(json: object, number: int) -> JobStep:
    match json:
        case {"operation": str(operation), "arguments": dict(arguments)}:
            return JobStep(operation, arguments)
    raise SpecError("expected a step with operation and arguments", (_JOB, _LATER, number))
