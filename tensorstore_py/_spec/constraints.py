"""Hard and soft constraints on one value per dimension, and the rules of combining them.

A hard constraint holds or the operation fails; a soft one is a wish that gives way. Combining is
first come, first served: a hard constraint replaces a soft one, a soft one never replaces anything,
two hard ones must be equal. Values are immutable; combining returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from operator import index
from typing import Generic, TypeVar

from tensorstore_py.errors import MismatchError, SpecError

__all__ = ["PerDim", "Scalar", "aspect_ratios", "extents", "merge_elements", "origins"]

T = TypeVar("T", int, float)

#: Value of a `shape` that asks for the full extent of the domain; never a hard constraint.
FULL_EXTENT = -1
_FARTHEST = 2**62 - 1


@dataclass(frozen=True, slots=True)
class PerDim(Generic[T]):
    """Constraints of one kind, for each dimension.

    Attributes:
        values: the constrained value; None where unconstrained.
        hard: whether it is a hard constraint; false where unconstrained.
    """

    values: tuple[T | None, ...]
    hard: tuple[bool, ...]

    @classmethod
    def none(cls, rank: int) -> PerDim[T]:
        """No constraint on any dimension."""
        return cls((None,) * rank, (False,) * rank)

    @property
    def is_empty(self) -> bool:
        """Whether no dimension is constrained."""
        return all(value is None for value in self.values)

    def part(self, hard: bool) -> tuple[T | None, ...]:
        """The values of the hard constraints only, or of the soft ones only."""
        return tuple(
            value if is_hard == hard else None
            for value, is_hard in zip(self.values, self.hard, strict=True)
        )

    def softened(self) -> PerDim[T]:
        """The same constraints, all soft."""
        return PerDim(self.values, (False,) * len(self.values))

    def merged(self, other: PerDim[T]) -> PerDim[T]:
        """Both constraints, `other` coming second.

        Raises:
            MismatchError: two hard constraints on one dimension differ.
        """
        values, hard = list(self.values), list(self.hard)
        for dim, (value, is_hard) in enumerate(zip(other.values, other.hard, strict=True)):
            if value is None:
                continue
            if is_hard and hard[dim] and values[dim] != value:
                raise MismatchError(
                    f"New hard constraint ({value}) for dimension {dim} does not match "
                    f"existing hard constraint ({values[dim]})"
                )
            if is_hard or values[dim] is None:
                values[dim] = value
                hard[dim] = hard[dim] or is_hard
        return PerDim(tuple(values), tuple(hard))

    def mapped(self, change: Callable[[int, T], T]) -> PerDim[T]:
        """Each constrained value replaced by `change(dimension, value)`."""
        changed = tuple(
            None if value is None else change(dim, value) for dim, value in enumerate(self.values)
        )
        return PerDim(changed, self.hard)

    def taken(self, source: Sequence[int | None]) -> PerDim[T]:
        """Constraints of another order: dimension `i` takes those of `source[i]`, or none."""
        values = tuple(None if dim is None else self.values[dim] for dim in source)
        return PerDim(values, tuple(dim is not None and self.hard[dim] for dim in source))


#: A constraint on a single number: (value, is hard).
Scalar = tuple[int, bool]


def merge_elements(mine: Scalar | None, theirs: Scalar | None) -> Scalar | None:
    """Both constraints on a number of elements, `theirs` coming second.

    Raises:
        MismatchError: two hard constraints differ.
        SpecError: a negative number.
    """
    if theirs is None:
        return mine
    value, hard = theirs
    if value < 0:
        raise SpecError(f"expected a number of elements, not below 0, but found {value}")
    if mine is None:
        return theirs
    if not hard:
        return mine
    if mine[1] and mine[0] != value:
        raise MismatchError(
            f"New hard constraint ({value}) does not match existing hard constraint ({mine[0]})"
        )
    return theirs


def extents(values: Sequence[object], hard: bool) -> PerDim[int]:
    """Chunk extents as constraints: None and 0 are unconstrained, -1 is the full extent, soft.

    Raises:
        SpecError: below -1; the path is the dimension.
        TypeError: not an integer.
    """

    def check(dim: int, value: object) -> int | None:
        size = _integer(dim, value)
        if size is not None and size < FULL_EXTENT:
            raise SpecError(f"expected an extent, or -1 for all, but found {size}", (dim,))
        return size or None

    checked = tuple(check(dim, value) for dim, value in enumerate(values))
    flags = tuple(hard and value is not None and value != FULL_EXTENT for value in checked)
    return PerDim(checked, flags)


def origins(values: Sequence[object], hard: bool) -> PerDim[int]:
    """Grid origins as constraints; None is unconstrained.

    Raises:
        SpecError: not a finite index; the path is the dimension.
        TypeError: not an integer.
    """

    def check(dim: int, value: object) -> int | None:
        origin = _integer(dim, value)
        if origin is not None and not -_FARTHEST < origin < _FARTHEST:
            raise SpecError(f"expected a finite index, but found {origin}", (dim,))
        return origin

    checked = tuple(check(dim, value) for dim, value in enumerate(values))
    return PerDim(checked, tuple(hard and value is not None for value in checked))


def aspect_ratios(values: Sequence[object], hard: bool) -> PerDim[float]:
    """Aspect ratios as constraints; None and 0 are unconstrained.

    Raises:
        SpecError: negative or not a number; the path is the dimension.
        TypeError: not a number at all.
    """

    def check(dim: int, value: object) -> float | None:
        if value is None:
            return None
        if isinstance(value, str | bytes | bool) or not hasattr(value, "__float__"):
            raise TypeError(f"dimension {dim}: expected a number, but found {value!r}")
        ratio = float(value)
        if ratio < 0 or isnan(ratio):
            raise SpecError(f"expected a ratio, not below 0, but found {ratio}", (dim,))
        return ratio or None

    checked = tuple(check(dim, value) for dim, value in enumerate(values))
    return PerDim(checked, tuple(hard and value is not None for value in checked))


def _integer(dim: int, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool):
        raise TypeError(f"dimension {dim}: expected an integer, but found {value!r}")
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"dimension {dim}: expected an integer, but found {value!r}") from None
