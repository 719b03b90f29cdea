"""Constraints on the size of one kind of chunk, and on one value per dimension in general.

A hard constraint holds or the operation fails; a soft one is a wish that gives way. Combining is
first come, first served: a hard constraint replaces a soft one, a soft one never replaces anything,
two hard ones must be equal. Values are immutable; combining returns a new one.

Here are also the checks of JSON values that every kind of layout constraint shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from operator import index
from typing import Generic, TypeVar

from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import integral
from tensorstore_py.errors import MismatchError, SpecError, did_you_mean

__all__ = [
    "FARTHEST",
    "NO_GRID",
    "SOFT",
    "GridConstraints",
    "PerDim",
    "Scalar",
    "aspect_ratios",
    "extents",
    "json_array",
    "json_integer",
    "json_rank",
    "merge_dims",
    "merge_elements",
    "merge_rank",
    "origins",
    "with_members",
]

C = TypeVar("C")
T = TypeVar("T", int, float)

#: Value of a `shape` that asks for the full extent of the domain; never a hard constraint.
FULL_EXTENT = -1
#: No finite index is as far from 0.
FARTHEST = 2**62 - 1


@dataclass(frozen=True, slots=True)
class PerDim(Generic[T]):
    """Constraints of one kind: for each dimension a value or None, and whether it is hard."""

    values: tuple[T | None, ...]
    hard: tuple[bool, ...]

    @classmethod
    def none(cls, rank: int) -> PerDim[T]:
        """No constraint on any dimension."""
        return cls((None,) * rank, (False,) * rank)

    @property
    def is_empty(self) -> bool:
        """Whether no dimension is constrained."""
        return self.values.count(None) == len(self.values)

    def part(self, hard: bool) -> tuple[T | None, ...]:
        """The values of the hard constraints only, or of the soft ones only."""
        return tuple(
            [
                value if is_hard == hard else None
                for value, is_hard in zip(self.values, self.hard, strict=True)
            ]
        )

    def softened(self) -> PerDim[T]:
        """The same constraints, all soft."""
        return PerDim(self.values, (False,) * len(self.values))

    def merged(self, other: PerDim[T]) -> PerDim[T]:
        """Both constraints, `other` second. Raises MismatchError: two hard ones differ."""
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

    Raises MismatchError: two hard constraints differ; SpecError: a negative number.
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

    Raises SpecError: below -1; TypeError: not an integer. The path is the dimension.
    """

    def check(dim: int, value: object) -> int | None:
        size = _integer(dim, value)
        if size is not None and size < FULL_EXTENT:
            raise SpecError(f"expected an extent, or -1 for all, but found {size}", (dim,))
        return size or None

    checked = tuple([check(dim, value) for dim, value in enumerate(values)])
    flags = tuple([hard and value is not None and value != FULL_EXTENT for value in checked])
    return PerDim(checked, flags)


def origins(values: Sequence[object], hard: bool) -> PerDim[int]:
    """Grid origins as constraints; None is unconstrained.

    Raises SpecError: not a finite index; TypeError: not an integer. The path is the dimension.
    """

    def check(dim: int, value: object) -> int | None:
        origin = _integer(dim, value)
        if origin is not None and not -FARTHEST < origin < FARTHEST:
            raise SpecError(f"expected a finite index, but found {origin}", (dim,))
        return origin

    checked = tuple([check(dim, value) for dim, value in enumerate(values)])
    return PerDim(checked, tuple([hard and value is not None for value in checked]))


def aspect_ratios(values: Sequence[object], hard: bool) -> PerDim[float]:
    """Aspect ratios as constraints; None and 0 are unconstrained.

    Raises SpecError: negative or NaN; TypeError: not a number. The path is the dimension.
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
    if value is None or type(value) is int:
        return value
    if isinstance(value, bool):
        raise TypeError(f"dimension {dim}: expected an integer, but found {value!r}")
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"dimension {dim}: expected an integer, but found {value!r}") from None


_MAX_RANK = 32
_MEMBERS = ("shape", "aspect_ratio", "elements")
#: Behind the name of a member: it is a wish that gives way.
SOFT = "_soft_constraint"


@dataclass(frozen=True, slots=True)
class GridConstraints:
    """Constraints on one kind of chunk; None where there are none at all.

    In `shape`, -1 is the domain's full extent; `elements` is (how many in all, whether hard).
    """

    shape: PerDim[int] | None = None
    aspect_ratio: PerDim[float] | None = None
    elements: Scalar | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is constrained."""
        return (
            (self.shape is None or self.shape.is_empty)
            and (self.aspect_ratio is None or self.aspect_ratio.is_empty)
            and self.elements is None
        )

    def bare(self) -> GridConstraints:
        """The same with vectors that constrain no dimension as no vectors."""
        shape, ratio = self.shape, self.aspect_ratio
        return GridConstraints(
            None if shape is None or shape.is_empty else shape,
            None if ratio is None or ratio.is_empty else ratio,
            self.elements,
        )

    def softened(self) -> GridConstraints:
        """The same constraints, all soft."""
        return GridConstraints(
            None if self.shape is None else self.shape.softened(),
            None if self.aspect_ratio is None else self.aspect_ratio.softened(),
            None if self.elements is None else (self.elements[0], False),
        )

    def merged(self, other: GridConstraints) -> GridConstraints:
        """Both constraints, `other` second. Raises MismatchError: hard constraints that differ."""
        if other.shape is None and other.aspect_ratio is None and other.elements is None:
            return self
        if self.shape is None and self.aspect_ratio is None and self.elements is None:
            return other
        return GridConstraints(
            merge_dims(self.shape, other.shape),
            merge_dims(self.aspect_ratio, other.aspect_ratio),
            merge_elements(self.elements, other.elements),
        )

    def to_json(self) -> dict[str, object]:
        """The JSON object, members sorted."""
        json: dict[str, object] = {}
        for name in _MEMBERS:
            constraint: PerDim[int] | PerDim[float] | Scalar | None = getattr(self, name)
            if isinstance(constraint, PerDim):
                for hard, suffix in ((True, ""), (False, SOFT)):
                    values = constraint.part(hard)
                    if any(value is not None for value in values):
                        json[name + suffix] = list(values)
            elif constraint is not None:
                json[name + ("" if constraint[1] else SOFT)] = constraint[0]
        return {name: json[name] for name in sorted(json)}

    @classmethod
    def parse(cls, json: object, rank: int | None) -> GridConstraints:
        """The constraints for frozen JSON; `rank` is the known number of dimensions, if any.

        Raises SpecError: unknown member, wrong type or rank, or members that contradict each other.
        """

        def add(grid: GridConstraints, name: str, value: object) -> GridConstraints:
            addition = _parse_member(name, value)
            # Each member must agree with the known rank, and with the members before it.
            merge_rank(merge_rank(rank, grid.rank), addition.rank)
            return grid.merged(addition)

        allowed = [name + suffix for name in _MEMBERS for suffix in ("", SOFT)]
        return with_members(cls(), json, allowed, add)

    @property
    def rank(self) -> int | None:
        """Number of dimensions, if a constraint tells."""
        for constraint in (self.shape, self.aspect_ratio):
            if constraint is not None and constraint.values:
                return len(constraint.values)
        return None


