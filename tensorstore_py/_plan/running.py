"""Run a call: its stages one after the other, here or on an engine.

The one who called begins, runs or hands out the tasks, and ends. A piece is what an engine runs:
tasks that follow each other, with all that a worker has to know of them.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tensorstore_py._plan.engines import engine_of, run_pieces
from tensorstore_py._plan.tasks import Done, Outcome, Tasks
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft
from tensorstore_py._spec.context import Context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.engines import Engine
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import Told

__all__ = ["Piece", "run_call"]

R = TypeVar("R")

#: So many pieces for each that an engine takes at a time: enough for the last ones to be short.
_PIECES: Final = 8
#: A piece is of so many tasks at most, so that what a lost worker cost is little.
_MOST_TASKS: Final = 256


class Piece(NamedTuple):
    """Tasks of a stage that follow each other, for one worker.

    Attributes:
        stage: with only the steps that they belong to.
        first: which of the whole stage's steps is its first.
        start, stop: the numbers of the tasks among those of `stage`.
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

    def run(self) -> Outcome:
        """Do them all."""
        tasks = Tasks(self.stage, _context())
        body = partial(tasks.run_all, self.start, self.stop, _nobody)
        done = start(False, body).result()
        return Outcome({self.first + at: each for at, each in done.steps.items()}, done.damaged)


def _nobody(_: Done) -> None:
    pass


_contexts: list[Context] = []


def _context() -> Context:
    """The context that all pieces of a process share: one pool of memory, one of connections."""
    if not _contexts:
        _contexts.append(Context())
    return _contexts[0]


def run_call(
    call: Call[R], executor: object, told: Told, stages: tuple[Stage, ...] | None = None
) -> Future[R]:
    """Run a call.

    Args:
        call: what was asked for.
        executor: who runs the tasks, see `engine_of`; None: this process.
        told: who is told how far it is.
        stages: those of the call, if they are known.

    Raises:
        SpecError, UnsupportedError: (at once) it is no engine, or one that is not installed.
    """
    engine = engine_of(executor)

    async def run() -> R:
        found = await call.stages() if stages is None else stages
        steps = [step for stage in found for step in stage.steps]
        told.begin(
            sum(step.told_bytes * step.blocks.size for step in steps),
            sum(step.blocks.chunks for step in steps),
        )
        if engine is not None and not engine.shares_memory:
            for step in steps:
                _ = step.arguments  # what can't travel is refused before anything is made
        await call.begin(again=False)
        outcomes = []
        for stage in found:
            outcome = await _run_stage(stage, engine, told, call.operation)
            outcome.check()
            outcomes.append(outcome)
        await call.end()
        return call.result(outcomes)

    return told.until(start(False, run, when_left=WhenLeft.STOPS))


async def _run_stage(stage: Stage, engine: Engine | None, told: Told, name: str) -> Outcome:
    if engine is None:
        return await Tasks(stage, _context()).run_all(
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
