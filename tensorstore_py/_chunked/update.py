"""What a write does to one chunk, as a change that can be made again, merged and kept.

A chunk is decoded once, gets all parts that are to change, and is encoded once, however many
writes the parts came from. Of a shard only the inner chunks that change are decoded; the others
are kept as the bytes that they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sized
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Self, TypeVar

import numpy as np

from tensorstore_py._chunked.failures import CHUNK_FAILURES, corrupt_chunk
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.rows import row_length, rows, side_by_side, slab
from tensorstore_py._chunked.shard import (
    OpenShard,
    c_strides,
    inner_array,
    inner_grid,
    is_worth_splicing,
    stored_chunks,
    unchanged,
)
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._interface.sharded import Sharded
from tensorstore_py._interface.update import Update
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py._runtime.large import joined
from tensorstore_py.errors import DataLossError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from typing import Any

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.plan import Plan, Step
    from tensorstore_py._chunked.rows import Row
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._chunked.source import Cell, StoredChunks
    from tensorstore_py._interface.kept import Stretch
    from tensorstore_py._interface.kvstore import Buffer, KvStore

__all__ = ["ChunkPart", "ChunkUpdate", "ShardPart", "ShardUpdate", "ShownUpdate", "encode"]

T = TypeVar("T")
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


#: A shard that may be smaller is read and written as a whole.
_LEAST_SPLICED: Final = 2**20


class ChunkPart(NamedTuple):
    """Which part of a chunk changes, and its new values."""

    step: Step
    values: Array

    def kept(self) -> ChunkPart:
        """The same, on memory of its own."""
        return ChunkPart(self.step, self.values.copy())


class ShardPart(NamedTuple):
    """What changes of a shard: a selection within it, and its new values."""

    axes: Sequence[Axis]
    values: Array

    def kept(self) -> ShardPart:
        """The same, on memory of its own."""
        return ShardPart(self.axes, self.values.copy())


P = TypeVar("P", ChunkPart, ShardPart)
B = TypeVar("B", bound=Sized)


class _PartsUpdate(Update, Generic[P]):
    """New values for parts of one chunk.

    Args:
        array: whose chunk it is.
        source: where it is stored.
        cell: which it is.
        parts: what changes, the last one last.
    """

    __slots__ = ("_cell", "_parts", "_source", "array")

    def __init__(
        self, array: ChunkedArray, source: StoredChunks, cell: Cell, parts: Sequence[P]
    ) -> None:
        self.array = array
        self._source = source
        self._cell = cell
        self._parts: Sequence[P] = parts

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        try:
            return await self._apply(stored)
        except CHUNK_FAILURES as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: Exception) -> TensorStoreError:
        if not isinstance(error, DataLossError):
            return corrupt_chunk(self.array, self._cell, error)
        where = self._source.describe(self._cell)
        what = f"what is stored there is corrupt: {error}; write the whole chunk to replace it"
        return DataLossError(f"Error updating {where}: {what}")

    @abstractmethod
    async def _apply(self, stored: Buffer | None) -> Buffer | None:
        """As `apply`."""

    def kept(self) -> Self:
        return self._with([part.kept() for part in self._parts])

    def then(self, later: Update) -> Update | None:
        if isinstance(later, type(self)) and later.array is self.array:
            mine, theirs = list(self._parts), list(later._parts)
            return self._with(mine + theirs)
        return super().then(later)

    def _with(self, parts: Sequence[P]) -> Self:
        return type(self)(self.array, self._source, self._cell, parts)


class ChunkUpdate(_PartsUpdate[ChunkPart]):
    """New values for parts of a chunk that is encoded whole; see `_PartsUpdate`."""

    __slots__ = ()

    async def _apply(self, stored: Buffer | None) -> Buffer | None:
        return await offload(self._source.inline, partial(self._encoded, stored))

    def _encoded(self, stored: Buffer | None) -> Buffer | None:
        return _encoded(self.array, self._parts, stored)


class ShownUpdate(ChunkUpdate):
    """A `ChunkUpdate` that shows what it made of the chunk.

    Attributes:
        made: the whole chunk as last applied, which nobody writes to.
    """

    __slots__ = ("made",)

    def __init__(
        self, array: ChunkedArray, source: StoredChunks, cell: Cell, parts: Sequence[ChunkPart]
    ) -> None:
        super().__init__(array, source, cell, parts)
        self.made: Array | None = None

    def _encoded(self, stored: Buffer | None) -> Buffer | None:
        whole = len(self._parts) == 1 and self._parts[0].step.whole
        with self.array.limits.copying:
            chunk = _changed(self.array, self._parts, stored)
            # Values that replace all of it are their owner's, who may change them any time.
            made = chunk.copy() if whole else chunk
            data = encode(self.array, made, stored)
        made.flags.writeable = False
        self.made = made
        return data


class ShardUpdate(_PartsUpdate[ShardPart]):
    """New values for parts of a shard; see `_PartsUpdate`."""

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

    async def splice_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Stretch] | None]:
        if self.array.chain.chunk.size_bytes < _LEAST_SPLICED:
            return await self.parts_in(store, key)
        source, replaced = self._source.on(store), self._replaced()
        changed = self._touched() - replaced

        async def stretches() -> tuple[bytes, Sequence[Stretch] | None] | None:
            shard = await OpenShard.open(source, self._cell, self._sharded)
            if shard is None:
                return NO_VALUE, await self._assembled({})
            kept = shard.all_in_place(but=replaced | changed)
            if not is_worth_splicing(kept.values()):
                return None
            end = max(part.stop for part in kept.values())
            await shard.fetch(end - 1, end)  # it is as long as its index says
            return shard.generation, await self._assembled(await shard.some(changed), kept)

        found = await self._of_one_version(stretches)
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
            return await self._assembled(stored_chunks(self._sharded, stored))
        except CHUNK_FAILURES as error:
            raise self._corrupt(error) from error

    async def _apply(self, stored: Buffer | None) -> Buffer | None:
        parts = await self._assembled(stored_chunks(self._sharded, stored))
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
        inline = self._source.inline

        async def encode_one(item: tuple[int, Sequence[ChunkPart]]) -> None:
            number, parts = item
            work = partial(_encoded, inner, parts, chunks.get(number))
            data = await offload(inline, work)
            if data is None:
                chunks.pop(number, None)
            else:
                chunks[number] = data

        if not await self._encode_rows(inner, chunks, encode_one):
            items, count = self._by_inner_chunk()
            await fan_out(inline, items, encode_one, count=count, width=self._source.width)
        return self._sharded.assemble({**chunks, **(in_place or {})})

    async def _encode_rows(
        self,
        inner: ChunkedArray,
        chunks: dict[int, Buffer],
        encode_one: Callable[[tuple[int, Sequence[ChunkPart]]], Coroutine[Any, Any, None]],
    ) -> bool:
        """Encode inner chunks in rows, if they are of a kind that gains by it.

        Args:
            inner: the shard as an array.
            chunks: where encoded chunks go.
            encode_one: encodes one.
        """
        plans, chunk = self._plans(), inner.chain.chunk
        length = row_length(plans[0], chunk.size_bytes) if len(plans) == 1 else 0
        if not length or not self._source.inline or not inner.chain.compressors:
            return False
        if inner.chain.to_bytes.partial or chunk.dtype.hasobject:
            return False
        (part,), (plan,) = self._parts, plans
        strides = c_strides(self._sharded.grid_shape)

        async def work(row: Row) -> None:
            first, *_ = steps = list(row.steps())
            if not row.whole or part.values[(..., *first.outside)].flags.c_contiguous:
                for step in steps:
                    values = part.values[(..., *step.outside)]
                    await encode_one((_number(step, strides), [ChunkPart(step, values)]))
                return
            with inner.limits.copying:
                _, memory = slab(chunk, len(steps))
                memory[...] = side_by_side(part.values, row)
                for step, values in zip(steps, memory, strict=True):
                    data = encode(inner, values, None)
                    if data is None:
                        chunks.pop(_number(step, strides), None)
                    else:
                        # A codec that changes nothing may give the slab itself.
                        chunks[_number(step, strides)] = (
                            data if isinstance(data, bytes) else bytes(data)
                        )

        await fan_out(
            True,
            rows(plan, length),
            work,
            count=-(-plan.count // length),
            width=self._source.width,
        )
        return True

    @property
    def _sharded(self) -> Sharded:
        sharded = self.array.sharded
        assert sharded is not None
        return sharded

    def _plans(self) -> list[Plan]:
        """The inner chunks that each part touches."""
        grid = inner_grid(self._sharded)
        if not self.array.growing:
            # What lies beyond the array's bounds is nobody's.
            grid = tuple(
                RegularAxis(min(inner.extent, outer.extent - outer.start(cell)), inner.chunk)
                for inner, outer, cell in zip(grid, self.array.grid, self._cell, strict=True)
            )
        return [make_plan(part.axes, grid) for part in self._parts]

    def _replaced(self) -> set[int]:
        """The numbers of the inner chunks of which nothing stays."""
        if self._sharded.inner.to_bytes.partial:
            return set()  # some of each element stays
        return self._touched(lambda step: step.full)

    def _touched(self, chosen: Callable[[Step], bool] | None = None) -> set[int]:
        """The numbers of the inner chunks that change, or of some of them."""
        strides = c_strides(self._sharded.grid_shape)
        steps = chain.from_iterable(plan.steps() for plan in self._plans())
        return {_number(step, strides) for step in filter(chosen, steps)}

    def _by_inner_chunk(self) -> tuple[Iterable[tuple[int, Sequence[ChunkPart]]], int]:
        """What changes of each inner chunk, by its number; and how many change."""
        strides = c_strides(self._sharded.grid_shape)

        def items(part: ShardPart, steps: Iterable[Step]) -> Iterable[tuple[int, ChunkPart]]:
            for step in steps:
                yield _number(step, strides), ChunkPart(step, part.values[(..., *step.outside)])

        plans = self._plans()
        if len(plans) == 1:  # planned as it is worked on: there may be very many
            found = items(self._parts[0], plans[0].steps())
            return ((number, [part]) for number, part in found), plans[0].count
        grouped: dict[int, list[ChunkPart]] = {}
        for part, plan in zip(self._parts, plans, strict=True):
            for number, inner in items(part, plan.steps()):
                grouped.setdefault(number, []).append(inner)
        return grouped.items(), len(grouped)


def _number(step: Step, strides: tuple[int, ...]) -> int:
    """The C-order number of an inner chunk."""
    return sum(position * stride for position, stride in zip(step.cell, strides, strict=True))


def _encoded(
    array: ChunkedArray, parts: Sequence[ChunkPart], stored: Buffer | None
) -> Buffer | None:
    """The new bytes of one chunk; None if it equals the fill value and need not be stored.

    `parts` is what changes; `stored` its present bytes, where the rest of it matters.
    """
    with array.limits.copying:
        return encode(array, _changed(array, parts, stored), stored)


def _changed(array: ChunkedArray, parts: Sequence[ChunkPart], stored: Buffer | None) -> Array:
    """The whole chunk with its new values; these themselves where they replace all of it."""
    if len(parts) == 1 and parts[0].step.whole:
        return parts[0].values
    chain = array.chain
    if stored is None:
        chunk = array.filled_chunk()
    else:
        chunk = np.empty(chain.chunk.shape, chain.chunk.dtype)
        chain.decode_into(stored, chunk)
    for step, values in parts:
        chunk[step.inside] = values
    return chunk


def encode(array: ChunkedArray, chunk: Array, stored: Buffer | None) -> Buffer | None:
    """A whole chunk's bytes; None if it equals the fill value and need not be stored.

    Args:
        array: the array the chunk belongs to.
        chunk: its values.
        stored: its present bytes, where the serializer keeps some of them.
    """
    if array.chain.to_bytes.partial:
        return array.chain.encode_over(chunk, stored, keep_fill=array.store_fill)
    if not array.store_fill and array.is_fill(chunk):
        return None
    return array.chain.encode(chunk)
