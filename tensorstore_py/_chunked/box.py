"""Boxes: the commonest selection, one contiguous block, cut along a regular grid in one go.

The short way beside `selection` and `plan`, for reads so small that planning would cost more than
they do. A test holds it to the long way. Whatever is not simply a box that lies within the array
is None here, and goes the long way, errors included.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._index import IndexTransform

__all__ = ["Box", "Cut", "box_of", "cells_of", "cut"]


class Box(NamedTuple):
    """Elements `[starts, stops)` of the stored array.

    Attributes:
        starts: one for each dimension of the array.
        stops: one for each dimension of the array.
        kept: whether the reader's array has that dimension; where it has not, there is one element.
    """

    starts: Sequence[int]
    stops: Sequence[int]
    kept: Sequence[bool]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the reader's array."""
        return tuple(
            [
                stop - start
                for start, stop, kept in zip(self.starts, self.stops, self.kept, strict=True)
                if kept
            ]
        )


class Cut(NamedTuple):
    """What one chunk has of a box.

    Attributes:
        cell: which chunk.
        inside: index of the elements in the chunk.
        outside: index of the same elements in the reader's array.
    """

    cell: tuple[int, ...]
    inside: tuple[slice | int, ...]
    outside: tuple[slice, ...]


def box_of(transform: IndexTransform, extents: Sequence[int]) -> Box | None:
    """The box that `transform` selects of an array of `extents` from zero.

    None if it selects anything else, nothing at all, or something outside the array.

    Example:
        >>> from tensorstore_py._index import IndexTransform
        >>> box_of(IndexTransform(input_shape=[4, 5])[1:3, 2], [4, 5])
        Box(starts=[1, 2], stops=[3, 3], kept=[True, False])
    """
    lower, upper = transform.input_origin, transform.input_exclusive_max
    no_lower, no_upper = transform.implicit_lower_bounds, transform.implicit_upper_bounds
    starts: list[int] = []
    stops: list[int] = []
    kept: list[bool] = []
    rank = 0
    for each, extent in zip(transform.maps, extents, strict=True):
        dim = each.input_dimension
        if dim is None:
            if each.index_array is not None:
                return None
            start = each.offset
            stop = start + 1
        elif dim == rank and each.stride == 1:
            start = 0 if no_lower[dim] else each.offset + lower[dim]
            stop = extent if no_upper[dim] else each.offset + upper[dim]
            rank += 1
        else:
            return None
        if not 0 <= start < stop <= extent:
            return None
        starts.append(start)
        stops.append(stop)
        kept.append(dim is not None)
    return Box(starts, stops, kept) if rank == len(lower) else None


def cells_of(box: Box, chunk: Sequence[int]) -> list[tuple[int, ...]]:
    """The chunks of that shape that a box meets, in the order of `cut`.

    Example:
        >>> cells_of(Box([3, 0], [9, 4], [True, True]), [4, 4])
        [(0, 0), (1, 0), (2, 0)]
    """
    firsts = []
    single = True
    for start, stop, size in zip(box.starts, box.stops, chunk, strict=True):
        first = start // size
        firsts.append(first)
        single = single and stop <= (first + 1) * size
    if single:
        return [tuple(firsts)]
    lasts = [(stop - 1) // size for stop, size in zip(box.stops, chunk, strict=True)]
    return list(product(*[range(low, high + 1) for low, high in zip(firsts, lasts, strict=True)]))


def cut(box: Box, chunk: Sequence[int]) -> list[Cut]:
    """The parts of a box, one for each chunk of that shape that it meets.

    Args:
        box: what to cut.
        chunk: the shape of all chunks.

    Example:
        >>> for part in cut(Box([3], [9], [True]), [4]):
        ...     print(part.cell, part.inside, part.outside)
        (0,) (slice(3, 4, None),) (slice(0, 1, None),)
        (1,) (slice(0, 4, None),) (slice(1, 5, None),)
        (2,) (slice(0, 1, None),) (slice(5, 6, None),)
    """
    cell: list[int] = []
    inside: list[slice | int] = []
    for start, stop, kept, size in zip(*box, chunk, strict=True):
        first = start // size
        begin = first * size
        if stop > begin + size:
            return _cut_many(box, chunk)
        cell.append(first)
        inside.append(slice(start - begin, stop - begin) if kept else start - begin)
    return [Cut(tuple(cell), tuple(inside), ())]  # all of it


def _cut_many(box: Box, chunk: Sequence[int]) -> list[Cut]:
    """As `cut`, for any number of chunks."""
    pieces: list[list[tuple[int, slice | int, slice | None]]] = []
    rank = 0
    for start, stop, kept, size in zip(*box, chunk, strict=True):
        if not kept:
            pieces.append([(start // size, start % size, None)])
            continue
        rank += 1
        along: list[tuple[int, slice | int, slice | None]] = []
        for cell in range(start // size, (stop - 1) // size + 1):
            begin = cell * size
            low, high = max(start, begin), min(stop, begin + size)
            along.append((cell, slice(low - begin, high - begin), slice(low - start, high - start)))
        pieces.append(along)
    if rank == len(pieces):
        return [Cut(*zip(*each, strict=True)) for each in product(*pieces)]
    cuts = []
    for each in product(*pieces):
        cell, inside, outside = zip(*each, strict=True)
        cuts.append(Cut(cell, inside, tuple([where for where in outside if where is not None])))
    return cuts
