"""Progress of a read, write or copy: `Progress`, and what `progress=` takes.

`Reporter` counts where blocks are finished, on any thread, and calls the function that the
caller gave, one call at a time; the figures only grow. An exception of that function ends the
operation. Two functions are ours, and are closed when the operation's Future is settled, in any
way: `Bar`, for `progress=True`, and `ProgressStream`, an async iterator.

tqdm draws a bar if it is installed, else rich, else `PlainLine`; none is imported before. A bar
appears when there is something to report, is drawn by one thread at a time, and is closed once. A
bar that cannot be drawn, because the terminal is gone for instance, ends without ending the work.
"""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from tensorstore_py._display.info import human_size
from tensorstore_py._display.public_name import public
from tensorstore_py._runtime.awaitable_bridge import loop_waiter
from tensorstore_py._runtime.keyed_lock import Mutex

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Self

    from tensorstore_py._runtime.future import Future

__all__ = [
    "Bar",
    "Drawing",
    "PartReporter",
    "PlainLine",
    "Progress",
    "ProgressLike",
    "ProgressStream",
    "Reporter",
    "RichBar",
]

#: What `progress=` takes: a function, True for a bar, False or None for nothing.
ProgressLike: TypeAlias = "Callable[[Progress], object] | bool | None"
T = TypeVar("T")

#: A line on a terminal is drawn again after so long, one in a file is followed by another.
_TERMINAL_S: Final = 0.1
_FILE_S: Final = 10.0
#: So many columns a bar has beside its text.
_BAR: Final = 20


@public
class Progress(NamedTuple):
    """How far an operation has come: what `progress=` functions get.

    Attributes:
        bytes_done: of the elements read or written so far, as they are in memory.
        bytes_total: of all of them.
        chunks_done: how many chunks are done: those that are read at a time for reads, those that
            are stored at a time for writes and copies.
        chunks_total: how many there are; of several arrays, in those that were begun.
        arrays_done: how many arrays are done, where there are several.
        arrays_total: how many there are.

    Example:
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
        >>> store = ts.open(spec, create=True, dtype="uint8", shape=[8]).result()
        >>> seen = []
        >>> data = store.read(progress=seen.append).result()
        >>> seen[-1]
        Progress(bytes_done=8, bytes_total=8, chunks_done=1, chunks_total=1)
        >>> print(seen[-1])
        100%: 8 B of 8 B, 1 of 1 chunks
    """

    bytes_done: int
    bytes_total: int
    chunks_done: int
    chunks_total: int
    arrays_done: int = 0
    arrays_total: int = 0

    @property
    def fraction(self) -> float:
        """From 0 to 1, of the bytes, or of the arrays if no bytes move; 1: nothing to do."""
        if self.bytes_total:
            return self.bytes_done / self.bytes_total
        return self.arrays_done / self.arrays_total if self.arrays_total else 1.0

    @property
    def counts(self) -> str:
        """Chunks and arrays in words."""
        chunks = f"{self.chunks_done} of {self.chunks_total} chunks"
        arrays = f", {self.arrays_done} of {self.arrays_total} arrays" * bool(self.arrays_total)
        return chunks + arrays

    def __str__(self) -> str:
        if not self.bytes_total:
            return f"{self.fraction:.0%}: {self.counts}"
        done, total = human_size(self.bytes_done), human_size(self.bytes_total)
        return f"{self.fraction:.0%}: {done} of {total}, {self.counts}"

    def __repr__(self) -> str:
        shown = self if self.arrays_total else self[:4]
        fields = zip(self._fields, shown, strict=False)
        return f"Progress({', '.join(f'{name}={value}' for name, value in fields)})"


