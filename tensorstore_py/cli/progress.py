"""How far a command is: one bar for all of its arrays, on standard error.

It is drawn on a terminal, or if `--progress` asks for it: by rich if that is installed, and else as
a line, which in a file is followed by another one each ten seconds. Bytes are those of elements.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.progress import Bar, PlainLine, Progress, RichBar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorstore_py._runtime.progress import Drawing

__all__ = ["Meter", "add_progress", "bar", "metered"]

#: A bar of a command that takes less is not drawn.
_PATIENCE_S: Final = 0.5


def add_progress(parser: argparse.ArgumentParser) -> None:
    """Declare `--progress`."""
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=None,
                        help="say how far it is, and how long it will take; "
                        "by default on a terminal")  # fmt: skip


def bar(options: argparse.Namespace, title: str) -> Bar | None:
    """What draws how far one operation is; None: nothing does."""
    shown = sys.stderr.isatty() if options.progress is None else options.progress
    if not shown:
        return None
    drawings: list[Callable[[str, Progress], Drawing]] = (
        [RichBar, PlainLine] if sys.stderr.isatty() else [PlainLine]
    )
    return Bar(title, drawings) if options.progress else _LateBar(title, drawings)


class _LateBar(Bar):
    """A bar that appears when it is worth looking at."""

    __slots__ = ("_begun",)

    def __init__(self, title: str, drawings: list[Callable[[str, Progress], Drawing]]) -> None:
        super().__init__(title, drawings)
        self._begun = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Draw how far it is, if it takes long."""
        if time.monotonic() - self._begun >= _PATIENCE_S:
            super().__call__(progress)


class Meter:
    """One bar for several operations, each of which reports by itself."""

    def __init__(self, drawn: Bar | None, sizes: Sequence[int]) -> None:
        self._bar = drawn
        self._mutex = Mutex()
        self._known = [Progress(0, size, 0, 0) for size in sizes]
        self._done = 0

    def part(self, number: int) -> Callable[[Progress], None] | None:
        """What is called with how far one of them is; None: nobody looks."""
        if self._bar is None:
            return None

        def take(progress: Progress) -> None:
            with self._mutex:
                self._known[number] = progress
                self._draw()

        return take

    def finish(self, number: int) -> None:
        """One of them is over, whether it failed or not."""
        if self._bar is None:
            return
        with self._mutex:
            size = self._known[number].bytes_total
            self._known[number] = self._known[number]._replace(bytes_done=size)
            self._done += 1
            self._draw()

    def _draw(self) -> None:
        assert self._bar is not None
        columns = [sum(column) for column in zip(*(each[:4] for each in self._known), strict=True)]
        count = len(self._known)
        several = (self._done, count) if count > 1 else (0, 0)
        self._bar(Progress(columns[0], columns[1], columns[2], columns[3], *several))


@contextmanager
def metered(options: argparse.Namespace, title: str, sizes: Sequence[int]) -> Iterator[Meter]:
    """One bar for operations on so many bytes each; it stays as it is when they are over."""
    drawn = bar(options, title)
    try:
        yield Meter(drawn, sizes)
    finally:
        if drawn is not None:
            drawn.close()
