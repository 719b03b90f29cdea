"""Run a call: its stages one after the other, here or on an engine, with a manifest or without.

Without a manifest the calling process begins, hands out the tasks, and ends. With one, all workers
are alike. What an engine's worker runs is picklable and gives small things back: a piece of a stage
(`Piece`), or what is left of a stage of a stored plan (`StageWorker`). All that a process runs of
them shares one context, and with it its limits on memory and its connections.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from tensorstore_py._plan.arrays import portable_json
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.engines import engine_of, run_pieces
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import DONE, Parts
from tensorstore_py._plan.recorded import store_plan, stored_plan, work_on_stage
from tensorstore_py._plan.steps import check_portable
from tensorstore_py._plan.tasks import StageOutcome, Tasks
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._spec.context import Context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.document import DocumentPlace
    from tensorstore_py._plan.engines import Engine
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import Reporter

__all__ = ["Piece", "StageProgress", "StageWorker", "run_call", "shared_context"]


_contexts: list[Context] = []


def shared_context() -> Context:
    """The context that all pieces of a process share: one pool of memory, one of connections."""
    if not _contexts:
        _contexts.append(Context())
    return _contexts[0]


class Piece(NamedTuple):
    """Tasks of a stage that follow each other, for one worker.

    Attributes:
        stage: with only the steps that they belong to.
        first: which of the whole stage's steps is its first.
        start: the number, among those of `stage`, of the first task.
    """

    stage: Stage
    first: int
    start: int
    stop: int

    @staticmethod
    def of(stage: Stage, low: int, high: int) -> Piece:
        """The tasks of a whole stage from one number up to another."""
        some, first, before = stage.some(low, high)
        return Piece(some, first, low - before, high - before)

    def run(self) -> StageOutcome:
        """Do them all."""
        tasks = Tasks(self.stage, shared_context())
        body = partial(tasks.run_all, self.start, self.stop, _ignored)
        done = start(False, body).result()
        return StageOutcome(
            {self.first + at: each for at, each in done.steps.items()}, done.damaged
        )


class StageWorker(NamedTuple):
    """A worker of a stage of a stored plan, on an engine, that begins with share `number`.

    Attributes:
        where: the JSON spec of the plan's document.
        live: the call, its stages and where its plan is stored, in the same process.
    """

    where: JsonObject
    stage: int
    number: int
    of: int
    live: tuple[Call[Any], tuple[Stage, ...], DocumentPlace] | None

    def run(self) -> StageOutcome:
        """Work until all is done or claimed by others; returns what was done here."""
        context = shared_context()

        async def body() -> StageOutcome:
            live = self.live
            if live is None:
                where = document_place(self.where, context)
                live = (*await stored_plan(where), where)
            call, stages, where = live
            outcome, _ = await work_on_stage(
                call, stages, self.stage, where, context, on_progress=_ignored,
                share=(self.number, self.of), wait=False,
            )  # fmt: skip
            return outcome.without_results()

        return start(False, body).result()


def _ignored(*_: object) -> None:
    pass


class StageProgress:
    """Tells of bytes, chunks and arrays in proportion to the tasks that are done."""

    def __init__(self, stages: tuple[Stage, ...], reporter: Reporter) -> None:
        self._reporter = reporter
        self._stages = stages
        self._tasks = [0] * len(stages)
        self._done = [0] * len(stages)

    def advance(self, number: int, tasks: int) -> None:
        """So many more tasks of a stage are done."""
        self._done[number] += tasks
        self.reach(number, self._done[number])

    def reach(self, number: int, tasks: int) -> None:
        """At least so many tasks of a stage are done in all."""
        size, chunks, steps = self._measure(number)
        self._tasks[number] = min(self._stages[number].count, max(self._tasks[number], tasks))
        now = self._measure(number)
        if now != (size, chunks, steps):
            self._reporter.advance(now[0] - size, now[1] - chunks, now[2] - steps)

    def finish(self) -> None:
        """All is done."""
        for number, stage in enumerate(self._stages):
            self.reach(number, stage.count)

    def _measure(self, number: int) -> tuple[int, int, int]:
        stage, done = self._stages[number], self._tasks[number]
        size = sum(step.progress_bytes * step.blocks.size for step in stage.steps)
        chunks = sum(step.blocks.chunks for step in stage.steps)
        count = max(1, stage.count)
        return size * done // count, chunks * done // count, len(stage.steps) * done // count


R = TypeVar("R")

#: So many pieces for each that an engine takes at a time: enough for the last ones to be short.
_PIECES: Final = 8
#: A piece is of so many tasks at most, so that what a lost worker cost is little.
_MOST_TASKS: Final = 256
#: So often the manifest is listed to tell of progress elsewhere: a few requests each time.
_LOOK_S: Final = 2.0


def run_call(
    call: Call[R],
    executor: object,
    reporter: Reporter,
    manifest: DocumentPlace | None = None,
    stages: tuple[Stage, ...] | None = None,
) -> Future[R]:
    """Run a call on what `engine_of` makes of `executor`, keeping in `manifest` what is done.

    `stages` are those of the call, if they are known.

    Raises SpecError, UnsupportedError: (at once) it is no engine, or one that is not installed.
    """
    engine = engine_of(executor)

    async def run() -> R:
        elsewhere = engine is not None and not engine.shares_memory
        if manifest is not None:
            found = await store_plan(call, manifest, portable=elsewhere)
        else:
            found = await call.stages() if stages is None else stages
        steps = [step for stage in found for step in stage.steps]
        reporter.begin(
            sum(step.progress_bytes * step.blocks.size for step in steps),
            sum(step.blocks.chunks for step in steps),
            len(steps),
        )
        if manifest is not None:
            return call.result(await _run_recorded(call, found, engine, manifest, reporter))
        if elsewhere:
            for step in steps:
                _ = step.arguments  # what can't travel is refused before anything is made
        return call.result(await _run_all(call, found, engine, reporter))

    return reporter.until(start(False, run, on_interrupt=OnInterrupt.CANCEL))


async def _run_recorded(
    call: Call[Any],
    stages: tuple[Stage, ...],
    engine: Engine | None,
    manifest: DocumentPlace,
    reporter: Reporter,
) -> list[StageOutcome]:
    """Work on a stored plan, with all workers of an engine, or here."""
    share = StageProgress(stages, reporter)
    context, outcomes = shared_context(), []
    for number, stage in enumerate(stages):
        theirs: list[StageOutcome] = []
        if engine is not None:
            # So that no worker has to wait for another one to begin.
            await work_on_stage(
                call, stages, number, manifest, context, on_progress=share.advance, only_begin=True
            )
            live = (call, stages, manifest) if engine.shares_memory else None
            watching = asyncio.ensure_future(_watch(manifest, number, stage, share, reporter))
            try:
                theirs = await _join_all(engine, manifest, number, live, call.operation)
            finally:
                watching.cancel()
        # What the engine has left undone is done here; else this only finds that all is done.
        outcome, is_done = await work_on_stage(
            call, stages, number, manifest, context, on_progress=share.advance
        )
        assert is_done  # since it waited
        for each in theirs:
            outcome.merge(each, stage)
        outcomes.append(outcome)
    share.finish()
    return outcomes


async def _watch(
    where: DocumentPlace, number: int, stage: Stage, share: StageProgress, reporter: Reporter
) -> None:
    """Tell how far the workers of an engine are, as listings of the manifest say."""
    if not reporter.listens:
        return
    parts = Parts(stage.count)
    manifest = Manifest(where.store, where.key, parts, stage=number)
    await manifest.load()
    while True:
        await asyncio.sleep(_LOOK_S)
        states = await manifest.states(0, parts.count)
        share.reach(number, sum(len(parts[part]) for part, state in enumerate(states)
                                if state == DONE))  # fmt: skip


async def _join_all(
    engine: Engine,
    manifest: DocumentPlace,
    stage: int,
    live: tuple[Call[Any], tuple[Stage, ...], DocumentPlace] | None,
    name: str,
) -> list[StageOutcome]:
    """Have each worker of an engine work on a stage of a stored plan."""
    where: JsonObject = {} if live else portable_json(manifest.spec)
    check_portable(where, "manifest")
    count = engine.workers
    pieces = (StageWorker(where, stage, number, count, live) for number in range(count))
    async with aclosing(run_pieces(engine, pieces, _unique(name))) as ended:
        return [found async for found in ended if isinstance(found, StageOutcome)]


async def _run_all(
    call: Call[R], stages: tuple[Stage, ...], engine: Engine | None, reporter: Reporter
) -> list[StageOutcome]:
    await call.begin(False)
    outcomes = []
    for stage in stages:
        outcome = await _run_stage(stage, engine, reporter, call.operation)
        outcome.check()
        outcomes.append(outcome)
    await call.end()
    return outcomes


async def _run_stage(
    stage: Stage, engine: Engine | None, reporter: Reporter, name: str
) -> StageOutcome:
    if engine is None:
        return await Tasks(stage, shared_context()).run_all(
            0, stage.count, lambda done: reporter.advance(done.bytes, done.chunks)
        )
    outcome = StageOutcome({}, [])
    async with aclosing(run_pieces(engine, _pieces(stage, engine), _unique(name))) as found:
        async for each in found:
            assert isinstance(each, StageOutcome)
            outcome.merge(each, stage)
            reporter.advance(
                sum(done.bytes for done in each.steps.values()),
                sum(done.chunks for done in each.steps.values()),
            )
    return outcome


def _pieces(stage: Stage, engine: Engine) -> Iterator[Piece]:
    size = max(1, min(_MOST_TASKS, stage.count // (_PIECES * engine.width)))
    for start_ in range(0, stage.count, size):
        yield Piece.of(stage, start_, min(start_ + size, stage.count))


def _unique(name: str) -> str:
    """A name that no other run has: clusters take two tasks of one name for the same."""
    return f"{name}-{token_hex(4)}"
