"""Which tasks are done: numbers, kept as the runs that they form.

Tasks are done about in their order, so there are few runs however many tasks there are, and their
text, `0-41,43`, is short. The one invariant: runs are in order and never touch.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["TaskNumbers"]

_RUNS = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")


class TaskNumbers:
    """A set of numbers.

    Args:
        numbers: what is in it.

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

        Raises:
            SpecError: it is something else.
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

    def __len__(self) -> int:
        return sum(self._ends) - sum(self._starts)

    def __str__(self) -> str:
        runs = zip(self._starts, self._ends, strict=True)
        return ",".join(f"{low}-{end - 1}" if end - low > 1 else f"{low}" for low, end in runs)

    def __repr__(self) -> str:
        return f"TaskNumbers({str(self)!r})"
