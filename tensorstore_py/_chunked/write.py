"""Writing: chunks are encoded from the new values, and stored so that no part of any write is lost.

| the write has of a chunk | it is stored |
|---|---|
| everything within the array | as it is, without a look at what is there |
| the same, but the bounds have changed | on condition that nothing is there; else as a part |
| a part | by read-modify-write, on condition that what was read is still stored, until that holds |

Each key is replaced atomically, so a crash leaves every chunk old or new. No writer's part is ever
lost. A write that changes a few chunks in part is registered when it is asked for (`WriteRequest`):
the write combiner stores once what several of them change of a chunk.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._chunked.counts import CHUNK_WRITES
from tensorstore_py._chunked.modify import (
    ChunkChange,
    NewValues,
    ShardChange,
    ShownChange,
    WriteCombiner,
    encode_run,
    encodes_runs,
)
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.runs import RUN_BYTES, run_length, runs
from tensorstore_py._chunked.selection import select
from tensorstore_py._chunked.shard import descend
from tensorstore_py._index import propagate_bounds
from tensorstore_py._interface.driver import BufferOwnership
from tensorstore_py._interface.overlay import write_group
from tensorstore_py._runtime.execution import PendingBody
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.interpreter_lock import SHARE_BYTES
from tensorstore_py._runtime.lru_cache import LruCache

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._chunked.array import Array, Cell, ChunkedArray, StoredChunks
    from tensorstore_py._chunked.modify import PendingWrite
    from tensorstore_py._chunked.plan import ChunkSlice, Plan
    from tensorstore_py._chunked.pool import PoolPart, Writes
    from tensorstore_py._chunked.runs import ChunkRun
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._index import IndexDomain, IndexTransform
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._interface.read_modify_write import ReadModifyWrite

__all__ = ["Target", "WriteRequest", "chosen", "register_write", "write_from"]

_AS_USUAL = BufferOwnership()

#: Writes that touch more chunks are planned when they run.
_MOST_CHUNKS: Final = 256

#: How many shapes of chunks a write remembers the writers of.
_SHAPES: Final = 1024

#: Chunks of so many bytes take about as long to encode as to wait for a disk.
_WAITED_FOR: Final = 4 * 2**20


class Target(NamedTuple):
    """What is written to.

    Attributes:
        array: what changes.
        source: the array's source, where chunks are stored.
        combiner: of this process's writers of one chunk.
        pool: where chunks are kept decoded, if they are.
    """

    array: ChunkedArray
    source: StoredChunks
    combiner: WriteCombiner
    pool: PoolPart | None = None


class _Source:
    """The new values of a write, and how many chunks still have to take theirs."""

    __slots__ = ("_count", "_numbers", "_taken", "lasting", "view")

    def __init__(self, view: Array, ownership: BufferOwnership, count: int) -> None:
        self.view = view
        self.lasting, self._taken = ownership
        self._count = count
        self._numbers = itertools.count(1)  # the next number is taken atomically

    def is_in(self, parts: Sequence[Buffer] | None) -> bool:
        """Whether what was made of a chunk's values is still their memory, in part."""
        if self._taken is None or parts is None:
            return False
        views = [np.asarray(part) for part in parts if isinstance(part, memoryview)]
        return any(np.may_share_memory(view, self.view) for view in views)

    def taken(self) -> None:
        """One more chunk needs its values no more."""
        if self._taken is not None and next(self._numbers) == self._count:
            self._taken()


def chosen(
    bounds: IndexDomain, transform: IndexTransform, source: Array
) -> tuple[Sequence[Axis], Array]:
    """What a write selects, and the working view of its values, which broadcast to that.

    Raises:
        OutOfRangeError: something outside the array.
    """
    resolved = propagate_bounds(bounds, transform)
    selection, shape = select(resolved), resolved.input_shape
    whole = source if source.shape == shape else np.broadcast_to(source, shape)
    return selection.axes, selection.values(whole)


async def write_from(
    to: Target, axes: Sequence[Axis], view: Array, ownership: BufferOwnership = _AS_USUAL
) -> None:
    """Store a working view, with an axis for each of `axes`, as the elements that these select.

    Raises:
        DataLossError: a chunk that must be changed in part is corrupt; names its key.
    """
    plan = make_plan(axes, to.array.grid)
    source = _Source(view, ownership, plan.count)
    CHUNK_WRITES.note(plan.count)
    group = write_group(to.source.store) if plan.count > 1 else None
    if group is None:
        await _write_each(to, plan, source)
        return
    try:
        await _write_each(Target(to.array, to.source.on(group), WriteCombiner(group)), plan, source)
        await group.commit()
    finally:
        if to.pool is not None:
            to.pool.forget(to.array, axes)


