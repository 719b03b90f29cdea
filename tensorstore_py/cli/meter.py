"""`Meter`: a line that tells how far a job is: share, bytes, rate, time left, and per worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TextIO

from tensorstore_py._jobs.report import time_text
from tensorstore_py._plan.plan import size_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._runtime.progress import Progress

__all__ = ["Meter"]

#: A line on a terminal is drawn again after so long; in a file it is followed by another.
_TERMINAL_S: Final = 0.2
_FILE_S: Final = 10.0


class Meter:
    """See the head of this file.

    Args:
        stream: where to; None: nobody is told.
        workers: how many work on it; 0: nobody knows.
        clock: seconds.
    """

    def __init__(
        self,
        stream: TextIO | None,
        workers: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._terminal = stream is not None and stream.isatty()
        self._workers = workers
        self._clock = clock
        self._title = ""
        self._began = self._drawn = 0.0
        self._last: Progress | None = None
        self._shown: Progress | None = None
        self._before = 0  # bytes that were done when it began

    def begin(self, title: str) -> None:
        """A step begins."""
        self._title = title
        self._began = self._drawn = self._clock()
        self._last = self._shown = None

    def __call__(self, progress: Progress) -> None:
        """It is so far."""
        if self._last is None:
            self._before = progress.bytes_done
        self._last = progress
        now = self._clock()
        if now - self._drawn >= (_TERMINAL_S if self._terminal else _FILE_S):
            self._drawn = now
            self._draw()

    def close(self) -> None:
        """The step is over: its line stays as it is."""
        if self._last is not None:
            if self._last != self._shown:
                self._draw()
            if self._stream is not None and self._terminal:
                self._stream.write("\n")

    def _draw(self) -> None:
        if self._stream is None or self._last is None:
            return
        self._shown = self._last
        begin, end = ("\r", "\x1b[K") if self._terminal else ("", "\n")
        self._stream.write(f"{begin}{self.line(self._last)}{end}")
        self._stream.flush()

    def line(self, progress: Progress) -> str:
        """What it tells."""
        seconds = self._clock() - self._began
        rate = (progress.bytes_done - self._before) / seconds if seconds > 0 else 0.0
        parts = [
            f"{self._title}: {progress.fraction:.0%}",
            f"{size_text(progress.bytes_done)} of {size_text(progress.bytes_total)}",
            f"{progress.chunks_done:,} of {progress.chunks_total:,} chunks",
            f"{size_text(rate)}/s",
        ]
        if self._workers > 1:
            parts.append(f"{self._workers} workers of {size_text(rate / self._workers)}/s")
        left = progress.bytes_total - progress.bytes_done
        if left and rate:
            parts.append(f"{time_text(left / rate)} left")
        elif not left:
            parts.append(f"in {time_text(seconds)}")
        return ", ".join(parts)
