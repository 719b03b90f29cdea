"""Copying one array that was made: how its blocks are copied, and all of them at once.

The one invariant: chunks stay as they are only where nothing of the array changes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from tensorstore_py._api.blockwise import each_block
from tensorstore_py._api.copy import ArrayCopy
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._conversion.stored_chunks import ChunkCopy
from tensorstore_py._plan.steps import region_text
from tensorstore_py._plan.tasks import Damaged
from tensorstore_py._runtime.progress import ToldOfPart
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.member import SourceArray
    from tensorstore_py._conversion.new_form import NewForm
    from tensorstore_py._runtime.progress import Told

__all__ = ["copy_blocks", "form_digest", "way"]


async def copy_blocks(
    source: SourceArray,
    target: TensorStore,
    form: NewForm,
    told: Told,
    damaged: list[Damaged],
    *,
    verify: bool = False,
) -> tuple[int, int]:
    """Copy an array.

    Args:
        source: where from.
        target: the array that was made for it.
        form: how it was to be made.
        told: who is told of all arrays.
        damaged: gets the blocks that could not be copied; all others are.
        verify: read again what was written, and compare.

    Returns:
        How many bytes of elements were copied, and how many chunks.
    """
    copy = way(source, target, form, verify=verify)

    async def run(block: Block) -> None:
        try:
            await copy.run(block)
        except DataLossError as error:
            damaged.append(Damaged(source.path, region_text(source.path, block), str(error)))

    await each_block(
        copy.inline,
        copy.blocks,
        run,
        item_bytes=copy.item_bytes,
        memory=copy.memory,
        told=ToldOfPart(told),
        told_bytes=copy.told_bytes,
    )
    return copy.blocks.size * copy.told_bytes, copy.blocks.chunks


def form_digest(source: SourceArray, form: NewForm) -> str:
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
    source: SourceArray, target: TensorStore, form: NewForm, *, verify: bool = False
) -> ArrayCopy | ChunkCopy:
    """How an array is copied: chunk by chunk where they may stay as they are."""
    here, there = source.driver, target._driver
    if form.same_chunks and isinstance(here, ChunkedDriver) and isinstance(there, ChunkedDriver):
        return ChunkCopy.of(here, there, verify=verify)
    return ArrayCopy.of(here, source.array._transform, there, target._transform, verify=verify)
