"""Writing: run a plan's steps so that the selected elements are stored.

A chunk that is written in full is encoded and stored without a look at what was there. A chunk
written in part is read, changed and stored again on the condition that nobody else stored it
meanwhile, until that holds: so no writer's part is ever lost. Each key is replaced atomically;
a crash leaves every chunk old or new.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.shard import c_strides, descend, inner_array, inner_grid
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.sharded import MISSING
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py.errors import DataLossError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.plan import Plan, Step
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._chunked.source import StoredChunks
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._interface.sharded import Sharded
    from tensorstore_py._runtime.gate import Gate

__all__ = ["write_from"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


async def write_from(
    array: ChunkedArray, source: StoredChunks, gate: Gate, axes: Sequence[Axis], view: Array
) -> None:
    """Store the elements that `axes` select.

    Args:
        array: what to change.
        source: the array's source, where chunks are stored.
        gate: keeps this process's own writers of one chunk apart.
        axes: the selection's axes, see `selection`.
        view: the working view of the new values, one axis for each of `axes`, of the array's dtype.

    Raises:
        DataLossError: a chunk that must be changed in part is corrupt; names its key.
    """
    plan = make_plan(axes, array.grid)
    kind = _Writer if array.sharded is None else _ShardWriter
    writer = kind(array, source, gate, plan, view)
    await fan_out(source.inline, plan.steps(), writer.work(), count=plan.count, width=source.width)


def encode_part(
    array: ChunkedArray, step: Step, part: Array, stored: Buffer | None
) -> Buffer | None:
    """The new bytes of one chunk; None if it equals the fill value and need not be stored.

    Args:
        array: the array the chunk belongs to.
        step: which part of the chunk changes.
        part: the new values of that part.
        stored: the chunk's present bytes, where the rest of it matters.
    """
    with array.limits.copying:
        return _encoded(array, step, part, stored)


def _encoded(array: ChunkedArray, step: Step, part: Array, stored: Buffer | None) -> Buffer | None:
    if step.whole:
        chunk = part
    elif stored is None:
        chunk = array.filled_chunk()
        chunk[step.inside] = part
    else:
        chunk = np.empty(array.chain.chunk.shape, array.chain.chunk.dtype)
        array.chain.decode_into(stored, chunk)
        chunk[step.inside] = part
    if array.chain.to_bytes.partial:
        return array.chain.encode_over(chunk, stored, keep_fill=array.store_fill)
    if not array.store_fill and array.is_fill(chunk):
        return None
    return array.chain.encode(chunk)


class _Writer:
    """One write to an array whose chunks are encoded whole."""

    __slots__ = ("_array", "_gate", "_plan", "_source", "_view")

    def __init__(
        self, array: ChunkedArray, source: StoredChunks, gate: Gate, plan: Plan, view: Array
    ) -> None:
        self._array = array
        self._source = source
        self._gate = gate
        self._plan = plan
        self._view = view

    def work(self) -> Callable[[Step], Coroutine[Any, Any, None]]:
        """The body of a step, which waits for memory if that could run out."""
        array = self._array
        size = array.limits.in_flight(array.chain.chunk.size_bytes)
        if array.limits.memory.matters(array.source.inline, size):
            return self._counted_step
        return self.step

    async def _counted_step(self, step: Step) -> None:
        limits = self._array.limits
        memory, size = limits.memory, limits.in_flight(self._array.chain.chunk.size_bytes)
        await memory.take(self._source.inline, size)
        try:
            await self.step(step)
        finally:
            memory.release(size)

    async def step(self, step: Step) -> None:
        """Store one chunk."""
        if step.full and not self._array.chain.to_bytes.partial:
            await self._source.write(step.cell, await self.new_bytes(step, None))
            return
        async with self._gate.hold(self._source.key(step.cell)):
            await self._update(step)

    async def _update(self, step: Step) -> None:
        """Read, change and store on condition, until the condition holds."""
        source = self._source
        generation = UNKNOWN
        while generation == UNKNOWN:
            result = await source.read(step.cell)
            found = result.state == "value"
            try:
                data = await self.new_bytes(step, result.value if found else None)
            except DataLossError as error:
                raise DataLossError(
                    f"Error updating {source.describe(step.cell)}: what is stored there is "
                    f"corrupt: {error}; write the whole chunk to replace it"
                ) from error
            before = result.stamp.generation if found else NO_VALUE
            generation = (await source.write(step.cell, data, if_equal=before)).generation

    async def new_bytes(self, step: Step, stored: Buffer | None) -> Buffer | None:
        """The chunk's new bytes, or None to delete it."""
        part = self._view[(..., *step.outside)]
        return await offload(
            self._source.inline, partial(encode_part, self._array, step, part, stored)
        )


class _ShardWriter(_Writer):
    """One write to an array whose chunks are shards: inner chunks not touched are kept as bytes."""

    __slots__ = ("_sharded",)

    def __init__(
        self, array: ChunkedArray, source: StoredChunks, gate: Gate, plan: Plan, view: Array
    ) -> None:
        super().__init__(array, source, gate, plan, view)
        assert array.sharded is not None
        self._sharded = array.sharded

    async def new_bytes(self, step: Step, stored: Buffer | None) -> Buffer | None:
        """The shard's new bytes, from the inner chunks that change and those that stay."""
        axes, view = descend(self._plan.axes, step, self._view)
        plan = make_plan(axes, inner_grid(self._sharded))
        inner = _InnerWriter(self._array, self._sharded, view, self._stored_chunks(stored))
        inline, width = self._source.inline, self._source.width
        await fan_out(
            inline, plan.steps(), partial(inner.step, inline), count=plan.count, width=width
        )
        return self._sharded.assemble(inner.chunks)

    def _stored_chunks(self, stored: Buffer | None) -> dict[int, Buffer]:
        """The encoded inner chunks of a stored shard, by their number."""
        if stored is None:
            return {}
        data = memoryview(stored)
        try:
            start, stop = self._sharded.index_range().resolve(data.nbytes)
        except OutOfRangeError as error:
            raise DataLossError(f"shard is too short for its index: {error}") from error
        chunks: dict[int, Buffer] = {}
        for number, (offset, size) in enumerate(
            self._sharded.decode_index(data[start:stop]).tolist()
        ):
            if offset == MISSING and size == MISSING:
                continue
            if offset + size > data.nbytes:
                raise DataLossError(f"shard is shorter ({data.nbytes} bytes) than its index says")
            chunks[number] = data[offset : offset + size]
        return chunks


class _InnerWriter:
    """The inner chunks of one shard, being changed."""

    __slots__ = ("_array", "_strides", "_view", "chunks")

    def __init__(
        self, outer: ChunkedArray, sharded: Sharded, view: Array, chunks: dict[int, Buffer]
    ) -> None:
        self._array = inner_array(outer, sharded, outer.source)
        self._strides = c_strides(sharded.grid_shape)
        self._view = view
        self.chunks = chunks

    async def step(self, inline: bool, step: Step) -> None:
        number = sum(
            position * stride for position, stride in zip(step.cell, self._strides, strict=True)
        )
        stored = self.chunks.get(number)
        part = self._view[(..., *step.outside)]
        data = await offload(inline, partial(encode_part, self._array, step, part, stored))
        if data is None:
            self.chunks.pop(number, None)
        else:
            self.chunks[number] = data
