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
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._chunked.box import box_of, cut
from tensorstore_py._chunked.read import corrupt_chunk, missing_chunk
from tensorstore_py._runtime.fan_out import SHARE_BYTES, fan_out, offload
from tensorstore_py._runtime.flight import Flight
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.gate import Mutex
from tensorstore_py._runtime.scratch import row_scratch
from tensorstore_py._runtime.start import Announced
from tensorstore_py._runtime.workers import width
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.box import Cut
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

#: What is fetched together decodes to so much at most, and there are to be several rows of it.
_ROW_BYTES: Final = 2**19
_LEAST_ROWS: Final = 2

_WANTED: Final = 0
_SERVING: Final = 1
_SERVED: Final = 2


class Want:
    """What one read wants of one chunk."""

    __slots__ = ("cut", "out", "read", "state")

    def __init__(self, read: SmallRead, cut: Cut, out: Array) -> None:
        self.read = read
        self.cut = cut
        self.out = out
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
        self.inline = array.source.inline
        self.mutex = Mutex()
        self._wanted: dict[Cell, list[Want]] = {}
        super().__init__()

    @property
    def row_length(self) -> int:
        """How many chunks are fetched together, for a read that wants many."""
        return _ROW_BYTES // self.step_bytes if self.inline else 1

    @property
    def unit(self) -> CodecChain:
        """What is decoded at a time."""
        return self.array.chain

    def after_fork(self) -> None:
        self._wanted = {}

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
        cuts = cut(box, self._shape)
        if len(cuts) > _MOST_CHUNKS or 2 * elements > len(cuts) * self._elements:
            return None
        read = SmallRead(self, np.empty(shape, self._dtype, "F" if order == "F" else "C"), cuts)
        self._announce(read.wants)
        return read

    def _announce(self, wants: Sequence[Want]) -> None:
        wanted = self._wanted
        with self.mutex.lock:
            for want in wants:
                cell = want.cut.cell
                others = wanted.get(cell)
                if others is None:
                    wanted[cell] = [want]
                else:
                    others.append(want)

    def withdraw(self, wants: Sequence[Want]) -> None:
        """Nobody is to serve these any more, unless somebody is just doing so."""
        with self.mutex.lock:
            for want in wants:
                cell = want.cut.cell
                others = self._wanted.get(cell, ())
                rest = [other for other in others if other is not want]
                if rest:
                    self._wanted[cell] = rest
                else:
                    self._wanted.pop(cell, None)

    def crowded(self, mine: int) -> bool:
        """Whether others want so many that a read of `mine` had better stay on one thread."""
        return len(self._wanted) - mine >= _CROWD

    async def lead_row(self, row: Sequence[Want]) -> None:
        """`lead` for several wants of one read, whose chunks are fetched together."""
        with self.mutex.lock:
            taken = [self._wanted.pop(want.cut.cell) for want in row if want.state == _WANTED]
            for wants in taken:
                for each in wants:
                    each.state = _SERVING
        try:
            await self._serve_row(taken)
        except BaseException:
            for wants in taken:
                self._leave_to_themselves(row, wants)
            raise
        for wants in taken:
            self._served(wants)

    async def _serve_row(self, taken: Sequence[Sequence[Want]]) -> None:
        array = self.array
        limits, size = array.limits, array.limits.in_flight(len(taken) * self.step_bytes)
        if limits.memory.matters(True, size):
            for wants in taken:
                await self.serve(wants[0].cut.cell, wants)
            return
        cells = [wants[0].cut.cell for wants in taken]
        room = row_scratch(len(taken) * self.step_bytes)  # chunks are decoded in other memory
        for wants, data in zip(taken, await array.source.values(cells, room), strict=True):
            cell = wants[0].cut.cell
            if data is None:
                fill_wanted(array, cell, [(want.out, want.cut) for want in wants])
            else:
                self._decode(cell, wants, data)

    async def lead(self, want: Want) -> None:
        """Serve a chunk to all that want it now, unless somebody else did or does that."""
        cell = want.cut.cell
        with self.mutex.lock:
            if want.state != _WANTED:
                return
            wants = self._wanted.pop(cell)
            for each in wants:
                each.state = _SERVING
        try:
            await self.serve(cell, wants)
        except BaseException:
            self._leave_to_themselves((want,), wants)
            raise
        self._served(wants)

    def _served(self, wants: Sequence[Want]) -> None:
        bells = []
        with self.mutex.lock:
            for each in wants:
                each.state = _SERVED
                read = each.read
                read.left -= 1
                if read.bell is not None and not read.left:
                    bells.append(read.bell)
        for bell in bells:
            bell.land()

    def _leave_to_themselves(self, mine: Sequence[Want], wants: Sequence[Want]) -> None:
        bells = []
        with self.mutex.lock:
            for each in wants:
                read = each.read
                if each in mine or read.over:
                    continue
                each.state = _WANTED
                self._wanted.setdefault(each.cut.cell, []).append(each)
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
        result = await self.array.source.read(cell)
        if result.state == "missing":
            fill_wanted(self.array, cell, [(want.out, want.cut) for want in wants])
        elif self.inline:
            self._decode(cell, wants, result.value)
        else:
            await offload(False, partial(self._decode, cell, wants, result.value))

    def _decode(self, cell: Cell, wants: Sequence[Want], data: Buffer) -> None:
        try:
            copy_wanted(self.array, data, [(want.out, want.cut) for want in wants])
        except DataLossError as error:
            raise corrupt_chunk(self.array, cell, error) from error


