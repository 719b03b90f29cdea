"""Blocks: parts of arrays that are worked on at a time, so that memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._spec.context import Context

__all__ = ["block_bytes", "block_shape", "blocks_of", "boxes_of"]

#: Work in memory takes so large a part of `memory_limit` at a time, and that much at most.
_SHARE: Final = 8
_MOST_BYTES: Final = 2**26


def block_bytes(context: Context) -> int:
    """How many bytes are worked on at a time, by what may be in memory."""
    limit: int = context["memory_limit"].value.limit
    return max(1, min(_MOST_BYTES, limit // _SHARE))


def blocks_of(
    arrays: Mapping[str, TensorStore], most: int
) -> Iterator[tuple[str, tuple[slice, ...], int]]:
    """Blocks of whole chunks, in the order of the file: name, region and bytes."""
    for name, array in arrays.items():
        shape, item_size = tuple(array.shape), array.dtype.itemsize
        chunk = array.chunk_layout.read_chunk.shape or shape
        whole = tuple(c or n for c, n in zip(chunk, shape, strict=True))
        extents = block_shape(shape, whole, max(1, most // item_size))
        counts = [-(-n // each) for n, each in zip(shape, extents, strict=True)]
        for at in np.ndindex(*counts):
            region = tuple(
                slice(i * each, min(n, (i + 1) * each))
                for i, each, n in zip(at, extents, shape, strict=True)
            )
            yield name, region, prod(s.stop - s.start for s in region) * item_size


def block_shape(shape: tuple[int, ...], chunk: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A chunk grown along the last dimensions first, so that blocks are long runs of a file.

    Example:
        >>> block_shape((100, 64), (10, 16), 2000), block_shape((100, 64), (10, 64), 100)
        ((30, 64), (10, 64))
    """
    block = [max(1, min(n, c)) for n, c in zip(shape, chunk, strict=True)]
    for dim in reversed(range(len(shape))):
        rest = prod(block) // block[dim]
        several = max(1, most // (rest * block[dim]))
        block[dim] = max(1, min(shape[dim], block[dim] * several))
        if block[dim] < shape[dim]:
            break
    return tuple(block)


def boxes_of(shape: tuple[int, ...], start: int, stop: int) -> Iterator[tuple[slice, ...]]:
    """The boxes that consecutive elements of an array are, in their order; row-major.

    Example:
        >>> [tuple((s.start, s.stop) for s in box) for box in boxes_of((4, 3), 2, 10)]
        [((0, 1), (2, 3)), ((1, 3), (0, 3)), ((3, 4), (0, 1))]
    """
    if start >= stop:
        return
    if not shape:
        yield ()
        return
    row = prod(shape[1:])
    (first, begin), (last, end) = divmod(start, row), divmod(stop, row)
    if first == last:
        yield from ((slice(first, first + 1), *box) for box in boxes_of(shape[1:], begin, end))
        return
    if begin:
        yield from ((slice(first, first + 1), *box) for box in boxes_of(shape[1:], begin, row))
        first += 1
    if first < last:
        yield slice(first, last), *(slice(0, extent) for extent in shape[1:])
    yield from ((slice(last, last + 1), *box) for box in boxes_of(shape[1:], 0, end))
