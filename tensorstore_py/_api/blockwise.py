"""Working on an array block by block: how many at a time, in how much memory, with what progress.

Reads and writes are handed to a driver in one piece; they come here only if progress is reported.
Copies always do: several blocks are on their way at a time, so that one is read while another is
written, and only these are in memory, within the target's `memory_limit`. Each block is a read or
write of its own, which uses all threads, or as many requests as the store takes, by itself. The two
drivers of a copy may run inline or on the loop: each body runs where it belongs (`within`).

A fault on the way, or in a cache, can spoil a block although what is stored is right. So work on
whole arrays reads a block that can't be decoded once more, past every cache (`read_surely`), and a
verified copy compares what it wrote with what is stored (`read_anew`, `check_stored`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

import numpy as np

from tensorstore_py._api.blocks import Block, Blocks
from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap, propagate_bounds
from tensorstore_py._interface.new_array import new_array
from tensorstore_py._runtime.fan_out import fan_out, offload, within
from tensorstore_py.errors import DataLossError, MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any, Protocol

    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._runtime.limiters import MemoryBudget
    from tensorstore_py._runtime.progress import Reporter
    from tensorstore_py._spec.dtype import dtype

    Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

    class SomeBlocks(Protocol):
        """`Blocks`, or some of them."""

        count: int
        chunks: int
        size: int
        largest: int

        def __iter__(self) -> Iterator[Block]: ...


__all__ = [
    "ArrayCopy",
    "check_convertible",
    "check_stored",
    "check_types",
    "copy_array",
    "each_block",
    "limits",
    "read_anew",
    "read_blockwise",
    "read_surely",
    "selected",
    "write_blockwise",
]

#: A block is larger than this only if a single chunk is.
_MOST_BYTES: Final = 2**27
#: A block is smaller than this only if there is no more.
_LEAST_BYTES: Final = 2**20
#: So much is on its way at a time, in two blocks or more, and in so many at most.
_IN_FLIGHT_BYTES: Final = 2**28
_BLOCKS: Final = 64


class Limits(TypedDict):
    """Of how many elements a block should be at least, and is at most."""

    least: int
    most: int


def limits(item_bytes: int, memory: MemoryBudget | None) -> Limits:
    """Of how many elements (of `item_bytes` each) a block should be, within the array's budget."""
    most = _MOST_BYTES if memory is None else min(_MOST_BYTES, memory.blocks.limit // 4)
    return {
        "least": max(1, min(_LEAST_BYTES, most) // max(1, item_bytes)),
        "most": max(1, most // max(1, item_bytes)),
    }


async def each_block(
    inline: bool,
    blocks: SomeBlocks,
    work: Callable[[Block], Coroutine[Any, Any, None]],
    *,
    item_bytes: int,
    memory: MemoryBudget | None,
    reporter: Reporter,
    progress_bytes: int,
) -> None:
    """Run `work` for each block, several at a time.

    An element of a block takes `item_bytes` of the budget `memory` meanwhile, besides what chunks
    take of it, and counts `progress_bytes` in the progress that is reported.
    """
    budget = None if memory is None or not item_bytes else memory.blocks

    async def counted(block: Block) -> None:
        size = item_bytes * block.size
        if budget is None or not budget.matters(inline, size):
            await work(block)
        else:
            await budget.acquire(inline, size)
            try:
                await work(block)
            finally:
                budget.release(size)
        reporter.advance(progress_bytes * block.size, block.chunks)

    reporter.begin(progress_bytes * blocks.size, blocks.chunks)
    width = max(2, min(_BLOCKS, _IN_FLIGHT_BYTES // max(1, item_bytes * blocks.largest)))
    await fan_out(inline, blocks, counted, count=blocks.count, width=width)


async def read_blockwise(
    driver: Driver, transform: IndexTransform, order: str, reporter: Reporter
) -> Array:
    """As `Driver.read`, block by block, with its progress reported."""
    view = propagate_bounds(driver.domain.mark_bounds_implicit[False], transform)
    dtype = driver.data_type.array_dtype
    sizes = limits(dtype.itemsize, driver.memory)
    blocks = Blocks.of_read(driver, view, **sizes)
    out = new_array(view.input_shape, dtype, order)

    async def work(block: Block) -> None:
        out[_slices(block, view)] = await driver.read(view[selected(block.bounds)], order)

    await each_block(
        driver.inline,
        blocks,
        work,
        item_bytes=dtype.itemsize,
        memory=driver.memory,
        reporter=reporter,
        progress_bytes=dtype.itemsize,
    )
    return out


async def write_blockwise(
    driver: Driver, transform: IndexTransform, source: Array, reporter: Reporter
) -> None:
    """As `Driver.write`, block by block, with its progress reported."""
    view = propagate_bounds(driver.domain.mark_bounds_implicit[False], transform)
    item_bytes = driver.data_type.array_dtype.itemsize
    blocks = Blocks.of_write(driver, view, **limits(item_bytes, driver.memory))
    data = np.broadcast_to(source, view.input_shape)

    async def work(block: Block) -> None:
        await driver.write(view[selected(block.bounds)], data[_slices(block, view)])

    await each_block(
        driver.inline,
        blocks,
        work,
        item_bytes=0,  # the source is the caller's
        memory=None,
        reporter=reporter,
        progress_bytes=item_bytes,
    )


def selected(bounds: tuple[tuple[int, int], ...]) -> IndexDomain:
    """The positions within a block's bounds."""
    return IndexDomain(
        inclusive_min=[low for low, _ in bounds], exclusive_max=[high for _, high in bounds]
    )


def _slices(block: Block, view: IndexTransform) -> tuple[slice, ...]:
    """Where a block is in an array of the view's shape."""
    return tuple(
        [
            slice(low - origin, high - origin)
            for (low, high), origin in zip(block.bounds, view.input_origin, strict=True)
        ]
    )


async def read_surely(driver: Driver, transform: IndexTransform, order: str = "C") -> Array:
    """As `Driver.read`; what cannot be decoded is read again past every cache, once.

    Raises DataLossError: it cannot be decoded then, either; names the key.
    """
    try:
        return await driver.read(transform, order)
    except DataLossError:
        return await read_anew(driver, transform, order)


async def read_anew(driver: Driver, transform: IndexTransform, order: str = "C") -> Array:
    """As `Driver.read`, of what is stored: nothing that a cache keeps is used."""
    driver.forget_cached(transform)
    return await driver.read(transform, order)


def check_stored(target: Driver, block: Block, written: Array, stored: Array) -> None:
    """Compare a block that was written (its elements may be broadcast) with what is stored.

    Raises DataLossError: they are not the same, bit for bit; names the array and the region.
    """
    written = np.broadcast_to(written, stored.shape)
    if stored.dtype.hasobject:
        differ = np.asarray(np.not_equal(written, stored, dtype=object), bool)
    else:
        size = stored.dtype.itemsize
        here, there = (
            np.ascontiguousarray(each).reshape(*each.shape, 1).view(np.uint8)
            for each in (written, stored)
        )
        differ = (here != there).reshape(*stored.shape, size).any(axis=-1)
    count = int(np.count_nonzero(differ))
    if count:
        at = np.unravel_index(int(np.argmax(differ)), differ.shape)
        first = [int(low + each) for (low, _), each in zip(block.bounds, at, strict=True)]
        bounds = ", ".join(f"{low}:{high}" for low, high in block.bounds)
        where = target.kvstore
        named = "the array" if where is None else where[1].describe_key(where[0].path)
        raise DataLossError(
            f"what was written to [{bounds}] of {named} reads differently: {count:,} of "
            f"{stored.size:,} elements, the first at {first}: {written[at]} was written, and "
            f"{stored[at]} is there; check the store and the codecs, and copy it again"
        )


Box = tuple[tuple[int, int], ...]


def check_convertible(source: Driver, target: Driver) -> None:
    """Refuse a copy that could lose something.

    Raises MismatchError: the data types do not allow it.
    """
    check_types(source.data_type, target.data_type)


def check_types(there: dtype, here: dtype) -> None:
    """The same for the data types of the source and the target."""
    if not np.can_cast(there.record.array_dtype, here.record.array_dtype, "safe"):
        raise MismatchError(
            f"cannot copy {there.name} data to an array of {here.name} "
            "without loss; read it, convert it, and write the result"
        )


class ArrayCopy(NamedTuple):
    """One array on its way to another: the blocks, and how one of them is copied.

    `seen` is the source and `to` the target from the copy's positions. With `verify` what was
    written is read again and compared.
    """

    source: Driver
    seen: IndexTransform
    target: Driver
    to: IndexTransform
    inline: bool
    blocks: Blocks
    memory: MemoryBudget | None
    verify: bool = False

    @staticmethod
    def of(
        source: Driver,
        source_view: IndexTransform,
        target: Driver,
        target_view: IndexTransform,
        *,
        verify: bool = False,
    ) -> ArrayCopy:
        """The copy of what one view selects to where another one says.

        Dimensions are matched by label if both views have some, else from the last one back; their
        extents must be equal, or 1 in the source to broadcast.

        Raises:
            MismatchError: the shapes do not broadcast; names the dimension. Or elements cannot be
                copied without losing anything.
        """
        check_convertible(source, target)
        from_ = propagate_bounds(source.domain.mark_bounds_implicit[False], source_view)
        to = propagate_bounds(target.domain.mark_bounds_implicit[False], target_view)
        seen = _aligned(from_, to)
        memory = target.memory or source.memory
        held = _item_bytes(source, target)
        held += target.data_type.array_dtype.itemsize if verify else 0
        sizes = limits(held, memory)
        blocks = Blocks.of_copy(target, to, source, seen, **sizes)
        inline = source.inline and target.inline
        return ArrayCopy(source, seen, target, to, inline, blocks, memory, verify)

    @property
    def item_bytes(self) -> int:
        """How much memory an element takes on its way."""
        here = self.target.data_type.array_dtype.itemsize if self.verify else 0
        return _item_bytes(self.source, self.target) + here

    @property
    def progress_bytes(self) -> int:
        """What an element counts."""
        return self.target.data_type.array_dtype.itemsize

    async def run(self, block: Block) -> None:
        """Copy one block."""
        source, target = self.source, self.target
        part = self.seen[_within_bounds(block.bounds, self.seen)]
        data = await within(self.inline, source.inline, lambda: read_surely(source, part))
        place = self.to[selected(block.bounds)]
        data = data.astype(target.data_type.record.array_dtype, copy=False)
        await within(self.inline, target.inline, lambda: target.write(place, data))
        if self.verify:
            stored = await within(self.inline, target.inline, lambda: read_anew(target, place))
            await offload(self.inline, partial(check_stored, target, block, data, stored))


async def copy_array(
    source: Driver,
    source_view: IndexTransform,
    target: Driver,
    target_view: IndexTransform,
    reporter: Reporter,
) -> None:
    """Copy what `source_view` selects to where `target_view` says; raises as `ArrayCopy.of`."""
    found = ArrayCopy.of(source, source_view, target, target_view)
    await each_block(
        found.inline,
        found.blocks,
        found.run,
        item_bytes=found.item_bytes,
        memory=found.memory,
        reporter=reporter,
        progress_bytes=found.progress_bytes,
    )


def _item_bytes(source: Driver, target: Driver) -> int:
    there, here = source.data_type.array_dtype, target.data_type.array_dtype
    return here.itemsize + (there.itemsize if there != here else 0)


def _aligned(source: IndexTransform, target: IndexTransform) -> IndexTransform:
    """The source seen from the target's positions; it has extent 1 where it is broadcast.

    Raises MismatchError: extents differ; names the dimension.
    """
    matches = _matches(source, target)
    outputs = []
    for dim, (low, extent, match) in enumerate(
        zip(source.input_origin, source.input_shape, matches, strict=True)
    ):
        if match is not None and target.input_shape[match] == extent:
            outputs.append(
                OutputIndexMap(input_dimension=match, offset=low - target.input_origin[match])
            )
        elif extent == 1:
            matches[dim] = None
            outputs.append(OutputIndexMap(offset=low))
        else:
            wanted = (
                "has no counterpart in the target"
                if match is None
                else f"has another extent than the target's dimension {match} "
                f"({target.input_shape[match]})"
            )
            raise MismatchError(
                f"Error aligning dimensions: source dimension {dim} of extent {extent} {wanted}"
            )
    shape = [
        extent if dim in matches else min(extent, 1)
        for dim, extent in enumerate(target.input_shape)
    ]
    seen = IndexTransform(
        input_inclusive_min=target.input_origin, input_shape=shape, output=outputs
    )
    return source[seen]


def _matches(source: IndexTransform, target: IndexTransform) -> list[int | None]:
    """The target's dimension for each of the source's: by label, or else from the last one back."""
    if not any(source.input_labels) or not any(target.input_labels):
        skipped = source.input_rank - target.input_rank
        return [dim - skipped if dim >= skipped else None for dim in range(source.input_rank)]
    unlabeled = [dim for dim, label in enumerate(target.input_labels) if not label]
    found: list[int | None] = []
    for label in reversed(source.input_labels):
        if label:
            found.append(target.input_labels.index(label) if label in target.input_labels else None)
        else:
            found.append(unlabeled.pop() if unlabeled else None)
    return found[::-1]


def _within_bounds(box: Box, aligned: IndexTransform) -> IndexDomain:
    """The box, or the source's only position along dimensions that it broadcasts."""
    return selected(
        tuple(
            (low, low + 1) if extent == 1 else bounds
            for bounds, low, extent in zip(
                box, aligned.input_origin, aligned.input_shape, strict=True
            )
        )
    )
