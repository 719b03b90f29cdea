"""Copying one array to another, block by block along the target's write chunks.

Only the blocks being copied are in memory. The two drivers may have different temperaments: each
body runs where it belongs, and this one waits for it without holding a loop up.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

from tensorstore_py._index import IndexDomain, OutputIndexMethod
from tensorstore_py._runtime.fan_out import fan_out, offload
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any, TypeVar

    import numpy as np

    from tensorstore_py._index import IndexTransform
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
        source_transform: its input shape must equal the target's (or be 1 to broadcast).
        target: where to.
        target_transform: see above.
        convert: applied to each block before it is written.
    """
    inline = source.inline and target.inline
    aligned = _aligned(source_transform, target_transform)

    async def copy(box: Box) -> None:
        part = aligned[_domain(box, source_transform, target_transform)]
        data = await _within(inline, source.inline, lambda: source.read(part, "C"))
        block = target_transform[_box_domain(box)]
        await _within(inline, target.inline, lambda: target.write(block, convert(data)))

    boxes = list(_boxes(target, target_transform))
    await fan_out(inline, boxes, copy, count=len(boxes), width=None if inline else 8)


async def _within(here: bool, there: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await a body of temperament `there` from one of temperament `here`."""
    if there and not here:
        return await offload(False, lambda: run_inline(body()))
    return await body()


def _aligned(source: IndexTransform, target: IndexTransform) -> IndexTransform:
    """The source seen at the target's origin.

    Raises:
        MismatchError: the shapes differ.
    """
    if source.input_rank != target.input_rank:
        raise MismatchError(
            f"cannot copy an array of rank {source.input_rank} to one of rank {target.input_rank}"
        )
    for dim, (have, want) in enumerate(zip(source.input_shape, target.input_shape, strict=True)):
        if have not in (1, want):
            raise MismatchError(
                f"Error aligning dimensions: source dimension {dim} has extent {have}, but the "
                f"target's has extent {want}"
            )
    return source.translate_to[target.input_origin]


def _domain(box: Box, source: IndexTransform, target: IndexTransform) -> IndexDomain:
    """The box, or the source's only position along dimensions that it broadcasts."""
    origin = target.input_origin
    kept = tuple(
        (origin[dim], origin[dim] + 1) if source.input_shape[dim] == 1 else bounds
        for dim, bounds in enumerate(box)
    )
    return _box_domain(kept)


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
        size = chunk[output] if chunk is not None else None
        if each.method != OutputIndexMethod.single_input_dimension or not size:
            continue
        dim = each.input_dimension
        assert dim is not None
        if not cuts[dim] or each.stride not in (1, -1):
            continue
        low, high = cuts[dim][0][0], cuts[dim][-1][1]
        # Chunk edges in the input dimension: where offset + stride * i crosses a multiple of size.
        first = (
            (size - (each.offset + low)) % size
            if each.stride == 1
            else ((each.offset - low + 1) % size)
        )
        edges = sorted({low, *range(low + first, high, size), high})
        cuts[dim] = list(pairwise(edges))
    yield from product(*cuts)
