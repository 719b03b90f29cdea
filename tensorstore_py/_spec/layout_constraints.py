"""Constraints on how an array is cut into chunks, as an immutable value.

It knows its JSON form, how to combine with another, and how to pass through an index transform.
Which sizes follow from the constraints is `choose_chunks`' business.

Through a transform (`DimMapping`) only output dimensions that follow one input dimension with a
non-zero stride carry values. On the way to the input, an input dimension that several output
dimensions follow (a diagonal) gets nothing. On the way to the output, a hard constraint must not
get lost. An order of dimensions stays a permutation, whatever the transform.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING, TypeVar

from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.arguments import LAYOUT_MEMBERS
from tensorstore_py._spec.grid_constraints import (
    FARTHEST,
    NO_GRID,
    SOFT,
    GridConstraints,
    PerDim,
    json_array,
    json_integer,
    json_rank,
    merge_dims,
    merge_rank,
    origins,
    with_members,
)
from tensorstore_py.errors import MismatchError, OutOfRangeError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._index import IndexTransform

__all__ = [
    "NO_LAYOUT",
    "DimMapping",
    "LayoutConstraints",
    "finalized",
    "grid_origin",
    "inner_order",
    "input_order",
    "output_order",
]

_LAST = 32


def input_order(transform: IndexTransform, order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of input dimensions for an order of the output dimensions.

    An input dimension stands where the first output dimension that it maps to stood; those that
    map to none come last.
    """
    position = [_LAST] * transform.input_rank
    for place, output_dim in enumerate(order):
        source = transform.maps[output_dim].input_dimension
        if source is not None:
            position[source] = min(position[source], place)
    return tuple(sorted(range(transform.input_rank), key=lambda dim: (position[dim], dim)))


