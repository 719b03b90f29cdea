"""`Tasks`: the tasks of a stage, as a process that runs some of them sees it; and their outcomes.

An operation is opened when its first task comes, and stays open. All runs on the loop: bodies of
local stores are handed to threads, as everywhere. A task that meets damaged data is noted, and the
others go on; any other error ends all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._runtime.executors import width
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._runtime.keyed_lock import KeyedLock
from tensorstore_py._runtime.retry import DOUBTS
from tensorstore_py.errors import DataLossError, TensorStoreError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._plan.steps import Operation, Stage, Step
    from tensorstore_py._runtime.retry import Attempts
    from tensorstore_py._spec.context import Context

__all__ = ["DamagedTask", "StageOutcome", "StepOutcome", "Tasks"]

#: So much is on its way at a time, in two tasks or more, and in so many at most.
_IN_FLIGHT_BYTES: Final = 2**28
_MOST: Final = 64


class DamagedTask(NamedTuple):
    """A task whose source could not be decoded, although it was read again."""

    step: str
    region: str
    message: str

    def __str__(self) -> str:
        return f"{self.region}: {self.message}"


class StepOutcome(NamedTuple):
    """What was done of a step, with the partial results as one; None: there are none."""

    tasks: int = 0
    bytes: int = 0
    chunks: int = 0
    result: object = None


class StageOutcome(NamedTuple):
    """What was done of each step of a stage, by number, and the tasks that could not be."""

    steps: dict[int, StepOutcome]
    damaged: list[DamagedTask]

    def add(self, number: int, step: Step, done: StepOutcome) -> None:
        """Count what was done of a step."""
        before = self.steps.get(number, StepOutcome())
        result = done.result if before.result is None else before.result
        if before.result is not None and done.result is not None:
            merging = step.merging
            assert merging is not None  # or there would be no results
            result = merging.merge(before.result, done.result)
        self.steps[number] = StepOutcome(
            before.tasks + done.tasks,
            before.bytes + done.bytes,
            before.chunks + done.chunks,
            result,
        )

    def merge(self, other: StageOutcome, stage: Stage) -> None:
        """Count what was done of the same stage elsewhere."""
        for number, done in other.steps.items():
            self.add(number, stage.steps[number], done)
        self.damaged.extend(other.damaged)

    def without_results(self) -> StageOutcome:
        """The same, without the partial results."""
        steps = {number: done._replace(result=None) for number, done in self.steps.items()}
        return StageOutcome(steps, self.damaged)

    def check(self) -> None:
        """Tell of what could not be done.

        Raises DataLossError: names each region, or the first of many; all else was done.
        """
        if self.damaged:
            shown = "\n".join(f"  {each}" for each in self.damaged[:_SHOWN])
            more = len(self.damaged) - _SHOWN
            rest = f"\n  and {more} more" if more > 0 else ""
            raise DataLossError(
                f"{len(self.damaged)} region(s) could not be done, since data is damaged; all "
                f"else is: mend what is damaged and run it again:\n{shown}{rest}"
            )


_SHOWN: Final = 20


class Tasks:
    """See the head of this file."""

    def __init__(self, stage: Stage, context: Context) -> None:
        self.stage = stage
        self._context = context
        self._gate = KeyedLock(inline=False)

    async def operation(self, number: int) -> Operation:
        """The open operation of a step."""
        step = self.stage.steps[number]
        if step.live is None:
            async with self._gate.acquire(number):
                return await step.open(self._context)
        return step.live

    async def run(self, number: int) -> object:
        """Do one task; returns its partial result, or None.

        Raises DataLossError: what it reads is damaged.
        """
        (run,) = self.stage.runs(number, number + 1)
        step = self.stage.steps[run.step]
        try:
            operation = await self.operation(run.step)
            return await self._run(operation, step.blocks[run.start])
        except DataLossError:
            raise  # the caller notes it, with the region
        except TensorStoreError as error:
            where = step.region(step.blocks[run.start])
            raise type(error)(f"task {number}, {where}: {error}") from error
        except OSError as error:
            error.add_note(f"in task {number}, {step.region(step.blocks[run.start])}")
            raise

    async def _run(self, operation: Operation, block: Block) -> object:
        """Do one block; again where a store did not answer, since it may be done again."""
        doubts: Attempts | None = None
        while True:
            try:
                return await self._run_once(operation, block)
            except UnavailableError as error:
                if doubts is None:
                    doubts = DOUBTS.begin("run", lambda: f"block {block.number}", inline=False)
                await doubts.lost(error=error)

    async def _run_once(self, operation: Operation, block: Block) -> object:
        size = operation.item_bytes * block.size
        budget = None if operation.memory is None or not size else operation.memory.blocks
        if budget is None or not budget.matters(operation.inline, size):
            return await within(False, operation.inline, lambda: operation.run(block))
        await budget.acquire(False, size)
        try:
            return await within(False, operation.inline, lambda: operation.run(block))
        finally:
            budget.release(size)

    def width(self) -> int:
        """How many tasks should run at a time, so that their blocks fit into memory."""
        steps = self.stage.steps
        largest = max((step.item_bytes * step.blocks.largest for step in steps), default=1)
        # Local ones keep a thread busy each; what waits for the network may be many.
        most = 2 * width() if all(step.inline for step in steps) else _MOST
        return max(2, min(most, _IN_FLIGHT_BYTES // max(1, largest)))

    async def run_all(
        self, start: int, stop: int, on_progress: Callable[[StepOutcome], object]
    ) -> StageOutcome:
        """Do all tasks from one number up to another."""
        outcome = StageOutcome({}, [])

        async def run(number: int) -> None:
            step, block = self.stage.task(number)
            (at,) = self.stage.runs(number, number + 1)
            try:
                result = await self.run(number)
            except DataLossError as error:
                outcome.damaged.append(DamagedTask(step.name, step.region(block), str(error)))
                return
            done = StepOutcome(1, step.progress_bytes * block.size, block.chunks, result)
            outcome.add(at.step, step, done)
            on_progress(done._replace(result=None))

        await fan_out(False, range(start, stop), run, count=stop - start, width=self.width())
        return outcome
