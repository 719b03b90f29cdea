"""Copying one array to another, block by block (`copy_blocks`).

Several blocks are on their way at a time, so that one is read while another is written. Only these
are in memory, within the target's `memory_limit`. The two drivers may have different temperaments:
each body runs where it belongs, and this one waits for it without holding a loop up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py._api.copy_blocks import Block, Blocks
from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np

    from tensorstore_py._interface.driver import Driver

__all__ = ["copy_array"]

Box = tuple[tuple[int, int], ...]

#: A block is larger than this only if a single chunk of the target is.
_BLOCK_BYTES: Final = 2**26
#: So much is on its way at a time, in two blocks or more, and in so many at most.
_IN_FLIGHT_BYTES: Final = 2**28
_BLOCKS: Final = 64


async def copy_array(
    source: Driver,
    source_transform: IndexTransform,
    target: Driver,
    target_transform: IndexTransform,
    convert: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]],
) -> None:
    """Copy what `source_transform` selects to where `target_transform` says; bounds are resolved.

    Args:
        source: where from.
        source_transform: its dimensions are matched with the target's by label if both have some,
            else from the last one back; their extents must be equal, or 1 to broadcast.
        target: where to.
        target_transform: see above.
        convert: applied to each block before it is written.

    Raises:
        MismatchError: the shapes do not broadcast; names the dimension.
    """
    inline = source.inline and target.inline
    aligned = _aligned(source_transform, target_transform)
    there, here = source.data_type.array_dtype, target.data_type.array_dtype
    item_bytes = here.itemsize + (there.itemsize if there != here else 0)
    budget = target.memory or source.memory
    memory = None if budget is None else budget.blocks
    most = _BLOCK_BYTES if memory is None else min(_BLOCK_BYTES, memory.limit // 4)
    blocks = Blocks(target, target_transform, source, aligned, max(1, most // item_bytes))

    async def counted_copy(block: Block) -> None:
        size = item_bytes * block.size
        if memory is None or not memory.matters(inline, size):
            await copy(block)
            return
        await memory.take(inline, size)
        try:
            await copy(block)
        finally:
            memory.release(size)

    async def copy(block: Block) -> None:
        part = aligned[_within_bounds(block.bounds, aligned)]
        data = await within(inline, source.inline, lambda: source.read(part, "C"))
        to = target_transform[_box_domain(block.bounds)]
        data = convert(data)
        await within(inline, target.inline, lambda: target.write(to, data))

    # Reading a block and writing it both use all threads, or many requests, by themselves.
    width = max(2, min(_BLOCKS, _IN_FLIGHT_BYTES // max(1, item_bytes * blocks.largest)))
    await fan_out(inline, blocks, counted_copy, count=blocks.count, width=width)


def _aligned(source: IndexTransform, target: IndexTransform) -> IndexTransform:
    """The source seen from the target's positions; it has extent 1 where it is broadcast.

    Raises:
        MismatchError: extents differ; names the dimension.
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
    return _box_domain(
        tuple(
            (low, low + 1) if extent == 1 else bounds
            for bounds, low, extent in zip(
                box, aligned.input_origin, aligned.input_shape, strict=True
            )
        )
    )


def _box_domain(box: Box) -> IndexDomain:
    return IndexDomain(
        inclusive_min=[low for low, _ in box], exclusive_max=[high for _, high in box]
    )
