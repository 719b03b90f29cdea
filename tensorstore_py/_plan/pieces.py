"""What an engine's worker runs: a piece of a stage, or whatever is left of a stored plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.recorded import join, work_on
from tensorstore_py._plan.tasks import Outcome, Tasks
from tensorstore_py._runtime.start import start
from tensorstore_py._spec.context import Context

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.document import DocumentPlace
    from tensorstore_py._plan.steps import Stage

__all__ = ["Joining", "Piece", "shared_context"]


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
        stop: that after the last.
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
        tasks = Tasks(self.stage, shared_context())
        body = partial(tasks.run_all, self.start, self.stop, _nobody)
        done = start(False, body).result()
        return Outcome({self.first + at: each for at, each in done.steps.items()}, done.damaged)


class Joining(NamedTuple):
    """A worker of a stored plan, on an engine.

    Attributes:
        where: the JSON spec of the plan's document.
        number: which share it begins with.
        of: of how many.
        live: the call, its stages and where its plan is stored, in the same process.
    """

    where: JsonObject
    number: int
    of: int
    live: tuple[Call[Any], tuple[Stage, ...], DocumentPlace] | None

    def run(self) -> list[Outcome]:
        """Work until all is done, by whomever; returns what was done here, without results."""
        context, share = shared_context(), (self.number, self.of)

        async def body() -> list[Outcome]:
            if self.live is not None:
                found = await work_on(*self.live, context, told=_nobody, share=share)
            else:
                where = document_place(self.where, context)
                found = await join(where, context, told=_nobody, share=share)
            assert found is not None  # since it waited
            return [each.without_results() for each in found]

        return start(False, body).result()


def _nobody(*_: object) -> None:
    pass
