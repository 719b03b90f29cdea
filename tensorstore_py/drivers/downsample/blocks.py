"""Which elements of the base make which of the smaller array: plain arithmetic on bounds.

Element `i` stands for positions `[i * factor, (i + 1) * factor)` of the base, as far as they lie
inside it, so elements at the edges stand for fewer. With the method "stride" it is the one at
`i * factor`, and there is no element where that lies outside.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py.drivers.downsample.methods import reduced
from tensorstore_py.plugin.driver import IndexDomain, inf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py.plugin.codec import Array

__all__ = ["base_box", "block_extents", "downsampled", "downsampled_domain"]

Box = tuple[tuple[int, int], ...]

#: A block of the base that is worth a read of its own.
_BLOCK_BYTES = 2**20
#: A block of the base that is too large to end where chunks end.
_LARGEST_BYTES = 2**26


def downsampled_domain(base: IndexDomain, factors: Sequence[int], method: str) -> IndexDomain:
    """The domain of the smaller array; bounds that are implicit, or endless, stay so.

    Example:
        >>> downsampled_domain(IndexDomain(inclusive_min=[1], exclusive_max=[8]), [4], "mean")
        { [0, 2) }
        >>> downsampled_domain(IndexDomain(inclusive_min=[1], exclusive_max=[8]), [4], "stride")
        { [1, 2) }
    """
    bounds = [
        _interval(low, high, factor, method == "stride")
        for low, high, factor in zip(base.inclusive_min, base.exclusive_max, factors, strict=True)
    ]
    return IndexDomain(
        inclusive_min=[low for low, _ in bounds],
        exclusive_max=[high for _, high in bounds],
        implicit_lower_bounds=base.implicit_lower_bounds,
        implicit_upper_bounds=base.implicit_upper_bounds,
        labels=base.labels,
    )


def _interval(low: int, high: int, factor: int, inner: bool) -> tuple[int, int]:
    below = low if low == -inf else -(-low // factor) if inner else low // factor
    above = high if high == inf + 1 else -(-high // factor)
    return below, below if low == high else max(below, above)


def base_box(box: Box, factors: Sequence[int], bounds: Box) -> Box:
    """The positions of the base that a box of the smaller array stands for."""
    return tuple(
        (max(low * factor, least), min(high * factor, beyond))
        for (low, high), factor, (least, beyond) in zip(box, factors, bounds, strict=True)
    )


class _Run(NamedTuple):
    """Neighbouring elements that stand for equally many positions."""

    elements: slice
    positions: slice
    groups: int
    members: int


def downsampled(base: Array, origin: Box, box: Box, factors: Sequence[int], method: str) -> Array:
    """The elements of a box.

    Args:
        base: what `base_box` gives for it.
        origin: that box.
        box: the elements' own.
        factors: of each dimension.
        method: any but "stride".
    """
    out = np.empty([high - low for low, high in box], base.dtype)
    for runs in product(*map(_runs, box, origin, factors)):
        part = base[tuple(run.positions for run in runs)]
        groups = part.reshape([size for run in runs for size in (run.groups, run.members)])
        out[tuple(run.elements for run in runs)] = reduced(groups, method)
    return out


def _runs(bounds: tuple[int, int], base: tuple[int, int], factor: int) -> Iterator[_Run]:
    (low, high), (begin, end) = bounds, base
    place = low
    while place < high:
        first, last = max(place * factor, begin), min((place + 1) * factor, end)
        groups = 1
        if last - first == factor:
            groups = max(1, min(high, end // factor) - place)
            last = first + groups * factor
        yield _Run(
            slice(place - low, place - low + groups),
            slice(first - begin, last - begin),
            groups,
            (last - first) // groups,
        )
        place += groups


def block_extents(
    chunk: Sequence[int | None], factors: Sequence[int], shape: Sequence[int], item_bytes: int
) -> list[int]:
    """How large, in elements of the smaller array, the blocks are that it is made in.

    Blocks end where chunks of the base do, so that no chunk is read twice, unless they would be
    huge; neighbours are joined until reading one is worth the effort.

    Args:
        chunk: of the smaller array, as its layout tells; None where there is none.
        factors: of each dimension.
        shape: of the smaller array, or of what is wanted of it; blocks don't exceed it.
        item_bytes: size of an element.

    Example:
        >>> block_extents([32, 32], [2, 2], [1000, 1000], 1)
        [256, 1000]
    """
    extents = [max(1, min(each or 1, extent)) for each, extent in zip(chunk, shape, strict=True)]
    step = item_bytes * prod(factors)
    while step * prod(extents) > _LARGEST_BYTES and max(extents) > 1:
        largest = extents.index(max(extents))
        extents[largest] = -(-extents[largest] // 2)
    for dim in reversed(range(len(extents))):
        while 2 * step * prod(extents) <= _BLOCK_BYTES and extents[dim] < shape[dim]:
            extents[dim] = min(2 * extents[dim], shape[dim])
    return extents
