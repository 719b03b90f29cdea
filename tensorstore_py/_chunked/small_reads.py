"""Small reads under way at one time: each chunk that several of them want is decoded once.

A read is announced when it is asked for, with the chunks that it wants. Whoever comes to a chunk
first serves all that want it by then, straight from the decoded chunk, so nothing is kept. What is
fetched was asked for before, so every read sees the array as it was when it was asked for, or
later: the same as if each went alone. If serving fails the others are left to themselves.

"Small" is what takes less than half of what is decoded for it; larger reads have no use for this.
"""

from __future__ import annotations

import math
import time
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._chunked.box import box_of, cells_of, cut
from tensorstore_py._chunked.read import corrupt_chunk, missing_chunk
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._runtime.fan_out import SHARE_BYTES, fan_out, offload
from tensorstore_py._runtime.flight import Flight
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.gate import Mutex
from tensorstore_py._runtime.handover import Pace
from tensorstore_py._runtime.scratch import row_scratch
from tensorstore_py._runtime.start import Announced
from tensorstore_py._runtime.workers import width
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.box import Box, Cut
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["SmallRead", "SmallReads", "Want", "copy_wanted", "fill_wanted"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: What touches more chunks is planned lazily, the long way.
_MOST_CHUNKS: Final = 256

#: With so many chunks of other reads that nobody has come to yet, all threads have enough to do.
_CROWD: Final = 2 * width()

#: What is fetched together decodes to so much at most.
_ROW_BYTES: Final = 2**19

#: A part of a chunk is fetched instead of all of it if it is so many times smaller.
_MUCH_LESS: Final = 2

_WANTED: Final = 0
_SERVING: Final = 1
_SERVED: Final = 2


class Want:
    """What one read wants of one chunk."""

    __slots__ = ("cell", "number", "read", "state")

    def __init__(self, read: SmallRead, number: int, cell: Cell) -> None:
        self.read = read
        self.number = number
        self.cell = cell
        self.state = _WANTED


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
        self._row_bytes = self.unit.row_bytes()
        self.inline = array.source.inline
        self.mutex = Mutex()
        self._pace = Pace()
        self._wanted: dict[Cell, list[Want]] = {}
        super().__init__()

    @property
    def row_length(self) -> int:
        """How many chunks are fetched together, at most."""
        return max(1, _ROW_BYTES // self.step_bytes) if self.inline else 1

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
        out = np.empty(shape, self._dtype, "F" if order == "F" else "C")
        read = SmallRead(self, out, box, cells)
        self._announce(read.wants)
        return read

    def _announce(self, wants: Sequence[Want]) -> None:
        wanted = self._wanted
        with self.mutex.lock:
            for want in wants:
                cell = want.cell
                others = wanted.get(cell)
                if others is None:
                    wanted[cell] = [want]
                else:
                    others.append(want)

    def withdraw(self, wants: Sequence[Want]) -> None:
        """Nobody is to serve these any more, unless somebody is just doing so."""
        with self.mutex.lock:
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
        taken = [wanted.pop(want.cell) for want in row if want.state == _WANTED]
        if taken:
            while len(taken) < most and wanted:
                taken.append(wanted.popitem()[1])
        for wants in taken:
            for each in wants:
                each.state = _SERVING
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
        with self.mutex.lock:
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
        with self.mutex.lock:
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
        small = self._row_bytes is not None or 2 * self.step_bytes <= _ROW_BYTES
        return self.inline and small and self._pace.short

    def _served(self, taken: Sequence[Sequence[Want]]) -> None:
        bells = []
        with self.mutex.lock:
            for wants in taken:
                for each in wants:
                    each.state = _SERVED
                    read = each.read
                    read.left -= 1
                    if read.bell is not None and not read.left:
                        bells.append(read.bell)
        for bell in bells:
            bell.land()

    def _leave_to_themselves(self, mine: Sequence[Want], taken: Sequence[Sequence[Want]]) -> None:
        bells = []
        with self.mutex.lock:
            for each in chain.from_iterable(taken):
                read = each.read
                if each in mine or read.over:
                    continue
                each.state = _WANTED
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
        if self._row_bytes is not None and await self._fetch_rows(cell, wants):
            return
        result = await self.array.source.read(cell)
        if result.state == "missing":
            fill_wanted(self.array, cell, self.parts(wants))
        elif self.inline:
            self._decode(cell, wants, result.value)
        else:
            await offload(False, partial(self._decode, cell, wants, result.value))

    async def _fetch_rows(self, cell: Cell, wants: Sequence[Want]) -> bool:
        """`fetch` of no more than is wanted, if that is much less than the chunk, and is to be had.

        Of chunks that are stored as they are, any positions of the first axis are a piece.
        """
        size = self._row_bytes
        assert size is not None
        pieces = _pieces(self.parts(wants))
        if _MUCH_LESS * sum(high - low for low, high, _ in pieces) * size > self.step_bytes:
            return False
        ranges = [ByteRange(low * size, high * size) for low, high, _ in pieces]
        found = await self.array.source.parts(cell, ranges, self.step_bytes)
        if found is None:
            return False
        copying = self.array.limits.copying
        copying.enter()
        try:
            for data, (low, high, parts) in zip(found, pieces, strict=True):
                if data is None:
                    fill_wanted(self.array, cell, parts)
                    continue
                rows = self.unit.decode_rows(data, high - low)
                for out, part in parts:
                    first, *others = part.inside
                    start = (
                        first - low
                        if isinstance(first, int)
                        else slice(first.start - low, first.stop - low)
                    )
                    out[part.outside] = rows[(start, *others)]
        except DataLossError as error:
            raise corrupt_chunk(self.array, cell, error) from error
        finally:
            copying.leave()
        return True

    def _decode(self, cell: Cell, wants: Sequence[Want], data: Buffer) -> None:
        try:
            copy_wanted(self.array, data, self.parts(wants))
        except DataLossError as error:
            raise corrupt_chunk(self.array, cell, error) from error


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
            step_pieces=length if length > 1 else None,
        )

    async def _wait(self) -> None:
        """Wait until others have served the rest, or have given it up."""
        reads = self._reads
        with reads.mutex.lock:
            again = [want for want in self.wants if want.state == _WANTED]
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
        self._reads.withdraw([want for want in wants if want.state == _WANTED])


def _pieces(parts: Iterable[tuple[Array, Cut]]) -> list[tuple[int, int, list[tuple[Array, Cut]]]]:
    """The parts of a chunk by where along its first axis they are; pieces do not touch."""
    placed = []
    for each in parts:
        first = each[1].inside[0]
        low, high = (first, first + 1) if isinstance(first, int) else (first.start, first.stop)
        placed.append((low, high, each))
    placed.sort(key=itemgetter(0))
    pieces: list[tuple[int, int, list[tuple[Array, Cut]]]] = []
    for low, high, each in placed:
        if pieces and low <= pieces[-1][1]:
            start, stop, members = pieces[-1]
            members.append(each)
            pieces[-1] = (start, max(stop, high), members)
        else:
            pieces.append((low, high, [each]))
    return pieces


def copy_wanted(array: ChunkedArray, data: Buffer, wanted: Iterable[tuple[Array, Cut]]) -> None:
    """Decode a chunk, and copy from it what is wanted."""
    copying = array.limits.copying
    copying.enter()
    try:
        chunk = array.chain.decode_scratch(data)
        for out, part in wanted:
            out[part.outside] = chunk[part.inside]
    finally:
        copying.leave()


def fill_wanted(array: ChunkedArray, cell: Cell, wanted: Iterable[tuple[Array, Cut]]) -> None:
    """Give fill values where a chunk is missing.

    Raises:
        NotFoundError: that is not allowed.
    """
    if not array.fill_missing:
        raise missing_chunk(array, cell)
    chunk = array.chain.chunk
    value = chunk.fill_value
    for out, part in wanted:
        out[part.outside] = (
            np.broadcast_to(value, chunk.shape)[part.inside] if value.ndim else value
        )