NO_GRID = GridConstraints()


def _parse_member(name: str, json: object) -> GridConstraints:
    hard = not name.endswith(SOFT)
    name = name.removesuffix(SOFT)
    if name == "elements":
        value = json_integer(json)
        if value < 0:
            raise SpecError(f"expected a number of elements, not below 0, but found {value}")
        return GridConstraints(elements=(value, hard))
    values = json_array(json)
    if name == "shape":
        return GridConstraints(shape=extents(_each(values, json_integer), hard))
    return GridConstraints(aspect_ratio=aspect_ratios(_each(values, _json_number), hard))


def with_members(
    constraints: C,
    json: object,
    members: Sequence[str],
    add: Callable[[C, str, object], C],
    words: Mapping[str, str] | None = None,
) -> C:
    """The constraints with the members of a JSON object added, in the order of `members`.

    Raises SpecError: no object, an unknown member (`words` as for `did_you_mean`), or whatever
    `add` finds wrong with one, with the path to it.
    """
    if not isinstance(json, Mapping):
        raise SpecError(f"expected an object, but found {describe(json)}")
    for name in json:
        if name not in members:
            raise SpecError(f"no such member{did_you_mean(name, members, words)}", (name,))
    for name in members:
        if name in json:
            try:
                constraints = add(constraints, name, json[name])
            except SpecError as error:
                raise error.inside(name) from None
            except ValueError as error:
                raise SpecError(str(error), (name,)) from None
    return constraints


def json_rank(json: object) -> int:
    """A JSON rank. Raises SpecError: anything else."""
    rank = json_integer(json)
    if not 0 <= rank <= _MAX_RANK:
        raise SpecError(f"expected a rank from 0 to {_MAX_RANK}, but found {rank}")
    return rank


def json_array(json: object) -> tuple[object, ...]:
    """A JSON array of at most 32 elements. Raises SpecError: anything else."""
    if not isinstance(json, tuple):
        raise SpecError(f"expected an array, but found {describe(json)}")
    if len(json) > _MAX_RANK:
        raise SpecError(f"expected at most {_MAX_RANK} dimensions, but found {len(json)}")
    return json


def json_integer(json: object) -> int:
    """A JSON integer; `5.0` is one. Raises SpecError: anything else."""
    value = integral(json)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError(f"expected an integer, but found {describe(json)}")
    return value


def _json_number(json: object) -> float:
    if isinstance(json, bool) or not isinstance(json, int | float):
        raise SpecError(f"expected a number, but found {describe(json)}")
    return float(json)


def _each(values: tuple[object, ...], check: Callable[[object], float]) -> list[float | None]:
    checked: list[float | None] = []
    for dim, value in enumerate(values):
        try:
            checked.append(None if value is None else check(value))
        except SpecError as error:
            raise error.inside(dim) from None
    return checked


def merge_dims(mine: PerDim[T] | None, theirs: PerDim[T] | None) -> PerDim[T] | None:
    """Both constraints, `theirs` coming second; None is no constraint."""
    if theirs is None or not theirs.values:
        return mine
    return theirs if mine is None else mine.merged(theirs)


def merge_rank(known: int | None, rank: int | None) -> int | None:
    """The rank that both agree on; None is unknown.

    Raises MismatchError: they differ; SpecError: outside 0..32.
    """
    if rank is None:
        return known
    if not 0 <= rank <= _MAX_RANK:
        raise SpecError(f"Rank {rank} is outside valid range [0, {_MAX_RANK}]")
    if known is not None and known != rank:
        raise MismatchError(f"Rank {rank} does not match existing rank {known}")
    return rank
