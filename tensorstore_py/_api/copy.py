"""Copying one array to another, block by block along the target's write chunks.

Only the blocks being copied are in memory, within the target's `memory_limit`. The two drivers may
have different temperaments: each body runs where it belongs, and this one waits for it without
holding a loop up.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap, OutputIndexMethod
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator
    from typing import Any, TypeVar

    import numpy as np

    from tensorstore_py._interface.driver import Driver

    T = TypeVar("T")

__all__ = ["copy_array"]

Box = tuple[tuple[int, int], ...]


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
    budget = target.memory or source.memory
    blocks = None if budget is None else budget.blocks
    item_bytes = target.data_type.array_dtype.itemsize

    async def counted_copy(box: Box) -> None:
        size = item_bytes * prod(high - low for low, high in box)
        if blocks is None or not blocks.matters(inline, size):
            await copy(box)
            return
        await blocks.take(inline, size)
        try:
            await copy(box)
        finally:
            blocks.release(size)

    async def copy(box: Box) -> None:
        part = aligned[_within_bounds(box, aligned)]
        data = await _within(inline, source.inline, lambda: source.read(part, "C"))
        block = target_transform[_box_domain(box)]
        await _within(inline, target.inline, lambda: target.write(block, convert(data)))

    boxes = list(_boxes(target, target_transform))
    await fan_out(inline, boxes, counted_copy, count=len(boxes), width=None if inline else 8)


async def _within(here: bool, there: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await a body of temperament `there` from one of temperament `here`."""
    if there and not here:
        return await offload(False, lambda: run_inline(body()))
    return await body()


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


def _boxes(target: Driver, transform: IndexTransform) -> Iterator[Box]:
    """The input domain cut along the target's write chunks."""
    chunk = target.schema.chunk_layout.write_chunk.shape
    cuts = [
        [(low, low + extent)] if extent else []
        for low, extent in zip(transform.input_origin, transform.input_shape, strict=True)
    ]
    for output, each in enumerate(transform.maps):
        if each.method != OutputIndexMethod.single_input_dimension:
            continue
        dim = each.input_dimension
        assert dim is not None
        if not cuts[dim] or each.stride not in (1, -1):
            continue
        low, high = cuts[dim][0][0], cuts[dim][-1][1]
        size = chunk[output] if chunk is not None else None
        edges = _starts(target, output, each, (low, high), size)
        cuts[dim] = list(pairwise(sorted({low, *edges, high})))
    yield from product(*cuts)


def _starts(
    target: Driver, dim: int, each: OutputIndexMap, bounds: tuple[int, int], size: int | None
) -> Iterable[int]:
    """Where, along an input dimension, the target's chunks begin or, backwards, end.

    Args:
        target: what is written to.
        dim: its dimension.
        each: from the input dimension to it, of stride 1 or -1.
        bounds: the input dimension's.
        size: of the chunks, if it is one.
    """
    low, high = bounds
    forward = each.stride == 1
    if size:
        # where offset + stride * i crosses a multiple of size
        first = (-(each.offset + low) if forward else each.offset - low + 1) % size
        return range(low + first, high, size)
    if forward:
        starts = target.chunk_starts(dim, each.offset + low, each.offset + high)
        return (start - each.offset for start in starts)
    beyond = each.offset + 1
    starts = target.chunk_starts(dim, beyond - high, beyond - low)
    return (beyond - start for start in starts)
