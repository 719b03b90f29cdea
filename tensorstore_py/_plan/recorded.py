"""Run a call with a manifest: alone, or as one of any number of workers on as many machines.

Whoever calls first stores the plan; whoever calls later must ask for the same, and goes on with it.
A worker that only knows where the plan is takes everything from there (`join`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorstore_py._plan.call import call_named
from tensorstore_py._plan.document import check_same, document, forms_of, stages_of
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import BEGIN, Parts
from tensorstore_py._plan.tasks import Done, Outcome, Tasks
from tensorstore_py._plan.work import Work
from tensorstore_py._plan.worker import Worker
from tensorstore_py.errors import NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.document import DocumentPlace
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._spec.context import Context

__all__ = ["join", "store_plan", "stored_plan", "work_on"]


async def store_plan(
    call: Call[Any], where: DocumentPlace, *, portable: bool = False
) -> tuple[Stage, ...]:
    """Store the plan of a call, or find that it is stored already.

    Args:
        call: what is asked for.
        where: where the plan is to be.
        portable: other processes have to understand it.

    Returns:
        What there is to do, with what was done already.

    Raises:
        FailedPreconditionError: another plan is there, or sources or targets have changed since.
        UnsupportedError: the store cannot hold a manifest.
    """
    manifest = Manifest(where.store, where.key, Parts(0))
    try:
        stored: JsonObject | None = await manifest.load()
    except NotFoundError:
        stored = None
    if stored is not None:
        await manifest.ensure({"request": {"operation": call.operation, **call.identity()}})
        call.resume(forms_of(stored))
    stages = await call.stages()
    now = document(call, stages, portable=portable)
    check_same(await manifest.ensure(now), now, manifest.where)
    if stored is not None:
        begun = (await manifest.read(BEGIN)).record
        if begun is not None and begun.state == "done":
            await call.check_begun()
    return stages


async def work_on(
    call: Call[Any],
    stages: tuple[Stage, ...],
    where: DocumentPlace,
    context: Context,
    *,
    told: Callable[[int, int], object],
    share: tuple[int, int] | None = None,
    wait: bool = True,
) -> list[Outcome] | None:
    """Do what is left of a stored plan, together with whoever else does.

    Args:
        call: what was asked for.
        stages: what there is to do.
        where: where the plan is stored.
        context: what specs are bound to.
        told: called with the number of a stage and of how many more of its tasks are done.
        share: which of how many equal shares to begin with.
        wait: for what others are at; False: leave it to them.

    Returns:
        What was done here of each stage, with the results of all; None: others are at the rest.

    Raises:
        DataLossError: tasks whose source is damaged, named; all others are done.
        Whatever a task raises that is no damage; what was done stays done.
    """
    outcomes = []
    for number, stage in enumerate(stages):
        manifest = Manifest(where.store, where.key, Parts(stage.count), stage=number)
        await manifest.load()
        mine = _Mine(Tasks(stage, context))
        first, last = number == 0, number == len(stages) - 1
        work = Work(
            mine.run,
            merge=mine.merge,
            to_json=mine.to_json,
            from_json=mine.from_json,
            begin=call.begin if first else None,
            end=mine.ending(call.end) if last else None,
            region=mine.region,
            size=mine.size,
        )
        worker = Worker(
            manifest, work, width=mine.tasks.width(), share=share, wait=wait,
            told=partial(told, number),
        )  # fmt: skip
        found = await worker.run()
        if found.state != "done":
            return None
        outcomes.append(mine.outcome(found.result))
    return outcomes


async def join(
    where: DocumentPlace,
    context: Context,
    *,
    told: Callable[[int, int], object],
    share: tuple[int, int] | None = None,
    wait: bool = True,
) -> list[Outcome] | None:
    """Work on a plan that is stored somewhere; arguments and errors as for `work_on`.

    Raises:
        NotFoundError: there is none.
        UnsupportedError: it can only go on in the process that stored it.
        FailedPreconditionError: a source or a target has changed since.
    """
    call, stages = await stored_plan(where)
    return await work_on(call, stages, where, context, told=told, share=share, wait=wait)


async def stored_plan(where: DocumentPlace) -> tuple[Call[Any], tuple[Stage, ...]]:
    """The call that a stored plan is of, and its stages.

    Raises:
        NotFoundError: there is none.
        UnsupportedError: it can only go on in the process that stored it.
    """
    manifest = Manifest(where.store, where.key, Parts(0))
    stored = await manifest.load()
    arguments = stored.get("arguments")
    if not isinstance(arguments, dict):
        raise UnsupportedError(
            f"the plan {manifest.where} needs what only the process has that made it; make the "
            "same call there again to go on"
        )
    call = call_named(str(stored.get("operation")), arguments)
    call.resume(forms_of(stored))
    return call, stages_of(stored.get("stages"))


class _Mine:
    """The tasks of a stage as a worker runs them: partial results are told apart by their step."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self._stage = tasks.stage
        self._done = Outcome({}, [])

    async def run(self, number: int) -> object:
        (at,) = self._stage.runs(number, number + 1)
        step, block = self._stage.task(number)
        result = await self.tasks.run(number)
        done = Done(1, step.told_bytes * block.size, block.chunks)
        self._done.add(at.step, step, done)
        return None if result is None else {at.step: result}

    def merge(self, one: dict[int, object], other: dict[int, object]) -> dict[int, object]:
        both = dict(one)
        for step, result in other.items():
            merging = self._stage.steps[step].merging
            assert merging is not None  # or there would be no results
            both[step] = merging.merge(both[step], result) if step in both else result
        return both

    def to_json(self, results: dict[int, object]) -> object:
        found = {}
        for step, result in results.items():
            merging = self._stage.steps[step].merging
            assert merging is not None
            found[str(step)] = merging.to_json(result)
        return found

    def from_json(self, json: dict[str, Any]) -> object:
        found = {}
        for step, result in json.items():
            merging = self._stage.steps[int(step)].merging
            assert merging is not None
            found[int(step)] = merging.from_json(result)
        return found

    def region(self, number: int) -> str:
        step, block = self._stage.task(number)
        return step.region(block)

    def size(self, number: int) -> int:
        step, block = self._stage.task(number)
        return step.told_bytes * block.size

    @staticmethod
    def ending(end: Callable[[], Any]) -> Callable[[object], Any]:
        async def ended(_: object) -> None:
            await end()

        return ended

    def outcome(self, results: object) -> Outcome:
        """What was done here, with the results of all."""
        found = dict(self._done.steps)
        if isinstance(results, dict):
            for step, result in results.items():
                found[step] = found.get(step, Done())._replace(result=result)
        return Outcome(found, [])
