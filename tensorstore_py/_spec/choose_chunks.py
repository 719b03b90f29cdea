"""The sizes of chunks, of constraints: a pure calculation.

What a constraint states is taken as it is. The other extents are `weight * scale`, cut to whole
numbers and to what there is of the array, with the aspect ratio's weights and one scale for all.
The scale is the greatest of a finite number of candidates whose chunk is not too large. Which
candidates there are, is part of the promise: the result is the reference's. Read chunks fit into
write chunks a whole number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import prod, sqrt
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.grid_constraints import FULL_EXTENT, PerDim
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._index import IndexDomain
    from tensorstore_py._spec.grid_constraints import GridConstraints
    from tensorstore_py._spec.layout_constraints import LayoutConstraints

__all__ = ["DEFAULT_ELEMENTS", "chunk_extents", "common_chunks", "nested_chunks", "placed_chunks"]

#: Elements per chunk where nothing is said.
DEFAULT_ELEMENTS = 2**20

#: How far a divisor may be from what is wished for.
_REACH = 999_999
#: No extent is longer, so that those of a few dimensions can be multiplied as floats.
_LONGEST = 2.0**62

T = TypeVar("T", int, float)
#: Makes an extent of a dimension fit the other kind of chunk.
Fit = Callable[[int, int], int]


def chunk_extents(grid: GridConstraints, domain: IndexDomain) -> tuple[int, ...]:
    """The extents of one kind of chunk; soft constraints are met as well.

    Raises SpecError: a constraint has another rank, or asks for the full extent of an unbounded
        dimension.

    Example:
        >>> from tensorstore_py._index import IndexDomain
        >>> from tensorstore_py._spec.chunk_layout import ChunkLayout
        >>> layout = ChunkLayout(chunk_elements=8000, chunk_aspect_ratio=[2, 1])
        >>> chunk_extents(layout.read_chunk.constraints, IndexDomain(shape=[500, 500]))
        (126, 63)
    """
    return _filled(_stated(grid, domain), grid, domain, lambda _, extent: extent)


def placed_chunks(
    origin: PerDim[int] | None, grid: GridConstraints, domain: IndexDomain
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where one kind of chunk begins, and its extents; as `chunk_extents`.

    Without a constraint on it, some chunk begins where the domain does.
    """
    extents = chunk_extents(grid, domain)
    wanted = _per_dimension(origin, domain)
    starts = tuple(
        start if start is not None else 0 if low == -INFINITY else low % extent
        for start, low, extent in zip(wanted, domain.inclusive_min, extents, strict=True)
    )
    return starts, extents