class Reporter:
    """Reports the progress of one operation, at the beginning and each time some more is done.

    Raises:
        TypeError: `progress` is no function, and neither True (a bar is drawn), False nor None.
    """

    __slots__ = ("_function", "_lock", "_now")

    def __init__(self, progress: ProgressLike, title: str = "") -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise TypeError(f"progress is a function, True or False, not {progress!r:.60}")
        self._function: Callable[[Progress], object] | None
        if isinstance(progress, bool):
            self._function = Bar(title) if progress else None
        else:
            self._function = progress
        self._lock = Lock()
        self._now = Progress(0, 0, 0, 0)

    @staticmethod
    def of(progress: ProgressLike, title: str) -> Reporter | None:
        """The reporter, or None if nothing is to be reported."""
        return None if progress is None or progress is False else Reporter(progress, title)

    @property
    def listens(self) -> bool:
        """Whether anything is reported."""
        return self._function is not None

    def begin(self, size: int, chunks: int, arrays: int = 0) -> None:
        """So much there is to do."""
        self._now = Progress(0, size, 0, chunks, 0, arrays)
        if self._function is not None:
            self._function(self._now)

    def advance(self, size: int, chunks: int, arrays: int = 0) -> None:
        """So much more is done."""
        if self._function is None:
            return
        with self._lock:
            done, total, chunks_done, chunks_total, arrays_done, arrays_total = self._now
            self._now = Progress(
                done + size,
                total,
                chunks_done + chunks,
                chunks_total,
                arrays_done + arrays,
                arrays_total,
            )
            self._function(self._now)

    def more(self, chunks: int, size: int = 0) -> None:
        """There are so many more chunks, and bytes, than was known."""
        with self._lock:
            now = self._now
            self._now = now._replace(
                bytes_total=now.bytes_total + size, chunks_total=now.chunks_total + chunks
            )

    def close(self) -> None:
        """The operation is over: a bar of ours stays as it is, and a stream ends."""
        if isinstance(self._function, Bar | ProgressStream):
            self._function.close()

    @asynccontextmanager
    async def closing(self) -> AsyncIterator[None]:
        """The operation, where it has no Future: its end closes the bar."""
        try:
            yield
        finally:
            self.close()

    def until(self, future: Future[T]) -> Future[T]:
        """The operation's Future, which closes the bar or stream when it is settled."""
        if isinstance(self._function, Bar | ProgressStream):
            future.follow(lambda _: self.close())
        return future


