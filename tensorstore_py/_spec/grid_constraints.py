"""Constraints on the size of one kind of chunk, as an immutable value with its JSON form.

Here are also the checks of JSON values that every kind of layout constraint shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tensorstore_py._spec.constraints import (
    PerDim,
    Scalar,
    aspect_ratios,
    extents,
    merge_elements,
)
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import integral
from tensorstore_py.errors import MismatchError, SpecError, did_you_mean

__all__ = ["NO_GRID", "GridConstraints", "json_array", "json_integer", "merge_dims", "merge_rank"]

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
        """Both constraints, `other` coming second.

        Raises:
            MismatchError: hard constraints that differ.
        """
        if other == NO_GRID:
            return self
        if self == NO_GRID:
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


NO_GRID = GridConstraints()


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
