"""`ChunkLayout.Grid`: constraints on the size of one kind of chunk.

`GridConstraints` is the immutable value; `Grid` is the user's handle, whose `update` swaps one
value for the next in a single assignment, so that readers on other threads see either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex, TypedDict, TypeVar, Unpack

import numpy as np

from tensorstore_py._spec.constraints import (
    PerDim,
    Scalar,
    aspect_ratios,
    extents,
    merge_elements,
)
from tensorstore_py._spec.json_value import describe, freeze
from tensorstore_py._spec.model import integral
from tensorstore_py.errors import MismatchError, SpecError, did_you_mean

__all__ = [
    "Grid",
    "GridArguments",
    "GridConstraints",
    "check_names",
    "grid_argument",
    "json_array",
    "json_integer",
    "merge_dims",
    "merge_rank",
    "per_dimension",
]

T = TypeVar("T", int, float)

_MAX_RANK = 32
_MEMBERS = ("shape", "aspect_ratio", "elements")
_SOFT = "_soft_constraint"


@dataclass(frozen=True, slots=True)
class GridConstraints:
    """Constraints on one kind of chunk; None where there are none at all.

    Attributes:
        shape: extent per dimension; -1 is the domain's full extent.
        aspect_ratio: relative extent per dimension.
        elements: (number of elements in all, whether it is a hard constraint).
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

    def softened(self) -> GridConstraints:
        """The same constraints, all soft."""
        return GridConstraints(
            None if self.shape is None else self.shape.softened(),
            None if self.aspect_ratio is None else self.aspect_ratio.softened(),
            None if self.elements is None else (self.elements[0], False),
        )

    def merged(self, other: GridConstraints) -> GridConstraints:
        """Both constraints, `other` coming second.

        Raises:
            MismatchError: hard constraints that differ.
        """
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
                for hard, suffix in ((True, ""), (False, _SOFT)):
                    values = constraint.part(hard)
                    if any(value is not None for value in values):
                        json[name + suffix] = list(values)
            elif constraint is not None:
                json[name + ("" if constraint[1] else _SOFT)] = constraint[0]
        return {name: json[name] for name in sorted(json)}

    @classmethod
    def parse(cls, json: object, rank: int | None) -> GridConstraints:
        """The constraints for a JSON object.

        Args:
            json: as `freeze` gives it.
            rank: known number of dimensions, or None.

        Raises:
            SpecError: unknown member, wrong type or rank, or members that contradict each other.
        """
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        allowed = [name + suffix for name in _MEMBERS for suffix in ("", _SOFT)]
        for name in json:
            if name not in allowed:
                raise SpecError(f"no such member{did_you_mean(name, allowed)}", (name,))
        grid = cls()
        for name in allowed:
            if name not in json:
                continue
            try:
                addition = _parse_member(name, json[name])
                rank = merge_rank(rank, addition.rank)
                grid = grid.merged(addition)
            except SpecError as error:
                raise error.inside(name) from None
            except MismatchError as error:
                raise SpecError(str(error), (name,)) from None
        return grid

    @property
    def rank(self) -> int | None:
        """Number of dimensions, if a constraint tells."""
        for constraint in (self.shape, self.aspect_ratio):
            if constraint is not None and constraint.values:
                return len(constraint.values)
        return None


def _parse_member(name: str, json: object) -> GridConstraints:
    hard = not name.endswith(_SOFT)
    name = name.removesuffix(_SOFT)
    if name == "elements":
        value = json_integer(json)
        if value < 0:
            raise SpecError(f"expected a number of elements, not below 0, but found {value}")
        return GridConstraints(elements=(value, hard))
    values = json_array(json)
    if name == "shape":
        return GridConstraints(shape=extents(_each(values, json_integer), hard))
    return GridConstraints(aspect_ratio=aspect_ratios(_each(values, _json_number), hard))


def json_array(json: object) -> tuple[object, ...]:
    """A JSON array of at most 32 elements.

    Raises:
        SpecError: anything else.
    """
    if not isinstance(json, tuple):
        raise SpecError(f"expected an array, but found {describe(json)}")
    if len(json) > _MAX_RANK:
        raise SpecError(f"expected at most {_MAX_RANK} dimensions, but found {len(json)}")
    return json


