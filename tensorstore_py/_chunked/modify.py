"""Read-modify-write of a chunk: new values for slices of it, as a change that can be made again.

A chunk is decoded once, gets all slices that change, and is encoded once, however many writes
these came from. Of a shard only the inner chunks that change in part are decoded:

| an inner chunk of the shard | is |
|---|---|
| replaced as a whole | encoded; what is stored of it is not even read |
| changed in part | fetched, decoded, changed, encoded |
| untouched | kept as bytes; a copied range where the store can splice a large value |

Changes of one key that are under way together are made as one (`WriteCombiner`), in the order in
which they were asked for. So a thousand writers of parts of one chunk cost a handful of reads and
writes; none waits longer than for two. Where chunks are small, a thread makes some changes of other
keys along with its own, from the tail of the table: those at its head are about to be made by other
threads.

| a pending write | is in the table | ends |
|---|---|---|
| waits for its key's lock | yes | taken by the thread that gets it, or withdrawn |
| is made, with others of its key | no | `done`, with a stamp or an error |
| was to be made by a thread that was cancelled | again, ahead of later ones | as before |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Sized
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

import numpy as np

from tensorstore_py._chunked.array import CHUNK_FAILURES
from tensorstore_py._chunked.plan import ChunkSlice, make_plan
from tensorstore_py._chunked.runs import interleaved, run_length, runs, staging
from tensorstore_py._chunked.shard import (
    OpenShard,
    ShardIndex,
    c_strides,
    inner_array,
    inner_grid,
    inner_number,
    is_worth_splicing,
    unchanged,
)
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._interface.read_modify_write import ReadModifyWrite, merged
from tensorstore_py._interface.store_abilities import update, update_values
from tensorstore_py._runtime.buffers import joined
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.keyed_lock import KeyedLock, Mutex
from tensorstore_py.errors import DataLossError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from tensorstore_py._chunked.array import Array, Cell, ChunkedArray, StoredChunks
    from tensorstore_py._chunked.plan import Plan
    from tensorstore_py._chunked.runs import ChunkRun
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer, KvStore
    from tensorstore_py._interface.read_modify_write import Segment
    from tensorstore_py._interface.sharded import Sharded

__all__ = [
    "ChunkChange",
    "NewValues",
    "PendingWrite",
    "ShardChange",
    "ShownChange",
    "WriteCombiner",
    "encode_run",
    "encodes_runs",
]

T = TypeVar("T")
B = TypeVar("B", bound=Sized)

#: A shard that may be smaller is read and written as a whole.
_LEAST_SPLICED: Final = 2**20

#: To copy a shard of so many bytes takes less time than to take turns with another thread.
_LIGHT_SHARD: Final = 2**20

#: So many times as many keys are looked at as are wanted, since some of them are held already.
_LOOKED_AT: Final = 4


class NewValues(NamedTuple):
    """New values for a part of a chunk.

    Attributes:
        where: the slice that they are for; of a shard, the axes of the selection within it.
        values: a view of them.
    """

    where: ChunkSlice | Sequence[Axis]
    values: Array

    def kept(self) -> NewValues:
        """The same, in memory of their own."""
        return NewValues(self.where, self.values.copy())


class _Change(ReadModifyWrite):
    """New values for parts of one chunk, the last one last."""

    __slots__ = ("_cell", "_parts", "_source", "array")

    def __init__(
        self, array: ChunkedArray, source: StoredChunks, cell: Cell, parts: Sequence[NewValues]
    ) -> None:
        self.array = array
        self._source = source
        self._cell = cell
        self._parts = parts

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        try:
            return await self._apply(stored)
        except CHUNK_FAILURES as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: Exception) -> TensorStoreError:
        if not isinstance(error, DataLossError):
            return self.array.corrupt_chunk(self._cell, error)
        where = self._source.describe(self._cell)
        what = f"what is stored there is corrupt: {error}; write the whole chunk to replace it"
        return DataLossError(f"Error updating {where}: {what}")

    @abstractmethod
    async def _apply(self, stored: Buffer | None) -> Buffer | None:
        """As `apply`."""

    def kept(self) -> Self:
        return self._with([part.kept() for part in self._parts])

    def then(self, later: ReadModifyWrite) -> ReadModifyWrite | None:
        if isinstance(later, type(self)) and later.array is self.array:
            return self._with([*self._parts, *later._parts])
        return super().then(later)

    def _with(self, parts: Sequence[NewValues]) -> Self:
        return type(self)(self.array, self._source, self._cell, parts)


class ChunkChange(_Change):
    """New values for slices of a chunk that is encoded as a whole."""

    __slots__ = ()

    async def _apply(self, stored: Buffer | None) -> Buffer | None:
        work = partial(self._encoded, stored)
        light = self.array.chain.is_light
        return await self.array.limits.computing(self._source.inline, light, work)

    def _encoded(self, stored: Buffer | None) -> Buffer | None:
        return _encoded(self.array, self._parts, stored)


class ShownChange(ChunkChange):
    """A `ChunkChange` that shows what it made of the chunk.

    Attributes:
        made: the whole chunk as last applied, read-only.
    """

    __slots__ = ("made",)

    def __init__(
        self, array: ChunkedArray, source: StoredChunks, cell: Cell, parts: Sequence[NewValues]
    ) -> None:
        super().__init__(array, source, cell, parts)
        self.made: Array | None = None

    def _encoded(self, stored: Buffer | None) -> Buffer | None:
        chunk = _changed(self.array, self._parts, stored)
        # Values that replace all of it belong to the caller, who may change them any time.
        made = chunk.copy() if chunk is self._parts[0].values else chunk
        data = self.array.encode(made, stored)
        made.flags.writeable = False
        self.made = made
        return data


class ShardChange(_Change):
    """New values for parts of a shard."""

    __slots__ = ("_cut",)

    def __init__(
        self, array: ChunkedArray, source: StoredChunks, cell: Cell, parts: Sequence[NewValues]
    ) -> None:
        super().__init__(array, source, cell, parts)
        self._cut: list[Plan] | None = None

    async def parts_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Buffer] | None]:
        replaced = self._replaced()
        if not replaced:  # all of the shard matters, so one request reads it with its index
            return await super().parts_in(store, key)

        async def parts() -> tuple[bytes, Sequence[Buffer] | None]:
            shard = await OpenShard.open(self._source.on(store), self._cell, self._sharded)
            if shard is None:
                return NO_VALUE, await self._assembled({})
            return shard.generation, await self._assembled(await shard.all_but(replaced))

        return await self._of_one_version(parts)

    async def splice_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Segment] | None]:
        if self.array.chain.chunk.size_bytes < _LEAST_SPLICED:
            return await self.parts_in(store, key)
        source, replaced = self._source.on(store), self._replaced()
        changed = self._touched() - replaced

        async def segments() -> tuple[bytes, Sequence[Segment] | None] | None:
            shard = await OpenShard.open(source, self._cell, self._sharded)
            if shard is None:
                return NO_VALUE, await self._assembled({})
            kept = shard.in_place(but=replaced | changed)
            if not is_worth_splicing(kept.values()):
                return None
            end = max(part.stop for part in kept.values())
            await shard.fetch(end - 1, end)  # it is as long as its index says
            return shard.generation, await self._assembled(await shard.some(changed), kept)

        found = await self._of_one_version(segments)
        return await self.parts_in(store, key) if found is None else found

    async def _of_one_version(self, step: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a step makes of the shard, from the beginning if it is replaced meanwhile."""
        where = partial(self._source.describe, self._cell)
        try:
            return await unchanged(step, "change", where, inline=self._source.inline)
        except CHUNK_FAILURES as error:
            raise self._corrupt(error) from error

    async def parts(self, stored: Buffer | None) -> Sequence[Buffer] | None:
        try:
            return await self._assembled(ShardIndex.chunks_in(self._sharded, stored))
        except CHUNK_FAILURES as error:
            raise self._corrupt(error) from error

    async def _apply(self, stored: Buffer | None) -> Buffer | None:
        parts = await self._assembled(ShardIndex.chunks_in(self._sharded, stored))
        return None if parts is None else joined(parts)

    async def _assembled(
        self, chunks: dict[int, Buffer], in_place: Mapping[int, B] | None = None
    ) -> Sequence[Buffer | B] | None:
        """The shard's new bytes, from the encoded inner chunks by number.

        `chunks` are changed here; `in_place` stands for others, of which none changes.
        """
        inner, inline = inner_array(self.array, self._sharded, self._source), self._source.inline
        if inner.chain.is_light and not inline:
            light = self.array.chain.chunk.size_bytes <= _LIGHT_SHARD
            work = partial(self._encode_alone, inner, chunks)
            await self.array.limits.computing(inline, light, work)
        else:  # nothing is waited for, so one thread is woken for all of them, and not one for each
            await within(inline, True, partial(self._encode_inner, inner, chunks))
        return self._sharded.assemble({**chunks, **(in_place or {})})

    def _encode_alone(self, inner: ChunkedArray, chunks: dict[int, Buffer]) -> None:
        """Put inner chunks that are little more than copied among the others."""
        items, _ = self._by_inner_chunk(self._plans())
        for number, parts in items:
            _put(chunks, number, _encoded(inner, parts, chunks.get(number)))

    async def _encode_inner(self, inner: ChunkedArray, chunks: dict[int, Buffer]) -> None:
        """Put the inner chunks that change among the others; an inline body."""
        strides = c_strides(self._sharded.grid_shape)

        async def encode_one(item: tuple[int, Sequence[NewValues]]) -> None:
            number, parts = item
            with inner.limits.copying:
                data = _encoded(inner, parts, chunks.get(number))
            _put(chunks, number, data)

        async def encode_several(run: ChunkRun) -> None:
            values = self._parts[0].values
            slices = list(run.slices())
            if run.whole and not run.is_in_place(values):
                for each, data in zip(slices, encode_run(inner, values, run), strict=True):
                    # A codec that changes nothing may give the staging memory itself.
                    kept = data if data is None or isinstance(data, bytes) else bytes(data)
                    _put(chunks, inner_number(each.cell, strides), kept)
                return
            for each in slices:
                part = NewValues(each, values[(..., *each.outside)])
                await encode_one((inner_number(each.cell, strides), [part]))

        plans = self._plans()
        length = 0
        if len(plans) == 1 and inner.chain.compressors and encodes_runs(inner):
            length = run_length(plans[0], inner.chain.chunk.size_bytes)
        width = self._source.width
        if length:
            count = -(-plans[0].count // length)
            await fan_out(True, runs(plans[0], length), encode_several, count=count, width=width)
        else:
            items, count = self._by_inner_chunk(plans)
            await fan_out(True, items, encode_one, count=count, width=width)

    @property
    def _sharded(self) -> Sharded:
        sharded = self.array.sharded
        assert sharded is not None
        return sharded

    def _plans(self) -> list[Plan]:
        """The inner chunks that each part touches; planned once, when they are first needed."""
        if self._cut is not None:
            return self._cut
        grid = inner_grid(self._sharded)
        if not self.array.growing:
            # What lies beyond the array's bounds belongs to no writer.
            grid = tuple(
                RegularAxis(min(inner.extent, outer.extent - outer.start(cell)), inner.chunk)
                for inner, outer, cell in zip(grid, self.array.grid, self._cell, strict=True)
            )
        self._cut = [make_plan(part.where, grid) for part in self._parts]  # type: ignore[arg-type]
        return self._cut

    def _replaced(self) -> set[int]:
        """The numbers of the inner chunks of which nothing stays."""
        if self._sharded.inner.to_bytes.partial:
            return set()  # some of each element stays
        return self._touched(lambda each: each.full)

    def _touched(self, chosen: Callable[[ChunkSlice], bool] | None = None) -> set[int]:
        """The numbers of the inner chunks that change, or of some of them."""
        strides = c_strides(self._sharded.grid_shape)
        slices = chain.from_iterable(plan.slices() for plan in self._plans())
        return {inner_number(each.cell, strides) for each in filter(chosen, slices)}

    def _by_inner_chunk(
        self, plans: Sequence[Plan]
    ) -> tuple[Iterable[tuple[int, Sequence[NewValues]]], int]:
        """What changes of each inner chunk, by its number; and how many change."""
        strides = c_strides(self._sharded.grid_shape)

        def items(values: Array, plan: Plan) -> Iterable[tuple[int, NewValues]]:
            for each in plan.slices():
                number = inner_number(each.cell, strides)
                yield number, NewValues(each, values[(..., *each.outside)])

        if len(plans) == 1:  # planned as it is worked on: there may be very many
            found = items(self._parts[0].values, plans[0])
            return ((number, [part]) for number, part in found), plans[0].count
        grouped: dict[int, list[NewValues]] = {}
        for part, plan in zip(self._parts, plans, strict=True):
            for number, inner in items(part.values, plan):
                grouped.setdefault(number, []).append(inner)
        return grouped.items(), len(grouped)


def _put(chunks: dict[int, Buffer], number: int, data: Buffer | None) -> None:
    """Put an inner chunk among the others; None takes it away."""
    if data is None:
        chunks.pop(number, None)
    else:
        chunks[number] = data


def _encoded(
    array: ChunkedArray, parts: Sequence[NewValues], stored: Buffer | None
) -> Buffer | None:
    """The new bytes of one chunk; None if it equals the fill value and need not be stored.

    `parts` is what changes; `stored` its present bytes, where the rest of it matters.
    """
    return array.encode(_changed(array, parts, stored), stored)


def _changed(array: ChunkedArray, parts: Sequence[NewValues], stored: Buffer | None) -> Array:
    """The whole chunk with its new values; these themselves where they replace all of it."""
    if len(parts) == 1 and parts[0].where.whole:  # type: ignore[union-attr]
        return parts[0].values
    chain = array.chain
    if stored is None:
        chunk = array.filled_chunk()
    else:
        chunk = np.empty(chain.chunk.shape, chain.chunk.dtype)
        chain.decode_into(stored, chunk)
    for where, values in parts:
        chunk[where.inside] = values  # type: ignore[union-attr]
    return chunk


def encodes_runs(array: ChunkedArray) -> bool:
    """Whether small chunks of an array can be encoded from staging memory, in runs."""
    chain = array.chain
    return array.source.inline and not chain.to_bytes.partial and not chain.chunk.dtype.hasobject


def encode_run(array: ChunkedArray, values: Array, run: ChunkRun) -> list[Buffer | None]:
    """The bytes of each chunk of a run, which may be this thread's staging memory."""
    with array.limits.copying:
        _, chunks = staging(array.chain.chunk, len(run.along))
        chunks[...] = interleaved(values, run)
        return [array.encode(chunk, None) for chunk in chunks]


class PendingWrite:
    """One read-modify-write on its way.

    Attributes:
        key: what it changes.
        change: how.
        done: it was made, or failed.
        withdrawn: it is not to be made any more.
        assume_missing: try first as if nothing was stored, which needs no read.
        error: why it failed.
        stamp: the new one, if it was made by itself.
    """

    __slots__ = ("assume_missing", "change", "done", "error", "key", "stamp", "withdrawn")

    def __init__(self, key: str, change: ReadModifyWrite) -> None:
        self.key = key
        self.change = change
        self.assume_missing = False
        self.done = False
        self.withdrawn = False
        self.error: Exception | None = None
        self.stamp: TimestampedStorageGeneration | None = None


class WriteCombiner(Forkable):
    """The read-modify-writes that are under way to one store."""

    def __init__(self, store: KvStore) -> None:
        self._store = store
        self._locks = KeyedLock(inline=store.inline)
        self._mutex = Mutex()
        self._pending: dict[str, list[PendingWrite]] = {}
        super().__init__()

    def after_fork(self) -> None:
        self._pending = {}

    async def update(
        self, key: str, change: ReadModifyWrite, *, assume_missing: bool = False
    ) -> TimestampedStorageGeneration | None:
        """Make a change, with others of the same key if there are any; see `make`."""
        (mine,) = self.register([(key, change)])
        mine.assume_missing = assume_missing
        return await self.make(mine)

    def register(self, changes: Sequence[tuple[str, ReadModifyWrite]]) -> list[PendingWrite]:
        """Have changes wait for their turn; each is to be made, or withdrawn."""
        found = [PendingWrite(key, change) for key, change in changes]
        with self._mutex:
            for each in found:
                self._pending.setdefault(each.key, []).append(each)
        return found

    def crowded(self, mine: int) -> bool:
        """Whether writes of other keys than `mine` are pending."""
        return len(self._pending) > mine

    async def make(self, mine: PendingWrite, along: int = 0) -> TimestampedStorageGeneration | None:
        """See to it that a registered change is made, with those of up to `along` other keys.

        Returns the new stamp, if it was made by itself. Raises whatever the store, or one of the
        changes that were made together, raises.
        """
        if not mine.done:
            try:
                async with self._locks.acquire(mine.key):
                    if not mine.done:
                        await self._make_taken(mine, along)
            finally:
                self.withdraw([mine])
        if mine.error is not None:
            raise mine.error
        return mine.stamp

    async def _make_taken(self, mine: PendingWrite, along: int) -> None:
        with self._mutex:
            # A forked child finds an empty table, without even what it registered before.
            batches = [self._pending.pop(mine.key, None) or [mine]]
            last = list(islice(reversed(self._pending), _LOOKED_AT * along)) if along else ()
        others = self._locks.try_acquire(last, along) if last else []
        try:
            if others:
                with self._mutex:  # some may have been withdrawn
                    batches += [self._pending.pop(key) for key in others if key in self._pending]
            await self._store_batches(batches)
        except BaseException:
            # Only this one is cancelled. The others still wait for their turn, but for those that
            # were withdrawn while it was storing theirs.
            with self._mutex:
                for batch in batches:
                    rest = [each for each in batch if not each.withdrawn and not each.done]
                    if rest:
                        key = rest[0].key
                        self._pending[key] = [*rest, *self._pending.get(key, ())]
            raise
        finally:
            self._locks.release(others)

    async def _store_batches(self, batches: Sequence[Sequence[PendingWrite]]) -> None:
        changes = [merged([each.change for each in batch]) for batch in batches]
        if len(batches) > 1:
            keys = [batch[0].key for batch in batches]
            outcomes = await update_values(self._store, keys, changes)
        else:
            (batch,), (change,) = batches, changes
            assumed = any(each.assume_missing for each in batch)
            try:
                stamp = await update(self._store, batch[0].key, change, assume_missing=assumed)
                outcomes = [stamp]
            except Exception as error:  # noqa: BLE001 - it is that of all of them
                outcomes = [error]
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, Exception):
                for each in batch:
                    each.error = outcome
            elif len(batch) == 1:
                batch[0].stamp = outcome
            for each in batch:
                each.done = True

    def withdraw(self, mine: Sequence[PendingWrite]) -> None:
        """Whatever happened: these are not to be made later."""
        for each in mine:
            if each.done:
                continue
            with self._mutex:
                each.withdrawn = True
                rest = [other for other in self._pending.pop(each.key, ()) if other is not each]
                if rest:
                    self._pending[each.key] = rest
