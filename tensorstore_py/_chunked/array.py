"""A chunked array: a source of chunks, a grid, a codec chain and a fill value.

The one idea of the engine: a zarr array is this, a shard is this with another source, and
reading or writing either is the same code. `ChunkSource` is all that the engine knows of where
stored bytes are: one key a chunk (`StoredChunks`), or a part of one key (`shard.OpenShard`).
`ArrayLayout` is what a metadata document says of an array, bound and checked once: a zarr driver is
a metadata parser that returns one of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from operator import lt
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from tensorstore_py._chunked.counts import ENCODED
from tensorstore_py._index import identity
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.chunk_keys import OuterKeys
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._interface.new_array import exhausted
from tensorstore_py._interface.sharded import Sharded
from tensorstore_py._interface.store_abilities import (
    BulkRead,
    CachedRead,
    RangeRead,
    read_as_of,
    read_parts,
    read_values,
    write_segments,
    write_values,
)
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py._runtime.limiters import MemoryBudget, ThreadLimiter
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py._runtime.metrics import note
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    TensorStoreError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from tensorstore_py._index import IndexDomain, IndexTransform
    from tensorstore_py._interface.array_info import ArrayInfo
    from tensorstore_py._interface.chunk_grid import ChunkAxis
    from tensorstore_py._interface.chunk_keys import ChunkKeys
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.driver import ResizeRequest
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer, KvStore
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.schema import Schema

__all__ = [
    "CHUNK_FAILURES",
    "Array",
    "ArrayLayout",
    "ArraysByShape",
    "Cell",
    "ChainsByShape",
    "ChunkSource",
    "ChunkedArray",
    "Limits",
    "StoredChunks",
]

T = TypeVar("T")

Cell = tuple[int, ...]
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: What may be wrong with one chunk: its bytes, or that there is no memory for what they stand for.
CHUNK_FAILURES: Final = (DataLossError, MemoryError)

#: Arrays may have as many shapes of chunks as chunks; so many are remembered.
_SHAPES: Final = 1024

#: So many chunks are found before they are deleted: there may be more than memory has room for.
_DELETED_TOGETHER: Final = 2**12

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

    async def ranges(
        self, cell: Cell, ranges: Sequence[ByteRange], generation: bytes
    ) -> Sequence[ReadResult]:
        """Parts of the stored bytes of a chunk, each a value only if it is of that generation."""
        return [await self.read(cell, each, if_equal=generation) for each in ranges]

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
    """One key a chunk, below `prefix`, the array's path, which ends in "/" unless empty.

    Reads give what is stored; `since` some time, then or by now, where the store has cached reads.
    """

    __slots__ = ("_keys", "_since", "inline", "prefix", "store", "width")

    def __init__(
        self,
        store: KvStore,
        prefix: str,
        keys: ChunkKeys,
        width: int | None = None,
        since: float | None = None,
    ) -> None:
        self.store = store
        self.prefix = prefix
        self._keys = keys
        self._since = since if isinstance(store, CachedRead) else None
        self.inline = store.inline
        self.width = store.width if width is None else width

    def on(self, store: KvStore) -> StoredChunks:
        """The same chunks by another way to their store."""
        return StoredChunks(store, self.prefix, self._keys, self.width)

    def since(self, time_s: float) -> StoredChunks:
        """The same chunks for readers who make do with what they were at that time."""
        return StoredChunks(self.store, self.prefix, self._keys, self.width, time_s)

    def key(self, cell: Cell) -> str:
        """The whole key of a chunk."""
        return self.prefix + self._keys.encode(cell)

    def cell(self, key: str) -> Cell | None:
        """The chunk that a whole key below the prefix is of; None: of none."""
        return self._keys.decode(key[len(self.prefix) :])

    def read(
        self,
        cell: Cell,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> Coroutine[Any, Any, ReadResult]:
        key = self.prefix + self._keys.encode(cell)
        # The store's own coroutine, as below: one more around it would cost what counting does.
        store, since = self.store, self._since
        if since is not None:
            return read_as_of(
                store, key, byte_range, since, if_equal=if_equal, if_not_equal=if_not_equal
            )
        return store.read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)

    async def ranges(
        self, cell: Cell, ranges: Sequence[ByteRange], generation: bytes
    ) -> Sequence[ReadResult]:
        store = self.store
        # Where a call costs about as much as it moves, one call finds the value once for all.
        if len(ranges) == 1 or not (isinstance(store, BulkRead) and isinstance(store, RangeRead)):
            return await super().ranges(cell, ranges, generation)
        try:
            results = await store.read_ranges(self.key(cell), ranges)
        except OutOfRangeError:  # of this generation, or of a shorter value that came meanwhile
            return await super().ranges(cell, ranges, generation)
        if generation == UNKNOWN:
            return results
        return [
            each
            if each.stamp.generation == generation
            else ReadResult("unspecified", b"", each.stamp)
            for each in results
        ]

    def parts(
        self, cell: Cell, ranges: Sequence[ByteRange], size: int
    ) -> Coroutine[Any, Any, Sequence[Buffer | None] | None]:
        return read_parts(self.store, self.prefix + self._keys.encode(cell), ranges, size)

    def values(
        self, cells: Sequence[Cell], room: memoryview
    ) -> Coroutine[Any, Any, Sequence[Buffer | None]]:
        prefix, encode = self.prefix, self._keys.encode
        return read_values(self.store, [prefix + encode(cell) for cell in cells], room)

    async def write_values(self, cells: Sequence[Cell], values: Sequence[Buffer | None]) -> None:
        """Store several chunks, or delete those with `None`; see `BulkWrite`."""
        prefix, encode = self.prefix, self._keys.encode
        await write_values(self.store, [prefix + encode(cell) for cell in cells], values)

    async def write(
        self, cell: Cell, segments: Sequence[Buffer] | None, *, owned: bool
    ) -> TimestampedStorageGeneration:
        """Store a chunk, or delete it with `None`; see `SegmentedWrite`."""
        return await write_segments(self.store, self.key(cell), segments, owned=owned)

    async def delete_outside(self, counts: Sequence[int], forget: Callable[[Cell], None]) -> None:
        """Delete the chunks that lie outside a grid of so many cells; other keys are left alone.

        `forget` is called for each of them when it is deleted, or may be.
        """

        async def delete(chunk: tuple[str, Cell]) -> None:
            key, cell = chunk
            try:
                await self.store.write(key, None)
            finally:
                forget(cell)

        async def delete_all(doomed: Sequence[tuple[str, Cell]]) -> None:
            count = len(doomed)
            await fan_out(self.inline, doomed, delete, count=count, width=self.store.width)

        doomed: list[tuple[str, Cell]] = []
        async for entry in self.store.list(KeyRange.prefix(self.prefix)):
            cell = self.cell(entry.key)
            if cell is None or all(map(lt, cell, counts)):
                continue
            doomed.append((entry.key, cell))
            if len(doomed) == _DELETED_TOGETHER:
                await delete_all(doomed)
                doomed = []
        await delete_all(doomed)

    def describe(self, cell: Cell) -> str:
        return self.store.describe_key(self.key(cell))


class Limits(NamedTuple):
    """What operations share: places for threads that work on a chunk, and bytes in flight."""

    copying: ThreadLimiter
    memory: MemoryBudget

    def in_flight(self, chunk_bytes: int) -> int:
        """What one chunk of that size counts: there may be it and its encoded form."""
        return 2 * chunk_bytes

    async def holding(
        self, inline: bool, size: int, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Do work of that execution mode that takes `size` bytes, when they can be had."""
        memory = self.memory
        if not memory.matters(inline, size):
            return await work()
        await memory.acquire(inline, size)
        try:
            return await work()
        finally:
            memory.release(size)

    async def computing(self, inline: bool, light: bool, work: Callable[[], T]) -> T:
        """Compute something of a chunk, in a place of `copying`; on the loop if it is `light`.

        That takes less time there than to wake a thread for it, and to come back.
        """
        if light and not inline and self.copying.try_acquire():
            try:
                return work()
            finally:
                self.copying.release()
        return await offload(inline, partial(self._computed, work))

    def _computed(self, work: Callable[[], T]) -> T:
        with self.copying:
            return work()