async def _write_each(to: Target, plan: Plan, source: _Source) -> None:
    """Store the chunks as they come."""
    writer = _writer_of(to, source)
    length = writer.run_length(plan)
    width, waiting = _in_flight(to)
    if length:
        await fan_out(
            True,
            runs(plan, length),
            writer.write_run,
            count=-(-plan.count // length),
            width=width,
            step_pieces=length if length > 1 else None,
            waiting=waiting,
        )
    else:
        await fan_out(
            to.source.inline,
            plan.slices(),
            writer.write,
            count=plan.count,
            width=width,
            waiting=waiting,
        )


def _in_flight(to: Target) -> tuple[int, bool]:
    """How many chunks to store at a time, and whether that is mostly to wait for a device.

    A thread that waits needs no place to compute. What it stores is in memory meanwhile, and large
    chunks take longer to encode than to wait for.
    """
    source, size = to.source, to.array.chain.chunk.size_bytes
    if source.store.writes_wait and size <= _WAITED_FOR:
        return source.store.width, True
    return source.width, False


def _writer_of(to: Target, source: _Source) -> _ChunkWriter:
    if to.array.shapes is not None:
        return _EachShapeWriter(to, source)
    return _ChunkWriter(to, source) if to.array.sharded is None else _ShardWriter(to, source)


class _ChunkWriter:
    """One write to an array whose chunks are encoded whole, all of one shape."""

    __slots__ = ("_array", "_combiner", "_counted", "_pool", "_source", "_stored", "_to")

    def __init__(self, to: Target, source: _Source) -> None:
        self._to = to
        self._array, self._stored, self._combiner, self._pool = to
        self._source = source
        limits = to.array.limits
        size = limits.in_flight(to.array.chain.chunk.size_bytes)
        self._counted = size if limits.memory.matters(to.source.inline, size) else 0

    def run_length(self, plan: Plan) -> int:
        """How many chunks to encode side by side, at most; 0: each where its values are."""
        array, size = self._array, self._array.chain.chunk.size_bytes
        if self._pool is not None or not encodes_runs(array):
            return 0
        length, limits = run_length(plan, size), array.limits
        return 0 if limits.memory.matters(True, limits.in_flight(length * size)) else length

    async def write_run(self, run: ChunkRun) -> None:
        """Store a run of chunks, or one chunk."""
        if not run.whole or run.is_in_place(self._source.view):
            for each in run.slices():
                await self._write(each)
            return
        data = encode_run(self._array, self._source.view, run)
        for _ in data:
            self._source.taken()
        await self._stored.write_values(run.cells(), data)

    async def write(self, each: ChunkSlice) -> None:
        """Store one chunk, when there is memory for it."""
        if self._counted:
            work = partial(self._write, each)
            await self._array.limits.holding(self._stored.inline, self._counted, work)
        else:
            await self._write(each)

    async def _write(self, each: ChunkSlice) -> None:
        if self._pool is None:
            await self._store(each, self.change(each))
            return
        with self._pool.writing(self._array, each.cell) as writes:
            change = self.change(each)
            _keep(writes, change, await self._store(each, change))

    async def _store(
        self, each: ChunkSlice, change: ReadModifyWrite
    ) -> TimestampedStorageGeneration | None:
        """Store one chunk; its new stamp if that of just this change is known."""
        source, stored = self._source, self._stored
        careful = False
        if each.full and not self._array.chain.to_bytes.partial:
            # Beyond the bounds known here may be what others stored who grew the array since.
            careful = self._array.growing and not all(piece.whole for piece in each.pieces)
            if not careful:
                parts = await change.parts(None)
                early = not source.is_in(parts)
                if early:
                    source.taken()
                owned = source.lasting and parts is not None and len(parts) == 1
                stamp = await stored.write(each.cell, parts, owned=owned)
                if not early:
                    source.taken()
                return stamp
        key = stored.key(each.cell)
        changed = await self._combiner.update(key, change, assume_missing=careful)
        source.taken()
        return changed

    async def make(self, cell: Cell, pending: PendingWrite, along: int) -> None:
        """See to it that a registered change is made; see `WriteCombiner.make`."""
        pool = self._pool
        if pool is None or pending.done:
            await self._combiner.make(pending, along)
        else:
            with pool.writing(self._array, cell) as writes:
                _keep(writes, pending.change, await self._combiner.make(pending))
        self._source.taken()

    def change(self, each: ChunkSlice) -> ReadModifyWrite:
        """What becomes of the chunk."""
        part = NewValues(each, self._source.view[(..., *each.outside)])
        # What is read back through a codec that rounds is not what was written.
        shown = self._pool is not None and self._array.chain.exact()
        kind = ShownChange if shown else ChunkChange
        return kind(self._array, self._stored, each.cell, (part,))


def _keep(
    writes: Writes, change: ReadModifyWrite, stamp: TimestampedStorageGeneration | None
) -> None:
    """Have the pool keep the chunk that a change made, if its stamp is known."""
    if stamp is not None and isinstance(change, ShownChange) and change.made is not None:
        writes.stored(change.made, stamp.generation)


class _ShardWriter(_ChunkWriter):
    """One write to an array whose chunks are shards: inner chunks not touched are kept as bytes."""

    __slots__ = ()

    def run_length(self, plan: Plan) -> int:
        return 0  # its inner chunks make runs

    def change(self, each: ChunkSlice) -> ReadModifyWrite:
        part = NewValues(*descend(each, self._source.view))
        return ShardChange(self._array, self._stored, each.cell, (part,))


class _EachShapeWriter(_ChunkWriter):
    """One write to an array whose chunks differ in shape: each by the writer of its shape."""

    __slots__ = ("_writers",)

    def __init__(self, to: Target, source: _Source) -> None:
        super().__init__(to, source)
        self._writers: LruCache[_ChunkWriter] = LruCache(_SHAPES)

    def run_length(self, plan: Plan) -> int:
        return 0

    async def write(self, each: ChunkSlice) -> None:
        array = self._array
        writer = self._writers.get(
            array.chunk_shape(each.cell),
            lambda: _writer_of(self._to._replace(array=array.at(each.cell)), self._source),
        )
        await writer.write(each)


class WriteRequest(PendingBody):
    """One registered write of parts of chunks; called, it runs.

    It is made by `again` if `current` says that the target is not what is written to any more.
    """

    __slots__ = ("_again", "_changes", "_current", "_to", "_writer")

    def __init__(
        self,
        to: Target,
        plan: Plan,
        source: _Source,
        current: Callable[[], bool],
        again: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._to = to
        self._writer = writer = _writer_of(to, source)
        slices = list(plan.slices())
        pending = to.combiner.register(
            [(to.source.key(each.cell), writer.change(each)) for each in slices]
        )
        self._changes = [(each.cell, mine) for each, mine in zip(slices, pending, strict=True)]
        self._current = current
        self._again = again

    @property
    def short(self) -> bool:
        to = self._to
        return to.source.inline and 2 * to.array.chain.chunk.size_bytes <= RUN_BYTES

    async def __call__(self) -> None:
        if not self._current():
            self.withdraw()
            await self._again()
            return
        CHUNK_WRITES.note(len(self._changes))
        try:
            await self._make_all()
        except BaseException:
            self.withdraw()
            raise

    async def _make_all(self) -> None:
        to, changes = self._to, self._changes
        source, count = to.source, len(changes)
        size = to.array.chain.chunk.size_bytes
        if source.inline and (count * size < 2 * SHARE_BYTES or to.combiner.crowded(count)):
            for change in changes:  # other threads have enough to do, or would not be worth it
                await self._make(change)
            return
        width, waiting = _in_flight(to)
        await fan_out(
            source.inline,
            changes,
            self._make,
            count=count,
            width=width,
            waiting=waiting,
        )

    async def _make(self, change: tuple[Cell, PendingWrite]) -> None:
        to = self._to
        size, limits, inline = to.array.chain.chunk.size_bytes, to.array.limits, to.source.inline
        counted = limits.in_flight(size)
        if limits.memory.matters(inline, counted):
            await limits.holding(inline, counted, partial(self._writer.make, *change, 0))
        else:
            along = max(0, RUN_BYTES // size - 1) if inline and to.pool is None else 0
            await self._writer.make(*change, along)

    def withdraw(self) -> None:
        self._to.combiner.withdraw([pending for _, pending in self._changes])


def register_write(
    to: Target,
    axes: Sequence[Axis],
    view: Array,
    ownership: BufferOwnership,
    current: Callable[[], bool],
    again: Callable[[], Coroutine[Any, Any, None]],
) -> WriteRequest | None:
    """Register a write that changes a few chunks, and none of them as a whole; None if it is none.

    A whole chunk is stored without a look at what is there, so combining gains nothing. Arguments
    as for `write_from` and `WriteRequest`.
    """
    if to.array.shapes is not None or not view.size:
        return None
    plan = make_plan(axes, to.array.grid)
    if plan.count > (_MOST_CHUNKS if write_group(to.source.store) is None else 1):
        return None
    if all(any(piece.full for piece in pieces) for pieces in plan.pieces):
        return None  # so some chunk is changed as a whole
    return WriteRequest(to, plan, _Source(view, ownership, plan.count), current, again)
