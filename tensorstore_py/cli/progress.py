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

__all__ = ["Meter", "add_progress", "drawn", "metered"]

#: A bar of a command that takes less is not drawn.
_PATIENCE_S: Final = 0.5


def add_progress(parser: argparse.ArgumentParser) -> None:
    """Declare `--progress`."""
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=None,
                        help="say how far it is, and how long it will take; "
                        "by default on a terminal")  # fmt: skip


@contextmanager
def drawn(options: argparse.Namespace, title: str) -> Iterator[Bar | None]:
    """What draws how far one operation is, and stays as it is at the end; None: nothing does."""
    shown = sys.stderr.isatty() if options.progress is None else options.progress
    if not shown:
        yield None
        return
    drawings: list[Callable[[str, Progress], Drawing]] = [PlainLine]
    if sys.stderr.isatty():
        drawings.insert(0, RichBar)
    bar = Bar(title, drawings) if options.progress else _LateBar(title, drawings)
    try:
        yield bar
    finally:
        # the operation's Future closes it, too, but maybe on another thread, and later
        bar.close()


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

    def __init__(self, bar: Bar | None, sizes: Sequence[int]) -> None:
        self._bar = bar
        self._mutex = Mutex()
        self._known = [Progress(0, size, 0, 0) for size in sizes]
        self._sums = [0, sum(sizes), 0, 0]
        self._finished: set[int] = set()

    def part(self, number: int) -> Callable[[Progress], None] | None:
        """What is called with how far one of them is; None: nobody looks."""
        if self._bar is None:
            return None

        def take(progress: Progress) -> None:
            with self._mutex:
                self._replace(number, progress)
                self._draw()

        return take

    def finish(self, number: int) -> None:
        """One of them is over, whether it failed or not."""
        if self._bar is None:
            return
        with self._mutex:
            known = self._known[number]
            self._replace(number, known._replace(bytes_done=known.bytes_total))
            self._finished.add(number)
            self._draw()

    def complete(self) -> None:
        """All of them are over, even if some have not said so yet."""
        for number in range(len(self._known)):
            self.finish(number)

    def _replace(self, number: int, progress: Progress) -> None:
        before, self._known[number] = self._known[number], progress
        for at in range(4):
            self._sums[at] += progress[at] - before[at]

    def _draw(self) -> None:
        assert self._bar is not None
        size, sizes, chunks, of_chunks = self._sums
        count = len(self._known)
        several = (len(self._finished), count) if count > 1 else (0, 0)
        self._bar(Progress(size, sizes, chunks, of_chunks, *several))


@contextmanager
def metered(options: argparse.Namespace, title: str, sizes: Sequence[int]) -> Iterator[Meter]:
    """One bar for operations on so many bytes each."""
    with drawn(options, title) as bar:
        meter = Meter(bar, sizes)
        yield meter
        meter.complete()
