"""Small reads through a cache pool: planned in one go, and served together, from what is kept.

Whoever comes to a chunk first asks the pool for it, as of when the last of those who want it by
then was asked for; so a chunk that was fetched since needs no question to the store. What is kept
and when it may be used is the pool's business.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._chunked.cache import CachedChunk, needed_since
from tensorstore_py._chunked.failures import CHUNK_FAILURES, corrupt_chunk
from tensorstore_py._chunked.small_reads import SmallReads
from tensorstore_py._chunked.small_shard import SmallShardReads
from tensorstore_py._chunked.wanted import fill_wanted
from tensorstore_py._interface.sharded import Sharded
from tensorstore_py._runtime.fan_out import offload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.cached import PoolPart
    from tensorstore_py._chunked.small_read import Want
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["PooledSmallReads", "small_reads"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class PooledSmallReads(SmallReads):
    """See the head of this file.

    Args:
        array: its chunks are of one shape, and no shards.
        pool: where its chunks are kept.
        bound: how current they must be; true means as of when a read is asked for.
        opened: when the array was opened.
    """

    row_length = 1  # each chunk is asked for by itself

    def __init__(
        self, array: ChunkedArray, pool: PoolPart, bound: bool | str | float, opened: float
    ) -> None:
        super().__init__(array)
        self._pool = pool
        self._bound = bound
        self._opened = opened

    async def fetch(self, cell: Cell, wants: Sequence[Want]) -> None:
        bound = self._bound
        since = max([want.read.asked for want in wants]) if bound is True else bound
        entry = await self._pool.cache.current(
            (self._pool.scope, cell),
            needed_since(since, self._opened),
            self.inline,
            partial(self._read, cell),
        )
        if entry.chunk is None:
            fill_wanted(self.array, cell, self.parts(wants))
        else:
            await offload(self.inline, partial(self._copy, entry.chunk, wants))

    def _copy(self, chunk: Array, wants: Sequence[Want]) -> None:
        with self.array.limits.copying:
            for out, part in self.parts(wants):
                out[part.outside] = chunk[part.inside]

    async def _read(self, cell: Cell, before: CachedChunk | None) -> CachedChunk:
        """The chunk as it is now; what was kept of it, if the store says that it still is."""
        known = None if before is None else before.generation
        result = await self.array.source.read(cell, if_not_equal=known)
        stamp = result.stamp
        if result.state == "unspecified" and before is not None:
            return CachedChunk(before.chunk, before.generation, max(before.time, stamp.time))
        chunk = None
        if result.state == "value":
            chunk = await offload(self.inline, partial(self._decoded, cell, result.value))
        return CachedChunk(chunk, stamp.generation, stamp.time)

    def _decoded(self, cell: Cell, data: Buffer) -> Array:
        chain = self.array.chain
        try:
            chunk = np.empty(chain.chunk.shape, chain.chunk.dtype)
            with self.array.limits.copying:
                chain.decode_into(data, chunk)
        except CHUNK_FAILURES as error:
            raise corrupt_chunk(self.array, cell, error) from error
        chunk.flags.writeable = False
        return chunk


def small_reads(
    array: ChunkedArray, pool: PoolPart | None, bound: bool | str | float, opened: float
) -> SmallReads | None:
    """What the small reads of an array share; None where there is nothing of the kind.

    Args:
        array: what is read.
        pool: where its chunks are kept, if they are.
        bound: how current what is kept must be.
        opened: when the array was opened.
    """
    if array.shapes is not None:
        return None
    sharded = array.sharded
    if sharded is None:
        return SmallReads(array) if pool is None else PooledSmallReads(array, pool, bound, opened)
    if pool is not None or isinstance(sharded.inner.to_bytes, Sharded):
        return None
    return SmallShardReads(array)