def json_integer(json: object) -> int:
    """A JSON integer; `5.0` is one.

    Raises:
        SpecError: anything else.
    """
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

    Raises:
        MismatchError: they differ.
        SpecError: outside 0..32.
    """
    if rank is None:
        return known
    if not 0 <= rank <= _MAX_RANK:
        raise SpecError(f"Rank {rank} is outside valid range [0, {_MAX_RANK}]")
    if known is not None and known != rank:
        raise MismatchError(f"Rank {rank} does not match existing rank {known}")
    return rank


class GridArguments(TypedDict, total=False):
    """The keyword arguments of `Grid`, in the order in which they are applied."""

    rank: int | None
    shape: Sequence[int | None] | None
    shape_soft_constraint: Sequence[int | None] | None
    aspect_ratio: Sequence[float | None] | None
    aspect_ratio_soft_constraint: Sequence[float | None] | None
    elements: int | None
    elements_soft_constraint: int | None
    grid: Grid | None
    grid_soft_constraint: Grid | None


class Grid:
    """Constraints on a chunk grid.

    Args:
        json: the JSON object; alone, or leave it out and give the parts.
        rank: number of dimensions.
        shape: chunk extent per dimension; None or 0: unconstrained; -1: the full extent.
        aspect_ratio: relative chunk extent per dimension; None or 0: unconstrained.
        elements: target number of elements per chunk.
        grid: another grid, whose constraints are added.
        *_soft_constraint: the same as wishes that give way.

    Raises:
        SpecError: wrong JSON, or a value out of range.
        MismatchError: constraints that contradict each other.
        TypeError: an argument of a wrong type.

    Example:
        >>> grid = Grid(shape=[5, None, 20], elements=1000)
        >>> grid.to_json()
        {'elements': 1000, 'shape': [5, None, 20]}
    """

    __slots__ = ("_state",)
    __hash__ = None  # type: ignore[assignment]
    _state: tuple[int | None, GridConstraints]

    def __init__(self, json: object = None, **constraints: Unpack[GridArguments]) -> None:
        self._state = (None, GridConstraints())
        if json is not None:
            parsed = GridConstraints.parse(freeze(json), None)
            self._state = (parsed.rank, parsed)
        self.update(**constraints)

    @classmethod
    def of(cls, constraints: GridConstraints, rank: int | None) -> Grid:
        """The grid with just these constraints."""
        grid = cls()
        grid._state = (rank, constraints)
        return grid

    def update(self, **constraints: Unpack[GridArguments]) -> None:
        """Add constraints; all or, if there is an error, none. Arguments as for the class."""
        check_names("Grid", constraints, GridArguments.__annotations__)
        rank, merged = self._state
        rank = merge_rank(rank, constraints.get("rank"))
        for name in GridArguments.__annotations__:
            value = constraints.get(name)
            if name == "rank" or value is None:
                continue
            addition = grid_argument(name, value)
            rank = merge_rank(rank, addition.rank)
            merged = merged.merged(addition)
        self._state = (rank, merged)

    @property
    def constraints(self) -> GridConstraints:
        """The constraints as an immutable value."""
        return self._state[1]

    @property
    def rank(self) -> int | None:
        """Number of dimensions; None if unknown."""
        return self._state[0]

    @property
    def ndim(self) -> int | None:
        """Alias of `rank`."""
        return self._state[0]

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Hard constraints on the chunk extents."""
        return _part(self._state[0], self._state[1].shape, hard=True)

    @property
    def shape_soft_constraint(self) -> tuple[int | None, ...] | None:
        """Soft constraints on the chunk extents."""
        return _part(self._state[0], self._state[1].shape, hard=False)

    @property
    def aspect_ratio(self) -> tuple[float | None, ...] | None:
        """Hard constraints on the aspect ratio."""
        return _part(self._state[0], self._state[1].aspect_ratio, hard=True)

    @property
    def aspect_ratio_soft_constraint(self) -> tuple[float | None, ...] | None:
        """Soft constraints on the aspect ratio."""
        return _part(self._state[0], self._state[1].aspect_ratio, hard=False)

    @property
    def elements(self) -> int | None:
        """Hard constraint on the number of elements."""
        found = self._state[1].elements
        return found[0] if found is not None and found[1] else None

    @property
    def elements_soft_constraint(self) -> int | None:
        """Soft constraint on the number of elements."""
        found = self._state[1].elements
        return found[0] if found is not None and not found[1] else None

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object; nothing has a default, so `include_defaults` changes nothing."""
        return self._state[1].to_json()

    def __eq__(self, other: object) -> bool:
        return self._state == other._state if isinstance(other, Grid) else NotImplemented

    def __repr__(self) -> str:
        return f"<ChunkLayout.Grid {self.to_json()}>"

    def __reduce__(self) -> tuple[Callable[..., Grid], tuple[object, ...]]:
        rank, constraints = self._state
        return _restore, (constraints, rank)


def _restore(constraints: GridConstraints, rank: int | None) -> Grid:
    return Grid.of(constraints, rank)


def _part(
    rank: int | None, constraint: PerDim[T] | None, *, hard: bool
) -> tuple[T | None, ...] | None:
    if rank is None:
        return None
    return (None,) * rank if constraint is None else constraint.part(hard)


def grid_argument(name: str, value: object) -> GridConstraints:
    """The constraints that one keyword argument of `Grid` adds.

    Raises:
        SpecError: a value out of range.
        TypeError: a value of a wrong type.
    """
    hard = not name.endswith(_SOFT)
    name = name.removesuffix(_SOFT)
    if name == "grid":
        if not isinstance(value, Grid):
            raise TypeError(f"{name}: expected a ChunkLayout.Grid, but found {value!r}")
        return value.constraints if hard else value.constraints.softened()
    if name == "elements":
        if isinstance(value, bool) or not isinstance(value, SupportsIndex):
            raise TypeError(f"{name}: expected an integer, but found {value!r}")
        return GridConstraints(elements=merge_elements(None, (value.__index__(), hard)))
    if name == "shape":
        return GridConstraints(shape=extents(per_dimension(name, value), hard))
    return GridConstraints(aspect_ratio=aspect_ratios(per_dimension(name, value), hard))


def per_dimension(name: str, value: object) -> Sequence[object]:
    """`value` as a sequence of one value per dimension.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise TypeError(f"{name}: expected one value per dimension, but found {value!r}")
    return value


def check_names(kind: str, given: Mapping[str, object], allowed: Mapping[str, object]) -> None:
    """Refuse keyword arguments that do not exist.

    Raises:
        TypeError: naming the first of them.
    """
    for name in given:
        if name not in allowed:
            raise TypeError(f'{kind} has no argument "{name}"{did_you_mean(name, allowed)}')
