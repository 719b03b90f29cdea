"""Copying an array whose chunks may stay as they are: values of a store, never decoded.

Where the medium can copy by itself, they don't even come here. The one invariant: both arrays have
one form apart from names, so equal cells hold equal bytes, and a chunk that is not stored means the
same in both; and nothing is in the target that the source has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import limits
from tensorstore_py._api.copy_range import copy_key
from tensorstore_py._index import identity
from tensorstore_py._runtime.fan_out import fan_out

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._chunked.driver import ChunkedDriver
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._runtime.admission import Bytes

__all__ = ["ChunkCopy"]


class ChunkCopy(NamedTuple):
    """One array on its way to another, as `ArrayCopy`, chunk by chunk.

    Attributes:
        source: where from.
        target: where to.
        inline: the temperament of copying.
        blocks: what to copy.
        memory: the budget that blocks count in.
    """

    source: ChunkedDriver[object]
    target: ChunkedDriver[object]
    inline: bool
    blocks: Blocks
    memory: Bytes | None

    @staticmethod
    def of(source: ChunkedDriver[object], target: ChunkedDriver[object]) -> ChunkCopy:
        """The copy of all that is stored; the bounds are those of the target."""
        whole = identity(target.domain.mark_bounds_implicit[False])
        sizes = limits(target.data_type.array_dtype.itemsize, target.memory)
        blocks = Blocks.of_write(target, whole, **sizes)
        inline = source.inline and target.inline
        return ChunkCopy(source, target, inline, blocks, target.memory)

    @property
    def item_bytes(self) -> int:
        """How much memory an element takes on its way, if chunks do not become smaller."""
        return self.target.data_type.array_dtype.itemsize

    @property
    def told_bytes(self) -> int:
        """What an element counts."""
        return self.item_bytes

    async def run(self, block: Block) -> None:
        """Copy the chunks of one block."""
        from_, to = self.source._known.source, self.target._known.source

        async def copy(cell: Cell) -> None:
            await copy_key(from_.store, from_.key(cell), to.store, to.key(cell))

        cells = self.target._known.array.cells(block.bounds)
        width = None if self.inline else max(from_.store.width, to.store.width)
        await fan_out(self.inline, cells, copy, count=block.chunks, width=width)
