"""Reading: run a plan's steps so that the selected elements land in the caller's memory.

A chunk's whole life (fetch, decode, copy) is one step on one thread. A chunk that is wanted
whole is decoded straight to its destination where memory order allows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._chunked.failures import CHUNK_FAILURES, corrupt_chunk, missing_chunk
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.rows import grouped, row_length, rows, side_by_side, slab
from tensorstore_py._chunked.shard import (
    OpenShard,
    batches,
    descend,
    inner_array,
    unchanged,
)
from tensorstore_py._chunked.uneven import EachShape
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py._runtime.scratch import scratch
from tensorstore_py.errors import TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.plan import Plan, Step
    from tensorstore_py._chunked.rows import Row
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._chunked.shard import Batch
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._runtime.admission import Bytes

__all__ = [
    "Reader",
    "ShardReader",
    "read_into",
    "work_of_each_shape",
]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: How often a shard that keeps being replaced under a reader is begun again.


async def read_into(array: ChunkedArray, axes: Sequence[Axis], view: Array) -> None:
    """Read the elements that `axes` select.

    Args:
        array: where from.
        axes: the selection's axes, see `selection`.
        view: the working view, of the array's dtype; leading axes that no axis of the selection
            stands for are filled by broadcasting.

    Raises:
        DataLossError: a chunk is corrupt; names its key.
        NotFoundError: a chunk is missing and `fill_missing` is off; names its key.
        AbortedError: a shard was replaced again and again while it was read; names its key.
    """
    plan = make_plan(axes, array.grid)
    source = array.source
    kind = Reader if array.sharded is None else ShardReader
    reader = kind(array, plan, view)
    size = reader.step_bytes()
    length = reader.row_length(source.inline)
    if length > 1 and array.shapes is None:
        count = -(-plan.count // length)
        found = rows(plan, length)
        await fan_out(
            source.inline,
            found,
            reader.row,
            count=count,
            width=source.width,
            step_bytes=plan.count * size // count,
            step_pieces=length,
        )
        return
    work = reader.work(size)
    if array.shapes is not None:
        work = work_of_each_shape(array, lambda part: kind(part, plan, view))
    await fan_out(
        source.inline,
        plan.steps(),
        work,
        count=plan.count,
        width=source.width,
        step_bytes=size,
    )


def work_of_each_shape(
    array: ChunkedArray, reader_of: Callable[[ChunkedArray], Reader]
) -> Callable[[Step], Coroutine[Any, Any, None]]:
    """The body of a step of a read of an array whose chunks differ in shape.

    Args:
        array: what is read.
        reader_of: makes the reader for the array as chunks of one shape see it.
    """

    def work_of(part: ChunkedArray) -> Callable[[Step], Coroutine[Any, Any, None]]:
        reader = reader_of(part)
        return reader.work(reader.step_bytes())

    return EachShape(array, work_of).step


class Reader:
    """One read of an array whose chunks are decoded whole."""

    __slots__ = ("_array", "_copying", "_direct", "_view", "plan")

    def __init__(self, array: ChunkedArray, plan: Plan, view: Array) -> None:
        self._array = array
        self._copying = array.limits.copying
        self._view = view
        self._direct = view.ndim == len(plan.axes)
        self.plan = plan

    @property
    def memory(self) -> Bytes:
        """The budget of bytes in flight."""
        return self._array.limits.memory

    def step_bytes(self) -> int:
        """How much one step decodes."""
        return self._array.chain.chunk.size_bytes

    def work(self, size: int) -> Callable[[Step], Coroutine[Any, Any, None]]:
        """The body of a step of `size` bytes, which waits for memory if that could run out."""
        array = self._array
        if array.limits.memory.matters(array.source.inline, array.limits.in_flight(size)):
            return self._counted_step
        return self.step

    def row_length(self, inline: bool) -> int:
        """How many chunks to decode side by side, at most."""
        chain, limits = self._array.chain, self._array.limits
        length = row_length(self.plan, chain.chunk.size_bytes)
        if length <= 1 or not inline or not chain.decodes_in_place():
            return 1
        counted = limits.memory.matters(True, limits.in_flight(length * chain.chunk.size_bytes))
        return 1 if counted else length

    async def row(self, row: Row) -> None:
        """Read a row of chunks, or one chunk."""
        if len(row.along) == 1 or self._lands(row):
            for step in row.steps():
                await self.step(step)
            return
        cells = row.cells()
        chunk = self._array.chain.chunk
        room = scratch(len(cells) * chunk.size_bytes)  # decoding in place uses none
        self.decode_row(row, cells, await self._array.source.values(cells, room))

    def decode_row(self, row: Row, cells: Sequence[Cell], values: Sequence[Buffer | None]) -> None:
        """Decode chunks side by side, and put what is wanted of them in its place.

        Args:
            row: what is wanted.
            cells: its chunks.
            values: the stored bytes of each; None where it is missing.
        """
        chain = self._array.chain
        size = chain.chunk.size_bytes
        with self._copying:
            memory, chunks = slab(chain.chunk, len(cells))
            for number, data in enumerate(values):
                if data is None:
                    chunks[number] = self._fill_value(cells[number])
                    continue
                try:
                    chain.decode_to(data, memory[number * size : (number + 1) * size])
                except CHUNK_FAILURES as error:
                    raise self.corrupt(cells[number], error) from error
            side_by_side(self._view, row)[...] = chunks[(slice(None), *row.inside)]

    def decode_rows(self, steps: Sequence[Step], values: Sequence[Buffer], length: int) -> None:
        """Decode chunks, in rows up to a length, and put what is wanted of them in its place."""
        if length == 1:
            for step, data in zip(steps, values, strict=True):
                self.decode(step, data)
            return
        done = 0
        for row in grouped(self.plan, steps, length):
            first, done = done, done + len(row.along)
            if len(row.along) == 1 or self._lands(row):
                for step, data in zip(steps[first:done], values[first:done], strict=True):
                    self.decode(step, data)
            else:
                self.decode_row(row, row.cells(), values[first:done])

    def _lands(self, row: Row) -> bool:
        """Whether each chunk is decoded to the very memory where it is wanted."""
        if not row.whole or not self._direct:
            return False
        return self._view[next(row.steps()).outside].flags.c_contiguous

    async def _counted_step(self, step: Step) -> None:
        limits = self._array.limits
        memory, size = limits.memory, limits.in_flight(self.step_bytes())
        await memory.take(self._array.source.inline, size)
        try:
            await self.step(step)
        finally:
            memory.release(size)

    async def step(self, step: Step) -> None:
        source = self._array.source
        result = await source.read(step.cell)
        if result.state == "missing":
            self.fill(step)
        elif not source.inline and self._array.chain.is_light and self._copying.enter_now():
            # It takes less time than to wake a thread, and to be woken by it.
            try:
                self._decode(step, result.value)
            finally:
                self._copying.leave()
        else:
            await offload(source.inline, partial(self.decode, step, result.value))

    def decode(self, step: Step, data: Buffer) -> None:
        """Decode one chunk and put what is wanted of it in its place."""
        with self._copying:
            self._decode(step, data)

    def _decode(self, step: Step, data: Buffer) -> None:
        chain = self._array.chain
        try:
            if step.whole and self._direct:
                chain.decode_into(data, self._view[(..., *step.outside)])
            else:
                self._view[(..., *step.outside)] = chain.decode_scratch(data)[step.inside]
        except CHUNK_FAILURES as error:
            raise self.corrupt(step.cell, error) from error

    def decoded(self, step: Step, data: Buffer) -> Array:
        """One chunk, whole, as it can be kept: nobody writes to it."""
        chain = self._array.chain
        try:
            chunk = np.empty(chain.chunk.shape, chain.chunk.dtype)
            with self._copying:
                chain.decode_into(data, chunk)
        except CHUNK_FAILURES as error:
            raise self.corrupt(step.cell, error) from error
        chunk.flags.writeable = False
        return chunk

    def copy(self, step: Step, chunk: Array) -> None:
        """Put what is wanted of a decoded chunk in its place."""
        with self._copying:
            self._view[(..., *step.outside)] = chunk[step.inside]

    def fill(self, step: Step) -> None:
        """Put the fill value where the chunk would be."""
        fill = self._fill_value(step.cell)
        if fill.ndim:
            fill = np.broadcast_to(fill, self._array.chain.chunk.shape)[step.inside]
        self._view[(..., *step.outside)] = fill

    def _fill_value(self, cell: Cell) -> Array:
        if not self._array.fill_missing:
            raise missing_chunk(self._array, cell)
        return self._array.chain.chunk.fill_value

    def corrupt(self, cell: Cell, error: Exception) -> TensorStoreError:
        """The codec's complaint, with the key in front."""
        return corrupt_chunk(self._array, cell, error)


