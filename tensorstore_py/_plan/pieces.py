"""What an engine's worker runs: a piece of a stage, or whatever is left of a stored plan.

Both are picklable and know all that they need, and give small things back. All pieces that a
process runs share one context, and with it its limits on memory and its connections.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.recorded import stored_plan, work_on_stage
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
    """A worker of a stage of a stored plan, on an engine.

    Attributes:
        where: the JSON spec of the plan's document.
        stage: the number of the stage.
        number: which share it begins with.
        of: of how many.
        live: the call, its stages and where its plan is stored, in the same process.
    """

    where: JsonObject
    stage: int
    number: int
    of: int
    live: tuple[Call[Any], tuple[Stage, ...], DocumentPlace] | None

    def run(self) -> Outcome:
        """Work until all is done or in the hands of others; returns what was done here."""
        context = shared_context()

        async def body() -> Outcome:
            live = self.live
            if live is None:
                where = document_place(self.where, context)
                live = (*await stored_plan(where), where)
            call, stages, where = live
            outcome, _ = await work_on_stage(
                call, stages, self.stage, where, context, told=_nobody,
                share=(self.number, self.of), wait=False,
            )  # fmt: skip
            return outcome.without_results()

        return start(False, body).result()


def _nobody(*_: object) -> None:
    pass
