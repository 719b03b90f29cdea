"""Chunk sizes from constraints: a pure calculation.

A size that is constrained is taken as it is. The others grow together, in proportion to the aspect
ratio and up to the domain, until the chunk has the wanted number of elements (or as near below as
possible). Read chunks divide write chunks. For every input the result equals the reference's, so
the search takes the same steps, in floating point, to the factor that the extents have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, sqrt
from typing import TYPE_CHECKING

from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.constraints import FULL_EXTENT, PerDim
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._index import IndexDomain
    from tensorstore_py._spec.grid_constraints import GridConstraints
    from tensorstore_py._spec.layout_constraints import LayoutConstraints

__all__ = [
    "DEFAULT_ELEMENTS",
    "choose_chunk_grid",
    "choose_chunk_shape",
    "choose_read_write_chunk_grid",
    "choose_read_write_chunk_shapes",
]

#: Elements per chunk where nothing is said.
DEFAULT_ELEMENTS = 1024 * 1024

_FARTHEST_SEARCH = 1_000_000
_LARGEST = 2.0**62
_MAX_INT64 = 2**63 - 1

Adjust = Callable[[int, int], int]


def choose_chunk_shape(grid: GridConstraints, domain: IndexDomain) -> tuple[int, ...]:
    """The extents of one kind of chunk.

    Args:
        grid: the constraints; soft ones are met as well.
        domain: bounds of the array; may be infinite.

    Raises:
        SpecError: a constraint has another rank, or asks for the full extent of an unbounded
            dimension.

    Example:
        >>> from tensorstore_py._index import IndexDomain
        >>> from tensorstore_py._spec.chunk_layout import ChunkLayout
        >>> layout = ChunkLayout(chunk_elements=1000000, chunk_aspect_ratio=[1, 2, 2])
        >>> choose_chunk_shape(layout.read_chunk.constraints, IndexDomain(shape=[1000, 2000, 3000]))
        (62, 125, 125)
    """
    sizes, _ = _fixed_sizes(grid, domain)
    return _completed(sizes, grid, domain, lambda _, size: size)


def choose_chunk_grid(
    origin: PerDim[int] | None, grid: GridConstraints, domain: IndexDomain
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The origin and the extents of one kind of chunk; arguments as for `choose_chunk_shape`.

    Where no origin is constrained, the grid is aligned with the domain's origin.

    Raises:
        SpecError: see `choose_chunk_shape`.
    """
    shape = choose_chunk_shape(grid, domain)
    constrained: Sequence[int | None] = (None,) * domain.rank
    if origin is not None:
        constrained = origin.values
        if len(constrained) != domain.rank:
            raise _rank_error(len(constrained), domain)
    starts = []
    for start, lower, size in zip(constrained, domain.inclusive_min, shape, strict=True):
        aligned = 0 if lower == -INFINITY else lower % size
        starts.append(aligned if start is None else start)
    return tuple(starts), shape


