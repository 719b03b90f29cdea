"""`Progress`: how far a read, write or copy has come, told to whoever asked.

What is told is counted where blocks are finished, on any thread; calls come one at a time, and the
figures in them only grow. An exception of the caller's function ends the operation.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Progress", "Told", "ToldOfPart"]


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
        """From 0 to 1; 1 if there is nothing to do."""
        return self.bytes_done / self.bytes_total if self.bytes_total else 1.0

    def __str__(self) -> str:
        done, total = (f"{size / 2**20:.1f}" for size in (self.bytes_done, self.bytes_total))
        chunks = f"{self.chunks_done} of {self.chunks_total} chunks"
        arrays = f", {self.arrays_done} of {self.arrays_total} arrays" * bool(self.arrays_total)
        return f"{self.fraction:.0%}: {done} of {total} MiB, {chunks}{arrays}"

    def __repr__(self) -> str:
        shown = self if self.arrays_total else self[:4]
        fields = zip(self._fields, shown, strict=False)
        return f"Progress({', '.join(f'{name}={value}' for name, value in fields)})"


class Told:
    """Who is told of one operation.

    Args:
        function: called with a `Progress` at the beginning, and each time some more is done; None:
            nobody is.
    """

    __slots__ = ("_function", "_lock", "_now")

    def __init__(self, function: Callable[[Progress], object] | None) -> None:
        self._function = function
        self._lock = Lock()
        self._now = Progress(0, 0, 0, 0)

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

    def more(self, chunks: int) -> None:
        """There are so many more chunks than was known."""
        with self._lock:
            self._now = self._now._replace(chunks_total=self._now.chunks_total + chunks)


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
