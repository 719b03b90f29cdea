"""`Progress`: how far a read, write or copy has come, told to whoever asked.

What is told is counted where blocks are finished, on any thread; calls come one at a time, and the
figures in them only grow. An exception of the caller's function ends the operation. `progress=True`
is a function of ours, a bar, which is closed when the operation's Future is settled, in any way.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from tensorstore_py._runtime.progress_bar import Bar
from tensorstore_py._runtime.progress_stream import ProgressStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tensorstore_py._runtime.future import Future

__all__ = ["Progress", "ProgressLike", "Told", "ToldOfPart"]

#: What `progress=` takes: a function, True for a bar, False or None for nothing.
ProgressLike: TypeAlias = "Callable[[Progress], object] | bool | None"
T = TypeVar("T")


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
        100%: 0.0 of 0.0 MiB, 1 of 1 chunks
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
        done, total = (f"{size / 2**20:.1f}" for size in (self.bytes_done, self.bytes_total))
        return f"{self.fraction:.0%}: {done} of {total} MiB, {self.counts}"

    def __repr__(self) -> str:
        shown = self if self.arrays_total else self[:4]
        fields = zip(self._fields, shown, strict=False)
        return f"Progress({', '.join(f'{name}={value}' for name, value in fields)})"


class Told:
    """Who is told of one operation.

    Args:
        progress: called with a `Progress` at the beginning, and each time some more is done; True:
            a bar is drawn; None or False: nobody is told.
        title: what the bar is named.

    Raises:
        TypeError: it is nothing of that.
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
    def of(progress: ProgressLike, title: str) -> Told | None:
        """Who is told, or None if nobody is."""
        return None if progress is None or progress is False else Told(progress, title)

    @property
    def listens(self) -> bool:
        """Whether anybody is told."""
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


class ToldOfPart(Told):
    """Who is told of one of several arrays: what it has to do is a part of the whole.

    Args:
        whole: the operation, which knows how much there is in all, but for the chunks.
    """

    __slots__ = ("_whole",)

    def __init__(self, whole: Told) -> None:
        super().__init__(None)
        self._whole = whole

    def begin(self, size: int, chunks: int, arrays: int = 0) -> None:
        """So many chunks more there are."""
        self._whole.more(chunks)

    def advance(self, size: int, chunks: int, arrays: int = 0) -> None:
        """So much more of the whole is done."""
        self._whole.advance(size, chunks, arrays)
