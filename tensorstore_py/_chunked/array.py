"""A chunked array: a source of chunks, a grid, a codec chain and a fill value.

The one idea of the engine: a zarr array is this, a shard is this with another source, and
reading or writing either is the same code. `ChunkSource` is all that the engine knows of where
stored bytes are: one key a chunk (`StoredChunks`), or a part of one key (`shard.OpenShard`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py._chunked.limits import UNLIMITED
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.new_array import exhausted
from tensorstore_py._interface.sharded import Sharded
from tensorstore_py._interface.store_abilities import (
    read_parts,
    read_values,
    write_segments,
    write_values,
)
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py.errors import (
    DataLossError,
    NotFoundError,
    ResourceExhaustedError,
    TensorStoreError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorstore_py._chunked.limits import Limits
    from tensorstore_py._interface.chunk_grid import ChunkAxis
    from tensorstore_py._interface.chunk_keys import ChunkKeys
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer, KvStore, ReadResult

__all__ = [
    "CHUNK_FAILURES",
    "Array",
    "ArraysByShape",
    "Cell",
    "ChainsByShape",
    "ChunkSource",
    "ChunkedArray",
    "StoredChunks",
]

Cell = tuple[int, ...]
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: What may be wrong with one chunk: its bytes, or that there is no memory for what they stand for.
CHUNK_FAILURES: Final = (DataLossError, MemoryError)

#: Arrays may have as many shapes of chunks as chunks; so many are remembered.
_SHAPES: Final = 1024

#: Element sizes that NumPy compares as one integer.
_WORDS: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class ChunkSource(ABC):
    """Stored bytes by cell.

    Attributes:
        inline: the execution mode of the store at the bottom.
        width: how many reads in flight it makes good use of.
    """

    inline: bool
    width: int

    @abstractmethod
    async def read(
        self,
        cell: Cell,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """The stored bytes of a chunk, or a part of them; conditions as for `KvStore.read`."""

    async def parts(
        self, cell: Cell, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        """Parts of the stored bytes of a chunk; see `BulkRead`."""
        return None

    async def values(self, cells: Sequence[Cell], room: memoryview) -> Sequence[Buffer | None]:
        """The stored bytes of several chunks, None where one is missing.

        See `BulkRead`.
        """
        results = [await self.read(cell) for cell in cells]
        return [result.value if result.state == "value" else None for result in results]

    @abstractmethod
    def describe(self, cell: Cell) -> str:
        """How error messages name the chunk."""


class StoredChunks(ChunkSource):
    """One key a chunk.

    Args:
        store: where.
        prefix: the array's path, ending in "/" unless empty.
        keys: names of the chunks below it.
        width: how many chunks are worked on at a time; what the store makes good use of by default.
    """

    __slots__ = ("_keys", "inline", "prefix", "store", "width")

    def __init__(
        self, store: KvStore, prefix: str, keys: ChunkKeys, width: int | None = None
    ) -> None:
        self.store = store
        self.prefix = prefix
        self._keys = keys
        self.inline = store.inline
        self.width = store.width if width is None else width

    def on(self, store: KvStore) -> StoredChunks:
        """The same chunks by another way to their store."""
        return StoredChunks(store, self.prefix, self._keys, self.width)

    def key(self, cell: Cell) -> str:
        """The whole key of a chunk."""
        return self.prefix + self._keys.encode(cell)

    async def read(
        self,
        cell: Cell,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        key = self.prefix + self._keys.encode(cell)
        return await self.store.read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)

    async def parts(
        self, cell: Cell, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        return await read_parts(self.store, self.key(cell), ranges, size)

    async def values(self, cells: Sequence[Cell], room: memoryview) -> Sequence[Buffer | None]:
        prefix, encode = self.prefix, self._keys.encode
        return await read_values(self.store, [prefix + encode(cell) for cell in cells], room)

    async def write_values(self, cells: Sequence[Cell], values: Sequence[Buffer | None]) -> None:
        """Store several chunks, or delete those with `None`; see `BulkWrite`."""
        prefix, encode = self.prefix, self._keys.encode
        await write_values(self.store, [prefix + encode(cell) for cell in cells], values)

    async def write(
        self, cell: Cell, segments: Sequence[Buffer] | None, *, owned: bool
    ) -> TimestampedStorageGeneration:
        """Store a chunk, or delete it with `None`; see `SegmentedWrite`."""
        return await write_segments(self.store, self.key(cell), segments, owned=owned)

    def describe(self, cell: Cell) -> str:
        return self.store.describe_key(self.key(cell))


@dataclass(frozen=True, slots=True)
class ChunkedArray:
    """See the head of this file.

    Attributes:
        source: where the chunks' bytes are.
        grid: how each dimension is cut.
        chain: how a chunk is encoded; its fill value stands for what is not stored. Where chunks
            differ in shape, it is for those of the largest one.
        fill_missing: a missing chunk reads as the fill value; else it is an error.
        store_fill: chunks equal to the fill value are stored like any other.
        limits: what its reads and writes share with others.
        growing: its bounds were seen to change, so other writers may know of further ones by now.
        shapes: the array as chunks of each shape see it, where they differ; None where they don't.
    """

    source: ChunkSource
    grid: tuple[ChunkAxis, ...]
    chain: CodecChain
    fill_missing: bool = True
    store_fill: bool = False
    limits: Limits = UNLIMITED
    growing: bool = False
    shapes: ArraysByShape | None = None

    def at(self, cell: Cell) -> ChunkedArray:
        """The array for a reader or writer of just that chunk: all its chunks are of its shape."""
        return self if self.shapes is None else self.shapes.of(self, self.chunk_shape(cell))

    def chunk_shape(self, cell: Cell) -> tuple[int, ...]:
        """Shape of a stored chunk, including what lies beyond the bounds."""
        return tuple([axis.size(index) for axis, index in zip(self.grid, cell, strict=True)])

    def cells(self, box: Sequence[tuple[int, int]]) -> Iterator[Cell]:
        """The cells that a box touches, in order.

        Args:
            box: lower and upper bound along each dimension, within the array's.
        """
        return product(
            *(
                range(axis.cell(low), axis.cell(high - 1) + 1 if high > low else axis.cell(low))
                for axis, (low, high) in zip(self.grid, box, strict=True)
            )
        )

    @property
    def sharded(self) -> Sharded | None:
        """The sharding codec, if inner chunks can be addressed without decoding the whole shard."""
        codec = self.chain.to_bytes
        if isinstance(codec, Sharded) and not self.chain.compressors and not self.chain.to_array:
            return codec
        return None

    def filled_chunk(self) -> Array:
        """A fresh chunk of fill values."""
        chunk = self.chain.chunk
        return np.full(chunk.shape, chunk.fill_value, dtype=chunk.dtype)

    def fill_of_missing(self, cell: Cell) -> Array:
        """The fill value, which a missing chunk reads as.

        Raises:
            NotFoundError: the spec demands that chunks are stored; names the key.
        """
        if self.fill_missing:
            return self.chain.chunk.fill_value
        raise NotFoundError(
            f"chunk {cell} stored at {self.source.describe(cell)} is missing; "
            'with "fill_missing_data_reads": true it would read as the fill value'
        )

    def corrupt_chunk(self, cell: Cell, error: Exception) -> TensorStoreError:
        """One of `CHUNK_FAILURES` with the chunk's key in front, as an error of this package."""
        kind = DataLossError if isinstance(error, DataLossError) else ResourceExhaustedError
        if not isinstance(error, TensorStoreError):
            error = exhausted(self.chain.chunk.shape, self.chain.chunk.dtype)
        return kind(f"Error reading {self.source.describe(cell)}: {error}")

    def is_fill(self, array: Array) -> bool:
        """Whether every element is the fill value bit for bit: NaN equals NaN, 0.0 not -0.0."""
        if not array.size:
            return True
        if array.dtype.hasobject:
            fills = np.broadcast_to(self.chain.chunk.fill_value, array.shape)
            return all(
                type(element) is type(other) and _same(element, other)
                for element, other in zip(array.flat, fills.flat, strict=True)
            )
        if self.chain.chunk.fill_value.ndim:
            return np.ascontiguousarray(array).tobytes() == self.filled_chunk().tobytes()
        fill = self.chain.chunk.fill_value.tobytes()
        corners = (array[(0,) * array.ndim], array[(-1,) * array.ndim])
        if any(corner.tobytes() != fill for corner in corners):
            return False
        word = _WORDS.get(array.dtype.itemsize)
        if word is None:
            return np.ascontiguousarray(array).tobytes() == fill * array.size
        bits = np.frombuffer(fill, word)
        return bool((np.ascontiguousarray(array).reshape(-1).view(word) == bits[0]).all())

    def encode(self, chunk: Array, stored: Buffer | None) -> Buffer | None:
        """A whole chunk's bytes; None if it equals the fill value and need not be stored.

        Args:
            chunk: its values.
            stored: its present bytes, where the serializer keeps some of them.
        """
        if self.chain.to_bytes.partial:
            return self.chain.encode_over(chunk, stored, keep_fill=self.store_fill)
        if not self.store_fill and self.is_fill(chunk):
            return None
        return self.chain.encode(chunk)