class PartReporter(Reporter):
    """Reports one of several arrays: what it has to do is a part of the whole."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Reporter) -> None:
        super().__init__(None)
        self._whole = whole

    def begin(self, size: int, chunks: int, arrays: int = 0) -> None:
        """So many chunks more there are."""
        self._whole.more(chunks)

    def advance(self, size: int, chunks: int, arrays: int = 0) -> None:
        """So much more of the whole is done."""
        self._whole.advance(size, chunks, arrays)


@public
class ProgressStream:
    """How far an operation is, for `async for` in any event loop.

    Pass it as `progress=`. It ends when the operation does, in whichever way; errors are the
    Future's matter. One task listens, to one operation. Work never waits for that task: a
    `Progress` that was not taken before the next one came is dropped, except the last one.

    Example:
        >>> import asyncio
        >>> import tensorstore_py as ts
        >>> async def main():
        ...     spec = {"driver": "zarr3", "kvstore": "memory://"}
        ...     store = await ts.open(spec, create=True, dtype="uint8", shape=[8])
        ...     stream = ts.ProgressStream()
        ...     reading = store.read(progress=stream)
        ...     last = [event async for event in stream][-1]
        ...     return await reading, last.fraction
        >>> asyncio.run(main())
        (array([0, 0, 0, 0, 0, 0, 0, 0], dtype=uint8), 1.0)
    """

    __slots__ = ("_closed", "_mutex", "_news", "_wake")

    def __init__(self) -> None:
        self._mutex = Mutex()
        self._news: Progress | None = None
        self._closed = False
        self._wake: Callable[[], None] | None = None

    def __call__(self, progress: Progress) -> None:
        """There is news; from any thread."""
        with self._mutex:
            self._news = progress
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def close(self) -> None:
        """There will be no more."""
        with self._mutex:
            self._closed = True
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Progress:
        while True:
            with self._mutex:
                news, self._news = self._news, None
                if news is not None:
                    return news
                if self._closed:
                    raise StopAsyncIteration
                waiter, self._wake = loop_waiter()
            await waiter


class Drawing(Protocol):
    """What draws a bar."""

    def show(self, progress: Progress) -> None:
        """Draw how far it is."""

    def close(self) -> None:
        """Leave it as it is."""


class Bar:
    """A bar for one operation."""

    __slots__ = ("_closed", "_drawing", "_drawings", "_mutex", "_title")

    def __init__(
        self, title: str, drawings: list[Callable[[str, Progress], Drawing]] | None = None
    ) -> None:
        self._title = title
        self._drawings: list[Callable[[str, Progress], Drawing]] = (
            [_Tqdm, RichBar, PlainLine] if drawings is None else drawings
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
        """Leave it as it is; later calls draw nothing."""
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

    Example:
        >>> print(PlainLine("read", Progress(0, 2**20, 0, 4)).line(Progress(2**19, 2**20, 2, 4), 1))
        read: 50%: 512.0 KiB of 1.0 MiB, 2 of 4 chunks, 512.0 KiB/s, 0:01 left
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
        """The line."""
        parts = [f"{self._title}: {progress}"]
        return ", ".join([*parts, *_pace(progress, self._start, elapsed)])

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


class RichBar:
    """A bar of rich on standard error, drawn by the threads that report, and by none of its own.

    It takes one line, however narrow the terminal is: what is said last is left out first.

    Raises ImportError: rich is not installed.
    """

    __slots__ = ("_began", "_drawn", "_progress", "_room", "_start", "_task")

    def __init__(self, title: str, progress: Progress) -> None:
        rich = import_module("rich.progress")
        # Any: a library that may not be here. Its own console ends the program when a pipe breaks.
        quiet: Any = type(
            "Console", (import_module("rich.console").Console,), {"on_broken_pipe": _broken}
        )
        self._progress = rich.Progress(
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(bar_width=_BAR),
            rich.TextColumn("{task.fields[told]}", markup=False),
            console=quiet(stderr=True),
            auto_refresh=False,
        )
        self._room = max(1, self._progress.console.width - len(title) - _BAR - 3)
        self._drawn = 0.0
        self._start, self._began = progress.bytes_done, time.monotonic()
        self._progress.start()
        self._task = self._progress.add_task(
            title, total=1.0, completed=progress.fraction, told=self._told(progress)
        )

    def show(self, progress: Progress) -> None:
        """Draw it, if the last time is long enough ago."""
        self._progress.update(self._task, completed=progress.fraction, told=self._told(progress))
        now = time.monotonic()
        if now - self._drawn >= _TERMINAL_S:
            self._drawn = now
            self._progress.refresh()

    def close(self) -> None:
        """Draw the last state."""
        self._progress.refresh()
        self._progress.stop()

    def _told(self, progress: Progress) -> str:
        """The most important first."""
        size = f" of {human_size(progress.bytes_total)}" if progress.bytes_total else ""
        pace = _pace(progress, self._start, time.monotonic() - self._began)
        told = ", ".join([f"{progress.fraction:.0%}{size}", *pace, progress.counts])
        return told if len(told) <= self._room else f"{told[: self._room - 1]}…"


def _broken(_console: object) -> None:
    raise BrokenPipeError


def _pace(progress: Progress, start: int, elapsed: float) -> list[str]:
    """The rate since there were `start` bytes, and how much longer it takes, or took."""
    rate = (progress.bytes_done - start) / elapsed if elapsed > 0 else 0.0
    if rate <= 0:
        return []
    left = progress.bytes_total - progress.bytes_done
    ends = f"{_clock(left / rate)} left" if left else f"in {_clock(elapsed)}"
    return [f"{human_size(int(rate))}/s", ends]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
