"""`ChunkLayout.Grid`: the user's handle of constraints on one kind of chunk.

`update` swaps one immutable `GridConstraints` for the next in a single assignment, so that readers
on other threads see either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import SupportsIndex, TypedDict, TypeVar, Unpack

import numpy as np

from tensorstore_py._spec.constraints import PerDim, aspect_ratios, extents, merge_elements
from tensorstore_py._spec.grid_constraints import GridConstraints, merge_rank
from tensorstore_py._spec.json_value import freeze
from tensorstore_py._spec.spelled import spelled_out
from tensorstore_py.errors import did_you_mean

__all__ = ["Grid", "GridArguments", "check_names", "grid_argument", "per_dimension"]

T = TypeVar("T", int, float)

_SOFT = "_soft_constraint"


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


def _given(
    *,
    rank: int | None = None,
    shape: Sequence[int | None] | None = None,
    shape_soft_constraint: Sequence[int | None] | None = None,
    aspect_ratio: Sequence[float | None] | None = None,
    aspect_ratio_soft_constraint: Sequence[float | None] | None = None,
    elements: int | None = None,
    elements_soft_constraint: int | None = None,
    grid: Grid | None = None,
    grid_soft_constraint: Grid | None = None,
    **unknown: object,
) -> dict[str, object]:
    """The arguments, named one by one for editors (see `spelled`)."""
    found = locals()
    check_names("Grid", found.pop("unknown"), GridArguments.__annotations__)
    return found


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

    @spelled_out(GridArguments)
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

    @spelled_out(GridArguments)
    def update(self, **constraints: Unpack[GridArguments]) -> None:
        """Add constraints; all or, if there is an error, none. Arguments as for the class."""
        found = _given(**constraints)
        rank, merged = self._state
        rank = merge_rank(rank, constraints.get("rank"))
        for name, value in found.items():
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
        raise TypeError(f"{name}: expected a list of one value per dimension, but found {value!r}")
    return value


def check_names(
    kind: str,
    given: Mapping[str, object],
    allowed: Iterable[str],
    words: Mapping[str, str] | None = None,
) -> None:
    """Refuse keyword arguments that do not exist.

    Args:
        kind: what takes them.
        given: the arguments.
        allowed: the names that exist.
        words: as for `did_you_mean`.

    Raises:
        TypeError: naming the first of them.
    """
    for name in given:
        if name not in allowed:
            hint = did_you_mean(name, allowed, words)
            raise TypeError(f'{kind} has no argument "{name}"{hint}')
