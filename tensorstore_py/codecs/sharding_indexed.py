"""Sharding: one stored value holds a grid of inner chunks and an index of where each one is.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/
Names: `sharding_indexed` (zarr3).
Example: `{"name": "sharding_indexed", "configuration": {"chunk_shape": [32, 32], "codecs":
["bytes", "zstd"], "index_codecs": ["bytes", "crc32c"], "index_location": "end"}}`.
Limits: the index must have the same size in every shard, so it cannot be compressed. It is an array
of `(offset, size)` in bytes from the value's start, for every inner chunk in C order, encoded by
codecs of its own. `MISSING` in both marks an inner chunk that is not stored because it holds
nothing but the fill value. Inner chunks are written in C order, but read from wherever it says.
"""

from __future__ import annotations

from collections.abc import Sized
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    MISSING,
    Array,
    Buffer,
    ByteRange,
    ChunkType,
    CodecChain,
    CodecList,
    CodecModel,
    Sharded,
    ShardedSpec,
    codec,
    joined,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import EllipsisType

    from numpy.typing import NDArray

    Cell = tuple[slice | EllipsisType, ...]

__all__ = ["ShardingIndexed", "ShardingIndexedSpec"]

B = TypeVar("B", bound=Sized)
_LEFT_BEHIND = 1 << 16
_BITS: dict[int, np.dtype[np.generic]] = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


@codec("sharding_indexed", family="zarr3")
class ShardingIndexedSpec(ShardedSpec):
    """Asked: `sharding_indexed`.

    Attributes:
        chunk_shape: shape of the inner chunks; it divides the shard's, which is the default.
        codecs: how an inner chunk is encoded; `bytes` if nothing is asked.
        index_codecs: how the index is encoded; little-endian `bytes` and `crc32c` if nothing
            is asked. The encoded size must not depend on the values.
        index_location: `"end"` or `"start"`; the end if nothing is asked.

    Example:
        >>> spec = ShardingIndexedSpec.parse({"chunk_shape": [2, 3], "codecs": ["gzip"]})
        >>> spec.to_json()
        {'chunk_shape': [2, 3], 'codecs': [{'name': 'gzip'}]}
    """

    list_members: ClassVar[tuple[str, ...]] = ("codecs", "index_codecs")

    index_codecs: CodecList | None = None
    index_location: Literal["end", "start"] | None = None

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        if include_defaults:
            json["index_location"] = self.index_location or "end"

    def resolved(self, chunk: ChunkType) -> ShardingIndexedSpec:
        inner, index, _ = self._inner(chunk)
        return self.replace(
            chunk_shape=inner.shape,
            codecs=self.resolved_list("codecs", self.codecs or (), inner),
            index_codecs=self.resolved_list("index_codecs", self._index_codecs(), index),
        )

    def bind(self, chunk: ChunkType) -> ShardingIndexed:
        inner, index, grid_shape = self._inner(chunk)
        chain = self.bound_list("codecs", self.codecs or (), inner)
        index_chain = self.bound_list("index_codecs", self._index_codecs(), index)
        index_size = index_chain.encoded_size()
        if index_size is None:
            raise SpecError(
                "an index must have the same size in every shard: leave out compressors",
                ("configuration", "index_codecs"),
            )
        return ShardingIndexed(
            chunk=chunk,
            inner=chain,
            grid_shape=grid_shape,
            index_chain=index_chain,
            index_size=index_size,
            index_at_end=self.index_location != "start",
        )

    def _index_codecs(self) -> tuple[CodecModel, ...]:
        if self.index_codecs is not None:
            return self.index_codecs
        return type(self).parse({"index_codecs": ["bytes", "crc32c"]}).index_codecs or ()

    def _inner(self, chunk: ChunkType) -> tuple[ChunkType, ChunkType, tuple[int, ...]]:
        """What an inner chunk is, what the index is, and the number of chunks in each dimension."""
        shape = chunk.shape if self.chunk_shape is None else self.chunk_shape
        path = ("configuration", "chunk_shape")
        if len(shape) != len(chunk.shape):
            raise SpecError(
                f"{list(shape)} has {len(shape)} dimensions, but the shard has {len(chunk.shape)}",
                path,
            )
        for dimension, (inner, outer) in enumerate(zip(shape, chunk.shape, strict=True)):
            if outer % inner:
                raise SpecError(f"{inner} does not divide the shard's {outer}", (*path, dimension))
        grid_shape = tuple(outer // inner for inner, outer in zip(shape, chunk.shape, strict=True))
        dtype = np.dtype(np.uint64)
        index = ChunkType((*grid_shape, 2), dtype, np.array(MISSING, dtype))
        return ChunkType(shape, chunk.dtype, chunk.fill_value), index, grid_shape


class ShardingIndexed(Sharded):
    """The bound codec.

    Args:
        chunk: the whole shard.
        inner: the chain of an inner chunk.
        grid_shape: number of inner chunks along each dimension.
        index_chain: the chain of the index.
        index_size: encoded size of the index in bytes.
        index_at_end: whether the index is a suffix; a prefix otherwise.
    """

    def __init__(
        self,
        *,
        chunk: ChunkType,
        inner: CodecChain,
        grid_shape: tuple[int, ...],
        index_chain: CodecChain,
        index_size: int,
        index_at_end: bool,
    ) -> None:
        self.inner = inner
        self.partial = inner.to_bytes.partial
        self.grid_shape = grid_shape
        self.index_size = index_size
        self._chunk = chunk
        self._index_chain = index_chain
        self._index_at_end = index_at_end
        inner_most = inner.most_bytes()
        if inner_most is not None:
            # Twice, and then some, for what partial writes of others may have left behind.
            self.most_bytes = index_size + 2 * prod(grid_shape) * inner_most + _LEFT_BEHIND
        self._bits = None if chunk.dtype.hasobject else _BITS.get(chunk.dtype.itemsize)

    def index_range(self) -> ByteRange:
        return ByteRange(-self.index_size) if self._index_at_end else ByteRange(0, self.index_size)

    def decode_index(self, data: Buffer) -> NDArray[np.uint64]:
        if len(data) != self.index_size:
            raise DataLossError(
                f"the shard's index needs {self.index_size} bytes, but there are {len(data)}"
            )
        try:
            entries = self._index_chain.decode(data)
        except DataLossError as error:
            raise DataLossError(f"the shard's index is corrupt: {error}") from error
        return np.ascontiguousarray(entries, np.uint64).reshape(-1, 2)

    def assemble(self, chunks: Mapping[int, B]) -> Sequence[Buffer | B] | None:
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
        stored = self._index_chain.encode(index)
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
