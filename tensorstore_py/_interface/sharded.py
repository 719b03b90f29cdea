"""The sharding promise: a serializer whose bytes hold many independently stored inner chunks.

The engine reads and writes inner chunks by their position in the shard's index, so it needs to
see inside; every other serializer is opaque to it. Index entries are `(offset, size)` in bytes
from the shard's start; `MISSING` in both marks an inner chunk that is not stored.

A format says how its index is encoded. What follows from that is here: whole shards are encoded
and decoded inner chunk by inner chunk, in C order, and those that hold nothing but the fill value
are left out.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sized
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING, Final, Self, TypeVar

import numpy as np

from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.codec import ArrayToBytes, ChunkType
from tensorstore_py._runtime.buffers import joined
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import EllipsisType

    from numpy.typing import NDArray

    from tensorstore_py._interface.codec import Array
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.kvstore import Buffer

    Cell = tuple[slice | EllipsisType, ...]

__all__ = ["MISSING", "Sharded"]

MISSING: Final = 2**64 - 1

B = TypeVar("B", bound=Sized)
_LEFT_BEHIND: Final = 1 << 16
_BITS: dict[int, np.dtype[np.generic]] = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


class Sharded(ArrayToBytes):
    """A bound sharding codec; a format defines `decode_index` and `encode_index`.

    Args:
        chunk: the whole shard.
        inner: the chain of one inner chunk; `inner.chunk.shape` is the inner chunk's shape.
        grid_shape: how many inner chunks a shard has along each dimension.
        index_size: encoded size of the index in bytes.
        index_at_end: whether the index is a suffix of the shard; a prefix otherwise.
    """

    def __init__(
        self,
        chunk: ChunkType,
        inner: CodecChain,
        grid_shape: tuple[int, ...],
        *,
        index_size: int,
        index_at_end: bool,
    ) -> None:
        self.inner = inner
        self.partial = inner.to_bytes.partial
        self.grid_shape = grid_shape
        self.index_size = index_size
        self._chunk = chunk
        self._index_at_end = index_at_end
        inner_most = inner.most_bytes()
        if inner_most is not None:
            # Twice, and then some, for what partial writes of others may have left behind.
            self.most_bytes = index_size + 2 * prod(grid_shape) * inner_most + _LEFT_BEHIND
        self._bits = None if chunk.dtype.hasobject else _BITS.get(chunk.dtype.itemsize)

    @staticmethod
    def index_type(grid_shape: tuple[int, ...]) -> ChunkType:
        """The index as a chunk of its own: `(offset, size)` for each inner chunk."""
        dtype = np.dtype(np.uint64)
        return ChunkType((*grid_shape, 2), dtype, np.array(MISSING, dtype))

    @abstractmethod
    def decode_index(self, data: Buffer) -> NDArray[np.uint64]:
        """The index as `[number of inner chunks in C order, 2]` of `(offset, size)`.

        Raises:
            DataLossError: truncated, or its checksum fails.
        """

    @abstractmethod
    def encode_index(self, index: NDArray[np.uint64]) -> Buffer:
        """The stored form of an index of shape `[*grid_shape, 2]`."""

    def index_range(self) -> ByteRange:
        """Where the index is: a prefix or a suffix of the shard."""
        return ByteRange(-self.index_size) if self._index_at_end else ByteRange(0, self.index_size)

    def unpacking(self, unpacked_bytes: int) -> Self:
        inner = self.inner.unpacking(unpacked_bytes)
        if inner is self.inner:
            return self
        # `copy.copy` imports, which fails when the interpreter ends.
        codec = object.__new__(type(self))
        codec.__dict__.update(self.__dict__)
        codec.inner = inner
        return codec

    def assemble(self, chunks: Mapping[int, B]) -> Sequence[Buffer | B] | None:
        """The parts of a shard from encoded inner chunks by C-order number; None without any.

        Args:
            chunks: the inner chunks, or what stands for them: all that counts is their length.
        """
        return self._parts(chunks) if chunks else None

    def encode(self, array: Array) -> Buffer:
        chunks = {}
        for number, (piece, bits) in enumerate(self._pieces(array)):
            if not self._is_fill(piece, bits):
                chunks[number] = self.inner.encode(piece)
        return joined(self._parts(chunks))

    def encode_over(self, array: Array, stored: Buffer | None, *, keep_fill: bool) -> Buffer | None:
        view = memoryview(b"" if stored is None else stored)
        entries = [[MISSING, 0]] * prod(self.grid_shape) if stored is None else self._entries(view)
        chunks: dict[int, Buffer] = {}
        for number, ((offset, size), cell) in enumerate(zip(entries, self._cells(), strict=True)):
            present = None if offset == MISSING else view[offset : offset + size]
            data = self.inner.encode_over(array[cell], present, keep_fill=keep_fill)
            if data is not None:
                chunks[number] = data
        return joined(self._parts(chunks)) if chunks else None

    def decode(self, data: Buffer) -> Array:
        out: Array = np.empty(self._chunk.shape, self._chunk.dtype)
        self.decode_into(data, out)
        return out

    def decode_into(self, data: Buffer, out: Array) -> None:
        view = memoryview(data)
        for (offset, size), cell in zip(self._entries(view), self._cells(), strict=True):
            if offset == MISSING:
                out[cell] = self._chunk.fill_value
            else:
                self.inner.decode_into(view[offset : offset + size], out[cell])

    def _entries(self, data: memoryview) -> list[list[int]]:
        """The index of a whole shard; every entry is missing or within the shard."""
        size = len(data)
        if size < self.index_size:
            raise DataLossError(
                f"the shard has {size} bytes, fewer than its index of {self.index_size}"
            )
        start = size - self.index_size if self._index_at_end else 0
        index = self.decode_index(data[start : start + self.index_size])
        offsets, sizes = index[:, 0], index[:, 1]
        missing = (offsets == MISSING) & (sizes == MISSING)
        # Compared so that no sum can wrap around.
        outside = (offsets > size) | (sizes > size - np.minimum(offsets, size))
        bad = outside & ~missing
        if bad.any():
            number = int(bad.argmax())
            raise DataLossError(
                f"shard index entry {number} (offset {offsets[number]}, size {sizes[number]}) "
                f"is outside the shard of {size} bytes"
            )
        entries: list[list[int]] = index.tolist()
        return entries

    def _parts(self, chunks: Mapping[int, B]) -> Sequence[Buffer | B]:
        """Inner chunks and index, in the order in which they are stored."""
        numbers = sorted(chunks)
        parts: list[Buffer | B] = [chunks[number] for number in numbers]
        start = 0 if self._index_at_end else self.index_size
        index = np.full((*self.grid_shape, 2), MISSING, np.uint64)
        entries = index.reshape(-1, 2)
        sizes = [len(part) for part in parts]
        entries[numbers, 0] = list(accumulate(sizes, initial=start))[:-1]
        entries[numbers, 1] = sizes
        stored = self.encode_index(index)
        return [*parts, stored] if self._index_at_end else [stored, *parts]

    def _cells(self) -> Iterator[Cell]:
        """Where each inner chunk is, in C order."""
        axes = [
            [slice(start, start + inner) for start in range(0, outer, inner)]
            for inner, outer in zip(self.inner.chunk.shape, self._chunk.shape, strict=True)
        ]
        # The ellipsis makes a shard of rank 0 come out as an array, not as a scalar.
        return product(*axes, (...,))

    def _pieces(self, array: Array) -> Iterator[tuple[Array, Array | None]]:
        """Each inner chunk, with its bits as unsigned integers where such a type exists."""
        bits = None if self._bits is None else array.view(self._bits)
        for cell in self._cells():
            yield array[cell], None if bits is None else bits[cell]

    def _is_fill(self, piece: Array, bits: Array | None) -> bool:
        """Whether every element is the fill value, bit by bit: -0.0 is not 0.0, NaN is NaN."""
        fill = self._chunk.fill_value
        if bits is not None:
            fill = fill.view(bits.dtype)
            # Most chunks that hold data differ in the first element already.
            first = bits[(0,) * bits.ndim]
            return bool(first == fill.flat[0]) and bool((bits == fill).all())
        if piece.dtype.hasobject:
            return bool(np.all(piece == fill))
        elements = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
        expected = np.ascontiguousarray(fill).reshape(-1).view(np.uint8)
        return bool((elements.reshape(-1, len(expected)) == expected).all())
