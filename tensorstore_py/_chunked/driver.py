"""An open chunked array: its metadata as last known, and reads, writes and resizes through it.

Formats differ only in the `ArrayFormat` behind it. The state (metadata, layout, generation) is
one immutable value that is replaced as a whole, so readers on other threads see either the old
or the new one, never a mixture.
"""

from __future__ import annotations

import time
from contextlib import suppress
from copy import copy
from functools import partial
from operator import lt
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from tensorstore_py._chunked.array import ArraysByShape, ChunkedArray, Limits, StoredChunks
from tensorstore_py._chunked.counts import CHUNK_READS
from tensorstore_py._chunked.metadata import MetadataFile
from tensorstore_py._chunked.modify import WriteCombiner
from tensorstore_py._chunked.pending import PendingReads
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.pool import ChunkCache, PoolPart, needed_since
from tensorstore_py._chunked.read import read_plan, reader_of
from tensorstore_py._chunked.selection import select
from tensorstore_py._chunked.shard import OpenShard, descend_axes, inner_grid
from tensorstore_py._chunked.write import Target, chosen, register_write, write_from
from tensorstore_py._index import propagate_bounds
from tensorstore_py._interface.array_metadata import ArrayMetadata
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.driver import (
    BufferOwnership,
    Driver,
    ResizeRequest,
    StorageStatistics,
)
from tensorstore_py._interface.new_array import new_array
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.keyed_lock import KeyedLock, Mutex
from tensorstore_py._runtime.metrics import note
from tensorstore_py._runtime.retry import CONFLICTS
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    TensorStoreError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from tensorstore_py._chunked.array import ArrayLayout, Cell
    from tensorstore_py._chunked.format import ArrayFormat
    from tensorstore_py._chunked.metadata import MetadataState
    from tensorstore_py._chunked.plan import ChunkSlice
    from tensorstore_py._chunked.read import ChunkReader
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._index import IndexDomain, IndexTransform
    from tensorstore_py._interface.batch import Batch
    from tensorstore_py._interface.driver import StorageStatistics
    from tensorstore_py._interface.kvstore import Buffer, KvStore, KvStoreSpec
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.limiters import MemoryBudget
    from tensorstore_py._spec.schema import Schema

__all__ = ["ChunkedDriver"]

M = TypeVar("M", bound=ArrayMetadata)
_NOTHING_KEPT = ChunkCache(0)
_AS_USUAL = BufferOwnership()
_NOTHING = ByteRange(0, 0)
#: Held while a part of an open array is made; one for all of them, since that is soon done.
_making = Mutex()
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class _Known(NamedTuple, Generic[M]):
    """What follows from the metadata as last known; `pool` is the array's part of the cache."""

    state: MetadataState[M]
    array: ChunkedArray
    source: StoredChunks
    bounds: IndexDomain
    pool: PoolPart | None


class _Reads(NamedTuple):
    """What reads an array: `pending` where small reads share what they fetch."""

    reader: ChunkReader
    pending: PendingReads | None


class _Writers(NamedTuple):
    """What those who change an array share."""

    combiner: WriteCombiner
    resizes: KeyedLock


