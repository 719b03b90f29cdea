"""Small reads under way at one time: each chunk that several of them want is decoded once.

A read is announced when it is asked for, with the chunks that it wants. Whoever comes to a chunk
first serves all that want it by then, straight from the decoded chunk, so nothing is kept. What is
fetched was asked for before, so every read sees the array as it was when it was asked for, or
later: the same as if each went alone. If serving fails the others are left to themselves.

"Small" is what takes less than half of what is decoded for it; larger reads have no use for this.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py._chunked.box import box_of, cells_of
from tensorstore_py._chunked.failures import CHUNK_FAILURES, corrupt_chunk
from tensorstore_py._chunked.small_read import SERVED, SERVING, WANTED, SmallRead
from tensorstore_py._chunked.wanted import copy_wanted, fetch_wanted, fill_wanted
from tensorstore_py._interface.new_array import new_array
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.gate import Mutex
from tensorstore_py._runtime.handover import Pace
from tensorstore_py._runtime.scratch import row_scratch
from tensorstore_py._runtime.workers import width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.box import Cut
    from tensorstore_py._chunked.small_read import Want
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["SmallReads"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: What touches more chunks is planned lazily, the long way.
_MOST_CHUNKS: Final = 256

#: With so many chunks of other reads that nobody has come to yet, all threads have enough to do.
_CROWD: Final = 2 * width()

#: What is fetched together decodes to so much at most.
_ROW_BYTES: Final = 2**19


class SmallReads(Forkable):
    """The small reads of one array that are under way.

    Args:
        array: its chunks are of one shape.

    Attributes:
        array: as given.
        inline: its temperament.
        step_bytes: how much is decoded at a time.
        mutex: for what is known of wants.
    """

    def __init__(self, array: ChunkedArray) -> None:
        self.array = array
        self._extents = [axis.extent for axis in array.grid]
        chunk = array.chain.chunk
        self._shape = chunk.shape
        self._dtype = chunk.dtype
        self._elements = math.prod(self.unit.chunk.shape)
        self.step_bytes = self.unit.chunk.size_bytes
        self._row_bytes = self.unit.row_bytes
        self.inline = array.source.inline
        self.mutex = Mutex()
        self._pace = Pace()
        self._wanted: dict[Cell, list[Want]] = {}
        super().__init__()

    @property
    def row_length(self) -> int:
        """How many chunks are fetched together, at most."""
        if not self.inline or self._row_bytes is not None:  # then no more is fetched than is wanted
            return 1
        return max(1, _ROW_BYTES // self.step_bytes)

    @property
    def unit(self) -> CodecChain:
        """What is decoded at a time."""
        return self.array.chain

    def after_fork(self) -> None:
        self._wanted = {}

    def work_bytes(self, rows: int) -> int:
        """How much is fetched of a chunk for so many positions of its first axis."""
        if self._row_bytes is None:
            return self.step_bytes
        return min(self.step_bytes, rows * self._row_bytes)

    def asked(self, transform: IndexTransform, order: str) -> SmallRead | None:
        """Announce a read; None if it is not small, or no box within the array."""
        box = box_of(transform, self._extents)
        if box is None:
            return None
        shape = box.shape
        elements = 1
        for extent in shape:
            elements *= extent
        if 2 * elements > _MOST_CHUNKS * self._elements:
            return None
        cells = cells_of(box, self._shape)
        if len(cells) > _MOST_CHUNKS or 2 * elements > len(cells) * self._elements:
            return None
        out = new_array(shape, self._dtype, order)
        read = SmallRead(self, out, box, cells)
        self._announce(read.wants)
        return read

    def _announce(self, wants: Sequence[Want]) -> None:
        wanted = self._wanted
        with self.mutex:
            for want in wants:
                cell = want.cell
                others = wanted.get(cell)
                if others is None:
                    wanted[cell] = [want]
                else:
                    others.append(want)

    def withdraw(self, wants: Sequence[Want]) -> None:
        """Nobody is to serve these any more, unless somebody is just doing so."""
        with self.mutex:
            for want in wants:
                cell = want.cell
                others = self._wanted.get(cell, ())
                rest = [other for other in others if other is not want]
                if rest:
                    self._wanted[cell] = rest
                else:
                    self._wanted.pop(cell, None)

    def crowded(self, mine: int) -> bool:
        """Whether others want so many that a read of `mine` had better stay on one thread."""
        return len(self._wanted) - mine >= _CROWD

    def parts(self, wants: Sequence[Want]) -> list[tuple[Array, Cut]]:
        """Where the elements go that are wanted of a chunk, and which they are."""
        shape = self._shape
        return [
            (read.out, (read.cuts or read.cut(shape))[number])
            for read, number in [(want.read, want.number) for want in wants]
        ]

    def _take(self, row: Sequence[Want], most: int) -> list[list[Want]]:
        """All that is wanted of those chunks, and of the last ones that nobody has come to yet.

        The mutex is held. Those at the head of the line are about to be served by others.
        """
        wanted = self._wanted
        taken = [wanted.pop(want.cell) for want in row if want.state == WANTED]
        if taken:
            while len(taken) < most and wanted:
                taken.append(wanted.popitem()[1])
        for wants in taken:
            for each in wants:
                each.state = SERVING
        return taken

    async def _serve_row(self, taken: Sequence[Sequence[Want]]) -> None:
        array = self.array
        limits, size = array.limits, array.limits.in_flight(len(taken) * self.step_bytes)
        if len(taken) < 2 or limits.memory.matters(True, size):
            for wants in taken:
                await self.serve(wants[0].cell, wants)
            return
        cells = [wants[0].cell for wants in taken]
        room = row_scratch(len(taken) * self.step_bytes)  # chunks are decoded in other memory
        for wants, data in zip(taken, await array.source.values(cells, room), strict=True):
            cell = wants[0].cell
            if data is None:
                fill_wanted(array, cell, self.parts(wants))
            else:
                self._decode(cell, wants, data)

    async def lead(self, row: Sequence[Want]) -> None:
        """Serve chunks to all that want them now, but for those that somebody serves or did serve.

        Where chunks are small, some that only others want are fetched along with them.

        Args:
            row: of one read, at most `row_length`.
        """
        with self.mutex:
            taken = self._take(row, self.row_length)
        if not taken:
            return
        began = self._pace.begin()
        try:
            await self._serve_row(taken)
        except BaseException as error:
            if len(taken) > 1 and isinstance(error, Exception):
                # Of which chunk it was shows when each goes alone.
                self._leave_to_themselves((), taken)
                for want in row:
                    await self._lead_alone(want)
                return
            self._leave_to_themselves(row, taken)
            raise
        self._pace.end(began, self.pieces(taken))
        self._served(taken)

    async def _lead_alone(self, want: Want) -> None:
        with self.mutex:
            taken = self._take((want,), 1)
        try:
            await self._serve_row(taken)
        except BaseException:
            self._leave_to_themselves((want,), taken)
            raise
        self._served(taken)

    def pieces(self, taken: Sequence[Sequence[Want]]) -> int:
        """How many chunks were decoded one after the other, about."""
        return len(taken)

    @property
    def short(self) -> bool:
        """Whether a chunk is served so soon that one thread does it all in less time than two."""
        return self.inline and self.small and self._pace.short

    @property
    def small(self) -> bool:
        """Whether so little is decoded at a time that it may be `short`."""
        return self._row_bytes is not None or 2 * self.step_bytes <= _ROW_BYTES

    def _served(self, taken: Sequence[Sequence[Want]]) -> None:
        bells = []
        with self.mutex:
            for wants in taken:
                for each in wants:
                    each.state = SERVED
                    read = each.read
                    read.left -= 1
                    if read.bell is not None and not read.left:
                        bells.append(read.bell)
        for bell in bells:
            bell.land()

    def _leave_to_themselves(self, mine: Sequence[Want], taken: Sequence[Sequence[Want]]) -> None:
        bells = []
        with self.mutex:
            for each in chain.from_iterable(taken):
                read = each.read
                if each in mine or read.over:
                    continue
                each.state = WANTED
                self._wanted.setdefault(each.cell, []).append(each)
                if read.bell is not None:
                    bells.append(read.bell)
                    read.bell = None
        for bell in bells:
            bell.land()

    async def serve(self, cell: Cell, wants: Sequence[Want]) -> None:
        """Give all of them what they want of a chunk."""
        memory, size = self.array.limits.memory, self.array.limits.in_flight(self.step_bytes)
        if not memory.matters(self.inline, size):
            await self.fetch(cell, wants)
            return
        await memory.take(self.inline, size)
        try:
            await self.fetch(cell, wants)
        finally:
            memory.release(size)

    async def fetch(self, cell: Cell, wants: Sequence[Want]) -> None:
        """`serve` with the memory for it at hand."""
        if self._row_bytes is not None and await fetch_wanted(self.array, cell, self.parts(wants)):
            return
        result = await self.array.source.read(cell)
        if result.state == "missing":
            fill_wanted(self.array, cell, self.parts(wants))
        elif self.inline:
            self._decode(cell, wants, result.value)
        else:
            await offload(False, partial(self._decode, cell, wants, result.value))

    def _decode(self, cell: Cell, wants: Sequence[Want], data: Buffer) -> None:
        try:
            copy_wanted(self.array, data, self.parts(wants))
        except CHUNK_FAILURES as error:
            raise corrupt_chunk(self.array, cell, error) from error
