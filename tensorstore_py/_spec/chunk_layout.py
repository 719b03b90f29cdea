"""`ChunkLayout`: constraints on how an array is cut into chunks.

`LayoutConstraints` is the immutable value and knows how to pass through an index transform;
`ChunkLayout` is the user's handle, whose `update` swaps one value for the next in a single
assignment. Which sizes follow from the constraints is `choose_chunks`' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import TypeAlias, TypedDict, Unpack

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from tensorstore_py._index import IndexDomain, IndexTransform
from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.chunk_grid import (
    Grid,
    GridConstraints,
    check_names,
    grid_argument,
    json_array,
    json_integer,
    merge_dims,
    merge_rank,
    per_dimension,
)
from tensorstore_py._spec.constraints import PerDim, origins
from tensorstore_py._spec.dim_order import input_order, output_order
from tensorstore_py._spec.dim_transform import Mapping as DimMapping
from tensorstore_py._spec.json_value import describe, freeze
from tensorstore_py._spec.pretty import pretty
from tensorstore_py.errors import MismatchError, SpecError, did_you_mean

__all__ = ["ChunkLayout", "LayoutArguments", "LayoutConstraints"]

_SOFT = "_soft_constraint"
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
    """The constraints as one immutable value.

    Attributes:
        rank: number of dimensions; None if unknown.
        inner_order: (permutation of the dimensions, whether it is a hard constraint).
        grid_origin: origin of the chunk grid.
        write_chunk: constraints on the unit of writing.
        read_chunk: constraints on the unit of reading.
        codec_chunk: constraints on blocks inside the codec.
    """

    rank: int | None = None
    inner_order: tuple[tuple[int, ...], bool] | None = None
    grid_origin: PerDim[int] | None = None
    write_chunk: GridConstraints = GridConstraints()
    read_chunk: GridConstraints = GridConstraints()
    codec_chunk: GridConstraints = GridConstraints()

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
        """Both constraints, `other` coming second.

        Raises:
            MismatchError: the ranks or hard constraints differ.
        """
        rank = merge_rank(self.rank, other.rank)
        order = self.inner_order
        if other.inner_order is not None:
            order = _merge_order(order, other.inner_order)
        return LayoutConstraints(
            rank,
            order,
            merge_dims(self.grid_origin, other.grid_origin),
            *(self.grid(name).merged(other.grid(name)) for name in _GRIDS),
        )

    def with_grid(self, name: str, grid: GridConstraints) -> LayoutConstraints:
        """These constraints and those on one kind of chunk; `"chunk"` is the kinds in common.

        Raises:
            MismatchError: the ranks or hard constraints differ.
        """
        rank = merge_rank(self.rank, grid.rank)
        if name != "chunk":
            return replace(self, rank=rank, **{name: self.grid(name).merged(grid)})
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
        if not self.rank:
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

    def to_json(self) -> dict[str, object]:
        """The JSON object, members sorted."""
        json: dict[str, object] = {}
        if self.rank is not None and not self.needs_rank:
            json["rank"] = self.rank
        if self.inner_order is not None:
            order, hard = self.inner_order
            json["inner_order" + ("" if hard else _SOFT)] = list(order)
        if self.grid_origin is not None:
            for hard, suffix in ((True, ""), (False, _SOFT)):
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

        Raises:
            SpecError: unknown member, wrong type or rank, or members that contradict each other.
        """
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        for name in json:
            if name not in _JSON_MEMBERS:
                raise SpecError(f"no such member{did_you_mean(name, _JSON_MEMBERS)}", (name,))
        layout = cls()
        for name in _JSON_MEMBERS:
            if name in json:
                try:
                    layout = layout._with_member(name, json[name])
                except SpecError as error:
                    raise error.inside(name) from None
                except MismatchError as error:
                    raise SpecError(str(error), (name,)) from None
        return layout

    def _with_member(self, name: str, json: object) -> LayoutConstraints:
        if name == "rank":
            rank = json_integer(json)
            if not 0 <= rank <= 32:
                raise SpecError(f"expected a rank from 0 to 32, but found {rank}")
            return self.merged(LayoutConstraints(rank=rank))
        if name.startswith("inner_order"):
            if json is None:
                return self
            order = [json_integer(value) for value in json_array(json)]
            return self.merged(_order(order, hard=not name.endswith(_SOFT)))
        if name.startswith("grid_origin"):
            values = [None if value is None else json_integer(value) for value in json_array(json)]
            return self.merged(_origin(values, hard=not name.endswith(_SOFT)))
        return self.with_grid(name, GridConstraints.parse(json, self.rank))


def _order(order: Sequence[int], *, hard: bool) -> LayoutConstraints:
    if not order:
        return LayoutConstraints()
    if sorted(order) != list(range(len(order))):
        raise SpecError(f"Invalid permutation: {list(order)}")
    return LayoutConstraints(rank=len(order), inner_order=(tuple(order), hard))


def _origin(values: Sequence[object], *, hard: bool) -> LayoutConstraints:
    if not values:
        return LayoutConstraints()
    return LayoutConstraints(rank=len(values), grid_origin=origins(values, hard))