def common_chunks(
    layout: LayoutConstraints, domain: IndexDomain
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Origin and extents for a format where reading and writing have the same chunks.

    Raises:
        MismatchError: hard constraints on read and write chunks differ.
        SpecError: see `chunk_extents`.
    """
    try:
        both = layout.read_chunk.merged(layout.write_chunk)
    except MismatchError as error:
        raise MismatchError(
            "read and write chunks are the same here, but their constraints are not compatible: "
            f"{error}"
        ) from None
    return placed_chunks(layout.grid_origin, both, domain)


def nested_chunks(
    read: GridConstraints, write: GridConstraints, domain: IndexDomain
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents of read chunks, and of write chunks that are made of them (shards).

    Raises MismatchError: hard constraints that do not divide; SpecError: as `chunk_extents`.
    """
    outer, inner = _stated(write, domain), _stated(read, domain)
    for dim in range(domain.rank):
        _reconcile(inner, outer, dim)

    def as_part(dim: int, extent: int) -> int:
        whole = outer.extents[dim]
        return extent if whole is None else _closest_part(whole, extent)

    parts = _filled(inner, read, domain, as_part)
    return parts, _filled(
        outer, write, domain, lambda dim, extent: _closest_repetition(parts[dim], extent)
    )


class _Stated(NamedTuple):
    """What the constraints say of extents: None where nothing; and what is not merely a wish."""

    extents: list[int | None]
    hard: Sequence[bool]


def _stated(grid: GridConstraints, domain: IndexDomain) -> _Stated:
    shape = grid.shape
    extents: list[int | None] = []
    for dim, extent in enumerate(_per_dimension(shape, domain)):
        if extent == FULL_EXTENT and not _is_bounded(domain, dim):
            raise SpecError(
                f"dimension {dim} has no bounds that a chunk could span; state them, or the "
                "chunk's extent"
            )
        extents.append(max(1, domain.shape[dim]) if extent == FULL_EXTENT else extent or None)
    return _Stated(extents, [False] * domain.rank if shape is None else shape.hard)


def _reconcile(inner: _Stated, outer: _Stated, dim: int) -> None:
    """Where both extents are stated, make one a part of the other; a wish gives way first."""
    part, whole = inner.extents[dim], outer.extents[dim]
    if part is None or whole is None or whole % part == 0:
        return
    if not inner.hard[dim]:
        inner.extents[dim] = _closest_part(whole, part)
    elif not outer.hard[dim]:
        outer.extents[dim] = _closest_repetition(part, whole)
    else:
        raise MismatchError(
            f"dimension {dim}: write chunks of {whole} are not made of whole read chunks of {part}"
        )


def _per_dimension(stated: PerDim[T] | None, domain: IndexDomain) -> Sequence[T | None]:
    if stated is None:
        return [None] * domain.rank
    if len(stated.values) != domain.rank:
        raise SpecError(
            f"a constraint is for {len(stated.values)} dimensions, but the array has {domain.rank}"
        )
    return stated.values


def _is_bounded(domain: IndexDomain, dim: int) -> bool:
    return domain.inclusive_min[dim] > -INFINITY and domain.inclusive_max[dim] < INFINITY


def _filled(
    stated: _Stated, grid: GridConstraints, domain: IndexDomain, fit: Fit
) -> tuple[int, ...]:
    """The extents, those that are not stated made up."""
    most = DEFAULT_ELEMENTS if grid.elements is None else grid.elements[0]
    weights = [weight or 1.0 for weight in _per_dimension(grid.aspect_ratio, domain)]
    longest = [
        min(float(max(1, extent)) if _is_bounded(domain, dim) else _LONGEST, most, _LONGEST)
        for dim, extent in enumerate(domain.shape)
    ]
    return _Proportions(stated.extents, weights, longest, fit).largest(most)


class _Proportions:
    """All chunks of certain proportions, each by its scale; a greater scale, none smaller.

    Args:
        extents: those that don't scale; None where one does.
        weights: an extent at scale 1.
        longest: where it stops growing.
        fit: has the last word on an extent that scales.
    """

    def __init__(
        self,
        extents: Sequence[int | None],
        weights: Sequence[float],
        longest: Sequence[float],
        fit: Fit,
    ) -> None:
        self._extents = extents
        self._weights = weights
        self._longest = longest
        self._fit = fit

    def at(self, scale: float) -> tuple[int, ...]:
        """The chunk of a scale."""
        return tuple(
            self._fit(dim, max(1, int(min(weight * scale, longest)))) if extent is None else extent
            for dim, (extent, weight, longest) in enumerate(
                zip(self._extents, self._weights, self._longest, strict=True)
            )
        )

    def largest(self, most: int) -> tuple[int, ...]:
        """The largest candidate of at most so many elements; the least if all are larger."""
        scaling = [dim for dim, extent in enumerate(self._extents) if extent is None]
        if not scaling:
            return self.at(1)
        # Half of what lets the heaviest dimension grow by one: a candidate for each of its extents.
        least = 0.5 / max(self._weights[dim] for dim in scaling)
        # Here even the lightest one grows no more.
        greatest = 2 * max(self._longest[dim] / self._weights[dim] for dim in scaling)

        def small_enough(scale: float) -> bool:
            return prod(self.at(scale)) <= most

        marks = _marks(least, greatest)
        found = _last(len(marks), lambda place: small_enough(marks[place]))
        low = marks[found]
        gap = marks[min(found + 1, len(marks) - 1)] - low
        if not gap <= 3 * low:  # weights so far apart that floats don't suffice
            return self.at(low)
        count = _parts(gap, least)
        place = _last(count + 1, lambda place: small_enough(low + gap * (place / count)))
        return self.at(low + gap * (place / count))


def _marks(low: float, high: float) -> Sequence[float]:
    """Coarse candidates from one scale to another, none more than four times the one before.

    Each gap is halved, geometrically, for as long as there is a float in between.
    """
    marks = [low, high]
    while True:
        finer = [low, *(mark for pair in pairwise(marks) for mark in _with_mean(*pair))]
        if len(finer) == len(marks):
            return marks
        marks = finer


def _with_mean(low: float, high: float) -> Iterator[float]:
    if high > 4 * low and low < (mean := sqrt(low * high)) < high:
        yield mean
    yield high


def _parts(width: float, finest: float) -> int:
    """The least power of two by which to divide a width so that parts are no wider than that."""
    count = 1
    while width > finest * count:
        count *= 2
    return count


def _last(count: int, good: Callable[[int], bool]) -> int:
    """The last good place of so many, where all before a good one are good; 0 if none is."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if good(middle):
            low = middle
        else:
            high = middle
    return low


def _closest_part(whole: int, wished: int) -> int:
    """What divides `whole` and is closest to `wished`, the smaller of two; `whole` if too far."""
    if wished >= whole:
        return whole
    reach = _REACH
    downwards = range(wished, max(0, wished - reach - 1), -1)
    below = next((part for part in downwards if whole % part == 0), None)
    if below is not None:
        reach = wished - below - 1
    upwards = range(wished + 1, wished + reach + 1)
    above = next((part for part in upwards if whole % part == 0), None)
    return above or below or whole


def _closest_repetition(part: int, wished: int) -> int:
    """The multiple of `part` that is closest to `wished`, the smaller of two; at least one."""
    times = (2 * wished + part - 1) // (2 * part)
    return part * max(1, times)
