"""An array whose chunks are made, and taken, by the user's functions.

It is read and written chunk by chunk like a stored one, through the cache pool if there is room in
it, but there is neither store nor codec: a function fills a chunk, another is handed it. A part of
a chunk is written by reading, changing and writing all of it; if the functions tell generations, it
is done again when the chunk changed in between.

There is no JSON form, for functions have none: the face builds the spec.
"""

from __future__ import annotations

import time
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tensorstore_py._chunked.format import RecheckBound
from tensorstore_py._chunked.parts import output_box, shifted
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.pool import CachedChunk, ChunkCache, needed_since
from tensorstore_py._chunked.selection import select
from tensorstore_py._display.public_name import public
from tensorstore_py._index import IndexDomain, IndexTransform, inf, propagate_bounds
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.driver import Driver, DriverSpec
from tensorstore_py._interface.generation import UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.new_array import new_array
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.keyed_lock import KeyedLock
from tensorstore_py._runtime.limiters import ThreadLimiter
from tensorstore_py._runtime.retry import CONFLICTS
from tensorstore_py._runtime.user_function import UserFunction
from tensorstore_py._spec.choose_chunks import common_chunks
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.resource import Resource, ResourceField
from tensorstore_py._spec.schema import Schema
from tensorstore_py.errors import FailedPreconditionError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from tensorstore_py._chunked.plan import ChunkSlice
    from tensorstore_py._interface.batch import Batch
    from tensorstore_py._interface.codec import Array
    from tensorstore_py._runtime.retry import Attempts

__all__ = [
    "VirtualChunked",
    "VirtualChunkedReadParameters",
    "VirtualChunkedSpec",
    "VirtualChunkedWriteParameters",
]


@public
class VirtualChunkedReadParameters:
    """What a read function may care for.

    Attributes:
        if_not_equal: generation of the chunk that is cached, or `b""`. If the chunk is still of
            that generation, it need not be filled: return a stamp of that generation.
        staleness_bound: the chunk must have been current at this time, in seconds since 1970.
        batch: the batch that the read is part of, to be handed on to reads of other arrays; None:
            it is part of none.

    Example:
        >>> VirtualChunkedReadParameters(b"5").if_not_equal
        b'5'
    """

    __slots__ = ("batch", "if_not_equal", "staleness_bound")

    def __init__(
        self,
        if_not_equal: bytes = UNKNOWN,
        staleness_bound: float = -np.inf,
        batch: Batch | None = None,
    ) -> None:
        self.if_not_equal = if_not_equal
        self.staleness_bound = staleness_bound
        self.batch = batch


@public
class VirtualChunkedWriteParameters:
    """What a write function may care for.

    Attributes:
        if_equal: generation of the chunk that was changed, or `b""` for one that is written in
            full. If the chunk is of another one by now, don't write: return a stamp of generation
            `b""`, and the function is called again with the chunk as it is then.

    Example:
        >>> VirtualChunkedWriteParameters(b"5").if_equal
        b'5'
    """

    __slots__ = ("if_equal",)

    def __init__(self, if_equal: bytes = UNKNOWN) -> None:
        self.if_equal = if_equal


