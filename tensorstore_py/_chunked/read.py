"""Reading: chunks are fetched, and what is wanted of each is decoded into the requests' memory.

A reader is of an array and has one method, `serve`: give these requests what they want of this
chunk. What that takes is what can be read of a stored value without all of it:

| chunks | reader | fetches |
|---|---|---|
| encoded as a whole | `ChunkReader` | the value; several neighbours at a time if they are small |
| stored as they are | `ChunkReader` | the rows that are wanted, if they are much less |
| shards | `ShardReader` | the index, then batches of inner chunks; far away, a small one whole |
| of different shapes | `EachShapeReader` | as the reader of the chunk's shape |

Through a cache pool the same readers ask the pool first, and leave there what they decoded.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tensorstore_py._chunked.array import CHUNK_FAILURES
from tensorstore_py._chunked.decode import ChunkDecoder
from tensorstore_py._chunked.plan import make_plan, slices_of
from tensorstore_py._chunked.pool import CachedChunk
from tensorstore_py._chunked.runs import RUN_BYTES, run_length, runs
from tensorstore_py._chunked.selection import Rectangle
from tensorstore_py._chunked.shard import (
    BATCH_BYTES,
    OpenShard,
    ShardChangedError,
    descend,
    in_groups,
    inner_array,
    inner_grid,
    unchanged,
)
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._runtime.buffers import scratch, staging_buffer
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py._runtime.lru_cache import LruCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from tensorstore_py._chunked.array import Array, Cell, ChunkedArray
    from tensorstore_py._chunked.decode import RowRange, Wanted
    from tensorstore_py._chunked.plan import ChunkSlice, Plan
    from tensorstore_py._chunked.pool import PoolPart
    from tensorstore_py._chunked.runs import ChunkRun
    from tensorstore_py._chunked.shard import Batch
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.kvstore import Buffer

    #: An inner chunk of a shard, and what is wanted of it.
    _Inner: TypeAlias = tuple[Cell, Sequence[Wanted]]

__all__ = ["ChunkReader", "ShardReader", "read_plan", "reader_of"]

#: How many shapes of chunks a reader remembers the readers of.
_SHAPES = 1024


async def read_plan(reader: ChunkReader, plan: Plan, view: Array, since: float = 0.0) -> None:
    """Read all slices of a plan into a working view of the array's dtype.

    Leading axes of the view that no axis of the selection stands for are filled by broadcasting.
    What a pool keeps is used unasked if it was known to be current at `since`.

    Raises:
        DataLossError: a chunk is corrupt; names its key.
        NotFoundError: a chunk is missing and `fill_missing` is off; names its key.
        AbortedError: a shard was replaced again and again while it was read; names its key.
    """
    source, serve = reader.array.source, reader.serve
    if plan.count == 1:
        for each in plan.slices():
            await serve(each.cell, ((view, each),), since)
        return
    size = reader.slice_bytes(plan, view)
    length = reader.run_length(plan)
    if length > 1:
        count = -(-plan.count // length)
        await fan_out(
            source.inline,
            runs(plan, length),
            partial(reader.serve_run, view),
            count=count,
            width=source.width,
            step_bytes=plan.count * size // count,
            step_pieces=length,
        )
        return
    await fan_out(
        source.inline,
        plan.slices(),
        lambda each: serve(each.cell, ((view, each),), since),
        count=plan.count,
        width=source.width,
        step_bytes=size,
    )


def reader_of(array: ChunkedArray, pool: PoolPart | None = None) -> ChunkReader:
    """The reader of an array; through a pool, if there is one."""
    if array.shapes is not None:
        return EachShapeReader(array, pool)
    return ChunkReader(array, pool) if array.sharded is None else ShardReader(array, pool)


class ChunkReader:
    """Reads chunks that are encoded as a whole, all of one shape.

    Attributes:
        inline: the execution mode.
        unit: the codecs of what is decoded at a time.
        unit_bytes: how much that is.
    """

    def __init__(self, array: ChunkedArray, pool: PoolPart | None) -> None:
        self.array = array
        self.pool = pool
        self.inline = array.source.inline
        self.unit: CodecChain = array.chain if array.sharded is None else array.sharded.inner
        self.unit_bytes = self.unit.chunk.size_bytes
        self.decoder = ChunkDecoder(array)
        size = array.limits.in_flight(self.unit_bytes)
        self._counted = size if array.limits.memory.matters(self.inline, size) else 0

    @property
    def reads_rows(self) -> bool:
        """Whether rows can be read without the rest of a chunk."""
        return self.unit.row_bytes is not None and self.pool is None

    def slice_bytes(self, plan: Plan, view: Array) -> int:
        """How much is decoded for one slice of a plan, about."""
        return self.unit_bytes

    async def serve(
        self, cell: Cell, wanted: Sequence[Wanted], since: float, *, awaited: bool = False
    ) -> None:
        """Give requests what they want of a chunk, as it was at `since` or later.

        If `awaited`, workers may be waiting for this very work, see `fan_out`.

        Raises:
            DataLossError, NotFoundError, AbortedError: as `read_plan`.
        """
        if self._counted:
            work = partial(self._serve, cell, wanted, since)
            await self.array.limits.holding(self.inline, self._counted, work)
        else:
            await self._serve(cell, wanted, since)

    async def _serve(self, cell: Cell, wanted: Sequence[Wanted], since: float) -> None:
        decoder, source = self.decoder, self.array.source
        if self.pool is not None:
            await self._serve_kept(self.pool, cell, wanted, since)
            return
        if self.unit.row_bytes is not None:
            ranges = decoder.row_ranges(wanted)
            if ranges is not None and await self._serve_rows(cell, ranges):
                return
        result = await source.read(cell)
        if result.state == "missing":
            decoder.fill(cell, wanted)
        elif self.inline:
            decoder.decode(cell, result.value, wanted)
        elif not decoder.decode_now(cell, result.value, wanted):
            await offload(False, partial(decoder.decode, cell, result.value, wanted))

    async def _serve_rows(self, cell: Cell, ranges: Sequence[RowRange]) -> bool:
        """Fetch no more than some rows; False if the store cannot tell that the chunk is whole."""
        found = await self.array.source.parts(cell, *self.decoder.byte_ranges(ranges))
        if found is None:
            return False
        self.decoder.decode_rows(cell, ranges, found)
        return True

    async def _serve_kept(
        self, pool: PoolPart, cell: Cell, wanted: Sequence[Wanted], since: float
    ) -> None:
        """Serve from what the pool keeps, which one reader at a time brings up to date."""
        key = pool.key(self.array, cell)
        kept = await pool.cache.current(key, since, self.inline, partial(self._read_anew, cell))
        if kept.chunk is None:
            self.decoder.fill(cell, wanted)
        else:
            await offload(self.inline, partial(self.decoder.copy, kept.chunk, wanted))

    async def _read_anew(self, cell: Cell, before: CachedChunk | None) -> CachedChunk:
        """The chunk as it is now; what was kept of it, if the store says that it still is."""
        known = None if before is None else before.generation
        result = await self.array.source.read(cell, if_not_equal=known)
        if before is not None and (still := before.confirmed_by(result)) is not None:
            return still
        chunk = None
        if result.state == "value":
            chunk = await offload(self.inline, partial(self.decoder.decoded, cell, result.value))
        return CachedChunk(chunk, result.stamp.generation, result.stamp.time)

    # ----------------------------------------------------------------------------- several at once

    @property
    def together(self) -> int:
        """How many chunks had better be fetched by one call, at most."""
        if not self.inline or self.pool is not None or self.unit.row_bytes is not None:
            return 1  # of rows no more is fetched than is wanted; through a pool each is asked for
        return max(1, RUN_BYTES // self.unit_bytes)

    async def serve_several(self, several: Sequence[tuple[Cell, Sequence[Wanted]]]) -> None:
        """`serve` of some small chunks, fetched by one call; at most `together` of them."""
        limits, size = self.array.limits, len(several) * self.unit_bytes
        if len(several) == 1 or limits.memory.matters(True, limits.in_flight(size)):
            for cell, wanted in several:
                await self.serve(cell, wanted, 0.0, awaited=True)
            return
        room = staging_buffer(size)  # chunks are decoded in other memory
        values = await self.array.source.values([cell for cell, _ in several], room)
        for (cell, wanted), data in zip(several, values, strict=True):
            if data is None:
                self.decoder.fill(cell, wanted)
            else:
                self.decoder.decode(cell, data, wanted)

    def run_length(self, plan: Plan) -> int:
        """How many chunks of a plan to decode side by side, at most; up to 1: each by itself."""
        return 0 if self.pool is not None else _decoding_run_length(self.array, plan)

    async def serve_run(self, view: Array, run: ChunkRun) -> None:
        """Read a run of chunks, or one chunk."""
        if len(run.along) == 1 or run.is_in_place(view):
            for each in run.slices():
                await self._serve(each.cell, ((view, each),), 0.0)
            return
        cells = run.cells()
        room = scratch(len(cells) * self.unit_bytes)  # decoding in place uses none
        values = await self.array.source.values(cells, room)
        self.decoder.decode_run(view, run, cells, values)


def _decoding_run_length(array: ChunkedArray, plan: Plan) -> int:
    """How many chunks of a plan can be decoded side by side, at most; 0 where none can."""
    chain, limits = array.chain, array.limits
    if not array.source.inline or not chain.decodes_in_place():
        return 0
    length, size = run_length(plan, chain.chunk.size_bytes), chain.chunk.size_bytes
    return 0 if limits.memory.matters(True, limits.in_flight(length * size)) else length


class EachShapeReader(ChunkReader):
    """Reads chunks that differ in shape: each by the reader of its shape."""

    def __init__(self, array: ChunkedArray, pool: PoolPart | None) -> None:
        super().__init__(array, pool)
        self._readers: LruCache[ChunkReader] = LruCache(_SHAPES)

    async def serve(
        self, cell: Cell, wanted: Sequence[Wanted], since: float, *, awaited: bool = False
    ) -> None:
        array = self.array
        shape = array.chunk_shape(cell)
        reader = self._readers.get(shape, lambda: reader_of(array.at(cell), self.pool))
        await reader.serve(cell, wanted, since, awaited=awaited)

    def run_length(self, plan: Plan) -> int:
        return 0


T = TypeVar("T")


class _Demand(NamedTuple):
    """What is wanted of one shard.

    Attributes:
        inner: the inner chunks, each once, with what is wanted of it.
        awaited: see `ChunkReader.serve`.
        plan: what they were cut from, if there is just one request.
        length: of runs in which they are decoded, at most; 0 if each is decoded by itself.
    """

    inner: Iterable[_Inner]
    awaited: bool = False
    plan: Plan | None = None
    length: int = 0


class ShardReader(ChunkReader):
    """Reads chunks that are shards: of each only the inner chunks that are wanted."""

    def __init__(self, array: ChunkedArray, pool: PoolPart | None) -> None:
        super().__init__(array, pool)
        assert array.sharded is not None
        self._sharded = array.sharded
        self._inner_grid = inner_grid(self._sharded)
        size = array.chain.chunk.size_bytes
        # To read the index first takes another request, which is nothing where it comes at once.
        # A missing inner chunk that is to be an error is found by the index.
        at_once = size <= BATCH_BYTES and pool is None and array.fill_missing
        self._bytes_at_once = size if at_once and not self.inline else 0

    def slice_bytes(self, plan: Plan, view: Array) -> int:
        return max(view.nbytes // max(1, plan.count), self.unit_bytes)

    @property
    def together(self) -> int:
        return 1  # of a shard, neighbours are fetched together in any case

    def run_length(self, plan: Plan) -> int:
        return 0  # its inner chunks make runs

    async def serve(
        self, cell: Cell, wanted: Sequence[Wanted], since: float, *, awaited: bool = False
    ) -> None:
        array = self.array
        each = wanted[0][1]
        if self._bytes_at_once and len(wanted) == 1 and (each.whole or each.full):
            size = array.limits.in_flight(self._bytes_at_once)
            work = partial(self._serve_at_once, cell, wanted)
            await array.limits.holding(self.inline, size, work)
            return
        # Memory is taken for what is fetched at a time, below.
        try:
            await unchanged(
                partial(self._serve_shard, cell, wanted, since, awaited),
                "read",
                partial(array.source.describe, cell),
                inline=self.inline,
            )
        except CHUNK_FAILURES as error:
            raise array.corrupt_chunk(cell, error) from error

    async def _serve_at_once(self, cell: Cell, wanted: Sequence[Wanted]) -> None:
        """Serve all of a small shard by one request, as a chunk that is encoded as a whole."""
        result = await self.array.source.read(cell)
        if result.state == "missing":
            self.decoder.fill(cell, wanted)
        else:
            work = partial(self.decoder.decode, cell, result.value, wanted)
            await offload(self.inline, work)

    async def _serve_shard(
        self, cell: Cell, wanted: Sequence[Wanted], since: float, awaited: bool
    ) -> None:
        """Serve from one version of the shard.

        Raises:
            ShardChangedError: it was replaced meanwhile.
        """
        shard = await self._open(cell, since)
        if shard is None:
            self.decoder.fill(cell, wanted)
            return
        inner = inner_array(self.array, self._sharded, shard, self._inner_grid)
        try:
            if inner.sharded is not None:
                await self._serve_nested(reader_of(inner), wanted, awaited)
            else:
                pool = None if self.pool is None else self.pool.inner(cell)
                reader = _InnerReader(inner, pool, shard, self.unit_bytes)
                await reader.serve_all(self._demand(inner, wanted, awaited))
        except ShardChangedError:
            if self.pool is not None:
                self.pool.forget_cell(self.array, cell)
            raise

    async def _serve_nested(
        self, reader: ChunkReader, wanted: Sequence[Wanted], awaited: bool
    ) -> None:
        """Serve from the shards that a shard is made of."""
        if len(wanted) == 1 and wanted[0][1].of_plan:
            axes, view = descend(wanted[0][1], wanted[0][0])
            await read_plan(reader, make_plan(axes, reader.array.grid), view)
            return
        for inner, parts in self._by_inner_chunk(reader.array, wanted):
            await reader.serve(inner, parts, 0.0, awaited=awaited)

    def _demand(self, array: ChunkedArray, wanted: Sequence[Wanted], awaited: bool) -> _Demand:
        if len(wanted) == 1 and wanted[0][1].of_plan:  # maybe many inner chunks: planned lazily
            axes, view = descend(wanted[0][1], wanted[0][0])
            plan = make_plan(axes, array.grid)
            length = 0 if self.pool is not None else _decoding_run_length(array, plan)
            inner = ((each.cell, ((view, each),)) for each in plan.slices())
            return _Demand(inner, awaited, plan, length)
        return _Demand(self._by_inner_chunk(array, wanted), awaited)

    def _by_inner_chunk(self, array: ChunkedArray, wanted: Sequence[Wanted]) -> Iterable[_Inner]:
        """What is wanted of the shard, each inner chunk once."""
        found: dict[Cell, list[Wanted]] = {}
        shape = self.unit.chunk.shape
        for view, each in wanted:
            for part, below in _slices_below(view, each, shape, array):
                found.setdefault(below.cell, []).append((part, below))
        return found.items()

    async def _open(self, cell: Cell, since: float) -> OpenShard | None:
        source, sharded, pool = self.array.source, self._sharded, self.pool
        if pool is None:
            return await OpenShard.open(source, cell, sharded)
        key = pool.key(self.array, cell)
        kept = await pool.cache.current(key, since, self.inline, partial(self._read_index, cell))
        if kept.chunk is None:
            return None
        entries = kept.chunk.view(np.uint64)
        return OpenShard(source, cell, kept.generation, entries, sharded.grid_shape)

    async def _read_index(self, cell: Cell, before: CachedChunk | None) -> CachedChunk:
        """The index as it is now; what was kept of it, if the store says that it still is."""
        known = None if before is None else before.generation
        source = self.array.source
        result, entries = await OpenShard.read_index(source, cell, self._sharded, known)
        if before is not None and (still := before.confirmed_by(result)) is not None:
            return still
        return CachedChunk(entries, result.stamp.generation, result.stamp.time)


def _slices_below(
    view: Array, each: ChunkSlice, shape: Sequence[int], inner: ChunkedArray
) -> Iterable[Wanted]:
    """A slice of a shard as slices of its inner chunks, each with the view that it is of."""
    if each.of_plan:
        axes, part = descend(each, view)
        return [(part, below) for below in make_plan(axes, inner.grid).slices()]
    starts, stops, kept = [], [], []
    for at in each.inside:
        if isinstance(at, int):
            starts.append(at)
            stops.append(at + 1)
            kept.append(False)
        else:
            assert isinstance(at, slice)
            starts.append(at.start)
            stops.append(at.stop)
            kept.append(True)
    part = view[(..., *each.outside)] if each.outside else view
    return [(part, below) for below in slices_of(Rectangle(starts, stops, kept), shape)]


class _InnerReader:
    """Reads inner chunks of one version of a shard, neighbours in one request.

    What a pool keeps of them is current exactly if it was decoded from the generation of the shard
    that the index is of, so an inner chunk is never asked for on its own.
    """

    __slots__ = ("_array", "_decoder", "_inline", "_pool", "_shard", "_unit_bytes")

    def __init__(
        self, array: ChunkedArray, pool: PoolPart | None, shard: OpenShard, unit_bytes: int
    ) -> None:
        self._array = array
        self._pool = pool
        self._shard = shard
        self._unit_bytes = unit_bytes
        self._inline = shard.inline
        self._decoder = ChunkDecoder(array)

    async def serve_all(self, demand: _Demand) -> None:
        """Give what is wanted of the shard."""
        inner = demand.inner
        if self._pool is not None:
            inner = self._copy_kept(self._pool, inner)
        batches, missing = self._shard.batches(inner)
        for each in missing:
            self._decoder.fill(*each)
        if self._pool is not None and len(batches) == 1 and len(batches[0].members) == 1:
            await self._serve_one(self._pool, batches[0])
            return
        # Local files are opened once for some batches; far away, each is a request of its own.
        together = RUN_BYTES if self._inline and self._pool is None else 0
        groups = in_groups(batches, together)
        count = sum([len(batch.members) for batch in batches])
        each_count = max(1, count // max(1, len(groups)))
        await fan_out(
            self._inline,
            groups,
            partial(self._serve_group, demand),
            count=len(groups),
            width=self._array.source.width,
            step_bytes=each_count * self._unit_bytes,
            step_pieces=each_count if demand.awaited else None,
            awaited=demand.awaited,
        )

    async def _serve_group(self, demand: _Demand, group: Sequence[Batch[_Inner]]) -> None:
        pool = self._pool
        inner = [each for batch in group for each, _, _ in batch.members]
        size = sum([batch.stop - batch.start for batch in group])
        size += self._unit_bytes * (1 if pool is None else len(inner))
        work = partial(self._decode, demand, inner)
        if pool is not None:
            work = partial(self._decode_and_keep, pool, inner)
        fetch = partial(self._fetch, group, work)
        await self._array.limits.holding(self._inline, size, fetch)

    async def _fetch(
        self, group: Sequence[Batch[_Inner]], work: Callable[[Sequence[Buffer]], T]
    ) -> T:
        ranges = [ByteRange(batch.start, batch.stop) for batch in group]
        fetched = await self._shard.fetch_several(ranges)
        values: list[Buffer] = []
        for batch, data in zip(group, fetched, strict=True):
            values += batch.values(data)
        return await offload(self._inline, partial(work, values))

    def _decode(self, demand: _Demand, inner: Sequence[_Inner], values: Sequence[Buffer]) -> None:
        if demand.plan is not None and demand.length > 1:
            slices = [wanted[0] for _, wanted in inner]
            self._decoder.decode_slices(demand.plan, slices, values, demand.length)
            return
        for (cell, wanted), data in zip(inner, values, strict=True):
            self._decoder.decode(cell, data, wanted)

    # ------------------------------------------------------------------------------ through a pool

    def _copy_kept(self, pool: PoolPart, inner: Iterable[_Inner]) -> list[_Inner]:
        """Copy what the pool keeps of this version; what it does not keep."""
        missed = []
        for cell, wanted in inner:
            kept = pool.cache.get((pool.scope, cell))
            if kept is None or kept.generation != self._shard.generation or kept.chunk is None:
                missed.append((cell, wanted))
            else:
                self._decoder.copy(kept.chunk, wanted)
        return missed

    def _decoded(self, cell: Cell, data: Buffer) -> CachedChunk:
        return CachedChunk(self._decoder.decoded(cell, data), self._shard.generation, 0.0)

    def _decode_and_keep(
        self, pool: PoolPart, inner: Sequence[_Inner], values: Sequence[Buffer]
    ) -> None:
        for (cell, wanted), data in zip(inner, values, strict=True):
            kept = self._decoded(cell, data)
            assert kept.chunk is not None
            pool.cache.put((pool.scope, cell), kept)
            self._decoder.copy(kept.chunk, wanted)

    async def _serve_one(self, pool: PoolPart, batch: Batch[_Inner]) -> None:
        """Of several readers who want this chunk at a time one fetches it."""
        cache, ((cell, wanted), _, _) = pool.cache, batch.members[0]
        size = batch.stop - batch.start + self._unit_bytes

        async def read(_: CachedChunk | None) -> CachedChunk:
            fetch = partial(self._fetch, (batch,), lambda values: self._decoded(cell, values[0]))
            return await self._array.limits.holding(self._inline, size, fetch)

        key, since = (pool.scope, cell), float("-inf")
        kept = await cache.current(key, since, self._inline, read)
        if kept.generation != self._shard.generation:  # of an older shard
            cache.drop(key)
            kept = await cache.current(key, since, self._inline, read)
        if kept.generation != self._shard.generation or kept.chunk is None:
            raise ShardChangedError
        await offload(self._inline, partial(self._decoder.copy, kept.chunk, wanted))
