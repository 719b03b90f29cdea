"""A part that this worker holds: which of its tasks are left, and what came of the others.

It is filled in on the event loop only. The one invariant: what is in its record came of tasks that
are done, so the record can be stored at any time.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._plan.record import MOST_FAILURES, Failure, Record

if TYPE_CHECKING:
    from tensorstore_py._plan.work import Work

__all__ = ["Held", "Ran"]


class Ran(NamedTuple):
    """What came of a task that was run.

    Attributes:
        task: its number.
        seconds: how long it took.
        result: its partial result.
        failure: if it could not be done, since what it reads is damaged.
        error: anything else that it ended with.
    """

    task: int
    seconds: float
    result: object = None
    failure: Failure | None = None
    error: Exception | None = None


class Held:
    """See the head of this file.

    Args:
        part: its number.
        tasks: its tasks.
        record: as it was stored.
        generation: of that.
        result: the partial result of what was done before.

    Attributes:
        lock: held while the record is stored.
        stored_at: when that was, by this worker's clock.
        lost: somebody else has taken it.
        running: how many of its tasks are being run.
        again: whether somebody had it before.
    """

    __slots__ = (
        "_left", "_result", "again", "drained", "generation", "lock", "lost", "part", "record", "running",
        "stored_at",
    )  # fmt: skip

    def __init__(
        self, part: int, tasks: range, record: Record, generation: bytes, result: object
    ) -> None:
        self.part = part
        self.record = record
        self.generation = generation
        self.again = generation != NO_VALUE
        self.lock = asyncio.Lock()
        self.stored_at = 0.0
        self.lost = False
        self.running = 0
        self.drained = False
        self._left = record.done.missing(tasks)
        self._result = result

    def take(self, most: int) -> list[int]:
        """The next tasks to be run, which count as running; none: all were taken."""
        taken = [] if self.lost else list(islice(self._left, most))
        self.drained = not taken
        self.running += len(taken)
        return taken

    @property
    def complete(self) -> bool:
        """Whether all that can be done is."""
        return self.drained and not self.running and not self.lost

    def note(self, taken: int, ran: list[Ran], work: Work) -> tuple[int, int]:
        """Of so many tasks that were taken these were run; returns how many are done, and bytes."""
        self.running -= taken
        record, tasks, size = self.record, 0, 0
        for each in ran:
            if each.failure is not None:
                record.failed += 1
                record.failures = [*record.failures, each.failure][:MOST_FAILURES]
            elif each.error is None:
                record.done.add(each.task)
                tasks += 1
                size += work.size(each.task)
                if each.result is not None:
                    self._result = work.merged(self._result, each.result)
        record.bytes += size
        if self._result is not None and tasks:
            record.result = work.to_json(self._result)
        return tasks, size