class ShardReader(Reader):
    """One read of an array whose chunks are shards: only the inner chunks wanted are read."""

    __slots__ = ("_sharded",)

    def __init__(self, array: ChunkedArray, plan: Plan, view: Array) -> None:
        super().__init__(array, plan, view)
        assert array.sharded is not None
        self._sharded = array.sharded

    def step_bytes(self) -> int:
        """How much one step decodes: the inner chunks that it touches, about."""
        wanted = self._view.nbytes // max(1, self.plan.count)
        return max(wanted, self._sharded.inner.chunk.size_bytes)

    def work(self, size: int) -> Callable[[Step], Coroutine[Any, Any, None]]:
        return self.step  # memory is taken for what is fetched at a time, below

    async def step(self, step: Step) -> None:
        describe = partial(self._array.source.describe, step.cell)
        try:
            await unchanged(
                partial(self.read_shard, step), "read", describe, inline=self._array.source.inline
            )
        except CHUNK_FAILURES as error:
            raise self.corrupt(step.cell, error) from error

    async def read_shard(self, step: Step) -> None:
        """Read what is wanted of one shard.

        Raises:
            ShardChangedError: it was replaced meanwhile.
        """
        shard = await OpenShard.open(self._array.source, step.cell, self._sharded)
        if shard is None:
            self.fill(step)
            return
        axes, view = descend(self.plan.axes, step, self._view)
        inner = inner_array(self._array, self._sharded, shard)
        if inner.sharded is not None:
            await read_into(inner, axes, view)
            return
        plan = make_plan(axes, inner.grid)
        reader = Reader(inner, plan, view)
        work = partial(_read_batch, reader, shard, reader.row_length(shard.inline))
        steps, missing = batches(shard, plan.steps())
        for each in missing:
            reader.fill(each)
        source = self._array.source
        pieces = max(1, plan.count // max(1, len(steps)))
        await fan_out(
            source.inline,
            steps,
            work,
            count=len(steps),
            width=source.width,
            step_bytes=pieces * inner.chain.chunk.size_bytes,
        )


async def _read_batch(reader: Reader, shard: OpenShard, length: int, batch: Batch[Step]) -> None:
    """Fetch neighbouring inner chunks in one request and decode them, in rows up to a length."""
    memory, size = reader.memory, batch.stop - batch.start + reader.step_bytes()
    counted = memory.matters(shard.inline, size)
    if counted:
        await memory.take(shard.inline, size)
    try:
        data = memoryview(await shard.fetch(batch.start, batch.stop))

        def decode() -> None:
            values = [
                data[start - batch.start : stop - batch.start] for _, start, stop in batch.members
            ]
            steps = [step for step, _, _ in batch.members]
            reader.decode_rows(steps, values, length)

        await offload(shard.inline, decode)
    finally:
        if counted:
            memory.release(size)
