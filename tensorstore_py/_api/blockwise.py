"""Working on an array block by block: how many at a time, in how much memory, and who is told.

Reads and writes are handed to a driver in one piece; they come here only if somebody wants to know
how far they are. Copies always do. Each block is a read or write of its own, which uses all
threads, or as many requests as the store likes, by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

import numpy as np

from tensorstore_py._api.blocks import Block, Blocks
from tensorstore_py._index import IndexDomain, propagate_bounds
from tensorstore_py._interface.new_array import new_array
from tensorstore_py._runtime.fan_out import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any, Protocol

    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._runtime.admission import Bytes
    from tensorstore_py._runtime.progress import Told

    Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

    class SomeBlocks(Protocol):
        """`Blocks`, or some of them."""

        count: int
        chunks: int
        size: int
        largest: int

        def __iter__(self) -> Iterator[Block]: ...


__all__ = ["each_block", "limits", "read_blockwise", "selected", "write_blockwise"]

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


def limits(item_bytes: int, memory: Bytes | None) -> Limits:
    """Of how many elements a block should be at least, and may be at most.

    Args:
        item_bytes: what an element takes.
        memory: the budget of the array.
    """
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
    memory: Bytes | None,
    told: Told,
    told_bytes: int,
) -> None:
    """Run `work` for each block, several at a time.

    Args:
        inline: the temperament of `work`.
        blocks: what to work on.
        work: on one of them.
        item_bytes: how much memory an element of a block takes meanwhile.
        memory: the budget that this counts in, besides what chunks take of it; None: there is none.
        told: who is told.
        told_bytes: what an element counts there.
    """
    budget = None if memory is None or not item_bytes else memory.blocks

    async def counted(block: Block) -> None:
        size = item_bytes * block.size
        if budget is None or not budget.matters(inline, size):
            await work(block)
        else:
            await budget.take(inline, size)
            try:
                await work(block)
            finally:
                budget.release(size)
        told.advance(told_bytes * block.size, block.chunks)

    told.begin(told_bytes * blocks.size, blocks.chunks)
    width = max(2, min(_BLOCKS, _IN_FLIGHT_BYTES // max(1, item_bytes * blocks.largest)))
    await fan_out(inline, blocks, counted, count=blocks.count, width=width)


async def read_blockwise(
    driver: Driver, transform: IndexTransform, order: str, told: Told
) -> Array:
    """As `Driver.read`, and somebody is told how far it is."""
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
        told=told,
        told_bytes=dtype.itemsize,
    )
    return out


async def write_blockwise(
    driver: Driver, transform: IndexTransform, source: Array, told: Told
) -> None:
    """As `Driver.write`, and somebody is told how far it is."""
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
        told=told,
        told_bytes=item_bytes,
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