def output_order(transform: IndexTransform, order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of output dimensions for an order of the input dimensions.

    Output dimensions that do not come from one input dimension come last.
    """
    place = {dim: position for position, dim in enumerate(order)}
    position = [
        _LAST if each.input_dimension is None else place[each.input_dimension]
        for each in transform.maps
    ]
    return tuple(sorted(range(transform.output_rank), key=lambda dim: (position[dim], dim)))


T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class DimMapping:
    """Where each dimension's value comes from.

    Attributes:
        inverse: False from output to input, True from input to output.
        sources: for each resulting dimension: (source dimension, offset, stride), or None.
    """

    transform: IndexTransform
    inverse: bool
    sources: tuple[tuple[int, int, int] | None, ...]

    @classmethod
    def to_input(cls, transform: IndexTransform) -> DimMapping:
        """From the transform's output to its input."""
        sources: list[tuple[int, int, int] | None] = [None] * transform.input_rank
        used = Counter(each.input_dimension for each in transform.maps)
        for dim, each in enumerate(transform.maps):
            source = each.input_dimension
            if source is not None and each.stride and used[source] == 1:
                sources[source] = (dim, each.offset, each.stride)
        return cls(transform, inverse=False, sources=tuple(sources))

    @classmethod
    def to_output(cls, transform: IndexTransform) -> DimMapping:
        """From the transform's input to its output."""
        sources = tuple(
            (each.input_dimension, each.offset, each.stride)
            if each.input_dimension is not None and each.stride
            else None
            for each in transform.maps
        )
        return cls(transform, inverse=True, sources=sources)

    @property
    def from_rank(self) -> int:
        """Number of dimensions of what is passed."""
        return self.transform.input_rank if self.inverse else self.transform.output_rank

    @property
    def to_rank(self) -> int:
        """Number of dimensions of the result."""
        return len(self.sources)

    def apply(
        self, constraint: PerDim[T], change: Callable[[T, int, int], T], what: str
    ) -> PerDim[T]:
        """The constraint on the other side, by `change(value, offset, stride)`.

        Raises MismatchError: a hard constraint has no output dimension; OutOfRangeError: overflow.
        """
        if self.inverse:
            kept = {source[0] for source in self.sources if source is not None}
            for dim, hard in enumerate(constraint.hard):
                if hard and dim not in kept:
                    raise MismatchError(
                        f"{what}: No output dimension corresponds to input dimension {dim}"
                    )
        taken = constraint.taken([None if source is None else source[0] for source in self.sources])

        def moved(dim: int, value: T) -> T:
            source = self.sources[dim]
            assert source is not None
            _, offset, stride = source
            result = change(value, offset, stride)
            if abs(result) > FARTHEST:
                raise OutOfRangeError(f"{what}: {result} in dimension {dim} is no finite index")
            return result

        return taken.mapped(moved)

    def origin(self, value: int, offset: int, stride: int) -> int:
        """A grid origin on the other side."""
        if self.inverse:
            return stride * (value - 1 if stride < 0 else value) + offset
        moved = value - offset
        return -(-(moved if stride > 0 else moved - 1) // stride)

    def extent(self, value: int, offset: int, stride: int) -> int:
        """A chunk extent on the other side; -1, the full extent, stays."""
        if self.inverse:
            return value * abs(stride)
        return value // gcd(stride, value)

    def ratio(self, value: float, offset: int, stride: int) -> float:
        """An aspect ratio on the other side."""
        return value * abs(stride) if self.inverse else value / abs(stride)


_GRIDS = ("write_chunk", "read_chunk", "codec_chunk")
_JSON_MEMBERS = (
    "rank",
    "inner_order",
    "inner_order_soft_constraint",
    "grid_origin",
    "grid_origin_soft_constraint",
    "chunk",
    *_GRIDS,
)


@dataclass(frozen=True, slots=True)
class LayoutConstraints:
    """The constraints as one immutable value; the order says whether it is hard, too."""

    rank: int | None = None
    inner_order: tuple[tuple[int, ...], bool] | None = None
    grid_origin: PerDim[int] | None = None
    write_chunk: GridConstraints = NO_GRID
    read_chunk: GridConstraints = NO_GRID
    codec_chunk: GridConstraints = NO_GRID

    @property
    def is_empty(self) -> bool:
        """Whether nothing is constrained but the number of dimensions."""
        return (
            self.inner_order is None
            and (self.grid_origin is None or self.grid_origin.is_empty)
            and self.write_chunk.is_empty
            and self.read_chunk.is_empty
            and self.codec_chunk.is_empty
        )

    @property
    def needs_rank(self) -> bool:
        """Whether anything is constrained that has a value for each dimension."""
        if self.inner_order is not None:
            return True
        if self.grid_origin is not None and not self.grid_origin.is_empty:
            return True
        return any(not replace(self.grid(name), elements=None).is_empty for name in _GRIDS)

    def grid(self, name: str) -> GridConstraints:
        """The constraints on one kind of chunk, by member name."""
        found = getattr(self, name)
        assert isinstance(found, GridConstraints)
        return found

    def softened(self) -> LayoutConstraints:
        """The same constraints, all soft."""
        return LayoutConstraints(
            self.rank,
            None if self.inner_order is None else (self.inner_order[0], False),
            None if self.grid_origin is None else self.grid_origin.softened(),
            *(self.grid(name).softened() for name in _GRIDS),
        )

    def merged(self, other: LayoutConstraints) -> LayoutConstraints:
        """Both constraints, `other` second. Raises MismatchError: ranks or hard ones differ."""
        rank = merge_rank(self.rank, other.rank)
        order = self.inner_order
        if other.inner_order is not None:
            order = _merge_inner_order(order, other.inner_order)
        return LayoutConstraints(
            rank,
            order,
            merge_dims(self.grid_origin, other.grid_origin),
            self.write_chunk.merged(other.write_chunk),
            self.read_chunk.merged(other.read_chunk),
            self.codec_chunk.merged(other.codec_chunk),
        )

    def with_grid(self, name: str, grid: GridConstraints) -> LayoutConstraints:
        """These constraints and those on one kind of chunk; `"chunk"` is the kinds in common.

        Raises MismatchError: the ranks or hard constraints differ.
        """
        rank = merge_rank(self.rank, grid.rank)
        if name != "chunk":
            grids = {each: self.grid(each) for each in _GRIDS}
            grids[name] = grids[name].merged(grid)
            return LayoutConstraints(rank, self.inner_order, self.grid_origin, *grids.values())
        return replace(
            self,
            rank=rank,
            write_chunk=self.write_chunk.merged(grid),
            read_chunk=self.read_chunk.merged(grid),
            codec_chunk=self.codec_chunk.merged(GridConstraints(aspect_ratio=grid.aspect_ratio)),
        )

    def to_input(self, transform: IndexTransform) -> LayoutConstraints:
        """What the constraints on the transform's output mean for its input.

        Raises:
            MismatchError: the rank is not the transform's.
            OutOfRangeError: an origin or extent overflows.
        """
        return self._moved(DimMapping.to_input(transform), input_order)

    def to_output(self, transform: IndexTransform) -> LayoutConstraints:
        """What the constraints on the transform's input mean for its output.

        Raises:
            MismatchError: the rank is not the transform's, or a hard constraint has no
                corresponding output dimension.
            OutOfRangeError: an origin or extent overflows.
        """
        return self._moved(DimMapping.to_output(transform), output_order)

    def _moved(
        self,
        mapping: DimMapping,
        reorder: Callable[[IndexTransform, tuple[int, ...]], tuple[int, ...]],
    ) -> LayoutConstraints:
        if self.rank is None:
            return self
        if self.rank != mapping.from_rank:
            raise MismatchError(
                f"Cannot transform constraints of rank {self.rank} by index transform of rank "
                f"{mapping.transform.input_rank} -> {mapping.transform.output_rank}"
            )
        order = self.inner_order
        if order is not None:
            order = (reorder(mapping.transform, order[0]), order[1])
        origin = self.grid_origin
        return LayoutConstraints(
            mapping.to_rank,
            order,
            None if origin is None else mapping.apply(origin, mapping.origin, "grid_origin"),
            *(self._moved_grid(mapping, name) for name in _GRIDS),
        )

    def _moved_grid(self, mapping: DimMapping, name: str) -> GridConstraints:
        grid = self.grid(name)
        shape, ratio = grid.shape, grid.aspect_ratio
        return GridConstraints(
            None if shape is None else mapping.apply(shape, mapping.extent, f"{name} shape"),
            None if ratio is None else mapping.apply(ratio, mapping.ratio, f"{name} aspect_ratio"),
            grid.elements,
        )

    def same_as(self, other: LayoutConstraints) -> bool:
        """Whether both constrain the same; a rank that nothing depends on is no constraint.

        (Unless it is the only thing that is said.)
        """
        mine, theirs = self._bare(), other._bare()
        if mine == theirs:
            return True
        if NO_LAYOUT in (mine, theirs) or mine.needs_rank or theirs.needs_rank:
            return False
        return replace(mine, rank=None) == replace(theirs, rank=None)

    def _bare(self) -> LayoutConstraints:
        """The same with vectors that constrain no dimension as no vectors."""
        origin = self.grid_origin
        return LayoutConstraints(
            self.rank,
            self.inner_order,
            None if origin is None or origin.is_empty else origin,
            *(self.grid(name).bare() for name in _GRIDS),
        )

    def to_json(self) -> dict[str, object]:
        """The JSON object, members sorted."""
        json: dict[str, object] = {}
        if self.rank is not None and not self.needs_rank:
            json["rank"] = self.rank
        if self.inner_order is not None:
            order, hard = self.inner_order
            json["inner_order" + ("" if hard else SOFT)] = list(order)
        if self.grid_origin is not None:
            for hard, suffix in ((True, ""), (False, SOFT)):
                values = self.grid_origin.part(hard)
                if any(value is not None for value in values):
                    json["grid_origin" + suffix] = list(values)
        for name in _GRIDS:
            if not self.grid(name).is_empty:
                json[name] = self.grid(name).to_json()
        # A rank of 0 that came from an empty list is not worth a member.
        return {name: json[name] for name in sorted(json)}

    @classmethod
    def parse(cls, json: object) -> LayoutConstraints:
        """The constraints for a JSON object, as `freeze` gives it.

        Raises SpecError: unknown member, wrong type or rank, or members that contradict each other.
        """
        return with_members(cls(), json, _JSON_MEMBERS, cls._with_member, LAYOUT_MEMBERS)

    def _with_member(self, name: str, json: object) -> LayoutConstraints:
        if name == "rank":
            return self.merged(LayoutConstraints(rank=json_rank(json)))
        if name.startswith("inner_order"):
            if json is None:
                return self
            order = [json_integer(value) for value in json_array(json)]
            return self.merged(inner_order(order, hard=not name.endswith(SOFT)))
        if name.startswith("grid_origin"):
            values = [None if value is None else json_integer(value) for value in json_array(json)]
            return self.merged(grid_origin(values, hard=not name.endswith(SOFT)))
        return self.with_grid(name, GridConstraints.parse(json, self.rank))


def inner_order(order: Sequence[int], *, hard: bool) -> LayoutConstraints:
    if not order:
        return LayoutConstraints()
    if sorted(order) != list(range(len(order))):
        raise SpecError(f"Invalid permutation: {list(order)}")
    return LayoutConstraints(rank=len(order), inner_order=(tuple(order), hard))


def grid_origin(values: Sequence[object], *, hard: bool) -> LayoutConstraints:
    if not values:
        return LayoutConstraints()
    return LayoutConstraints(rank=len(values), grid_origin=origins(values, hard))


def _merge_inner_order(
    mine: tuple[tuple[int, ...], bool] | None, theirs: tuple[tuple[int, ...], bool]
) -> tuple[tuple[int, ...], bool]:
    if mine is None:
        return theirs
    if not theirs[1]:
        return mine
    if mine[1] and mine[0] != theirs[0]:
        raise MismatchError(
            f"inner_order: new hard constraint {list(theirs[0])} does not match "
            f"existing hard constraint {list(mine[0])}"
        )
    return theirs


def finalized(layout: LayoutConstraints) -> LayoutConstraints:
    """The layout of an open array: hard constraints only, read chunks completed.

    Raises SpecError: the rank or a grid origin is missing, an extent overflows, or read chunks do
    not divide write chunks.
    """
    if layout.rank is None:
        raise SpecError("rank must be specified")
    none: PerDim[int] = PerDim.none(layout.rank)
    origin = layout.grid_origin or none
    for dim, hard in enumerate(origin.hard):
        if not hard:
            raise SpecError(f"No grid_origin hard constraint for dimension {dim}")
    shapes: dict[str, tuple[int | None, ...]] = {}
    for name in _GRIDS:
        shape = (layout.grid(name).shape or none).part(hard=True)
        for dim, (start, extent) in enumerate(zip(origin.values, shape, strict=True)):
            if start is not None and extent is not None and start + extent >= INFINITY:
                raise SpecError(f"{name}: dimension {dim} from {start} overflows by {extent}")
        shapes[name] = shape
    write, read = shapes["write_chunk"], shapes["read_chunk"]
    shapes["read_chunk"] = tuple(
        r if r is not None else w for r, w in zip(read, write, strict=True)
    )
    for dim, (w, r) in enumerate(zip(write, shapes["read_chunk"], strict=True)):
        if r is not None and (w or 0) % r:
            raise SpecError(
                f"dimension {dim}: write chunk extent {w} is not a multiple of the "
                f"read chunk extent {r}"
            )
    grids = {name: GridConstraints(shape=_hard(shape)) for name, shape in shapes.items()}
    return replace(layout, **grids)  # type: ignore[arg-type]


def _hard(shape: tuple[int | None, ...]) -> PerDim[int] | None:
    if all(extent is None for extent in shape):
        return None
    return PerDim(shape, tuple(extent is not None for extent in shape))


#: Nothing constrained.
NO_LAYOUT = LayoutConstraints()
