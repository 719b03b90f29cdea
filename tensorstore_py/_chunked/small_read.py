"""One small read: what it wants of each chunk, how much of that it has, and how it waits for more.

It runs like any other body of work, but others may have served it before, or may do so meanwhile:
`SmallReads` knows of all that are under way.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._chunked.box import cut
from tensorstore_py._runtime.fan_out import SHARE_BYTES, fan_out
from tensorstore_py._runtime.flight import Flight
from tensorstore_py._runtime.start import Announced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._chunked.box import Box, Cut
    from tensorstore_py._chunked.small_reads import SmallReads
    from tensorstore_py._chunked.source import Cell

__all__ = ["SERVED", "SERVING", "WANTED", "SmallRead", "Want"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: How far a want is.
WANTED: Final = 0
SERVING: Final = 1
SERVED: Final = 2


class Want:
    """What one read wants of one chunk."""

    __slots__ = ("cell", "number", "read", "state")

    def __init__(self, read: SmallRead, number: int, cell: Cell) -> None:
        self.read = read
        self.number = number
        self.cell = cell
        self.state = WANTED


class SmallRead(Announced):
    """One read; called, it runs.

    Args:
        reads: that it is one of.
        out: where to.
        box: what it wants.
        cells: the chunks that have some of it.

    Attributes:
        out: as given.
        cuts: what each chunk has of it; not before anybody needs to know, since of reads that wait
            there may be many.
        wants: one for each chunk, until it is done.
        left: how many of them are not served yet; like `bell`, to be used under the mutex.
        bell: rings when the read need not wait any more; None: it does not wait.
        over: it failed or was cancelled, so nobody is to serve it.
        asked: when it was asked for, in s since 1970.
    """

    __slots__ = (
        "__weakref__",
        "_box",
        "_reads",
        "asked",
        "bell",
        "cuts",
        "left",
        "out",
        "over",
        "wants",
    )

    def __init__(self, reads: SmallReads, out: Array, box: Box, cells: Sequence[Cell]) -> None:
        self._reads = reads
        self.out = out
        self._box = box
        self.cuts: Sequence[Cut] | None = None
        self.wants = [Want(self, number, cell) for number, cell in enumerate(cells)]
        self.left = len(cells)
        self.bell: Flight[Any] | None = None
        self.over = False
        self.asked = time.time()

    @property
    def _rows(self) -> int:
        """How many positions of the array's first axis it wants."""
        box = self._box
        return box.stops[0] - box.starts[0] if box.starts else 1

    def cut(self, shape: Sequence[int]) -> Sequence[Cut]:
        """Find `cuts`, for chunks of that shape."""
        self.cuts = cuts = cut(self._box, shape)
        return cuts

    @property
    def short(self) -> bool:
        return self._reads.short

    async def __call__(self) -> Array:
        try:
            if self.left:
                await self._lead_all()
                while self.left:
                    await self._wait()
        except BaseException:
            self.withdraw()
            raise
        self.wants = []  # they refer back: the result would stay until the cycle collector comes by
        return self.out

    async def _lead_all(self) -> None:
        reads, wants = self._reads, self.wants
        source, count, length = reads.array.source, len(wants), reads.row_length
        size = reads.work_bytes(self._rows)
        rows = [wants[first : first + length] for first in range(0, count, length)]
        if source.inline and (reads.crowded(count) or count * size < 2 * SHARE_BYTES):
            for row in rows:  # other threads have enough to do, or would not be worth it
                await reads.lead(row)
            return
        await fan_out(
            source.inline,
            rows,
            reads.lead,
            count=len(rows),
            width=source.width,
            step_bytes=length * size,
            step_pieces=length if reads.small else None,
        )

    async def _wait(self) -> None:
        """Wait until others have served the rest, or have given it up."""
        reads = self._reads
        with reads.mutex:
            again = [want for want in self.wants if want.state == WANTED]
            joined = None
            if self.left and not again:
                self.bell = Flight() if self.bell is None else self.bell
                joined = self.bell.join(reads.inline)
        for want in again:
            await reads.lead((want,))
        if joined is not None:
            await Flight.over(joined)

    def withdraw(self) -> None:
        self.over = True
        wants, self.wants = self.wants, []
        self._reads.withdraw([want for want in wants if want.state == WANTED])
