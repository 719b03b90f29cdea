"""Decoding: stored bytes of a chunk become elements in the views of all that want some of it.

A chunk that one request wants whole is decoded straight to where it belongs, if memory order fits.
Any other is decoded to this thread's scratch memory, and copied from there to each view.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from tensorstore_py._chunked.array import CHUNK_FAILURES
from tensorstore_py._chunked.counts import DECODED
from tensorstore_py._chunked.runs import interleaved, runs_of, staging
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._runtime.metrics import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._chunked.array import Array, Cell, ChunkedArray
    from tensorstore_py._chunked.plan import ChunkSlice, Plan
    from tensorstore_py._chunked.runs import ChunkRun
    from tensorstore_py._interface.kvstore import Buffer

    #: A request's view of its result, and the slice of a chunk that belongs into it.
    Wanted: TypeAlias = tuple[Array, ChunkSlice]

__all__ = ["ChunkDecoder", "RowRange"]

#: Rows are fetched, or decoded, instead of the whole chunk if they are so many times fewer.
_MUCH_LESS: Final = 2


class RowRange(NamedTuple):
    """Positions `[low, high)` of the first axis of a chunk, and what is wanted of them."""

    low: int
    high: int
    wanted: list[Wanted]


class ChunkDecoder:
    """Decodes chunks of one array, of one shape; waits for nothing but a place to do so."""

    __slots__ = ("_chain", "_copying", "_in_parts", "_row_bytes", "_size", "array")

    def __init__(self, array: ChunkedArray) -> None:
        self.array = array
        self._chain = array.chain
        self._row_bytes = array.chain.row_bytes
        self._in_parts = array.chain.part_row_bytes is not None
        self._size = array.chain.chunk.size_bytes
        self._copying = array.limits.copying

    def decode(self, cell: Cell, data: Buffer, wanted: Sequence[Wanted]) -> None:
        """Decode a chunk and copy what is wanted of it.

        Raises:
            DataLossError: the chunk is corrupt; names it.
            ResourceExhaustedError: there is no memory for it; names it.
        """
        with self._copying:
            self._decode(cell, data, wanted)

    def decode_now(self, cell: Cell, data: Buffer, wanted: Sequence[Wanted]) -> bool:
        """`decode` on this thread if that takes less time than to wake another and is allowed now.

        Returns:
            Whether it was done.
        """
        if not (self._chain.is_light and self._copying.try_acquire()):
            return False
        try:
            self._decode(cell, data, wanted)
        finally:
            self._copying.release()
        return True

    def _decode(self, cell: Cell, data: Buffer, wanted: Sequence[Wanted]) -> None:
        chain = self._chain
        try:
            if self._in_parts and self._decode_part(data, wanted):
                return
            note((DECODED, (1, len(data), self._size)))
            if len(wanted) == 1:
                view, each = wanted[0]
                if each.whole and view.ndim == len(cell):
                    chain.decode_into(data, view[each.position])
                else:
                    view[each.position] = chain.decode_scratch(data)[each.inside]
                return
            chunk = chain.decode_scratch(data)
            for view, each in wanted:
                view[each.position] = chunk[each.inside]
        except CHUNK_FAILURES as error:
            raise self.array.corrupt_chunk(cell, error) from error

    def _decode_part(self, data: Buffer, wanted: Sequence[Wanted]) -> bool:
        """Decode just the part of a chunk with what is wanted of it, if it has such parts."""
        low, high = self._chain.chunk.shape[0], 0
        for _, each in wanted:
            rows = _rows(each)
            if rows is None:
                return False
            low, high = min(low, rows[0]), max(high, rows[1])
        if _MUCH_LESS * (high - low) > self._chain.chunk.shape[0]:
            return False
        chunk = self._chain.decode_part(data, low, high)
        if chunk is None:
            return False
        note((DECODED, (1, len(data), chunk.nbytes)))
        _copy_rows(chunk, low, wanted)
        return True

    def fill(self, cell: Cell, wanted: Sequence[Wanted]) -> None:
        """Put fill values where a missing chunk would be.

        Raises:
            NotFoundError: missing chunks are errors; names it.
        """
        fill = self.array.fill_of_missing(cell)
        chunk = np.broadcast_to(fill, self._chain.chunk.shape) if fill.ndim else None
        for view, each in wanted:
            view[each.position] = fill if chunk is None else chunk[each.inside]

    def decoded(self, cell: Cell, data: Buffer) -> Array:
        """A whole chunk in memory of its own, read-only, as a cache pool keeps it.

        Raises:
            DataLossError, ResourceExhaustedError: as `decode`.
        """
        chain = self._chain
        try:
            chunk = np.empty(chain.chunk.shape, chain.chunk.dtype)
            with self._copying:
                note((DECODED, (1, len(data), self._size)))
                chain.decode_into(data, chunk)
        except CHUNK_FAILURES as error:
            raise self.array.corrupt_chunk(cell, error) from error
        chunk.flags.writeable = False
        return chunk

    def copy(self, chunk: Array, wanted: Sequence[Wanted]) -> None:
        """Copy what is wanted of a decoded chunk."""
        with self._copying:
            for view, each in wanted:
                view[each.position] = chunk[each.inside]

    # --------------------------------------------------------------------------------------- runs

    def decode_run(
        self, view: Array, run: ChunkRun, cells: Sequence[Cell], values: Sequence[Buffer | None]
    ) -> None:
        """Decode a run of chunks to staging memory and copy them in one go.

        `values` are the stored bytes of each of its `cells`; None where one is missing.
        """
        chain = self._chain
        size = chain.chunk.size_bytes
        sizes = [len(data) for data in values if data is not None]
        note((DECODED, (len(sizes), sum(sizes), len(sizes) * size)))
        with self._copying:
            memory, chunks = staging(chain.chunk, len(cells))
            for number, data in enumerate(values):
                if data is None:
                    chunks[number] = self.array.fill_of_missing(cells[number])
                    continue
                try:
                    chain.decode_to(data, memory[number * size : (number + 1) * size])
                except CHUNK_FAILURES as error:
                    raise self.array.corrupt_chunk(cells[number], error) from error
            interleaved(view, run)[...] = chunks[(slice(None), *run.inside)]

    def decode_slices(
        self, plan: Plan, wanted: Sequence[Wanted], values: Sequence[Buffer], length: int
    ) -> None:
        """Decode chunks that are stored, for one view; neighbours in runs of up to `length`."""
        done, view = 0, wanted[0][0]
        for run in runs_of(plan, [each for _, each in wanted], length):
            first, done = done, done + len(run.along)
            if len(run.along) == 1 or run.is_in_place(view):
                for each, data in zip(wanted[first:done], values[first:done], strict=True):
                    self.decode(each[1].cell, data, (each,))
            else:
                self.decode_run(view, run, run.cells(), values[first:done])

    # --------------------------------------------------------------------------------------- rows

    def row_ranges(self, wanted: Sequence[Wanted]) -> Sequence[RowRange] | None:
        """The ranges of rows that hold what is wanted; None if the whole chunk had better be read.

        Rows are positions of the first axis. They can be read by themselves where chunks are stored
        as they are (`CodecChain.row_bytes`).
        """
        row_bytes = self._row_bytes
        if row_bytes is None or wanted[0][1].whole:
            return None
        placed = []
        for each in wanted:
            found = _rows(each[1])
            if found is None:
                return None
            placed.append((*found, each))
        placed.sort(key=itemgetter(0))
        ranges: list[RowRange] = []
        for low, high, each in placed:
            if ranges and low <= ranges[-1].high:
                last = ranges[-1]
                last.wanted.append(each)
                ranges[-1] = last._replace(high=max(last.high, high))
            else:
                ranges.append(RowRange(low, high, [each]))
        rows = sum(each.high - each.low for each in ranges)
        return ranges if _MUCH_LESS * rows <= self._chain.chunk.shape[0] else None

    def byte_ranges(self, ranges: Sequence[RowRange]) -> tuple[list[ByteRange], int]:
        """Where these rows are in the stored bytes, and how many bytes the chunk must have."""
        size = self._chain.row_bytes
        assert size is not None
        found = [ByteRange(each.low * size, each.high * size) for each in ranges]
        return found, size * self._chain.chunk.shape[0]

    def decode_rows(
        self, cell: Cell, ranges: Sequence[RowRange], values: Sequence[Buffer | None]
    ) -> None:
        """Copy what is wanted of ranges of rows; None where the chunk is missing.

        Raises:
            DataLossError, ResourceExhaustedError, NotFoundError: as `decode` and `fill`.
        """
        try:
            with self._copying:
                for data, (low, high, wanted) in zip(values, ranges, strict=True):
                    if data is None:
                        self.fill(cell, wanted)
                        continue
                    note((DECODED, (1, len(data), len(data))))
                    _copy_rows(self._chain.decode_rows(data, high - low), low, wanted)
        except CHUNK_FAILURES as error:
            raise self.array.corrupt_chunk(cell, error) from error


def _rows(each: ChunkSlice) -> tuple[int, int] | None:
    """The range of the first axis that a slice of a chunk is in; None for an index array's."""
    first = each.inside[0]
    if isinstance(first, slice):
        return first.start, first.stop
    if isinstance(first, int):
        return first, first + 1
    return None


def _copy_rows(rows: Array, low: int, wanted: Sequence[Wanted]) -> None:
    """Copy what is wanted of positions of the first axis, from `low` on."""
    for view, each in wanted:
        first, *others = each.inside
        start: int | slice
        if isinstance(first, slice):
            start = slice(first.start - low, first.stop - low, first.step)
        else:
            assert isinstance(first, int)
            start = first - low
        view[each.position] = rows[(start, *others)]
