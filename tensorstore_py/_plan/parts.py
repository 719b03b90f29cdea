"""Tasks in parts: a part is some consecutive numbers that one worker claims and does at a time.

Only arithmetic: a plan of any number of tasks takes no memory. To claim a part, and to say that it
is done, takes three requests, so parts have several tasks as soon as there are enough of them; and
what all workers look through to find work is a listing of the parts, so there are at most some
thousand. The one invariant: every task is in exactly one part.

Which tasks of a part are done is a set of numbers (`TaskNumbers`), kept as ranges: tasks are done
about in their order, so there are few ranges, and their text, `0-41,43`, is short.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["BEGIN", "DONE", "END", "FAILED", "FREE", "PAGE", "TAKEN", "Parts", "TaskNumbers"]


#: What is done before all tasks, and after them; claimed like parts.
BEGIN: Final = -1
END: Final = -2

#: What a listing tells of a part, in the order in which it gets there.
FREE: Final = 0
TAKEN: Final = 1
FAILED: Final = 2
DONE: Final = 3

#: So many parts are listed together: they have at most the thousand keys that S3 lists at once.
PAGE: Final = 500
#: A listing of four thousand parts, of two keys each, is nine requests to S3, and a thousand
#: workers have four parts each, so none waits for long for the last.
_MOST_PARTS: Final = 4096
#: So many workers have something to do before parts have several tasks; and by four tasks a part
#: its requests are less than one a task.
_MANY_WORKERS: Final = 1024
_WORTH_IT: Final = 4


class Parts:
    """The parts of a plan of so many tasks.

    By default a part is of as few tasks as make at most 4096 parts, and up to four as soon as a
    thousand workers have a part each; the last one has what is left.

    Example:
        >>> parts = Parts(14_000_000)
        >>> parts.count, parts.size, parts[1]
        (4096, 3418, range(3418, 6836))
        >>> [(Parts(tasks).count, Parts(tasks).size) for tasks in (5, 1024, 2000, 10_000, 100_000)]
        [(5, 1), (1024, 1), (1000, 2), (2500, 4), (4000, 25)]
    """

    __slots__ = ("_digits", "count", "size", "tasks")

    def __init__(self, tasks: int, size: int | None = None) -> None:
        if size is None:
            size = max(-(-tasks // _MOST_PARTS), min(_WORTH_IT, -(-tasks // _MANY_WORKERS)))
        self.tasks = tasks
        self.size = max(1, size)
        self.count = -(-tasks // self.size)
        self._digits = max(4, len(str(self.count)))

    def __getitem__(self, part: int) -> range:
        """The tasks of a part; those that come before and after all others have none."""
        if part < 0:
            return range(0)
        start = part * self.size
        return range(start, min(self.tasks, start + self.size))

    def name(self, part: int) -> str:
        """What it is called; names of parts are in their order.

        Example:
            >>> [Parts(100).name(part) for part in (0, 17, BEGIN, END)]
            ['0000', '0017', 'begin', 'end']
        """
        if part < 0:
            return "begin" if part == BEGIN else "end"
        return f"{part:0{self._digits}}"

    def share(self, number: int, of: int) -> range:
        """The parts that are meant for one of several workers: equal shares, in order.

        Example:
            >>> [Parts(10).share(number, 4) for number in range(4)]
            [range(0, 2), range(2, 5), range(5, 7), range(7, 10)]
        """
        return range(self.count * number // of, self.count * (number + 1) // of)


_RUNS = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")


class TaskNumbers:
    """A set of numbers.

    Example:
        >>> numbers = TaskNumbers([0, 1, 2, 5])
        >>> numbers.add(3)
        >>> str(numbers), len(numbers), 4 in numbers
        ('0-3,5', 5, False)
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # exclusive
        for number in numbers:
            self.add(number)

    @classmethod
    def parse(cls, text: object) -> TaskNumbers:
        """What `str` made of one.

        Raises SpecError: it is something else.
        """
        if not isinstance(text, str) or not _RUNS.fullmatch(text):
            raise SpecError(f'expected runs of numbers such as "0-41,43", but found {text!r}')
        found = cls()
        for run in text.split(",") if text else ():
            low, _, high = run.partition("-")
            start, end = int(low), int(high or low) + 1
            if start >= end or (found._ends and start <= found._ends[-1]):
                raise SpecError(f'runs of numbers must be in order, unlike in "{text}"')
            found._starts.append(start)
            found._ends.append(end)
        return found

    def add(self, number: int) -> None:
        """Put a number in it."""
        at = bisect_right(self._starts, number)
        if at and number < self._ends[at - 1]:
            return
        joins_before = at > 0 and self._ends[at - 1] == number
        joins_after = at < len(self._starts) and self._starts[at] == number + 1
        if joins_before and joins_after:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif joins_before:
            self._ends[at - 1] = number + 1
        elif joins_after:
            self._starts[at] = number
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number + 1)

    def missing(self, tasks: range) -> Iterator[int]:
        """The numbers of a range that are not in it, in order, as it is when it is asked.

        Example:
            >>> list(TaskNumbers([2, 3]).missing(range(1, 6)))
            [1, 4, 5]
        """
        at = tasks.start
        runs = list(zip(self._starts, self._ends, strict=True))
        for start, end in runs:
            yield from range(at, min(start, tasks.stop))
            at = max(at, end)
        yield from range(at, tasks.stop)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number)
        return at > 0 and number < self._ends[at - 1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskNumbers):
            return NotImplemented
        return (self._starts, self._ends) == (other._starts, other._ends)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __len__(self) -> int:
        return sum(self._ends) - sum(self._starts)

    def __str__(self) -> str:
        runs = zip(self._starts, self._ends, strict=True)
        return ",".join(f"{low}-{end - 1}" if end - low > 1 else f"{low}" for low, end in runs)

    def __repr__(self) -> str:
        return f"TaskNumbers({str(self)!r})"
