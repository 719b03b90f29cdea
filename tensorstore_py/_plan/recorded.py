"""Run a call with a manifest: alone, or as one of any number of workers on as many machines.

The first caller stores the plan; later ones must ask for the same, and go on with it. A worker that
only knows where the plan is takes everything from there (`join`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorstore_py._plan.call import call_named
from tensorstore_py._plan.document import check_same, document, forms_of, stages_of
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import BEGIN, Parts
from tensorstore_py._plan.tasks import StageOutcome, StepOutcome, Tasks
from tensorstore_py._plan.work import Work
from tensorstore_py._plan.worker import Worker
from tensorstore_py.errors import NotFoundError, TensorStoreError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.document import DocumentPlace
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._spec.context import Context

    OnProgress: TypeAlias = Callable[[int, int], object]

__all__ = ["join", "store_plan", "stored_plan", "work_on", "work_on_stage"]


async def store_plan(
    call: Call[Any], where: DocumentPlace, *, portable: bool = False
) -> tuple[Stage, ...]:
    """Store the plan of a call, or find that it is stored already; gives its stages.

    Raises FailedPreconditionError: another plan is there, or sources or targets have changed since;
        UnsupportedError: the store cannot hold a manifest.
    """
    manifest = Manifest(where.store, where.key, Parts(0))
    stored = await _stored(manifest)
    # Asked before the call looks around: what others make after that, it has not seen.
    begun = stored is not None and await _has_begun(manifest)
    try:
        stages = await _agreed(call, manifest, stored, portable)
    except TensorStoreError:
        # Another process may have stored the plan meanwhile, and made what was not expected.
        if stored is not None or (stored := await _stored(manifest)) is None:
            raise
        begun = await _has_begun(manifest)
        stages = await _agreed(call, manifest, stored, portable)
    if begun:
        await call.check_begun()
    return stages


async def _has_begun(manifest: Manifest) -> bool:
    """Whether all is made that tasks write to."""
    record = (await manifest.read(BEGIN)).record
    return record is not None and record.state == "done"


async def _stored(manifest: Manifest) -> JsonObject | None:
    try:
        return await manifest.load()
    except NotFoundError:
        return None


async def _agreed(
    call: Call[Any], manifest: Manifest, stored: JsonObject | None, portable: bool
) -> tuple[Stage, ...]:
    """What there is to do, which is what the stored plan says, or is stored now."""
    if stored is not None:
        await manifest.ensure({"request": {"operation": call.operation, **call.identity()}})
        call.resume(forms_of(stored))
    stages = await call.stages()
    now = document(call, stages, portable=portable)
    check_same(await manifest.ensure(now), now, manifest.where)
    return stages


async def work_on_stage(
    call: Call[Any],
    stages: tuple[Stage, ...],
    number: int,
    where: DocumentPlace,
    context: Context,
    *,
    on_progress: OnProgress,
    share: tuple[int, int] | None = None,
    wait: bool = True,
    only_begin: bool = False,
) -> tuple[StageOutcome, bool]:
    """Do what is left of stage `number` of a stored plan, together with other workers.

    Stages before it are done. `on_progress` is called with the number of the stage and of how many
    more of its tasks are done; for `share`, `wait` and `only_begin` see `Worker`.

    Returns:
        What was done here, with the results of all if all is done; and whether it is.

    Raises:
        DataLossError: tasks whose source is damaged, named; all others are done.
        Whatever a task raises that is no damage; what was done stays done.
    """
    stage = stages[number]
    manifest = Manifest(where.store, where.key, Parts(stage.count), stage=number)
    await manifest.load()
    mine = _StageTasks(Tasks(stage, context))
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
        manifest, work, width=mine.tasks.width(), share=share, wait=wait, only_begin=only_begin,
        on_progress=partial(on_progress, number),
    )  # fmt: skip
    found = await worker.run()
    return mine.outcome(found.result), found.state == "done"


async def work_on(
    call: Call[Any],
    stages: tuple[Stage, ...],
    where: DocumentPlace,
    context: Context,
    *,
    on_progress: OnProgress,
    share: tuple[int, int] | None = None,
    wait: bool = True,
) -> tuple[list[StageOutcome], bool]:
    """Do what is left of all stages; arguments and errors as for `work_on_stage`."""
    outcomes = []
    for number in range(len(stages)):
        outcome, is_done = await work_on_stage(
            call, stages, number, where, context, on_progress=on_progress, share=share, wait=wait
        )
        outcomes.append(outcome)
        if not is_done:
            return outcomes, False
    return outcomes, True


async def stored_plan(where: DocumentPlace) -> tuple[Call[Any], tuple[Stage, ...]]:
    """A plan that is stored somewhere.

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


async def join(
    where: DocumentPlace,
    context: Context,
    *,
    on_progress: OnProgress,
    share: tuple[int, int] | None = None,
    wait: bool = True,
) -> tuple[list[StageOutcome], bool]:
    """Work on a plan that is stored somewhere; arguments and errors as for `work_on_stage`.

    Raises:
        NotFoundError: there is none.
        UnsupportedError: it can only go on in the process that stored it.
        FailedPreconditionError: a source or a target has changed since.
    """
    call, stages = await stored_plan(where)
    return await work_on(
        call, stages, where, context, on_progress=on_progress, share=share, wait=wait
    )


class _StageTasks:
    """The tasks of a stage as a worker runs them: partial results are kept apart by their step."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self._stage = tasks.stage
        self._done = StageOutcome({}, [])

    async def run(self, number: int) -> object:
        (at,) = self._stage.runs(number, number + 1)
        step, block = self._stage.task(number)
        result = await self.tasks.run(number)
        done = StepOutcome(1, step.progress_bytes * block.size, block.chunks)
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
        return step.progress_bytes * block.size

    @staticmethod
    def ending(end: Callable[[], Any]) -> Callable[[object], Any]:
        async def ended(_: object) -> None:
            await end()

        return ended

    def outcome(self, results: object) -> StageOutcome:
        """What was done here, with the results of all."""
        found = dict(self._done.steps)
        if isinstance(results, dict):
            for step, result in results.items():
                found[step] = found.get(step, StepOutcome())._replace(result=result)
        return StageOutcome(found, [])
