"""Copying one array: it is made, and its blocks are copied, but for those that are done already.

What is known of it is an `ArrayRecord`, which the manifest keeps if there is one. The one
invariant: a block counts as done only when it is stored.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from tensorstore_py._api.blockwise import each_block
from tensorstore_py._api.copy import ArrayCopy
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._conversion.block_numbers import BlockNumbers
from tensorstore_py._conversion.stored_chunks import ChunkCopy
from tensorstore_py._runtime.progress import ToldOfPart
from tensorstore_py.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py._api.blocks import Block, Blocks
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.manifest import ArrayRecord, Manifest
    from tensorstore_py._conversion.member import SourceArray
    from tensorstore_py._conversion.new_form import NewForm
    from tensorstore_py._runtime.progress import Told

__all__ = ["Left", "copy_blocks", "form_digest", "way"]


class Left:
    """The blocks of a copy that are left to be done.

    Args:
        blocks: all of them.
        done: which are done. What is added later makes no difference.

    Attributes:
        count: how many are left.
        chunks: how many chunks.
        size: number of elements.
        largest: that of the largest block.
    """

    __slots__ = ("_blocks", "_done", "chunks", "count", "largest", "size")

    def __init__(self, blocks: Blocks, done: BlockNumbers) -> None:
        self._blocks = blocks
        self._done = BlockNumbers.parse(str(done))
        self.count, self.chunks, self.size = blocks.count, blocks.chunks, blocks.size
        self.largest = blocks.largest
        if len(done):
            left = [(block.chunks, block.size) for block in self]
            self.count = len(left)
            self.chunks, self.size = sum(each[0] for each in left), sum(each[1] for each in left)

    def __iter__(self) -> Iterator[Block]:
        for block in self._blocks:
            if block.number not in self._done:
                yield block


async def copy_blocks(
    source: SourceArray,
    target: TensorStore,
    form: NewForm,
    record: ArrayRecord,
    manifest: Manifest | None,
    told: Told,
) -> tuple[int, int]:
    """Copy what is left of an array.

    Args:
        source: where from.
        target: the array that was made for it.
        form: how it was to be made.
        record: what is known of it.
        manifest: keeps that; None: nobody does.
        told: who is told of all arrays.

    Returns:
        How many bytes of elements were copied, and how many chunks.

    Raises:
        FailedPreconditionError: blocks are not what they were when the copy began.
    """
    copy = way(source, target, form)
    cut = copy.blocks.cut
    if record.blocks not in (None, cut):
        raise FailedPreconditionError(
            f'"/{source.path}" was cut into other blocks when the copy began ({record.blocks}) '
            f"than now ({cut}): the limit on memory is another; use the same context, or delete "
            "the manifest to begin anew"
        )
    record.blocks = cut
    left = Left(copy.blocks, record.done)
    part = ToldOfPart(told)
    part.begin(0, copy.blocks.chunks - left.chunks)
    part.advance((copy.blocks.size - left.size) * copy.told_bytes, copy.blocks.chunks - left.chunks)

    async def work(block: Block) -> None:
        await copy.run(block)
        if manifest is not None:
            await manifest.change(source.path, record, block.number)

    await each_block(
        copy.inline,
        left,
        work,
        item_bytes=copy.item_bytes,
        memory=copy.memory,
        told=part,
        told_bytes=copy.told_bytes,
    )
    record.complete = True
    if manifest is not None:
        await manifest.change(source.path, record)
    return left.size * copy.told_bytes, left.chunks


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


def way(source: SourceArray, target: TensorStore, form: NewForm) -> ArrayCopy | ChunkCopy:
    """How an array is copied: chunk by chunk where they may stay as they are."""
    here, there = source.driver, target._driver
    if form.same_chunks and isinstance(here, ChunkedDriver) and isinstance(there, ChunkedDriver):
        return ChunkCopy.of(here, there)
    return ArrayCopy.of(here, source.array._transform, there, target._transform)