def choose_read_write_chunk_grid(
    layout: LayoutConstraints, domain: IndexDomain
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Origin and extents for a format where reading and writing have the same chunks.

    Raises:
        MismatchError: hard constraints on read and write chunks differ.
        SpecError: see `choose_chunk_shape`.
    """
    try:
        both = layout.read_chunk.merged(layout.write_chunk)
    except MismatchError as error:
        raise MismatchError(
            f"write_chunk constraints not compatible with read_chunk constraints: {error}"
        ) from None
    return choose_chunk_grid(layout.grid_origin, both, domain)


def choose_read_write_chunk_shapes(
    read: GridConstraints, write: GridConstraints, domain: IndexDomain
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents of read chunks and of write chunks that they divide (shards).

    Args:
        read: constraints on read chunks.
        write: constraints on write chunks.
        domain: bounds of the array; may be infinite.

    Returns:
        The read chunk's extents and the write chunk's.

    Raises:
        SpecError: see `choose_chunk_shape`.
        MismatchError: hard constraints that do not divide.
    """
    write_sizes, write_hard = _fixed_sizes(write, domain)
    read_sizes, read_hard = _fixed_sizes(read, domain)
    for dim, (inner, outer) in enumerate(zip(read_sizes, write_sizes, strict=True)):
        if not inner or not outer or outer % inner == 0:
            continue
        if not read_hard[dim]:
            read_sizes[dim] = _nearest_divisor(outer, inner)
        elif not write_hard[dim]:
            write_sizes[dim] = _nearest_multiple(inner, outer)
        else:
            raise MismatchError(
                f"Incompatible chunk size constraints for dimension {dim}: read size of {inner}, "
                f"write size of {outer}"
            )

    def divide(dim: int, size: int) -> int:
        return _nearest_divisor(write_sizes[dim], size) if write_sizes[dim] else size

    read_shape = _completed(read_sizes, read, domain, divide)
    write_shape = _completed(
        write_sizes, write, domain, lambda dim, size: _nearest_multiple(read_shape[dim], size)
    )
    return read_shape, write_shape


def _rank_error(found: int, domain: IndexDomain) -> SpecError:
    return SpecError(f"Rank of constraints ({found}) does not match rank of domain ({domain.rank})")


def _is_finite(domain: IndexDomain, dim: int) -> bool:
    return domain.inclusive_min[dim] != -INFINITY and domain.inclusive_max[dim] != INFINITY


def _fixed_sizes(grid: GridConstraints, domain: IndexDomain) -> tuple[list[int], tuple[bool, ...]]:
    """Extents that are constrained, 0 elsewhere; and which are hard constraints."""
    if grid.shape is None:
        return [0] * domain.rank, (False,) * domain.rank
    if len(grid.shape.values) != domain.rank:
        raise _rank_error(len(grid.shape.values), domain)
    sizes = []
    for dim, size in enumerate(grid.shape.values):
        if size == FULL_EXTENT:
            if not _is_finite(domain, dim):
                raise SpecError(
                    f"Cannot match chunk size for dimension {dim} to an unbounded domain; "
                    f"give its bounds or a size"
                )
            size = max(1, domain.shape[dim])
        sizes.append(size or 0)
    return sizes, grid.shape.hard


def _completed(
    sizes: list[int], grid: GridConstraints, domain: IndexDomain, adjust: Adjust
) -> tuple[int, ...]:
    """`sizes` with each 0 replaced according to aspect ratio and number of elements."""
    if all(sizes):
        return tuple(sizes)
    ratios: Sequence[float | None] = (None,) * len(sizes)
    if grid.aspect_ratio is not None:
        ratios = grid.aspect_ratio.values
        if len(ratios) != len(sizes):
            raise _rank_error(len(ratios), domain)
    target = DEFAULT_ELEMENTS if grid.elements is None else grid.elements[0]
    limits = []
    for dim in range(len(sizes)):
        limit = float(target)
        if _is_finite(domain, dim):
            limit = min(limit, max(1.0, float(domain.shape[dim])))
        limits.append(min(limit, _LARGEST))
    search = _FactorSearch(sizes, [ratio or 1.0 for ratio in ratios], limits, target, adjust)
    return search.result()


class _FactorSearch:
    """Finds the common factor by which the aspect ratio is scaled.

    Args:
        sizes: fixed extents; 0 where the extent is `ratio * factor`.
        ratios: aspect ratio of each dimension.
        limits: upper bound of each extent.
        target: wanted number of elements.
        adjust: makes an extent fit the other kind of chunk.
    """

    def __init__(
        self,
        sizes: list[int],
        ratios: list[float],
        limits: list[float],
        target: int,
        adjust: Adjust,
    ) -> None:
        self.sizes = sizes
        self.ratios = ratios
        self.limits = limits
        self.target = target
        self.adjust = adjust

    def shape(self, factor: float) -> tuple[int, ...]:
        return tuple(
            size or self.adjust(dim, max(1, int(min(self.ratios[dim] * factor, self.limits[dim]))))
            for dim, size in enumerate(self.sizes)
        )

    def elements(self, factor: float) -> int:
        total = 1
        for size in self.shape(factor):
            total *= size
            if total > _MAX_INT64:
                return _MAX_INT64
        return total

    def result(self) -> tuple[int, ...]:
        free = [dim for dim, size in enumerate(self.sizes) if not size]
        # Half the step at which the fastest growing extent gains one, and twice the factor at
        # which the slowest reaches its limit: leeway for rounding.
        step = min((1.0 / self.ratios[dim] for dim in free), default=inf) / 2
        high = max(self.limits[dim] / self.ratios[dim] for dim in free) * 2
        low = step
        high_elements = self.elements(high)
        while low + step < high:
            # Halve the exponent first: the range spans several orders of magnitude.
            far = high > 4 * low
            middle = sqrt(low * high) if far else low + (high - low) / 2.0
            if not low < middle < high:
                break  # ratios so extreme that floating point has no factor in between
            elements = self.elements(middle)
            if elements >= self.target:
                high, high_elements = middle, elements
            if elements <= self.target:
                low = middle
        return self.shape(high if high_elements == self.target else low)


def _nearest_divisor(dividend: int, target: int) -> int:
    """The divisor of `dividend` nearest to `target`, the smaller one of two."""
    if target >= dividend:
        return dividend
    if dividend % target == 0:
        return target
    for offset in range(1, _FARTHEST_SEARCH):
        if target > offset and dividend % (target - offset) == 0:
            return target - offset
        if dividend % (target + offset) == 0:
            return target + offset
    return dividend


def _nearest_multiple(divisor: int, target: int) -> int:
    """The positive multiple of `divisor` nearest to `target`, the smaller one of two."""
    if target < divisor:
        return divisor
    lower = target // divisor * divisor
    return lower if target - lower <= lower + divisor - target else lower + divisor