class VirtualChunkedSpec(DriverSpec):
    """Functions, and the form of the array that they make up.

    Attributes:
        read_function: fills a chunk; None for a write-only array.
        write_function: takes a chunk; None for a read-only array.
        cache_pool: where chunks are kept.
        data_copy_concurrency: how many chunks are made at a time.
        recheck_cached_data: when chunks that are cached are asked for again.
    """

    driver: ClassVar[str] = "virtual_chunked"

    read_function: UserFunction | None = None
    write_function: UserFunction | None = None
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")
    data_copy_concurrency: Resource[ThreadLimiter] = ResourceField("data_copy_concurrency")
    recheck_cached_data: RecheckBound = True

    def checked(self) -> Self:
        asked = super().known_schema()
        if asked.dtype is None:
            raise SpecError('the element type is required, for example "int32"', ("dtype",))
        if asked.rank is None:
            raise SpecError("the rank is required: give a shape, a domain or a rank", ("rank",))
        if asked.fill_value is not None:
            raise SpecError("there is nothing to fill: leave the member out", ("fill_value",))
        domain = IndexDomain(rank=asked.rank) if asked.domain is None else asked.domain
        origin, shape = common_chunks(asked.chunk_layout.constraints, domain)
        order = asked.chunk_layout.inner_order or asked.chunk_layout.inner_order_soft_constraint
        schema = Schema(
            dtype=asked.dtype,
            domain=domain.mark_bounds_implicit[False],
            chunk_layout=ChunkLayout(
                grid_origin=[low % size for low, size in zip(origin, shape, strict=True)],
                chunk_shape=shape,
                inner_order=range(asked.rank) if order is None else order,
            ),
            dimension_units=asked.dimension_units,
        )
        return self.replace(schema_=schema, dtype=None, rank=None)

    @property
    def inline(self) -> bool:
        return all(
            each is None or each.inline for each in (self.read_function, self.write_function)
        )

    async def open(self) -> VirtualChunked:
        return VirtualChunked(self)

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """Functions have no JSON form.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("an array that is made by functions has no JSON form")


class VirtualChunked(Driver):
    """See the head of this file."""

    def __init__(self, spec: VirtualChunkedSpec) -> None:
        schema = spec.schema_
        assert schema is not None
        assert schema.domain is not None
        assert schema.dtype is not None
        self._spec = spec
        self._schema = schema
        self._domain = schema.domain
        self.data_type = schema.dtype
        self.inline = spec.inline
        self.readable = spec.read_function is not None
        self.writable = spec.write_function is not None
        self._order = schema.chunk_layout.inner_order or ()
        self._cache = spec.cache_pool.value
        self._scope = object()
        self._opened = time.time()
        self._gate = KeyedLock(inline=self.inline)
        self._batch: Batch | None = None

    @property
    def domain(self) -> IndexDomain:
        return self._domain

    @property
    def schema(self) -> Schema:
        return self._schema.copy()

    def with_batch(self, batch: Batch) -> VirtualChunked:
        reads = copy(self)
        reads._batch = batch.running()  # it was submitted when the function is called
        return reads

    async def resolve(self) -> IndexDomain:
        return self._domain

    def spec(self) -> VirtualChunkedSpec:
        return self._spec

    def view_spec(self, transform: IndexTransform) -> VirtualChunkedSpec:
        return self._spec.replace(transform=transform)

    async def read(self, transform: IndexTransform, order: str) -> Array:
        resolved = propagate_bounds(self._domain, transform)
        out = new_array(resolved.input_shape, self.data_type.array_dtype, order)
        if not out.size:
            return out
        origin, grid = self._grid(resolved)
        selection = select(shifted(resolved, origin))
        view = selection.view(out)
        since = needed_since(self._spec.recheck_cached_data, self._opened)

        async def step_body(step: ChunkSlice) -> None:
            chunk = await self._chunk(self._cell(step, origin, grid), since)
            assert chunk.chunk is not None
            view[(..., *step.outside)] = chunk.chunk[step.inside]

        plan = make_plan(selection.axes, grid)
        await fan_out(self.inline, plan.slices(), step_body, count=plan.count, width=self._width)
        return selection.put(view, out)

    def forget_cached(self, transform: IndexTransform) -> None:
        resolved = propagate_bounds(self._domain, transform)
        origin, grid = self._grid(resolved)
        for step in make_plan(select(shifted(resolved, origin)).axes, grid).slices():
            self._cache.drop((self._scope, self._cell(step, origin, grid).inclusive_min))

    async def write(self, transform: IndexTransform, source: Array) -> None:
        resolved = propagate_bounds(self._domain, transform)
        whole = np.broadcast_to(source, resolved.input_shape)
        if not whole.size:
            return
        origin, grid = self._grid(resolved)
        selection = select(shifted(resolved, origin))
        view = selection.values(whole)
        plan = make_plan(selection.axes, grid)
        if not self.readable and not all(step.full for step in plan.slices()):
            raise FailedPreconditionError(
                "a part of a chunk can only be written if there is a read function; "
                "write whole chunks, or give one"
            )

        async def step_body(step: ChunkSlice) -> None:
            cell = self._cell(step, origin, grid)
            async with self._gate.acquire(cell.inclusive_min):
                await self._update(cell, step, view[(..., *step.outside)])

        await fan_out(self.inline, plan.slices(), step_body, count=plan.count, width=self._width)

    @property
    def _width(self) -> int:
        return self._spec.data_copy_concurrency.value.limit

    def _grid(self, resolved: IndexTransform) -> tuple[list[int], list[RegularAxis]]:
        """Where the first chunks begin that are needed, and how it goes on from there."""
        layout = self._schema.chunk_layout
        origin: list[int] = []
        grid: list[RegularAxis] = []
        for (low, high), start, size, least, beyond in zip(
            output_box(resolved),
            layout.grid_origin or (),
            layout.read_chunk.shape or (),
            self._domain.inclusive_min,
            self._domain.exclusive_max,
            strict=True,
        ):
            assert start is not None
            assert size is not None
            first = start + (low - start) // size * size
            last = start - (start - high) // size * size
            begin = max(first, least) if least != -inf else first
            end = min(last, beyond) if beyond <= inf else last
            grid.append(_InnerAxis(end - first, size, begin - first))
            origin.append(first)
        return origin, grid

    def _cell(self, step: ChunkSlice, origin: list[int], grid: list[RegularAxis]) -> IndexDomain:
        """The domain of a chunk, as far as it lies inside the array's."""
        low = [
            begin + axis.start(cell)
            for begin, axis, cell in zip(origin, grid, step.cell, strict=True)
        ]
        shape = [axis.size(cell) for axis, cell in zip(grid, step.cell, strict=True)]
        return IndexDomain(inclusive_min=low, shape=shape, labels=self._domain.labels)

    def _empty(self, cell: IndexDomain) -> Array:
        """A chunk to be filled, its dimensions in memory as the layout says."""
        order = self._order
        turned = np.empty([cell.shape[dim] for dim in order], self.data_type.array_dtype)
        return turned.transpose(np.argsort(order)) if order else turned

    async def _chunk(self, cell: IndexDomain, since: float) -> CachedChunk:
        """A chunk that was current at `since`, from the pool or by the read function."""
        key = (self._scope, cell.inclusive_min)
        kept = self._cache.get(key) if self._cache.limit_bytes else None
        if kept is not None and kept.time >= since:
            return kept
        function = self._spec.read_function
        assert function is not None
        chunk = self._empty(cell)
        parameters = VirtualChunkedReadParameters(
            UNKNOWN if kept is None else kept.generation, since, self._batch
        )
        with self._cache.reading(key):
            stamp = _stamp(await function(self.inline, cell, chunk, parameters), "read")
            if kept is not None and kept.generation == stamp.generation != UNKNOWN:
                found = CachedChunk(kept.chunk, kept.generation, max(kept.time, stamp.time))
            else:
                chunk.flags.writeable = False
                found = CachedChunk(chunk, stamp.generation, stamp.time)
            if self._cache.limit_bytes:
                self._cache.put(key, found)
        return found

    async def _update(self, cell: IndexDomain, step: ChunkSlice, part: Array) -> None:
        """Hand a chunk to the write function, until that takes it."""
        function = self._spec.write_function
        assert function is not None
        since = -np.inf
        attempts: Attempts | None = None
        while True:
            chunk = self._empty(cell)
            if_equal = UNKNOWN
            if not step.full:
                before = await self._chunk(cell, since)
                assert before.chunk is not None
                chunk[...] = before.chunk
                if_equal = before.generation
            chunk[step.inside] = part
            chunk.flags.writeable = False
            call = partial(function, self.inline, cell, chunk)
            stamp = _stamp(await call(VirtualChunkedWriteParameters(if_equal)), "write")
            self._cache.drop((self._scope, cell.inclusive_min))
            if stamp.generation != UNKNOWN or if_equal == UNKNOWN:
                return
            if attempts is None:
                where = partial("chunk {} of a virtual array".format, cell.inclusive_min)
                attempts = CONFLICTS.begin("write", where, inline=self.inline)
            await attempts.lost(if_equal)
            since = time.time()


class _InnerAxis(RegularAxis):
    """Chunks of one size, cut off where the array begins and ends, both from the first chunk on."""

    __slots__ = ("_begin",)

    def __init__(self, extent: int, chunk: int, begin: int) -> None:
        super().__init__(extent, chunk)
        self._begin = begin

    def start(self, cell: int) -> int:
        return max(cell * self.chunk, self._begin)

    def starts(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.maximum(cells * self.chunk, self._begin)

    def size(self, cell: int) -> int:
        return min((cell + 1) * self.chunk, self.extent) - self.start(cell)


def _stamp(returned: object, which: str) -> TimestampedStorageGeneration:
    """What a function said of the chunk's generation; nothing means current for ever.

    Raises:
        TypeError: it returned something else.
    """
    if returned is None:
        return TimestampedStorageGeneration(UNKNOWN, np.inf)
    if not isinstance(returned, TimestampedStorageGeneration):
        raise TypeError(
            f"the {which} function must return None or a KvStore.TimestampedStorageGeneration, "
            f"but returned {returned!r}"
        )
    return returned
