"""Storage statistics: how many of the chunks that a selection touches are stored.

Here chunks are only looked for, never fetched or decoded: a chunk is asked for none of its bytes,
a shard for its index. A chunk counts once, however little of it the selection touches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.selection import select
from tensorstore_py._chunked.shard import OpenShard, descend_axes, inner_grid
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.driver import StorageStatistics
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._chunked.array import ChunkedArray, StoredChunks
    from tensorstore_py._chunked.plan import ChunkSlice
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._index import IndexTransform

__all__ = ["count_stored", "statistics_of"]

_NOTHING = ByteRange(0, 0)


async def statistics_of(
    array: ChunkedArray,
    source: StoredChunks,
    resolved: IndexTransform,
    *,
    not_stored: bool,
    fully_stored: bool,
) -> StorageStatistics:
    """What was asked for of the chunks that a transform with known bounds touches."""
    stored = total = 0
    if 0 not in resolved.input_shape:
        stored, total = await count_stored(array, source, select(resolved).axes)
    return StorageStatistics(
        not_stored=stored == 0 if not_stored else None,
        fully_stored=stored == total if fully_stored else None,
    )


async def count_stored(
    array: ChunkedArray, source: StoredChunks, axes: Sequence[Axis]
) -> tuple[int, int]:
    """How many chunks are stored, and how many there are; inner chunks count where sharded.

    Raises:
        DataLossError: the index of a shard is truncated or corrupt; names its key.
    """
    plan = make_plan(axes, array.grid)
    stored = total = 0
    mutex = Mutex()

    def add(found: int, of: int) -> None:
        nonlocal stored, total
        with mutex:
            stored += found
            total += of

    async def look(each: ChunkSlice) -> None:
        sharded = array.at(each.cell).sharded
        if sharded is None:
            result = await source.read(each.cell, _NOTHING)
            add(int(result.state == "value"), 1)
            return
        inner = make_plan(descend_axes(each), inner_grid(sharded))
        try:
            shard = await OpenShard.open(source, each.cell, sharded)
        except DataLossError as error:
            where = source.describe(each.cell)
            raise DataLossError(f"Error reading {where}: {error}") from error
        found = 0
        if shard is not None:
            index = shard.index
            found = sum(index.extent(index.number(at.cell)) is not None for at in inner.slices())
        add(found, inner.count)

    await fan_out(source.inline, plan.slices(), look, count=plan.count, width=source.width)
    return stored, total
