"""Run a call: its stages one after the other, here or on an engine, with a manifest or without.

Without one, who called begins, hands out the tasks, and ends. With one, all workers are alike.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tensorstore_py._plan.arrays import portable_json
from tensorstore_py._plan.engines import engine_of, run_pieces
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import DONE, Parts
from tensorstore_py._plan.pieces import Joining, Piece, shared_context
from tensorstore_py._plan.recorded import store_plan, work_on_stage
from tensorstore_py._plan.share import Share
from tensorstore_py._plan.steps import check_portable
from tensorstore_py._plan.tasks import Outcome, Tasks
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.document import DocumentPlace
    from tensorstore_py._plan.engines import Engine
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import Told

__all__ = ["run_call"]

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
    told: Told,
    manifest: DocumentPlace | None = None,
    stages: tuple[Stage, ...] | None = None,
) -> Future[R]:
    """Run a call.

    Args:
        call: what was asked for.
        executor: who runs the tasks, see `engine_of`; None: this process.
        told: who is told how far it is.
        manifest: where to keep what is done; None: nowhere.
        stages: those of the call, if they are known.

    Raises:
        SpecError, UnsupportedError: (at once) it is no engine, or one that is not installed.
    """
    engine = engine_of(executor)

    async def run() -> R:
        elsewhere = engine is not None and not engine.shares_memory
        if manifest is not None:
            found = await store_plan(call, manifest, portable=elsewhere)
        else:
            found = await call.stages() if stages is None else stages
        steps = [step for stage in found for step in stage.steps]
        told.begin(
            sum(step.told_bytes * step.blocks.size for step in steps),
            sum(step.blocks.chunks for step in steps),
            len(steps),
        )
        if manifest is not None:
            return call.result(await _run_recorded(call, found, engine, manifest, told))
        if elsewhere:
            for step in steps:
                _ = step.arguments  # what can't travel is refused before anything is made
        return call.result(await _run_all(call, found, engine, told))

    return told.until(start(False, run, when_left=WhenLeft.STOPS))


async def _run_recorded(
    call: Call[Any],
    stages: tuple[Stage, ...],
    engine: Engine | None,
    manifest: DocumentPlace,
    told: Told,
) -> list[Outcome]:
    """Work on a stored plan, with all workers of an engine, or here."""
    share = Share(stages, told)
    context, outcomes = shared_context(), []
    for number, stage in enumerate(stages):
        theirs: list[Outcome] = []
        if engine is not None:
            # So that no worker has to wait for another one to begin.
            await work_on_stage(
                call, stages, number, manifest, context, told=share.advance, only_begin=True
            )
            live = (call, stages, manifest) if engine.shares_memory else None
            watching = asyncio.ensure_future(_watch(manifest, number, stage, share, told))
            try:
                theirs = await _join_all(engine, manifest, number, live, call.operation)
            finally:
                watching.cancel()
        # What the engine has left undone is done here; else this only finds that all is done.
        outcome, is_done = await work_on_stage(
            call, stages, number, manifest, context, told=share.advance
        )
        assert is_done  # since it waited
        for each in theirs:
            outcome.merge(each, stage)
        outcomes.append(outcome)
    share.finish()
    return outcomes


async def _watch(where: DocumentPlace, number: int, stage: Stage, share: Share, told: Told) -> None:
    """Tell how far the workers of an engine are, as listings of the manifest say."""
    if not told.listens:
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
) -> list[Outcome]:
    """Have each worker of an engine work on a stage of a stored plan."""
    where: JsonObject = {} if live else portable_json(manifest.spec)
    check_portable(where, "manifest")
    count = engine.workers
    pieces = (Joining(where, stage, number, count, live) for number in range(count))
    async with aclosing(run_pieces(engine, pieces, _unique(name))) as ended:
        return [found async for found in ended if isinstance(found, Outcome)]


async def _run_all(
    call: Call[R], stages: tuple[Stage, ...], engine: Engine | None, told: Told
) -> list[Outcome]:
    await call.begin(False)
    outcomes = []
    for stage in stages:
        outcome = await _run_stage(stage, engine, told, call.operation)
        outcome.check()
        outcomes.append(outcome)
    await call.end()
    return outcomes


async def _run_stage(stage: Stage, engine: Engine | None, told: Told, name: str) -> Outcome:
    if engine is None:
        return await Tasks(stage, shared_context()).run_all(
            0, stage.count, lambda done: told.advance(done.bytes, done.chunks)
        )
    outcome = Outcome({}, [])
    async with aclosing(run_pieces(engine, _pieces(stage, engine), _unique(name))) as found:
        async for each in found:
            assert isinstance(each, Outcome)
            outcome.merge(each, stage)
            told.advance(
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
