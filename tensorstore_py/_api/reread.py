"""Reading again, past every cache: what could not be decoded, and what was just written.

What is stored may be right although what came was not: a fault on the way, or in what a cache
keeps. So whoever goes through a whole array, and would have to give up on a block, asks once more
for what is stored, before the block counts as damaged. And whoever wants to be sure of what he
wrote compares it with what is stored, not with what is remembered of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from tensorstore_py._api.array import Array
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver

__all__ = ["check_stored", "read_anew", "read_surely"]


async def read_surely(driver: Driver, transform: IndexTransform, order: str = "C") -> Array:
    """As `Driver.read`; what cannot be decoded is read again past every cache, once.

    Raises:
        DataLossError: it cannot be decoded then, either; names the key.
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
    """Compare a block that was written with what was read of it.

    Args:
        target: where to.
        block: which.
        written: its elements, which may be broadcast to it.
        stored: those that were read.

    Raises:
        DataLossError: they are not the same, bit for bit; names the array and the region.
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
