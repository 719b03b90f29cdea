"""What a worker is to do: how one task is run, and what is done before and after all of them.

A task is idempotent and meets no other: it is run in any order and, where workers are lost, again.
What it gives, if anything, is a partial result, of which any two can be merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from tensorstore_py._plan.record import Failure

__all__ = ["Work", "WorkerOutcome", "failed_tasks"]

_MOST_NAMED = 10


def _unchanged(result: object) -> object:
    return result


def _task(number: int) -> str:
    return f"number {number}"


def _no_bytes(number: int) -> int:
    del number
    return 0


@dataclass(frozen=True, slots=True)
class Work:
    """See the head of this file.

    Args:
        run: does a task; returns its partial result or None.
        inline: the execution mode of `run`: True: it never suspends, and is run on a thread.
        merge: makes one partial result of two; None: there are none.
        to_json: of a partial result, for the manifest.
        from_json: the reverse.
        begin: what is done before all tasks, by one worker; gets whether another one has begun to.
        end: what is done after them, by one worker; gets the merged result, None if there is none,
            and is called again when what had failed is done in a later run.
        region: names what a task works on to a person.
        size: how many bytes a task counts.
        damaged: errors that are noted, so that everything else is done.
    """

    run: Callable[[int], Coroutine[Any, Any, object]]
    inline: bool = False
    merge: Callable[[Any, Any], object] | None = None
    to_json: Callable[[Any], object] = _unchanged
    from_json: Callable[[Any], object] = _unchanged
    begin: Callable[[bool], Awaitable[object]] | None = None
    end: Callable[[object], Awaitable[object]] | None = None
    region: Callable[[int], str] = _task
    size: Callable[[int], int] = _no_bytes
    damaged: tuple[type[Exception], ...] = (DataLossError,)

    def merged(self, one: object, other: object) -> object:
        """Of two partial results, either of which may be None."""
        if one is None or other is None or self.merge is None:
            return other if one is None else one
        return self.merge(one, other)


class WorkerOutcome(NamedTuple):
    """What came of a worker's run.

    Attributes:
        state: `"done"`: all that there was to do, by all workers; `"partly done"`: others have
            the rest, and were not waited for.
        result: of all tasks, merged, if all are done and there is any.
    """

    state: Literal["done", "partly done"]
    tasks: int
    bytes: int
    seconds: float
    result: object = None


def failed_tasks(
    failures: Sequence[Failure], failed: int, tasks: int, manifest: str
) -> DataLossError:
    """The error that names what could not be done."""
    named = "; ".join(map(str, failures[:_MOST_NAMED]))
    more = f"; and {failed - _MOST_NAMED} more" if failed > _MOST_NAMED else ""
    return DataLossError(
        f"{failed} of {tasks} tasks could not be done, since what they read is damaged; all others "
        f"are done: {named}{more}; restore what is damaged and run the same again: only these are "
        f"done then ({manifest} says which)"
    )