UNLIMITED: Final = Limits(ThreadLimiter(2**12), MemoryBudget(2**62))


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
        """The cells that a box touches, in order; its bounds are within the array's."""
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

        `stored` are its present bytes, of which some serializers keep a part.
        """
        if self.chain.to_bytes.partial:
            data = self.chain.encode_over(chunk, stored, keep_fill=self.store_fill)
        elif not self.store_fill and self.is_fill(chunk):
            return None
        else:
            data = self.chain.encode(chunk)
        if data is not None:
            note((ENCODED, (1, memoryview(data).nbytes, chunk.nbytes)))
        return data


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


@dataclass(frozen=True)
class ArrayLayout:
    """A bound array format.

    Attributes:
        data_type: element type as users see it.
        domain: zero origin; upper bounds implicit where they can be resized; labels.
        grid: how each dimension is cut.
        chain: how a chunk is encoded, with the fill value that stands for what is not stored.
            Where chunks differ in shape, it is for those of the largest one.
        keys: names of the chunks, relative to the array's path.
        describe: makes its schema, which most who open an array never look at.
        always_store: chunks equal to the fill value are stored, whatever the spec says
            (zarr version 2 with no fill value of its own).
        chains: the chain of each shape where chunks differ in shape; None where they don't.
    """

    data_type: dtype
    domain: IndexDomain
    grid: tuple[ChunkAxis, ...]
    chain: CodecChain
    keys: ChunkKeys
    describe: Callable[[], Schema] = field(compare=False)
    always_store: bool = False
    chains: ChainsByShape | None = None

    @classmethod
    def of(
        cls,
        info: ArrayInfo,
        chain: CodecChain,
        keys: ChunkKeys,
        *,
        grid: Sequence[ChunkAxis] | None = None,
        chains: ChainsByShape | None = None,
        describe: Callable[[], Schema] | None = None,
        always_store: bool = False,
    ) -> ArrayLayout:
        """The layout of an array.

        Args:
            info: what is known of it: data type, shape, labels, and with `grid` no more.
            chain: see above.
            keys: names by the array's own dimensions.
            grid: how its own dimensions are cut; None: all chunks are of the write chunk's shape.
            chains: see above.
            describe: see above; None: `info` is of all of it.
            always_store: see above.
        """
        assert info.data_type is not None
        shape, inner = info.shape or (), info.inner
        if grid is None:
            sizes = [1 if size is None else size for size in info.write_chunk or ()]
            grid = [*map(RegularAxis, shape, sizes)]
        return cls(
            data_type=info.data_type,
            domain=info.domain,
            grid=(*grid, *(RegularAxis(size, max(size, 1)) for size in inner)),
            chain=chain,
            keys=OuterKeys(keys, len(shape), len(inner)) if inner else keys,
            describe=describe or info.schema,
            always_store=always_store,
            chains=chains,
        )

    @cached_property
    def schema(self) -> Schema:
        """The array's whole schema."""
        return self.describe()

    @cached_property
    def whole(self) -> IndexTransform:
        """The view of everything, the same for all arrays alike."""
        return identity(self.domain)

    @cached_property
    def bounds(self) -> IndexDomain:
        """The domain for data, which never oversteps it; views may, where it can be resized."""
        return self.domain.mark_bounds_implicit[False]

    def chunk_starts(self, dim: int, low: int, high: int) -> Sequence[int]:
        """Where chunks begin in between, if they are not of one size."""
        if self.chains is None or dim >= len(self.grid):
            return ()
        axis = self.grid[dim]
        high = min(high, axis.extent)
        if low + 1 >= high:
            return ()
        return [axis.start(cell) for cell in range(axis.cell(low) + 1, axis.cell(high - 1) + 1)]

    def new_shape(self, request: ResizeRequest) -> tuple[int, ...]:
        """The chunked dimensions' extents after a resize.

        Raises:
            UnsupportedError: a bound that the format cannot change.
            OutOfRangeError: an extent would be negative.
            FailedPreconditionError: it would grow or shrink against the request's flags.
        """
        domain = self.domain
        shape = list(domain.shape)
        for dim, low in enumerate(request.inclusive_min):
            if low is not None and low != domain.inclusive_min[dim]:
                raise UnsupportedError(
                    f"cannot change the lower bound of dimension {dim}: it is always 0"
                )
        for dim, high in enumerate(request.exclusive_max):
            if high is None or high == shape[dim]:
                continue
            if not domain.implicit_upper_bounds[dim]:
                raise UnsupportedError(
                    f"cannot resize dimension {dim}: its extent {shape[dim]} is part of the data "
                    "type"
                )
            if high < 0:
                raise OutOfRangeError(
                    f"cannot resize dimension {dim} to a negative extent ({high})"
                )
            if request.expand_only and high < shape[dim]:
                raise FailedPreconditionError(
                    f"dimension {dim} would shrink from {shape[dim]} to {high}, "
                    "but expand_only=True was given"
                )
            if request.shrink_only and high > shape[dim]:
                raise FailedPreconditionError(
                    f"dimension {dim} would grow from {shape[dim]} to {high}, "
                    "but shrink_only=True was given"
                )
            shape[dim] = high
        return tuple(shape[: len(self.grid)])

    def check_same_array(self, now: ArrayLayout, where: str) -> None:
        """Refuse to go on if the array was replaced by one of another form under our hands.

        Args:
            now: what is there now.
            where: names the metadata.

        Raises:
            FailedPreconditionError: it was replaced; names the key, what was there and what is.
        """
        if self.data_type != now.data_type or self.domain.rank != now.domain.rank:
            raise FailedPreconditionError(
                f"metadata at {where} was replaced: it was {self.data_type.name} of rank "
                f"{self.domain.rank} and is {now.data_type.name} of rank {now.domain.rank} now; "
                "open the array again"
            )
