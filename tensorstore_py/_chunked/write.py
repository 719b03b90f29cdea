"""Writing: run a plan's steps so that the selected elements are stored.

A chunk that is written in full is encoded and stored without a look at what was there. A chunk
written in part is read, changed and stored again on the condition that nobody else stored it
meanwhile, until that holds: so no writer's part is ever lost. Each key is replaced atomically;
a crash leaves every chunk old or new.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._chunked.merging import MergedUpdates
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.rows import row_length, rows, side_by_side, slab
from tensorstore_py._chunked.selection import select
from tensorstore_py._chunked.shard import descend
from tensorstore_py._chunked.uneven import EachShape
from tensorstore_py._chunked.update import (
    ChunkPart,
    ChunkUpdate,
    ShardPart,
    ShardUpdate,
    ShownUpdate,
    encode,
)
from tensorstore_py._index import propagate_bounds
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.given import Given
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._runtime.fan_out import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.cache import Writes
    from tensorstore_py._chunked.cached import PoolPart
    from tensorstore_py._chunked.merging import Waiting
    from tensorstore_py._chunked.plan import Plan, Step
    from tensorstore_py._chunked.rows import Row
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._chunked.source import Cell, StoredChunks
    from tensorstore_py._index import IndexDomain, IndexTransform
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._interface.update import Update

__all__ = ["ChunkWriter", "Destination", "NewValues", "ShardWriter", "chosen", "write_from"]

_AS_USUAL = Given()

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class Destination(NamedTuple):
    """What is written to.

    Attributes:
        array: what changes.
        source: the array's source, where chunks are stored.
        merged: where this process's own writers of one chunk meet.
        pool: where chunks are kept decoded, if they are.
    """

    array: ChunkedArray
    source: StoredChunks
    merged: MergedUpdates
    pool: PoolPart | None = None


def chosen(
    bounds: IndexDomain, transform: IndexTransform, source: Array
) -> tuple[Sequence[Axis], Array]:
    """What a write selects, and the working view of its values; both as for `write_from`.

    Args:
        bounds: of the array.
        transform: from the source's positions to the array's.
        source: the new values, which broadcast to the transform's input shape.

    Raises:
        OutOfRangeError: something outside the array.
    """
    resolved = propagate_bounds(bounds, transform)
    selection, shape = select(resolved), resolved.input_shape
    whole = source if source.shape == shape else np.broadcast_to(source, shape)
    return selection.axes, selection.values(whole)


async def write_from(
    to: Destination, axes: Sequence[Axis], view: Array, given: Given = _AS_USUAL
) -> None:
    """Store the elements that `axes` select.

    Args:
        to: where to.
        axes: the selection's axes, see `selection`.
        view: the working view of the new values, one axis for each of `axes`, of the array's dtype.
        given: what is known of its memory.

    Raises:
        DataLossError: a chunk that must be changed in part is corrupt; names its key.
    """
    plan = make_plan(axes, to.array.grid)
    values = NewValues(view, given, plan.count)
    if plan.count > 1 and to.source.store.rewritten:
        await _write_together(to, plan, values)
    else:
        await _write_each(to, plan, values)


async def _write_each(to: Destination, plan: Plan, values: NewValues) -> None:
    """Store the chunks as they come."""
    array, source = to.array, to.source
    kind = ChunkWriter if array.sharded is None else ShardWriter
    length = 0 if array.shapes is not None else kind(to, plan, values).row_length()
    if length:
        await fan_out(
            True,
            rows(plan, length),
            kind(to, plan, values).row,
            count=-(-plan.count // length),
            width=source.width,
            step_pieces=length if length > 1 else None,
        )
        return

    def work_of(part: ChunkedArray) -> Callable[[Step], Coroutine[Any, Any, None]]:
        return kind(to._replace(array=part), plan, values).work()

    work = work_of(array) if array.shapes is None else EachShape(array, work_of).step
    await fan_out(source.inline, plan.steps(), work, count=plan.count, width=source.width)


async def _write_together(to: Destination, plan: Plan, values: NewValues) -> None:
    """Store the chunks at once, when all of them are encoded."""
    source, pool = to.source, to.pool
    staged = Overlay(source.store, repeatable=False, atomic=False, check=lambda: None)
    within = Destination(to.array, source.on(staged), MergedUpdates(staged))
    try:
        await _write_each(within, plan, values)
        await staged.commit()
    finally:
        if pool is not None:
            pool.forget(to.array, plan.axes)


class NewValues:
    """The new values, and how many chunks still have to take theirs.

    Args:
        view: see `write_from`.
        given: see `write_from`.
        count: of chunks.
    """

    __slots__ = ("_count", "_numbers", "_taken", "lasting", "view")

    def __init__(self, view: Array, given: Given, count: int) -> None:
        self.view = view
        self.lasting, self._taken = given
        self._count = count
        self._numbers = itertools.count(1)  # the next number is taken atomically

    def are_in(self, parts: Sequence[Buffer] | None) -> bool:
        """Whether what was made of a chunk's values is still their memory, in part."""
        if self._taken is None or parts is None:
            return False
        views = [np.asarray(part) for part in parts if isinstance(part, memoryview)]
        return any(np.may_share_memory(view, self.view) for view in views)

    def lie_together(self, row: Row) -> bool:
        """Whether those of each chunk are one piece of memory, which can be encoded as it is."""
        return self.view[next(row.steps()).outside].flags.c_contiguous

    def taken(self) -> None:
        """One more chunk needs its values no more."""
        if self._taken is not None and next(self._numbers) == self._count:
            self._taken()


