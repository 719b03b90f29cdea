"""Progress bars: what `progress=True` shows, in a terminal, in a notebook, or as a plain line.

tqdm draws if it is installed, else rich, else this file. Nothing is imported before a bar is asked
for. The invariants: a bar appears when there is something to tell, is drawn by one thread at a
time, and is closed once; after that nothing is drawn. A bar that cannot be drawn, because the
terminal is gone for instance, ends without ending the work.
"""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from tensorstore_py._runtime.gate import Mutex

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._runtime.progress import Progress

__all__ = ["Bar", "PlainLine"]

#: A line on a terminal is drawn again after so long, one in a file is followed by another.
_TERMINAL_S: Final = 0.1
_FILE_S: Final = 10.0


class Drawing(Protocol):
    """Somebody who draws."""

    def show(self, progress: Progress) -> None:
        """Draw how far it is."""

    def close(self) -> None:
        """Leave it as it is."""


class Bar:
    """A bar for one operation.

    Args:
        title: what is done: `"copy"`.
        drawings: what to try to draw with, one after the other.

    Example:
        >>> from tensorstore_py._runtime.progress import Progress
        >>> bar = Bar("read", [PlainLine])
        >>> bar.close()  # nothing was told, so nothing is drawn
    """

    __slots__ = ("_closed", "_drawing", "_drawings", "_mutex", "_title")

    def __init__(
        self, title: str, drawings: list[Callable[[str, Progress], Drawing]] | None = None
    ) -> None:
        self._title = title
        self._drawings: list[Callable[[str, Progress], Drawing]] = (
            [_Tqdm, _Rich, PlainLine] if drawings is None else drawings
        )
        self._drawing: Drawing | None = None
        self._closed = False
        self._mutex = Mutex()

    def __call__(self, progress: Progress) -> None:
        """Draw how far it is."""
        with self._mutex:
            if self._closed:
                return
            try:
                if self._drawing is None:
                    self._drawing = self._first(progress)
                self._drawing.show(progress)
            except Exception:
                self._closed = True

    def close(self) -> None:
        """Leave it as it is; whoever is told later draws nothing."""
        with self._mutex:
            drawing, self._drawing, self._closed = self._drawing, None, True
            if drawing is not None:
                with suppress(Exception):
                    drawing.close()

    def _first(self, progress: Progress) -> Drawing:
        *better, plain = self._drawings
        for drawing in better:
            with suppress(Exception):  # not installed, or it can't draw here
                return drawing(self._title, progress)
        return plain(self._title, progress)


class PlainLine:
    """One line on standard error, drawn again and again on a terminal; a few lines in a file.

    Args:
        title: in front.
        progress: how far it is at the beginning.

    Example:
        >>> from tensorstore_py._runtime.progress import Progress
        >>> print(PlainLine("read", Progress(0, 2**20, 0, 4)).line(Progress(2**19, 2**20, 2, 4), 1))
        read: 50%: 0.5 of 1.0 MiB, 2 of 4 chunks, 0.5 MiB/s, 0:01 left
    """

    __slots__ = ("_began", "_drawn", "_last", "_shown", "_start", "_title")

    def __init__(self, title: str, progress: Progress) -> None:
        self._title = title
        self._start = progress.bytes_done
        self._began = self._drawn = time.monotonic()
        self._last = progress
        self._shown: Progress | None = None

    def show(self, progress: Progress) -> None:
        """Draw it, if the last time is long enough ago."""
        self._last = progress
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if now - self._drawn >= (_TERMINAL_S if terminal else _FILE_S):
            self._draw(progress, now, terminal)

    def close(self) -> None:
        """Draw the last state."""
        terminal = sys.stderr.isatty()
        if self._shown is not self._last:
            self._draw(self._last, time.monotonic(), terminal)
        if terminal:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def line(self, progress: Progress, elapsed: float) -> str:
        """The line.

        Args:
            progress: how far it is.
            elapsed: seconds since the beginning.
        """
        parts = [f"{self._title}: {progress}"]
        rate = (progress.bytes_done - self._start) / elapsed if elapsed > 0 else 0.0
        if rate > 0:
            parts.append(f"{rate / 2**20:.1f} MiB/s")
            left = progress.bytes_total - progress.bytes_done
            parts.append(f"{_clock(left / rate)} left" if left else f"in {_clock(elapsed)}")
        return ", ".join(parts)

    def _draw(self, progress: Progress, now: float, terminal: bool) -> None:
        self._drawn, self._shown = now, progress
        line = self.line(progress, now - self._began)
        sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
        sys.stderr.flush()


class _Tqdm:
    """A bar of tqdm: in a notebook a widget, if there are any, else text."""

    __slots__ = ("_bar", "_told")

    def __init__(self, title: str, progress: Progress) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that text is drawn where widgets are not installed
            tqdm = import_module("tqdm.auto").tqdm
        # Any: a library without types. Its monitor would be one more thread, for one bar.
        kind: Any = type("tqdm", (tqdm,), {"monitor_interval": 0})
        self._told = progress.bytes_done
        self._bar = kind(
            desc=title,
            total=progress.bytes_total,
            initial=progress.bytes_done,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
        )

    def show(self, progress: Progress) -> None:
        if self._bar.total != progress.bytes_total:
            self._bar.total = progress.bytes_total
        self._bar.set_postfix_str(progress.counts, refresh=False)
        self._bar.update(progress.bytes_done - self._told)
        self._told = progress.bytes_done

    def close(self) -> None:
        self._bar.refresh()
        self._bar.close()


class _Rich:
    """A bar of rich, drawn by whoever tells it something and by no thread of its own."""

    __slots__ = ("_drawn", "_progress", "_task")

    def __init__(self, title: str, progress: Progress) -> None:
        rich = import_module("rich.progress")
        # Any: a library that may not be here. Its own console ends the program when a pipe breaks.
        quiet: Any = type(
            "Console", (import_module("rich.console").Console,), {"on_broken_pipe": _broken}
        )
        self._progress = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.TaskProgressColumn(),
            rich.DownloadColumn(binary_units=True),
            rich.TransferSpeedColumn(),
            rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[counts]}"),
            console=quiet(stderr=True),
            auto_refresh=False,
        )
        self._drawn = 0.0
        self._progress.start()
        self._task = self._progress.add_task(
            title, total=progress.bytes_total, completed=progress.bytes_done, counts=progress.counts
        )

    def show(self, progress: Progress) -> None:
        self._progress.update(
            self._task,
            total=progress.bytes_total,
            completed=progress.bytes_done,
            counts=progress.counts,
        )
        now = time.monotonic()
        if now - self._drawn >= _TERMINAL_S:
            self._drawn = now
            self._progress.refresh()

    def close(self) -> None:
        self._progress.refresh()
        self._progress.stop()


def _broken(_console: object) -> None:
    raise BrokenPipeError


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
