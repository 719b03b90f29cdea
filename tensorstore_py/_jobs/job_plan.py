"""A job whose steps are planned, as a document: what `tspy plan` writes and workers read.

The first step is planned when the document is made. What a later one reads may be what an earlier
one writes, so it is planned when its turn comes. A plan that `ts.plan` made is a job of one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py._jobs.engine import JobEngine
from tensorstore_py._jobs.job import Job, JobStep
from tensorstore_py._plan.plan import Plan
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context

__all__ = ["JOB_PLAN", "is_plan", "plan_json", "plan_step", "plan_text", "planned", "planned_of_json"]

#: The member that tells the plan of a job from other documents: its version.
JOB_PLAN: Final = "tensorstore_py_job_plan"
_PLAN: Final = "tensorstore_py_plan"


def is_plan(json: JsonObject) -> bool:
    """Whether a document is a plan, and no job file."""
    return JOB_PLAN in json or _PLAN in json


def plan_step(step: JobStep, context: Context | None) -> Future[Plan]:
    """The plan of a step, made now."""
    call = step.call(context)

    async def body() -> Plan:
        return Plan(call, await call.stages())

    return start(False, body, when_left=WhenLeft.STOPS)


def planned(job: Job) -> Job:
    """The same job, with what workers need to know of its first step.

    Raises:
        Whatever the first step finds out about its ends before it begins.
    """
    context = job.bound_context()
    first, *later = job.steps
    steps = [JobStep(first.operation, first.options, plan_step(first, context).result())]
    for each in later:
        request = each.call(context).request()
        steps.append(JobStep(each.operation, request))
    return job._replace(steps=tuple(steps), context=None)


def plan_text(job: Job) -> str:
    """What it is going to do, for people."""
    lines = [] if not job.description else [job.description]
    for number, step in enumerate(job.steps, 1):
        told = f"{step.operation}: planned when what is before it is done"
        text = told if step.plan is None else str(step.plan)
        lines.append(f"{number}. {text}" if len(job.steps) > 1 else text)
    return "\n".join(lines)


def plan_json(job: Job) -> JsonObject:
    """The document of a job that is planned.

    Raises:
        UnsupportedError: it needs what only this process has.
        SpecError: it says credentials.
    """
    report = job.report
    json: JsonObject = {
        JOB_PLAN: 1,
        "description": job.description or None,
        "engine": job.engine.to_json(),
        "progress": job.progress,
        "report": None if report is None else str(report.where),
        "steps": [_step_json(each) for each in job.steps],
    }
    return {name: value for name, value in json.items() if value is not None}


def _step_json(step: JobStep) -> JsonObject:
    if step.plan is not None:
        return step.plan.to_json()
    return {"operation": step.operation, "request": dict(step.options)}


def planned_of_json(json: JsonObject) -> Job:
    """What `plan_json`, or `ts.Plan.to_json`, made of one.

    Raises:
        SpecError: it is something else; has the path to the member.
    """
    if _PLAN in json:
        return Job((_step_of(json),))
    if json.get(JOB_PLAN) != 1:
        raise SpecError(f"expected 1, the version of plans, not {json.get(JOB_PLAN)!r}",
                        (JOB_PLAN,))  # fmt: skip
    # Members of a job file, but for the steps, which are the plan's own.
    rest = {name: value for name, value in json.items() if name not in (JOB_PLAN, "steps")}
    job = Job.parse_rest(rest, None, None)
    found = json.get("steps")
    if not isinstance(found, list) or not found:
        raise SpecError("expected a list of at least one step", ("steps",))
    steps = []
    for number, each in enumerate(found):
        try:
            steps.append(_step_of(each))
        except SpecError as error:
            raise error.inside("steps", number) from None
    return job._replace(steps=tuple(steps), engine=JobEngine.parse(json.get("engine")))


def _step_of(json: object) -> JobStep:
    if isinstance(json, dict) and _PLAN in json:
        plan = Plan.from_json(json)
        return JobStep(plan.operation, {}, plan)
    match json:
        case {"operation": str(operation), "request": dict(request)}:
            return JobStep(operation, request)
    raise SpecError("expected a step with operation and request")
