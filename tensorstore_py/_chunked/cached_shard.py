"""Reading shards through a cache pool: their indexes are kept, and their decoded inner chunks.

What is kept of an index is current or not as a chunk is: by the reader's bound on staleness. An
inner chunk is current exactly if it was decoded from the generation of the shard that the index is
of, so it is never asked for again on its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._chunked.cache import CachedChunk
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.read import Reader, ShardReader, read_into
from tensorstore_py._chunked.shard import (
    OpenShard,
    ShardChangedError,
    batches,
    descend,
    inner_array,
)
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py.errors import DataLossError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.cache import ChunkCache
    from tensorstore_py._chunked.plan import Plan, Step
    from tensorstore_py._chunked.shard import Batch
    from tensorstore_py._chunked.source import Cell

__all__ = ["CachedShardReader", "index_key"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def index_key(scope: object, cell: Cell) -> Hashable:
    """What stands for the index of a shard in the pool."""
    return (scope, cell, "index")


class CachedShardReader(ShardReader):
    """One read of an array whose chunks are shards, through a pool.

    Args:
        cache: the pool.
        scope: what stands for the array in the pool.
        fresh: indexes known to be current at this time or later are used unasked.
        array: what to read.
        plan: which shards.
        view: where to.
    """

    __slots__ = ("_cache", "_fresh", "_scope")

    def __init__(
        self,
        cache: ChunkCache,
        scope: object,
        fresh: float,
        array: ChunkedArray,
        plan: Plan,
        view: Array,
    ) -> None:
        super().__init__(array, plan, view)
        self._cache = cache
        self._scope = scope
        self._fresh = fresh

    async def read_shard(self, step: Step) -> None:
        shard = await self._open(step.cell)
        if shard is None:
            self.fill(step)
            return
        axes, view = descend(self.plan.axes, step, self._view)
        inner = inner_array(self._array, self._sharded, shard)
        try:
            if inner.sharded is not None:
                await read_into(inner, axes, view)
                return
            plan = make_plan(axes, inner.grid)
            reader = _CachedInnerReader(
                self._cache, (self._scope, step.cell), shard, inner, plan, view
            )
            await reader.read()
        except ShardChangedError:
            self._cache.drop(index_key(self._scope, step.cell))
            raise

    async def _open(self, cell: Cell) -> OpenShard | None:
        source = self._array.source
        key = index_key(self._scope, cell)
        read = partial(self._read_index, cell)
        entry = await self._cache.current(key, self._fresh, source.inline, read)
        if entry.chunk is None:
            return None
        index = entry.chunk.view(np.uint64)
        return OpenShard(source, cell, entry.generation, index, self._sharded.grid_shape)

    async def _read_index(self, cell: Cell, before: CachedChunk | None) -> CachedChunk:
        """The index as it is now; what was kept of it, if the store says that it still is."""
        known = None if before is None else before.generation
        try:
            result = await self._array.source.read(
                cell, self._sharded.index_range(), if_not_equal=known
            )
        except OutOfRangeError as error:
            raise DataLossError(f"shard is too short for its index: {error}") from error
        stamp = result.stamp
        if result.state == "unspecified" and before is not None:
            return CachedChunk(before.chunk, before.generation, max(before.time, stamp.time))
        if result.state != "value":
            return CachedChunk(None, stamp.generation, stamp.time)
        return CachedChunk(self._sharded.decode_index(result.value), stamp.generation, stamp.time)


class _CachedInnerReader(Reader):
    """One read of the inner chunks of a shard, through a pool."""

    __slots__ = ("_cache", "_scope", "_shard")

    def __init__(
        self,
        cache: ChunkCache,
        scope: object,
        shard: OpenShard,
        array: ChunkedArray,
        plan: Plan,
        view: Array,
    ) -> None:
        super().__init__(array, plan, view)
        self._cache = cache
        self._scope = scope
        self._shard = shard

    async def read(self) -> None:
        """Copy what is kept, and fetch the rest in few requests."""
        shard = self._shard
        missed = []
        for step in self.plan.steps():
            kept = self._cache.get((self._scope, step.cell))
            if kept is None or kept.generation != shard.generation:
                missed.append(step)
            elif kept.chunk is not None:
                self.copy(step, kept.chunk)
        wanted, missing = batches(shard, missed)
        for step in missing:
            self.fill(step)
        if len(wanted) == 1 and len(wanted[0].members) == 1:
            await self._read_one(wanted[0])
            return
        await fan_out(
            shard.inline,
            wanted,
            self._read_batch,
            count=len(wanted),
            width=shard.width,
            step_bytes=len(missed) * self.step_bytes() // max(1, len(wanted)),
        )

    async def _read_one(self, batch: Batch[Step]) -> None:
        """As `_read_batch`; of several readers who want this chunk at a time one fetches it."""
        shard, (step, _, _) = self._shard, batch.members[0]

        async def read(_: CachedChunk | None) -> CachedChunk:
            return (await self._decoded(batch))[0]

        key = (self._scope, step.cell)
        since = float("-inf")
        entry = await self._cache.current(key, since, shard.inline, read)
        if entry.generation != shard.generation:  # of an older shard
            self._cache.drop(key)
            entry = await self._cache.current(key, since, shard.inline, read)
        if entry.generation != shard.generation or entry.chunk is None:
            raise ShardChangedError
        await offload(shard.inline, partial(self.copy, step, entry.chunk))

    async def _read_batch(self, batch: Batch[Step]) -> None:
        """Fetch neighbouring inner chunks in one request, decode and keep them."""
        for (step, _, _), entry in zip(batch.members, await self._decoded(batch), strict=True):
            assert entry.chunk is not None
            self._cache.put((self._scope, step.cell), entry)
            self.copy(step, entry.chunk)

    async def _decoded(self, batch: Batch[Step]) -> list[CachedChunk]:
        shard, memory = self._shard, self.memory
        size = batch.stop - batch.start + len(batch.members) * self.step_bytes()
        counted = memory.matters(shard.inline, size)
        if counted:
            await memory.take(shard.inline, size)
        try:
            data = memoryview(await shard.fetch(batch.start, batch.stop))
            return await offload(shard.inline, partial(self._decode_all, batch, data))
        finally:
            if counted:
                memory.release(size)

    def _decode_all(self, batch: Batch[Step], data: memoryview) -> list[CachedChunk]:
        decoded = []
        for step, start, stop in batch.members:
            chunk = self.decoded(step, data[start - batch.start : stop - batch.start])
            decoded.append(CachedChunk(chunk, self._shard.generation, 0.0))
        return decoded
