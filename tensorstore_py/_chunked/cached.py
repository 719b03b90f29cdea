"""Reading through a cache pool: decoded chunks are kept and used again while they are current.

An entry that was known to be current after the reader's staleness bound is used unasked; an older
one is offered to the store, which sends nothing if it is still current; anything else is read and
decoded anew. Chunks are kept as whole decoded arrays that nobody writes to.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._chunked.cache import CachedChunk
from tensorstore_py._chunked.cached_shard import CachedShardReader, index_key
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.read import Reader, work_of_each_shape
from tensorstore_py._runtime.fan_out import fan_out, offload

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from contextlib import AbstractContextManager

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.cache import ChunkCache, Writes
    from tensorstore_py._chunked.plan import Plan, Step
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._chunked.source import Cell

__all__ = ["CachedReads", "PoolPart"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class CachedReads:
    """Reads of one array through one pool.

    Args:
        cache: the pool.
        scope: what stands for the array in the pool.
        array: what to read.
        fresh: entries known to be current at this time or later are used unasked.
    """

    def __init__(self, cache: ChunkCache, scope: object, array: ChunkedArray, fresh: float) -> None:
        self.cache = cache
        self.scope = scope
        self.array = array
        self.fresh = fresh

    async def read_into(self, axes: Sequence[Axis], view: Array) -> None:
        """As `read.read_into`."""
        array = self.array
        plan = make_plan(axes, array.grid)
        source = array.source

        def reader_of(part: ChunkedArray) -> Reader:
            if part.sharded is None:
                return _CachedReader(self, part, plan, view)
            return CachedShardReader(self.cache, self.scope, self.fresh, part, plan, view)

        reader = reader_of(array)
        size = reader.step_bytes()
        work = reader.work(size)
        if array.shapes is not None:
            work = work_of_each_shape(array, reader_of)
        await fan_out(
            source.inline,
            plan.steps(),
            work,
            count=plan.count,
            width=source.width,
            step_bytes=size,
        )


class PoolPart(NamedTuple):
    """What a pool holds of one array; `scope` is what stands for the array there."""

    cache: ChunkCache
    scope: object

    def writing(self, array: ChunkedArray, cell: Cell) -> AbstractContextManager[Writes]:
        """Around a write of one chunk, see `ChunkCache.writing`."""
        return self.cache.writing(self._key(array, cell))

    def forget(self, array: ChunkedArray, axes: Sequence[Axis]) -> None:
        """Drop the chunks that a selection touches: they were written to."""
        for step in make_plan(axes, array.grid).steps():
            self.forget_cell(array, step.cell)

    def forget_cell(self, array: ChunkedArray, cell: Cell) -> None:
        """Drop one chunk."""
        self.cache.drop(self._key(array, cell))

    def _key(self, array: ChunkedArray, cell: Cell) -> Hashable:
        """Of a shard its index is what counts: without it, nothing else does."""
        return (self.scope, cell) if array.sharded is None else index_key(self.scope, cell)


class _CachedReader(Reader):
    __slots__ = ("_reads",)

    def __init__(self, reads: CachedReads, array: ChunkedArray, plan: Plan, view: Array) -> None:
        super().__init__(array, plan, view)
        self._reads = reads

    async def step(self, step: Step) -> None:
        reads = self._reads
        inline = self._array.source.inline
        key = (reads.scope, step.cell)
        entry = await reads.cache.current(key, reads.fresh, inline, partial(self._read, step))
        if entry.chunk is None:
            self.fill(step)
        else:
            await offload(inline, partial(self.copy, step, entry.chunk))

    async def _read(self, step: Step, before: CachedChunk | None) -> CachedChunk:
        """The chunk as it is now; what was kept of it, if the store says that it still is."""
        source = self._array.source
        result = await source.read(
            step.cell, if_not_equal=None if before is None else before.generation
        )
        stamp = result.stamp
        if result.state == "unspecified" and before is not None:
            return CachedChunk(before.chunk, before.generation, max(before.time, stamp.time))
        chunk = None
        if result.state == "value":
            chunk = await offload(source.inline, partial(self.decoded, step, result.value))
        return CachedChunk(chunk, stamp.generation, stamp.time)