def _merge_order(
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


_Shape: TypeAlias = Sequence[int | None] | None
_Ratio: TypeAlias = Sequence[float | None] | None


class LayoutArguments(TypedDict, total=False):
    """The keyword arguments of `ChunkLayout`, in the order in which they are applied."""

    rank: int | None
    inner_order: Sequence[int] | None
    inner_order_soft_constraint: Sequence[int] | None
    grid_origin: _Shape
    grid_origin_soft_constraint: _Shape
    chunk: Grid | None
    write_chunk: Grid | None
    read_chunk: Grid | None
    codec_chunk: Grid | None
    chunk_shape: _Shape
    chunk_shape_soft_constraint: _Shape
    write_chunk_shape: _Shape
    write_chunk_shape_soft_constraint: _Shape
    read_chunk_shape: _Shape
    read_chunk_shape_soft_constraint: _Shape
    codec_chunk_shape: _Shape
    codec_chunk_shape_soft_constraint: _Shape
    chunk_aspect_ratio: _Ratio
    chunk_aspect_ratio_soft_constraint: _Ratio
    write_chunk_aspect_ratio: _Ratio
    write_chunk_aspect_ratio_soft_constraint: _Ratio
    read_chunk_aspect_ratio: _Ratio
    read_chunk_aspect_ratio_soft_constraint: _Ratio
    codec_chunk_aspect_ratio: _Ratio
    codec_chunk_aspect_ratio_soft_constraint: _Ratio
    chunk_elements: int | None
    chunk_elements_soft_constraint: int | None
    write_chunk_elements: int | None
    write_chunk_elements_soft_constraint: int | None
    read_chunk_elements: int | None
    read_chunk_elements_soft_constraint: int | None
    codec_chunk_elements: int | None
    codec_chunk_elements_soft_constraint: int | None
    finalize: bool


class ChunkLayout:
    """Constraints on the layout of chunks, or the layout of an open array.

    Args:
        json: the JSON object; alone, or leave it out and give the parts.
        rank: number of dimensions.
        inner_order: dimensions from outermost to innermost inside a chunk.
        grid_origin: an index per dimension where a chunk starts.
        chunk, write_chunk, read_chunk, codec_chunk: constraints on one kind of chunk; `chunk` on
            writing and reading alike.
        chunk_shape, write_chunk_shape, ...: the parts of these, see `Grid`.
        *_soft_constraint: the same as wishes that give way.
        finalize: check that the layout is complete and drop what is then irrelevant.

    Raises:
        SpecError: wrong JSON, or a value out of range.
        MismatchError: constraints that contradict each other.
        TypeError: an argument of a wrong type.

    Example:
        >>> ChunkLayout(inner_order=[0, 2, 1], read_chunk_elements=1000)
        ChunkLayout({'inner_order': [0, 2, 1], 'read_chunk': {'elements': 1000}})
    """

    __slots__ = ("_constraints",)
    __hash__ = None  # type: ignore[assignment]
    _constraints: LayoutConstraints

    Grid: TypeAlias = Grid

    def __init__(self, json: object = None, **constraints: Unpack[LayoutArguments]) -> None:
        self._constraints = LayoutConstraints()
        if isinstance(json, ChunkLayout):
            self._constraints = json._constraints
        elif json is not None:
            self._constraints = LayoutConstraints.parse(freeze(json))
        self.update(**constraints)

    @classmethod
    def of(cls, constraints: LayoutConstraints) -> ChunkLayout:
        """The layout with just these constraints."""
        layout = cls.__new__(cls)
        layout._constraints = constraints
        return layout

    def update(self, **constraints: Unpack[LayoutArguments]) -> None:
        """Add constraints; all or, if there is an error, none. Arguments as for the class."""
        check_names("ChunkLayout", constraints, LayoutArguments.__annotations__)
        layout = self._constraints
        for name in LayoutArguments.__annotations__:
            value = constraints.get(name)
            if value is not None:
                layout = _with_argument(layout, name, value)
        self._constraints = layout

    @property
    def constraints(self) -> LayoutConstraints:
        """The constraints as an immutable value."""
        return self._constraints

    @property
    def rank(self) -> int:
        """Number of dimensions; -1 if unknown."""
        return -1 if self._constraints.rank is None else self._constraints.rank

    @property
    def ndim(self) -> int:
        """Alias of `rank`."""
        return self.rank

    @property
    def inner_order(self) -> tuple[int, ...] | None:
        """Hard constraint on the order of the dimensions inside a chunk."""
        order = self._constraints.inner_order
        return order[0] if order is not None and order[1] else None

    @property
    def inner_order_soft_constraint(self) -> tuple[int, ...] | None:
        """Soft constraint on the order of the dimensions inside a chunk."""
        order = self._constraints.inner_order
        return order[0] if order is not None and not order[1] else None

    @property
    def grid_origin(self) -> tuple[int | None, ...] | None:
        """Hard constraints on the grid origin; None if the rank is unknown."""
        return self._origin(hard=True)

    @property
    def grid_origin_soft_constraint(self) -> tuple[int | None, ...] | None:
        """Soft constraints on the grid origin; None if the rank is unknown."""
        return self._origin(hard=False)

    def _origin(self, *, hard: bool) -> tuple[int | None, ...] | None:
        constraints = self._constraints
        if constraints.rank is None:
            return None
        if constraints.grid_origin is None:
            return (None,) * constraints.rank
        return constraints.grid_origin.part(hard)

    @property
    def write_chunk(self) -> Grid:
        """Constraints on the unit of efficient writing."""
        return Grid.of(self._constraints.write_chunk, self._constraints.rank)

    @property
    def read_chunk(self) -> Grid:
        """Constraints on the unit of efficient reading."""
        return Grid.of(self._constraints.read_chunk, self._constraints.rank)

    @property
    def codec_chunk(self) -> Grid:
        """Constraints on blocks inside the codec."""
        return Grid.of(self._constraints.codec_chunk, self._constraints.rank)

    @property
    def write_chunk_template(self) -> IndexDomain:
        """Bounds of the chunk at the grid origin; unbounded where not hard-constrained.

        Raises:
            SpecError: the rank is unknown.
        """
        return self._template(self._constraints.write_chunk)

    @property
    def read_chunk_template(self) -> IndexDomain:
        """Bounds of the read chunk at the grid origin; unbounded where not hard-constrained.

        Raises:
            SpecError: the rank is unknown.
        """
        return self._template(self._constraints.read_chunk)

    def _template(self, grid: GridConstraints) -> IndexDomain:
        rank, origin = self._constraints.rank, self._constraints.grid_origin
        if rank is None:
            raise SpecError("Rank of chunk layout is unspecified")
        lower, upper = [-INFINITY] * rank, [INFINITY] * rank
        if origin is not None and grid.shape is not None:
            pairs = zip(origin.part(hard=True), grid.shape.part(hard=True), strict=True)
            for dim, (start, extent) in enumerate(pairs):
                if start is not None and extent is not None:
                    lower[dim], upper[dim] = start, start + extent - 1
        return IndexDomain(inclusive_min=lower, inclusive_max=upper)

    def to_json(self) -> dict[str, object]:
        """The JSON object."""
        return self._constraints.to_json()

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`, where this is a member."""
        return self._constraints.to_json()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChunkLayout):
            return NotImplemented
        mine, theirs = self._constraints, other._constraints
        if mine == theirs:
            return True
        nothing = LayoutConstraints()
        if nothing in (mine, theirs) or mine.needs_rank or theirs.needs_rank:
            return _bare(mine) == _bare(theirs)
        # A rank says nothing where no constraint depends on it.
        return replace(_bare(mine), rank=None) == replace(_bare(theirs), rank=None)

    def __repr__(self) -> str:
        return pretty("ChunkLayout", self.to_json())

    def __reduce__(self) -> tuple[Callable[..., ChunkLayout], tuple[LayoutConstraints]]:
        return ChunkLayout.of, (self._constraints,)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(ChunkLayout)


def _bare(layout: LayoutConstraints) -> LayoutConstraints:
    """The layout with empty vectors as no vectors."""

    def bare(grid: GridConstraints) -> GridConstraints:
        shape, ratio = grid.shape, grid.aspect_ratio
        return GridConstraints(
            None if shape is None or shape.is_empty else shape,
            None if ratio is None or ratio.is_empty else ratio,
            grid.elements,
        )

    origin = layout.grid_origin
    return LayoutConstraints(
        layout.rank,
        layout.inner_order,
        None if origin is None or origin.is_empty else origin,
        *(bare(layout.grid(name)) for name in _GRIDS),
    )


def _with_argument(layout: LayoutConstraints, name: str, value: object) -> LayoutConstraints:
    hard = not name.endswith(_SOFT)
    try:
        if name == "rank":
            return layout.merged(LayoutConstraints(rank=merge_rank(None, index(value))))  # type: ignore[arg-type]
        if name == "finalize":
            return finalized(layout) if value else layout
        if name.startswith("inner_order"):
            order = [index(dim) for dim in per_dimension(name, value)]  # type: ignore[arg-type]
            return layout.merged(_order(order, hard=hard))
        if name.startswith("grid_origin"):
            return layout.merged(_origin(per_dimension(name, value), hard=hard))
        usage, _, member = name.partition("chunk")
        grid = grid_argument(member.lstrip("_") or "grid", value)
        return layout.with_grid(usage + "chunk", grid)
    except SpecError as error:
        raise error.inside(name) from None
    except MismatchError as error:
        raise MismatchError(f"{name}: {error}") from None


def finalized(layout: LayoutConstraints) -> LayoutConstraints:
    """The layout of an open array: hard constraints only, read chunks completed.

    Raises:
        SpecError: the rank or a grid origin is missing, an extent overflows, or read chunks do
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
    shapes["read_chunk"] = tuple(r if r is not None else w for r, w in zip(read, write, strict=True))
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
