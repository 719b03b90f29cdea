"""Small reads of shards that are under way at one time: each shard is opened once for all of them.

Who comes to a shard first reads its index, and then what all who want anything of it by then want:
neighbouring inner chunks in one request, each decoded once. All is of one generation of the shard.
"""

from __future__ import annotations

from functools import partial
from operator import lt, mul, sub
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._chunked.failures import CHUNK_FAILURES, corrupt_chunk, missing_chunk
from tensorstore_py._chunked.shard import OpenShard, batches, inner_array, unchanged
from tensorstore_py._chunked.small_reads import SmallReads
from tensorstore_py._chunked.wanted import copy_wanted, fill_wanted
from tensorstore_py._runtime.fan_out import fan_out, offload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.box import Cut
    from tensorstore_py._chunked.shard import Batch
    from tensorstore_py._chunked.small_read import Want
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.sharded import Sharded

__all__ = ["SmallShardReads"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class _Inner:
    """An inner chunk, and what is wanted of it."""

    __slots__ = ("cell", "wanted")

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.wanted: list[tuple[Array, Cut]] = []


class SmallShardReads(SmallReads):
    """See the head of this file.

    Args:
        array: its chunks are shards of one shape, whose inner chunks are no shards.
    """

    row_length = 1  # of a shard, neighbours are fetched together in any case

    def __init__(self, array: ChunkedArray) -> None:
        assert array.sharded is not None
        self._sharded: Sharded = array.sharded
        super().__init__(array)

    @property
    def unit(self) -> CodecChain:
        return self._sharded.inner

    def pieces(self, taken: Sequence[Sequence[Want]]) -> int:
        return sum(map(len, taken))

    async def serve(self, cell: Cell, wants: Sequence[Want]) -> None:
        array = self.array
        try:
            await unchanged(
                partial(self._read_shard, cell, wants),
                "read",
                partial(array.source.describe, cell),
                inline=array.source.inline,
            )
        except CHUNK_FAILURES as error:
            raise corrupt_chunk(array, cell, error) from error

    async def _read_shard(self, cell: Cell, wants: Sequence[Want]) -> None:
        array = self.array
        shard = await OpenShard.open(array.source, cell, self._sharded)
        wanted = self._by_inner_chunk(cell, wants)
        if shard is None:
            if not array.fill_missing:
                raise missing_chunk(array, cell)
            inner = inner_array(array, self._sharded, array.source)
            for each in wanted:
                fill_wanted(inner, each.cell, each.wanted)
            return
        inner = inner_array(array, self._sharded, shard)
        fetched, missing = batches(shard, wanted)
        for each in missing:
            fill_wanted(inner, each.cell, each.wanted)
        members = sum(len(batch.members) for batch in fetched)
        await fan_out(
            self.inline,
            fetched,
            partial(self._read_batch, inner, shard),
            count=len(fetched),
            width=array.source.width,
            step_bytes=members * self.step_bytes // max(1, len(fetched)),
            step_pieces=max(1, members // max(1, len(fetched))),
            awaited=True,
        )

    def _by_inner_chunk(self, cell: Cell, wants: Sequence[Want]) -> Iterable[_Inner]:
        """What is wanted of one shard; the grid of inner chunks goes on from shard to shard."""
        shape, counts = self.unit.chunk.shape, self._sharded.grid_shape
        first = list(map(mul, cell, counts))
        found: dict[Cell, _Inner] = {}
        for want in wants:
            read = want.read
            alone = len(read.wants) == 1
            for part in read.cuts or read.cut(shape):
                here = tuple(map(sub, part.cell, first))
                if not (alone or (min(here) >= 0 and all(map(lt, here, counts)))):
                    continue  # in another shard
                inner = found.get(here)
                if inner is None:
                    inner = found[here] = _Inner(here)
                inner.wanted.append((read.out, part))
        return found.values()

    async def _read_batch(
        self, inner: ChunkedArray, shard: OpenShard, batch: Batch[_Inner]
    ) -> None:
        """Fetch neighbouring inner chunks in one request, decode them and copy what is wanted."""
        memory, size = inner.limits.memory, batch.stop - batch.start + self.step_bytes
        counted = memory.matters(shard.inline, size)
        if counted:
            await memory.take(shard.inline, size)
        try:
            data = memoryview(await shard.fetch(batch.start, batch.stop))

            def decode() -> None:
                for each, start, stop in batch.members:
                    part = data[start - batch.start : stop - batch.start]
                    try:
                        copy_wanted(inner, part, each.wanted)
                    except CHUNK_FAILURES as error:
                        raise corrupt_chunk(inner, each.cell, error) from error

            await offload(shard.inline, decode)
        finally:
            if counted:
                memory.release(size)
