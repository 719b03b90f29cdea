"""Dimension selections: which dimensions an operation is about.

A selection is a tuple of `DimSpec`: a position (negative counts from the end), a label, or a
`DimRange`, written as in `d[0, "x", 2:]`. Resolving it against the labels of a domain gives
dimension indices. Nothing here knows about bounds or maps.

Invariant: a resolved selection holds indices in `[0, rank)` without repetition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from tensorstore_py._index.dim import escape, find_label
from tensorstore_py._index.interval import int64_or_none
from tensorstore_py.errors import IndexingError

__all__ = [
    "DimRange",
    "DimSelectionLike",
    "DimSpec",
    "HasDimSpecs",
    "format_specs",
    "new_dims",
    "normalize_index",
    "parse_specs",
    "require_distinct",
    "resolve",
    "resolve_range",
]


class DimRange(NamedTuple):
    """A slice of dimension positions."""

    start: int | None
    stop: int | None
    step: int

    def __str__(self) -> str:
        text = f"{'' if self.start is None else self.start}:"
        text += "" if self.stop is None else f"{self.stop}"
        return text if self.step == 1 else f"{text}:{self.step}"


DimSpec: TypeAlias = int | str | DimRange


@runtime_checkable
class HasDimSpecs(Protocol):
    """A selection object that other selections may contain."""

    @property
    def dim_specs(self) -> tuple[DimSpec, ...]:
        """The terms, in order."""


DimSelectionLike: TypeAlias = "int | str | slice | HasDimSpecs | Sequence[DimSelectionLike]"


def parse_specs(selection: object) -> tuple[DimSpec, ...]:
    """The terms of anything selection-like, nested sequences flattened.

    Raises TypeError: a term is no integer, label, slice, selection or sequence of these.
    """
    if isinstance(selection, str):
        return (selection,)
    number = int64_or_none(selection)
    if number is not None:
        return (number,)
    if isinstance(selection, slice):
        start, stop, step = map(_slice_part, (selection.start, selection.stop, selection.step))
        return (DimRange(start, stop, 1 if step is None else step),)
    if isinstance(selection, HasDimSpecs):
        return selection.dim_specs
    if isinstance(selection, Iterable):
        return tuple(spec for part in selection for spec in parse_specs(part))
    raise TypeError(f"A dimension is given by index, label or slice, not by {selection!r}")


def _slice_part(part: object) -> int | None:
    number = int64_or_none(part)
    if number is None and part is not None:
        raise TypeError(f"A slice of dimensions takes integers, not {part!r}")
    return number


def format_specs(specs: Sequence[DimSpec]) -> str:
    """What stands between the brackets of `d[...]`."""
    if not specs:
        return "()"
    return ",".join(f"'{escape(spec)}'" if isinstance(spec, str) else str(spec) for spec in specs)


def normalize_index(dim: int, rank: int) -> int:
    """A position in `[0, rank)`; negative ones count from the end."""
    if -rank <= dim < rank:
        return dim + rank if dim < 0 else dim
    raise IndexingError(f"Dimension index {dim} is outside valid range [-{rank}, {rank})")


def resolve_range(spec: DimRange, rank: int) -> range:
    """The positions of a `DimRange`, which must be valid as written (no clamping)."""
    start, stop, step = spec
    if step == 0:
        raise IndexingError("step must not be 0")
    if start is None:
        start = 0 if step > 0 else rank - 1
    else:
        start = normalize_index(start, rank)
    if stop is None:
        stop = rank if step > 0 else -1
    else:
        if not -rank - 1 <= stop <= rank:
            raise IndexingError(
                f"Dimension exclusive stop index {stop} is outside valid range "
                f"[-{rank + 1}, {rank}]"
            )
        stop = stop + rank if stop < 0 else stop
        if (stop < start) if step > 0 else (stop > start):
            raise IndexingError(f"{spec} is not a valid range")
    return range(start, stop, step)


def resolve(specs: Sequence[DimSpec], labels: Sequence[str]) -> list[int]:
    """Dimension indices of a selection, in its order; may repeat."""
    rank = len(labels)
    dims: list[int] = []
    for spec in specs:
        if isinstance(spec, str):
            dims.append(find_label(spec, labels))
        elif isinstance(spec, int):
            dims.append(normalize_index(spec, rank))
        else:
            dims.extend(resolve_range(spec, rank))
    return dims


def require_distinct(dims: list[int], rank: int) -> list[int]:
    """Return `dims`, or raise IndexingError where a dimension occurs twice."""
    if len(dims) > rank:
        raise IndexingError(f"Number of dimensions ({len(dims)}) exceeds input rank ({rank})")
    if len(set(dims)) != len(dims):
        repeated = ", ".join(str(d) for i, d in enumerate(dims) if d in dims[:i])
        raise IndexingError(f"Input dimensions {{{repeated}}} specified more than once")
    return dims


def new_dims(specs: Sequence[DimSpec], rank: int) -> list[int]:
    """Positions of dimensions to be added to a domain of `rank`, in the enlarged domain."""
    added = sum(_count_new(spec) if isinstance(spec, DimRange) else 1 for spec in specs)
    dims: list[int] = []
    for spec in specs:
        if isinstance(spec, str):
            raise IndexingError("New dimensions cannot be specified by label")
        if isinstance(spec, int):
            dims.append(normalize_index(spec, rank + added))
        else:
            dims.extend(resolve_range(spec, rank + added))
    return require_distinct(dims, rank + added)


def _count_new(spec: DimRange) -> int:
    """How many dimensions a range adds, which must not depend on the rank."""
    start, stop, step = spec
    if step == 0:
        raise IndexingError("step must not be 0")
    if start is not None and stop is not None:
        if (start < 0) == (stop < 0) and (stop >= start if step > 0 else stop <= start):
            return len(range(start, stop, step))
    elif start is not None:
        if step > 0 and start < 0:
            return len(range(start, 0, step))
        if step < 0 and start >= 0:
            return len(range(start, -1, step))
    elif stop is not None:
        if step > 0 and stop >= 0:
            return len(range(0, stop, step))
        if step < 0 and stop < 0:
            return len(range(-1, stop, step))
    raise IndexingError(f"`{spec}` is not a valid specification for new dimensions")