def _same(element: object, fill: object) -> bool:
    """Whether two Python objects are equal; arrays never are, for all that it costs is space."""
    return element is fill or (not isinstance(element, np.ndarray) and bool(element == fill))


class ChainsByShape:
    """The codecs of an array whose chunks differ in shape, bound to each shape when it is met.

    Args:
        bind: makes the chain of chunks of a shape.

    Example:
        >>> import numpy as np
        >>> from tensorstore_py._interface.codec_list import bind_chain
        >>> from tensorstore_py._interface.codec import ChunkType
        >>> zero = np.zeros((), "uint16")
        >>> chains = ChainsByShape(lambda shape: bind_chain((), ChunkType(shape, zero.dtype, zero)))
        >>> chains.of((2, 3)).encoded_size(), chains.of((4, 3)).encoded_size()
        (12, 24)
    """

    __slots__ = ("_bind", "_chains")

    def __init__(self, bind: Callable[[tuple[int, ...]], CodecChain]) -> None:
        self._bind = bind
        self._chains: LruCache[CodecChain] = LruCache(_SHAPES)

    def of(self, shape: tuple[int, ...]) -> CodecChain:
        """The chain of chunks of that shape.

        Raises:
            SpecError: a codec does not fit them; the path starts with `("codecs", position)`.
        """
        return self._chains.get(shape, lambda: self._bind(shape))


class ArraysByShape:
    """An array as chunks of each shape see it: to it, all chunks are of that shape.

    All who ask for one shape get the same array, so parts of a chunk can be written together.

    Args:
        chains: their chains.
    """

    __slots__ = ("_arrays", "_chains")

    def __init__(self, chains: ChainsByShape) -> None:
        self._chains = chains
        self._arrays: LruCache[ChunkedArray] = LruCache(_SHAPES)

    def of(self, array: ChunkedArray, shape: tuple[int, ...]) -> ChunkedArray:
        """The one for chunks of a shape of `array`, which has this as its `shapes`."""
        limit = array.chain.unpacked_bytes
        return self._arrays.get(
            shape,
            lambda: replace(array, chain=self._chains.of(shape).unpacking(limit), shapes=None),
        )
