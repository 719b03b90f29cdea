"""Copying one array that was made: how its blocks are copied, and all of them at once.

Where nothing of the array changes, chunks stay as they are (`ChunkCopy`): values of a store, never
decoded, and copied by the store itself where it can. The one invariant: both arrays have one form
apart from names, so equal cells hold equal bytes, and a chunk that is not stored means the same in
both; and nothing is in the target that the source does not have.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import ArrayCopy, each_block, limits
from tensorstore_py._api.keys import copy_key
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._index import identity
from tensorstore_py._plan.steps import region_text
from tensorstore_py._plan.tasks import DamagedTask
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._runtime.progress import PartReporter
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._chunked.array import Cell
    from tensorstore_py._conversion.endpoints import SourceArray
    from tensorstore_py._conversion.target_metadata import TargetMetadata
    from tensorstore_py._runtime.limiters import MemoryBudget
    from tensorstore_py._runtime.progress import Reporter

__all__ = ["ChunkCopy", "copy_blocks", "form_digest", "way"]


class ChunkCopy(NamedTuple):
    """One array on its way to another, as `ArrayCopy`, chunk by chunk."""

    source: ChunkedDriver[Any]
    target: ChunkedDriver[Any]
    inline: bool
    blocks: Blocks
    memory: MemoryBudget | None
    verify: bool = False

    @staticmethod
    def of(
        source: ChunkedDriver[Any], target: ChunkedDriver[Any], *, verify: bool = False
    ) -> ChunkCopy:
        """The copy of all that is stored; the bounds are those of the target."""
        whole = identity(target.domain.mark_bounds_implicit[False])
        sizes = limits(target.data_type.array_dtype.itemsize, target.memory)
        blocks = Blocks.of_write(target, whole, **sizes)
        inline = source.inline and target.inline
        return ChunkCopy(source, target, inline, blocks, target.memory, verify)

    @property
    def item_bytes(self) -> int:
        """How much memory an element takes on its way, if chunks do not become smaller."""
        return self.target.data_type.array_dtype.itemsize

    @property
    def progress_bytes(self) -> int:
        """What an element counts."""
        return self.item_bytes

    async def run(self, block: Block) -> None:
        """Copy the chunks of one block."""
        from_, to = self.source._known.source, self.target._known.source

        async def copy(cell: Cell) -> None:
            await copy_key(from_.store, from_.key(cell), to.store, to.key(cell))
            if self.verify:
                await self._check(cell)

        cells = self.target._known.array.cells(block.bounds)
        width = None if self.inline else max(from_.store.width, to.store.width)
        await fan_out(self.inline, cells, copy, count=block.chunks, width=width)

    async def _check(self, cell: Cell) -> None:
        """Compare the bytes of a chunk at both ends.

        Raises DataLossError: they differ; names the key.
        """
        from_, to = self.source._known.source, self.target._known.source
        here = await within(self.inline, from_.inline, lambda: from_.read(cell))
        there = await within(self.inline, to.inline, lambda: to.read(cell))
        if here.state != there.state or bytes(here.value) != bytes(there.value):
            raise DataLossError(
                f"what was copied from {from_.describe(cell)} to {to.describe(cell)} is not the "
                f"same there: {len(here.value)} bytes, and {len(there.value)}; check the store, "
                "and copy it again"
            )


async def copy_blocks(
    source: SourceArray,
    target: TensorStore,
    form: TargetMetadata,
    reporter: Reporter,
    damaged: list[DamagedTask],
    *,
    verify: bool = False,
) -> tuple[int, int]:
    """Copy an array to the one that was made for it; gives bytes of elements, and chunks.

    `damaged` gets the blocks that could not be copied; all others are.
    """
    copy = way(source, target, form, verify=verify)

    async def run(block: Block) -> None:
        try:
            await copy.run(block)
        except DataLossError as error:
            damaged.append(DamagedTask(source.path, region_text(source.path, block), str(error)))

    await each_block(
        copy.inline,
        copy.blocks,
        run,
        item_bytes=copy.item_bytes,
        memory=copy.memory,
        reporter=PartReporter(reporter),
        progress_bytes=copy.progress_bytes,
    )
    return copy.blocks.size * copy.progress_bytes, copy.blocks.chunks


def form_digest(source: SourceArray, form: TargetMetadata) -> str:
    """A few letters that are others when the source's form is another, or the copy's."""
    said = [
        [*source.shape],
        source.array.dtype.name,
        source.document,
        form.same_chunks,
        {name: repr(value) for name, value in form.options.items()},
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=repr).encode()).hexdigest()[:16]


def way(
    source: SourceArray, target: TensorStore, form: TargetMetadata, *, verify: bool = False
) -> ArrayCopy | ChunkCopy:
    """How an array is copied: chunk by chunk where they may stay as they are."""
    here, there = source.driver, target._driver
    if form.same_chunks and isinstance(here, ChunkedDriver) and isinstance(there, ChunkedDriver):
        return ChunkCopy.of(here, there, verify=verify)
    return ArrayCopy.of(here, source.array._transform, there, target._transform, verify=verify)