class SmallRead(Announced):
    """One read; called, it runs.

    Args:
        reads: that it is one of.
        out: where to.
        cuts: what it wants of each chunk.

    Attributes:
        wants: the same.
        left: how many of them are not served yet; like `bell`, to be used under the mutex.
        bell: rings when the read need not wait any more; None: it does not wait.
        over: it failed or was cancelled, so nobody is to serve it.
        asked: when it was asked for, in s since 1970.
    """

    __slots__ = ("__weakref__", "_out", "_reads", "asked", "bell", "left", "over", "wants")

    def __init__(self, reads: SmallReads, out: Array, cuts: Sequence[Cut]) -> None:
        self._reads = reads
        self._out = out
        self.wants = [Want(self, part, out) for part in cuts]
        self.left = len(cuts)
        self.bell: Flight[Any] | None = None
        self.over = False
        self.asked = time.time()

    async def __call__(self) -> Array:
        reads = self._reads
        try:
            if self.left:
                wants = self.wants
                if len(wants) == 1:
                    await reads.lead(wants[0])
                else:
                    await self._lead_all()
                while self.left:
                    await self._wait()
        except BaseException:
            self.withdraw()
            raise
        return self._out

    async def _lead_all(self) -> None:
        reads = self._reads
        source, count = reads.array.source, len(self.wants)
        length = reads.row_length
        if length > 1 and count >= _LEAST_ROWS * length:
            wants = self.wants
            await fan_out(
                True,
                [wants[first : first + length] for first in range(0, count, length)],
                reads.lead_row,
                count=-(-count // length),
                width=1 if reads.crowded(count) else None,
                step_bytes=length * reads.step_bytes,
                step_pieces=length,
            )
            return
        if source.inline and (reads.crowded(count) or count * reads.step_bytes < 2 * SHARE_BYTES):
            for want in self.wants:  # other threads have enough to do, or would not be worth it
                await reads.lead(want)
            return
        await fan_out(
            source.inline,
            self.wants,
            reads.lead,
            count=count,
            width=source.width,
            step_bytes=reads.step_bytes,
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
            await reads.lead(want)
        if joined is not None:
            await Flight.over(joined)

    def withdraw(self) -> None:
        self.over = True
        self._reads.withdraw([want for want in self.wants if want.state == _WANTED])


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
