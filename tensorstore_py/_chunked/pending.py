"""Pending reads: those under way at one time share what they want of a chunk.

A small read is registered when it is asked for, with the chunks that it wants. The first thread to
come to a chunk serves all reads that want some of it by then, straight from the decoded chunk. What
it fetches was asked for before, so every read sees the array as it was when it was asked for, or
later: the same as if each went alone. A pending read of a chunk is in one of three states:

| state | it is | next |
|---|---|---|
| `PENDING` | in the table | `SERVING`, or withdrawn with its request |
| `SERVING` | being fetched and decoded by a thread | `SERVED`; `PENDING` if that fails |
| `SERVED` | in the result | |

"Small" is what takes less than half of what is decoded for it, or a few small chunks: then to plan
the read would take longer than to do it. Larger reads gain nothing from being registered.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py._chunked.counts import CHUNK_READS
from tensorstore_py._chunked.plan import cells_of, slices_of
from tensorstore_py._chunked.pool import needed_since
from tensorstore_py._chunked.runs import RUN_BYTES
from tensorstore_py._chunked.selection import rectangle_of
from tensorstore_py._interface.new_array import new_array
from tensorstore_py._runtime.execution import PendingBody
from tensorstore_py._runtime.executors import width
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.interpreter_lock import SHARE_BYTES, GrainEstimate
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.metrics import note
from tensorstore_py._runtime.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._chunked.array import Array, Cell
    from tensorstore_py._chunked.decode import Wanted
    from tensorstore_py._chunked.plan import ChunkSlice
    from tensorstore_py._chunked.read import ChunkReader
    from tensorstore_py._chunked.selection import Rectangle
    from tensorstore_py._index import IndexTransform

__all__ = ["PendingReads", "ReadRequest"]

#: Requests that touch more chunks are planned lazily.
_MOST_CHUNKS: Final = 256

#: So few small chunks are not worth a plan.
_FEW: Final = 4

#: With so many unclaimed chunks of other reads, all threads have enough to do.
_CROWD: Final = 2 * width()

PENDING: Final = 0
SERVING: Final = 1
SERVED: Final = 2


class PendingRead:
    """What one request wants of one chunk: its slice of that number."""

    __slots__ = ("cell", "number", "request", "state")

    def __init__(self, request: ReadRequest, number: int, cell: Cell) -> None:
        self.request = request
        self.number = number
        self.cell = cell
        self.state = PENDING


class ReadRequest(PendingBody):
    """One registered read; called, it runs.

    Attributes:
        slices: what each chunk has of it; not before they are needed, since many reads may wait.
        pending: one for each chunk, until it is done.
        left: how many of them are not served yet; like `bell`, to be used under the lock.
        bell: rings when the read need not wait any more; None: it does not wait.
        over: it failed or was cancelled, so its slices are not to be served any more.
    """

    __slots__ = ("__weakref__", "_reads", "_rectangle", "bell", "left", "out", "over", "pending",
                 "since", "slices")  # fmt: skip

    def __init__(
        self,
        reads: PendingReads,
        out: Array,
        rectangle: Rectangle,
        cells: Sequence[Cell],
        since: float,
    ) -> None:
        self._reads = reads
        self.out = out
        self._rectangle = rectangle
        self.slices: Sequence[ChunkSlice] | None = None
        self.pending = [PendingRead(self, number, cell) for number, cell in enumerate(cells)]
        self.left = len(cells)
        self.bell: SingleFlight[Any] | None = None
        self.over = False
        self.since = since

    def cut(self, shape: Sequence[int]) -> Sequence[ChunkSlice]:
        """Find `slices`, for chunks of that shape."""
        self.slices = slices = slices_of(self._rectangle, shape)
        return slices

    @property
    def short(self) -> bool:
        reads = self._reads
        return reads.small and reads.pace.short

    async def __call__(self) -> Array:
        try:
            if self.left:
                await self._serve_all()
                while self.left:
                    await self._wait()
        except BaseException:
            self.withdraw()
            raise
        self.pending = []  # they refer back: the result would stay until the cycle collector comes
        return self.out

    async def _serve_all(self) -> None:
        reads, pending = self._reads, self.pending
        source, count, length = reads.reader.array.source, len(pending), reads.together
        size = reads.work_bytes(self._rectangle)
        groups = [pending[first : first + length] for first in range(0, count, length)]
        if source.inline and (count * size < 2 * SHARE_BYTES or reads.crowded(count)):
            for group in groups:  # other threads have enough to do, or would not be worth it
                await reads.serve(group)
            return
        await fan_out(
            source.inline,
            groups,
            reads.serve,
            count=len(groups),
            width=source.width,
            step_bytes=length * size,
            step_pieces=length if reads.small else None,
        )

    async def _wait(self) -> None:
        """Wait until other threads have served the rest, or have given it up."""
        reads = self._reads
        with reads.lock:
            again = [each for each in self.pending if each.state == PENDING]
            joined = None
            if self.left and not again:
                self.bell = SingleFlight() if self.bell is None else self.bell
                joined = self.bell.register(reads.reader.inline)
        for each in again:
            await reads.serve((each,))
        if joined is not None:
            await SingleFlight.wait(joined)

    def withdraw(self) -> None:
        self.over = True
        pending, self.pending = self.pending, []
        self._reads.withdraw([each for each in pending if each.state == PENDING])


class PendingReads(Mutex):
    """The registered reads of one array, by chunk in the order in which they were asked for.

    `bound` and `opened` say how current must be what a pool keeps, see `needed_since`.

    Attributes:
        together: how many chunks are fetched by one call, at most.
        small: whether so little is decoded at a time, inline, that a read may be `short`.
        pace: how long it takes to serve a chunk.
        lock: for what is known of pending reads.
    """

    def __init__(
        self, reader: ChunkReader, bound: bool | str | float = False, opened: float = 0.0
    ) -> None:
        self.reader = reader
        self._bound = bound
        self._opened = opened
        array = reader.array
        self._extents = [axis.extent for axis in array.grid]
        self._shape = array.chain.chunk.shape
        self._dtype = array.chain.chunk.dtype
        self._elements = math.prod(reader.unit.chunk.shape)
        self._row_bytes = reader.unit.row_bytes if reader.reads_rows else None
        self.together = reader.together
        little = 2 * reader.unit_bytes <= RUN_BYTES
        self.small = reader.inline and (little or self._row_bytes is not None)
        self._planless = _FEW if reader.inline and little and array.sharded is None else 0
        self.pace = GrainEstimate()
        self._pending: dict[Cell, list[PendingRead]] = {}
        super().__init__()

    def after_fork(self) -> None:
        super().after_fork()
        self._pending = {}

    def register(self, transform: IndexTransform, order: str) -> ReadRequest | None:
        """Register a read; None if it is not small, or no rectangle within the array."""
        rectangle = rectangle_of(transform, self._extents)
        if rectangle is None:
            return None
        shape = rectangle.shape
        elements = 1
        for extent in shape:
            elements *= extent
        if 2 * elements > _MOST_CHUNKS * self._elements:
            return None
        cells = cells_of(rectangle, self._shape)
        if len(cells) > _MOST_CHUNKS:
            return None
        if 2 * elements > len(cells) * self._elements and len(cells) > self._planless:
            return None
        since = 0.0 if self.reader.pool is None else needed_since(self._bound, self._opened)
        read = ReadRequest(self, new_array(shape, self._dtype, order), rectangle, cells, since)
        note((CHUNK_READS, len(cells)))
        table = self._pending
        with self.lock:
            for each in read.pending:
                others = table.get(each.cell)
                if others is None:
                    table[each.cell] = [each]
                else:
                    others.append(each)
        return read

    def withdraw(self, gone: Sequence[PendingRead]) -> None:
        """Take these out of the table, but for those that are just served."""
        with self.lock:
            for each in gone:
                rest = [other for other in self._pending.get(each.cell, ()) if other is not each]
                if rest:
                    self._pending[each.cell] = rest
                else:
                    self._pending.pop(each.cell, None)

    def crowded(self, mine: int) -> bool:
        """Whether others want so many chunks that a read of `mine` is better off on one thread."""
        return len(self._pending) - mine >= _CROWD

    def work_bytes(self, rectangle: Rectangle) -> int:
        """How much is decoded of a chunk for such a read."""
        if self._row_bytes is None:
            return self.reader.unit_bytes
        return min(
            self.reader.unit_bytes, (rectangle.stops[0] - rectangle.starts[0]) * self._row_bytes
        )

    async def serve(self, group: Sequence[PendingRead]) -> None:
        """Serve chunks to all that want them now, but for those that are served already.

        At most `together` chunks, of one read. Where chunks are small, some that only others want
        are fetched along with them.
        """
        with self.lock:
            taken = self._take(group, self.together)
        if not taken:
            return
        began = self.pace.begin()
        try:
            await self._serve_taken(taken)
        except BaseException as error:
            alone = len(taken) > 1 and isinstance(error, Exception)
            self._give_back(() if alone else group, taken)
            if not alone:
                raise
        else:
            alone = False
        if alone:
            # Of which chunk it was shows when each goes alone; what the error holds is gone by now.
            for each in group:
                await self._serve_alone(each)
            return
        sharded = self.reader.array.sharded is not None
        self.pace.end(began, sum(map(len, taken)) if sharded else len(taken))
        self._served(taken)

    async def _serve_alone(self, mine: PendingRead) -> None:
        with self.lock:
            taken = self._take((mine,), 1)
        if not taken:
            return
        try:
            await self._serve_taken(taken)
        except BaseException:
            self._give_back((mine,), taken)
            raise
        self._served(taken)

    def _take(self, group: Sequence[PendingRead], most: int) -> list[list[PendingRead]]:
        """All pending reads of those chunks, and of unclaimed chunks from the tail of the table.

        The lock is held. Chunks at the head of the table are about to be taken by other threads.
        """
        table = self._pending
        taken = [table.pop(each.cell) for each in group if each.state == PENDING]
        if taken:
            while len(taken) < most and table:
                taken.append(table.popitem()[1])
        for each in chain.from_iterable(taken):
            each.state = SERVING
        return taken

    async def _serve_taken(self, taken: Sequence[Sequence[PendingRead]]) -> None:
        if len(taken) > 1:
            await self.reader.serve_several([(each[0].cell, self._wanted(each)) for each in taken])
            return
        (pending,) = taken
        since = max([each.request.since for each in pending])
        await self.reader.serve(pending[0].cell, self._wanted(pending), since, awaited=True)

    def _wanted(self, pending: Sequence[PendingRead]) -> list[Wanted]:
        wanted = []
        for each in pending:
            read = each.request
            slices = read.slices or read.cut(self._shape)
            wanted.append((read.out, slices[each.number]))
        return wanted

    def _served(self, taken: Sequence[Sequence[PendingRead]]) -> None:
        bells = []
        with self.lock:
            for each in chain.from_iterable(taken):
                each.state = SERVED
                read = each.request
                read.left -= 1
                if read.bell is not None and not read.left:
                    bells.append(read.bell)
        for bell in bells:
            bell.complete()

    def _give_back(
        self, mine: Sequence[PendingRead], taken: Sequence[Sequence[PendingRead]]
    ) -> None:
        """Leave what could not be served to the requests that want it, but for `mine`."""
        bells = []
        with self.lock:
            for each in chain.from_iterable(taken):
                read = each.request
                if each in mine or read.over:
                    continue
                each.state = PENDING
                self._pending.setdefault(each.cell, []).append(each)
                if read.bell is not None:
                    bells.append(read.bell)
                    read.bell = None
        for bell in bells:
            bell.complete()
