"""Tasks in parts: so many consecutive numbers are claimed, and done, by one worker at a time.

Only arithmetic: a plan of any number of tasks takes no memory. To claim a part, and to say that it
is done, takes three requests, so parts have several tasks as soon as there are enough of them; and
what all workers look through to find work is a listing of the parts, so there are at most some
thousand. The one invariant: every task is in exactly one part.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BEGIN", "END", "Parts"]

#: What is done before all tasks, and after them; claimed like parts.
BEGIN: Final = -1
END: Final = -2

#: A listing of four thousand parts, of two keys each, is nine requests to S3, and a thousand
#: workers have four parts each, so none waits for long for the last.
_MOST_PARTS: Final = 4096
#: So many workers have something to do before parts have several tasks; and by four tasks a part
#: its requests are less than one a task.
_MANY_WORKERS: Final = 1024
_WORTH_IT: Final = 4


class Parts:
    """The parts of a plan.

    Args:
        tasks: how many tasks there are.
        size: of how many tasks a part is, but for the last one; by default as few as make at most
            4096 parts, and up to four as soon as a thousand workers have a part each.

    Attributes:
        tasks: as given.
        size: of how many tasks a part is.
        count: how many parts there are.

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
