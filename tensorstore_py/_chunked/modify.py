"""Read-modify-write of a chunk: new values for slices of it, as a change that can be made again.

A chunk is decoded once, gets all slices that change, and is encoded once, however many writes
these came from. Of a shard only the inner chunks that change in part are decoded:

| an inner chunk of the shard | is |
|---|---|
| replaced as a whole | encoded; what is stored of it is not even read |
| changed in part | fetched, decoded, changed, encoded |
| untouched | kept as bytes; a copied range where the store can splice a large value |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Sized
from functools import partial
from itertools import chain
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
from tensorstore_py._interface.read_modify_write import ReadModifyWrite
from tensorstore_py._runtime.buffers import joined
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py.errors import DataLossError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from tensorstore_py._chunked.array import Array, Cell, ChunkedArray, StoredChunks
    from tensorstore_py._chunked.plan import Plan
    from tensorstore_py._chunked.runs import ChunkRun
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._interface.kvstore import Buffer, KvStore
    from tensorstore_py._interface.read_modify_write import Segment
    from tensorstore_py._interface.sharded import Sharded

__all__ = ["ChunkChange", "NewValues", "ShardChange", "ShownChange", "encode_run", "encodes_runs"]

T = TypeVar("T")
B = TypeVar("B", bound=Sized)

#: A shard that may be smaller is read and written as a whole.
_LEAST_SPLICED: Final = 2**20


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
    """New values for parts of one chunk.

    Args:
        array: whose chunk it is.
        source: where it is stored.
        cell: which it is.
        parts: what changes, the last one last.
    """

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
        return await offload(self._source.inline, partial(self._encoded, stored))

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
        with self.array.limits.copying:
            chunk = _changed(self.array, self._parts, stored)
            # Values that replace all of it belong to the caller, who may change them any time.
            made = chunk.copy() if chunk is self._parts[0].values else chunk
            data = self.array.encode(made, stored)
        made.flags.writeable = False
        self.made = made
        return data


class ShardChange(_Change):
    """New values for parts of a shard."""

    __slots__ = ()

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
        """The shard's new bytes, from the inner chunks that change and those that stay.

        Args:
            chunks: the encoded inner chunks, changed here.
            in_place: what stands for others, of which none changes.
        """
        inner = inner_array(self.array, self._sharded, self._source)
        strides, inline = c_strides(self._sharded.grid_shape), self._source.inline

        def put(number: int, data: Buffer | None) -> None:
            if data is None:
                chunks.pop(number, None)
            else:
                chunks[number] = data

        async def encode_one(item: tuple[int, Sequence[NewValues]]) -> None:
            number, parts = item
            put(number, await offload(inline, partial(_encoded, inner, parts, chunks.get(number))))

        async def encode_several(run: ChunkRun) -> None:
            values = self._parts[0].values
            slices = list(run.slices())
            if run.whole and not run.is_in_place(values):
                for each, data in zip(slices, encode_run(inner, values, run), strict=True):
                    # A codec that changes nothing may give the staging memory itself.
                    kept = data if data is None or isinstance(data, bytes) else bytes(data)
                    put(inner_number(each.cell, strides), kept)
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
            await fan_out(inline, items, encode_one, count=count, width=width)
        return self._sharded.assemble({**chunks, **(in_place or {})})

    @property
    def _sharded(self) -> Sharded:
        sharded = self.array.sharded
        assert sharded is not None
        return sharded

    def _plans(self) -> list[Plan]:
        """The inner chunks that each part touches."""
        grid = inner_grid(self._sharded)
        if not self.array.growing:
            # What lies beyond the array's bounds belongs to no writer.
            grid = tuple(
                RegularAxis(min(inner.extent, outer.extent - outer.start(cell)), inner.chunk)
                for inner, outer, cell in zip(grid, self.array.grid, self._cell, strict=True)
            )
        return [make_plan(part.where, grid) for part in self._parts]  # type: ignore[arg-type]

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


def _encoded(
    array: ChunkedArray, parts: Sequence[NewValues], stored: Buffer | None
) -> Buffer | None:
    """The new bytes of one chunk; None if it equals the fill value and need not be stored.

    `parts` is what changes; `stored` its present bytes, where the rest of it matters.
    """
    with array.limits.copying:
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