class ChunkedDriver(Driver, Generic[M]):
    """See the head of this file.

    Args:
        spec: the bound spec it was opened with.
        file: where its metadata is.
        state: the metadata as found, created or assumed.
        assumed: the stored metadata must never be read or written.
        transaction: that `file` is seen through.
        plain: the same array outside of it.
    """

    def __init__(
        self,
        spec: ArrayFormat[M],
        file: MetadataFile[M],
        state: MetadataState[M],
        *,
        assumed: bool = False,
        transaction: Transaction | None = None,
        plain: ChunkedDriver[M] | None = None,
    ) -> None:
        self._spec = spec
        self._file = file
        self._assumed = assumed
        self._opened = time.time()
        self.inline = file.store.inline
        self.data_type = state.layout.data_type
        self._transaction = transaction
        self._plain = plain
        # What a transaction sees is nobody else's.
        self._cache = spec.cache_pool.value if transaction is None else _NOTHING_KEPT
        self._batch: Batch | None = None
        # Metadata that each read asks for is not known before it begins.
        bound = spec.recheck_cached_metadata
        self._shares = transaction is None and (assumed or bound in ("open", False))
        self._last_reads: _Reads | None = None
        # What follows from the metadata, and what writers share: many arrays are only opened.
        self._found = state
        self._follows: _Known[M] | None = None
        self._writers: _Writers | None = None

    @property
    def _known(self) -> _Known[M]:
        """What follows from the metadata as last known; made when it is first asked for."""
        known = self._follows
        if known is None:
            with _making:
                known = self._follows
                if known is None:
                    # Until a transaction is committed others may make the array grow, and use more
                    # of a chunk.
                    growing = self._transaction is not None
                    known = self._follows = self._bound(self._found, growing=growing)
        return known

    @property
    def _state(self) -> MetadataState[M]:
        """The metadata as last known."""
        known = self._follows
        return self._found if known is None else known.state

    @property
    def _shared_writers(self) -> _Writers:
        """What those who change the array by this handle share; made for the first one."""
        with _making:
            if self._writers is None:
                store = self._file.store
                self._writers = _Writers(WriteCombiner(store), KeyedLock(inline=store.inline))
            return self._writers

    def _bound(self, state: MetadataState[M], *, growing: bool = False) -> _Known[M]:
        store = self._file.store
        if self._batch is not None:
            store = self._batch.store(store)
        # Remote stores wait far more than they compute: there the limit is on requests alone.
        spec = self._spec
        limits = Limits(spec.data_copy_concurrency.value, spec.memory_limit.value)
        limit = min(store.width, limits.copying.limit)
        width = limit if store.inline else store.width
        source = StoredChunks(store, self._file.prefix, state.layout.keys, width)
        data_bound = spec.recheck_cached_data
        lasting = data_bound is not True  # else it is the time of each read
        array = ChunkedArray(
            source.since(needed_since(data_bound, self._opened)) if lasting else source,
            state.layout.grid,
            state.layout.chain.unpacking(spec.unpacking_limit.value),
            spec.fill_missing_data_reads,
            spec.store_data_equal_to_fill_value or state.layout.always_store,
            limits,
            growing=growing,
            shapes=None if state.layout.chains is None else ArraysByShape(state.layout.chains),
        )
        return _Known(state, array, source, state.layout.bounds, self._pool_part(state))

    def _reads(self, known: _Known[M]) -> _Reads:
        """What reads it; made for the first read, since many arrays are only opened."""
        reads = self._last_reads
        if reads is None or reads.reader.array is not known.array:
            with _making:
                reads = self._last_reads
                if reads is None or reads.reader.array is not known.array:
                    reads = self._last_reads = self._reads_of(known)
        return reads

    def _reads_of(self, known: _Known[M]) -> _Reads:
        reader = reader_of(known.array, known.pool)
        if not self._shares or known.array.shapes is not None:
            return _Reads(reader, None)
        return _Reads(reader, PendingReads(reader, self._spec.recheck_cached_data, self._opened))

    def _pool_part(self, state: MetadataState[M]) -> PoolPart | None:
        """The array's part of the cache pool, the same for every size that it may have."""
        if not self._cache.limit_bytes:
            return None
        unsized = state.metadata.resized((0,) * len(state.layout.grid))
        form = (self._spec.layout_variant, unsized.serialize())
        scope = self._cache.scope(self._file.prefix, self._spec.store_spec(), form)
        return PoolPart(self._cache, scope)

    @property
    def domain(self) -> IndexDomain:
        return self._state.layout.domain

    @property
    def whole(self) -> IndexTransform:
        return self._state.layout.whole

    @property
    def schema(self) -> Schema:
        return self._state.layout.schema

    @property
    def kvstore(self) -> tuple[KvStoreSpec, KvStore]:
        return self._spec.store_spec(), self._file.store

    @property
    def memory(self) -> MemoryBudget:
        return self._spec.memory_limit.value

    @property
    def transaction(self) -> Transaction | None:
        return self._transaction

    def with_transaction(self, transaction: Transaction | None) -> ChunkedDriver[M]:
        if transaction is self._transaction:
            return self
        plain = self if self._transaction is None else self._outside()
        if transaction is None:
            return plain
        file = plain._file.with_transaction(transaction)
        state = file.known or plain._state
        return ChunkedDriver(
            self._spec,
            file,
            state,
            assumed=self._assumed,
            transaction=transaction,
            plain=plain,
        )

    def _outside(self) -> ChunkedDriver[M]:
        """The array as everybody sees it; maybe not there yet."""
        if self._plain is None:
            spec = self._spec
            file = MetadataFile(spec, self._overlay.base, self._file.prefix, spec.metadata_pool)
            state = file.known or self._state
            self._plain = ChunkedDriver(spec, file, state, assumed=self._assumed)
        return self._plain

    def with_batch(self, batch: Batch) -> ChunkedDriver[M]:
        self._shared_writers  # noqa: B018 - which the copy is to have, too
        reads = copy(self)
        reads._batch = batch
        reads._shares = False
        reads._follows = reads._bound(self._known.state, growing=self._known.array.growing)
        return reads

    @property
    def _overlay(self) -> Overlay:
        """What the transaction, which there is, keeps of the store."""
        overlay = self._file.store
        assert isinstance(overlay, Overlay)
        return overlay

    def chunk_starts(self, dim: int, low: int, high: int) -> Sequence[int]:
        return self._state.layout.chunk_starts(dim, low, high)

    def chunk_counts(self) -> tuple[int, ...]:
        """How many chunks (shards, where sharded) there are along each dimension, stored or not."""
        return tuple(axis.count for axis in self._current().array.grid)

    def cell_of(self, key: str) -> tuple[int, ...] | None:
        """Which chunk (shard) a key below the array's path holds; None: it holds none."""
        return self._current().source.cell(key)

    def key_at(self, position: Sequence[int]) -> str:
        """The key of the chunk (shard, where sharded) that an element is in, stored or not."""
        known = self._current()
        cell = tuple(axis.cell(at) for axis, at in zip(known.array.grid, position, strict=False))
        return known.source.key(cell)

    def chunk_domain(self, cell: tuple[int, ...]) -> tuple[slice, ...] | None:
        """Which elements a chunk has within the bounds; None: there is no such chunk."""
        grid = self._current().array.grid
        if any(index >= axis.count for index, axis in zip(cell, grid, strict=True)):
            return None
        starts = [axis.start(index) for index, axis in zip(cell, grid, strict=True)]
        return tuple(
            slice(start, min(start + axis.size(index), axis.extent))
            for start, index, axis in zip(starts, cell, grid, strict=True)
        )

    def encode_chunk(self, cell: tuple[int, ...], elements: Array) -> Buffer | None:
        """What a write of a whole chunk stores, without storing it; None: it deletes the chunk.

        Args:
            cell: of a chunk that there is.
            elements: those of its `chunk_domain`.
        """
        array = self._current().array.at(cell)
        chunk = elements
        if elements.shape != array.chain.chunk.shape:
            chunk = array.filled_chunk()
            chunk[tuple(slice(size) for size in elements.shape)] = elements
        return array.encode(chunk, None)

    def spec(self) -> ArrayFormat[M]:
        with suppress(FailedPreconditionError):  # then it is of what it was
            self._current()
        spec = self._spec.with_metadata(self._state.metadata)
        return spec.replace(assume_cached_metadata=False)  # that was about the moment of opening

    async def resolve(self) -> IndexDomain:
        if self._spec.recheck_cached_metadata is False:
            self._current()
        else:
            await self._refresh()
        return self.domain

    def prepare_read(
        self, transform: IndexTransform, order: str
    ) -> Callable[[], Coroutine[Any, Any, Array]]:
        if self._shares:
            with suppress(FailedPreconditionError):  # the read will say so
                pending = self._reads(self._current()).pending
                if pending and (read := pending.register(transform, order)) is not None:
                    return read
        return partial(self.read, transform, order)

    async def read(self, transform: IndexTransform, order: str) -> Array:
        known = await self._recheck_metadata()
        resolved = propagate_bounds(known.bounds, transform)
        out = new_array(resolved.input_shape, known.array.chain.chunk.dtype, order)
        if not out.size:
            return out
        selection = select(resolved)
        view = selection.view(out)
        since = needed_since(self._spec.recheck_cached_data, self._opened)
        reader = self._reads(known).reader
        plan = make_plan(selection.axes, known.array.grid)
        note((CHUNK_READS, plan.count))
        await read_plan(reader, plan, view, since)
        return selection.put(view, out)

    async def write(self, transform: IndexTransform, source: Array) -> None:
        await self.write_buffer(transform, source, _AS_USUAL)

    def prepare_write(
        self, transform: IndexTransform, source: Array, ownership: BufferOwnership
    ) -> Callable[[], Coroutine[Any, Any, None]]:
        later = partial(self.write_buffer, transform, source, ownership)
        if not self._shares:
            return later
        with suppress(TensorStoreError):  # the write will say so
            known = self._current()
            to = Target(known.array, known.source, self._shared_writers.combiner, known.pool)
            axes, view = chosen(known.bounds, transform, source)
            current = lambda: self._current().array is to.array  # noqa: E731
            return register_write(to, axes, view, ownership, current, later) or later
        return later

    async def write_buffer(
        self, transform: IndexTransform, source: Array, ownership: BufferOwnership
    ) -> None:
        known = await self._recheck_metadata()
        axes, view = chosen(known.bounds, transform, source)
        if not view.size:
            return
        try:
            to = Target(known.array, known.source, self._shared_writers.combiner, known.pool)
            await write_from(to, axes, view, ownership)
        finally:
            if self._transaction is not None:
                self._overlay.changing(partial(self._outside().forget, axes))

    def forget(self, axes: Sequence[Axis]) -> None:
        """Drop from the cache pool what a selection touches: a transaction has changed it."""
        if (pool := self._known.pool) is not None:
            pool.forget(self._known.array, axes)

    def forget_cached(self, transform: IndexTransform) -> None:
        self.forget(select(propagate_bounds(self._known.bounds, transform)).axes)

    async def resize(self, request: ResizeRequest) -> None:
        before, _ = await self._reshape(lambda layout: layout.new_shape(request))
        known = self._known
        former = [axis.count for axis in before.layout.grid]
        counts = [axis.count for axis in known.array.grid]
        if not request.metadata_only and any(map(lt, counts, former)):
            # After the metadata: nobody looks for these chunks any more.
            await known.source.delete_outside(counts, self._forget_cell)

    def _forget_cell(self, cell: Cell) -> None:
        if self._transaction is not None:
            self._overlay.changing(partial(self._outside()._forget_cell, cell))
        elif (pool := self._known.pool) is not None:
            pool.forget_cell(self._known.array, cell)

    async def grow(self, dim: int, by: int, check: Callable[[IndexDomain], None]) -> IndexDomain:
        rank = self.domain.rank

        def grown(layout: ArrayLayout) -> tuple[int, ...]:
            check(layout.domain)
            high: list[int | None] = [None] * rank
            high[dim] = layout.domain.shape[dim] + by
            return layout.new_shape(ResizeRequest((None,) * rank, tuple(high), expand_only=True))

        _, after = await self._reshape(grown)
        return after.layout.domain

    async def _reshape(
        self, wanted: Callable[[ArrayLayout], tuple[int, ...]]
    ) -> tuple[MetadataState[M], MetadataState[M]]:
        """Store the shape wanted of what is stored, anew if others changed it; what was, and is."""
        if self._assumed:
            raise FailedPreconditionError(
                "cannot resize an array that was opened with assume_metadata=True; "
                "open it without, or with assume_cached_metadata=True"
            )
        self.spoil_copy()
        # The gate saves the vain attempts of this handle's own callers, not those of others.
        attempts = CONFLICTS.begin("resize", self._file.describe, inline=self._file.store.inline)
        async with self._shared_writers.resizes.acquire("shape"):
            while True:
                state = await self._refresh()
                shape = wanted(state.layout)
                if shape == tuple(state.layout.domain.shape[: len(shape)]):
                    return state, state
                metadata = state.metadata.resized(shape)
                written = await self._file.write(metadata, if_equal=state.generation)
                if written is not None:
                    break
                await attempts.lost(state.generation)
        self._file.learn(state, written)
        self._current()
        if self._transaction is not None:
            self._overlay.afterwards(self._outside()._refresh)
        return state, written

    async def storage_statistics(
        self, transform: IndexTransform, *, not_stored: bool, fully_stored: bool
    ) -> StorageStatistics:
        known = await self._recheck_metadata()
        resolved = propagate_bounds(known.state.layout.domain, transform)
        stored = total = 0
        if 0 not in resolved.input_shape:
            axes = select(resolved).axes
            stored, total = await _count_stored(known.array, known.source, axes)
        return StorageStatistics(
            not_stored=stored == 0 if not_stored else None,
            fully_stored=stored == total if fully_stored else None,
        )

    async def _recheck_metadata(self) -> _Known[M]:
        """What is known, asked for again if the spec demands it."""
        known, bound = self._current(), self._spec.recheck_cached_metadata
        if bound == "open" or bound is False or self._assumed:
            return known
        if known.state.time < needed_since(bound, self._opened):
            await self._refresh()
        return self._known

    async def _refresh(self) -> MetadataState[M]:
        """Ask the store for the metadata, which costs no body when nothing changed."""
        attempts = CONFLICTS.begin("read", self._file.describe, inline=self.inline)
        while not self._assumed:
            before = self._file.known
            found = await self._file.read(before or self._state)
            if self._file.learn(before, found):
                if found is None:
                    raise NotFoundError(
                        f"metadata at {self._file.describe()} does not exist any more; the array "
                        "was deleted after it was opened"
                    )
                break
            await attempts.lost()
        return self._current().state

    def _current(self) -> _Known[M]:
        """What is known, with what others who share the metadata learned of meanwhile.

        Raises:
            FailedPreconditionError: the array was replaced by one of another form.
        """
        state = self._file.shared.state
        if state is not self._known.state and state is not None:
            with _making:
                known = self._known
                if state.layout is known.state.layout:
                    self._follows = known._replace(state=state)
                else:
                    known.state.layout.check_same_array(state.layout, self._file.describe())
                    self._follows = self._bound(state, growing=True)
        return self._known