class ChunkWriter:
    """One write to an array whose chunks are encoded whole."""

    __slots__ = ("_array", "_merged", "_plan", "_pool", "_source", "_values")

    def __init__(self, to: Destination, plan: Plan, values: NewValues) -> None:
        self._array, self._source, self._merged, self._pool = to
        self._plan = plan
        self._values = values

    def work(self) -> Callable[[Step], Coroutine[Any, Any, None]]:
        """The body of a step, which waits for memory if that could run out."""
        array = self._array
        size = array.limits.in_flight(array.chain.chunk.size_bytes)
        if array.limits.memory.matters(array.source.inline, size):
            return self._counted_step
        return self.step

    async def _counted_step(self, step: Step) -> None:
        limits = self._array.limits
        memory, size = limits.memory, limits.in_flight(self._array.chain.chunk.size_bytes)
        await memory.take(self._source.inline, size)
        try:
            await self.step(step)
        finally:
            memory.release(size)

    def row_length(self) -> int:
        """How many chunks to encode side by side, at most; 0: each where its values are."""
        array = self._array
        size = array.chain.chunk.size_bytes
        length = row_length(self._plan, size)
        if not length or self._pool is not None or not self._source.inline:
            return 0
        if array.chain.to_bytes.partial or array.chain.chunk.dtype.hasobject:
            return 0
        limits = array.limits
        return 0 if limits.memory.matters(True, limits.in_flight(length * size)) else length

    async def row(self, row: Row) -> None:
        """Store a row of chunks, or one chunk."""
        values = self._values
        if not row.whole or values.lie_together(row):
            for step in row.steps():
                await self.step(step)
            return
        array, cells = self._array, row.cells()
        with array.limits.copying:
            _, chunks = slab(array.chain.chunk, len(cells))
            chunks[...] = side_by_side(values.view, row)
            for _ in cells:
                values.taken()
            data = [encode(array, chunk, None) for chunk in chunks]
        await self._source.write_values(cells, data)

    async def step(self, step: Step) -> None:
        """Store one chunk."""
        pool = self._pool
        if pool is None:
            await self._store(step, self.update(step))
            return
        with pool.writing(self._array, step.cell) as writes:
            update = self.update(step)
            _keep(writes, update, await self._store(step, update))

    async def _store(self, step: Step, update: Update) -> TimestampedStorageGeneration | None:
        """Store one chunk; its new stamp if that of just this change is known."""
        if step.full and not self._array.chain.to_bytes.partial:
            # Beyond the bounds known here may be what somebody who grew the array stored since.
            careful = self._array.growing and not all(piece.whole for piece in step.pieces)
            # In a transaction that nothing is there would have to hold until the commit.
            if not (careful and self._source.store.stages):
                condition = NO_VALUE if careful else None
                parts = await update.parts(None)
                early = not careful and not self._values.are_in(parts)
                if early:
                    self._values.taken()
                if self._values.lasting and parts is not None and len(parts) == 1:
                    stamp = await self._source.keep(step.cell, parts[0], if_equal=condition)
                else:
                    stamp = await self._source.write_parts(step.cell, parts, if_equal=condition)
                if not careful or stamp.generation != UNKNOWN:
                    if not early:
                        self._values.taken()
                    return stamp
        changed = await self._merged.update(self._source.key(step.cell), update)
        self._values.taken()
        return changed

    def announce(self, steps: Sequence[Step]) -> list[Waiting]:
        """Have changes of chunks in part wait for their turn, or for who makes them along."""
        key, update = self._source.key, self.update
        return self._merged.announce([(key(step.cell), update(step)) for step in steps])

    async def make(self, cell: Cell, waiting: Waiting, along: int) -> None:
        """See to it that a change that was announced is made; see `MergedUpdates.make`."""
        pool = self._pool
        if pool is None or waiting.done:
            await self._merged.make(waiting, along)
        else:
            with pool.writing(self._array, cell) as writes:
                _keep(writes, waiting.update, await self._merged.make(waiting))
        self._values.taken()

    def update(self, step: Step) -> Update:
        """What becomes of the chunk."""
        part = ChunkPart(step, self._values.view[(..., *step.outside)])
        # What is read back through a codec that rounds is not what was written.
        shown = self._pool is not None and self._array.chain.exact()
        kind = ShownUpdate if shown else ChunkUpdate
        return kind(self._array, self._source, step.cell, (part,))


def _keep(writes: Writes, update: Update, stamp: TimestampedStorageGeneration | None) -> None:
    """Have the pool keep the chunk that an update made, if its stamp is known."""
    if stamp is not None and isinstance(update, ShownUpdate) and update.made is not None:
        writes.stored(update.made, stamp.generation)


class ShardWriter(ChunkWriter):
    """One write to an array whose chunks are shards: inner chunks not touched are kept as bytes."""

    __slots__ = ()

    def row_length(self) -> int:
        return 0  # its inner chunks make rows

    def update(self, step: Step) -> Update:
        part = ShardPart(*descend(self._plan.axes, step, self._values.view))
        return ShardUpdate(self._array, self._source, step.cell, (part,))
