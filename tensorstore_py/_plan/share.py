"""Progress of stages whose tasks are done here and elsewhere: all that is known is how many.

So bytes, chunks and arrays are told in proportion, and exactly when all is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._runtime.progress import Told

__all__ = ["Share"]


class Share:
    """Tells of bytes, chunks and arrays in proportion to the tasks that are done.

    Args:
        stages: what there is to do.
        told: who is told.
    """

    def __init__(self, stages: tuple[Stage, ...], told: Told) -> None:
        self._told = told
        self._stages = stages
        self._tasks = [0] * len(stages)
        self._told_of = [0] * len(stages)

    def advance(self, number: int, tasks: int) -> None:
        """So many more tasks of a stage are done."""
        self._told_of[number] += tasks
        self.reach(number, self._told_of[number])

    def reach(self, number: int, tasks: int) -> None:
        """At least so many tasks of a stage are done in all."""
        size, chunks, steps = self._measure(number)
        self._tasks[number] = min(self._stages[number].count, max(self._tasks[number], tasks))
        now = self._measure(number)
        if now != (size, chunks, steps):
            self._told.advance(now[0] - size, now[1] - chunks, now[2] - steps)

    def finish(self) -> None:
        """All is done."""
        for number, stage in enumerate(self._stages):
            self.reach(number, stage.count)

    def _measure(self, number: int) -> tuple[int, int, int]:
        stage, done = self._stages[number], self._tasks[number]
        size = sum(step.told_bytes * step.blocks.size for step in stage.steps)
        chunks = sum(step.blocks.chunks for step in stage.steps)
        count = max(1, stage.count)
        return size * done // count, chunks * done // count, len(stage.steps) * done // count