async def _count_stored(
    array: ChunkedArray, source: StoredChunks, axes: Sequence[Axis]
) -> tuple[int, int]:
    """How many chunks are stored, and how many there are; inner chunks count where sharded.

    None is fetched: a chunk is asked for none of its bytes, a shard for its index.

    Raises:
        DataLossError: the index of a shard is truncated or corrupt; names its key.
    """
    plan = make_plan(axes, array.grid)
    stored = total = 0
    mutex = Mutex()

    def add(found: int, of: int) -> None:
        nonlocal stored, total
        with mutex:
            stored += found
            total += of

    async def look(each: ChunkSlice) -> None:
        sharded = array.at(each.cell).sharded
        if sharded is None:
            result = await source.read(each.cell, _NOTHING)
            add(int(result.state == "value"), 1)
            return
        inner = make_plan(descend_axes(each), inner_grid(sharded))
        try:
            shard = await OpenShard.open(source, each.cell, sharded)
        except DataLossError as error:
            raise array.corrupt_chunk(each.cell, error) from error
        found = 0
        if shard is not None:
            index = shard.index
            found = sum(index.extent(index.number(at.cell)) is not None for at in inner.slices())
        add(found, inner.count)

    await fan_out(source.inline, plan.slices(), look, count=plan.count, width=source.width)
    return stored, total
