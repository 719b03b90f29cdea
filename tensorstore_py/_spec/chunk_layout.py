"""`ChunkLayout`: the user's handle of layout constraints, or of the layout of an open array.

`update` swaps one immutable `LayoutConstraints` for the next in a single assignment, so that
readers on other threads see either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import TypeAlias, TypedDict, Unpack

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from tensorstore_py._index import IndexDomain
from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec import chunk_grid
from tensorstore_py._spec.chunk_grid import Grid, check_names, grid_argument, per_dimension
from tensorstore_py._spec.grid_constraints import GridConstraints, merge_rank
from tensorstore_py._spec.json_value import freeze
from tensorstore_py._spec.layout_constraints import (
    NO_LAYOUT,
    LayoutConstraints,
    finalized,
    grid_origin,
    inner_order,
)
from tensorstore_py._spec.pretty import pretty
from tensorstore_py._spec.spec_page import layout_page
from tensorstore_py._spec.spelled import spelled_out
from tensorstore_py.errors import MismatchError, SpecError

__all__ = ["ChunkLayout", "LayoutArguments", "LayoutConstraints"]

_SOFT = "_soft_constraint"

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


def _given(
    *,
    rank: int | None = None,
    inner_order: Sequence[int] | None = None,
    inner_order_soft_constraint: Sequence[int] | None = None,
    grid_origin: _Shape = None,
    grid_origin_soft_constraint: _Shape = None,
    chunk: Grid | None = None,
    write_chunk: Grid | None = None,
    read_chunk: Grid | None = None,
    codec_chunk: Grid | None = None,
    chunk_shape: _Shape = None,
    chunk_shape_soft_constraint: _Shape = None,
    write_chunk_shape: _Shape = None,
    write_chunk_shape_soft_constraint: _Shape = None,
    read_chunk_shape: _Shape = None,
    read_chunk_shape_soft_constraint: _Shape = None,
    codec_chunk_shape: _Shape = None,
    codec_chunk_shape_soft_constraint: _Shape = None,
    chunk_aspect_ratio: _Ratio = None,
    chunk_aspect_ratio_soft_constraint: _Ratio = None,
    write_chunk_aspect_ratio: _Ratio = None,
    write_chunk_aspect_ratio_soft_constraint: _Ratio = None,
    read_chunk_aspect_ratio: _Ratio = None,
    read_chunk_aspect_ratio_soft_constraint: _Ratio = None,
    codec_chunk_aspect_ratio: _Ratio = None,
    codec_chunk_aspect_ratio_soft_constraint: _Ratio = None,
    chunk_elements: int | None = None,
    chunk_elements_soft_constraint: int | None = None,
    write_chunk_elements: int | None = None,
    write_chunk_elements_soft_constraint: int | None = None,
    read_chunk_elements: int | None = None,
    read_chunk_elements_soft_constraint: int | None = None,
    codec_chunk_elements: int | None = None,
    codec_chunk_elements_soft_constraint: int | None = None,
    finalize: bool | None = None,
    **unknown: object,
) -> dict[str, object]:
    """The arguments, named one by one for editors (see `spelled`)."""
    found = locals()
    check_names("ChunkLayout", found.pop("unknown"), LayoutArguments.__annotations__)
    return found


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

    Grid: TypeAlias = chunk_grid.Grid

    @spelled_out(LayoutArguments)
    def __init__(self, json: object = None, **constraints: Unpack[LayoutArguments]) -> None:
        self._constraints = NO_LAYOUT
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

    @spelled_out(LayoutArguments)
    def update(self, **constraints: Unpack[LayoutArguments]) -> None:
        """Add constraints; all or, if there is an error, none. Arguments as for the class."""
        layout = self._constraints
        for name, value in _given(**constraints).items():
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
        return self._constraints.same_as(other._constraints)

    def _repr_html_(self) -> str:
        return layout_page(self)

    def __repr__(self) -> str:
        return pretty("ChunkLayout", self.to_json())

    def __reduce__(self) -> tuple[Callable[..., ChunkLayout], tuple[LayoutConstraints]]:
        return ChunkLayout.of, (self._constraints,)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(ChunkLayout)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"x-def": "ChunkLayout"}


def _with_argument(layout: LayoutConstraints, name: str, value: object) -> LayoutConstraints:
    hard = not name.endswith(_SOFT)
    try:
        if name == "rank":
            return layout.merged(LayoutConstraints(rank=merge_rank(None, index(value))))  # type: ignore[arg-type]
        if name == "finalize":
            return finalized(layout) if value else layout
        if name.startswith("inner_order"):
            order = [index(dim) for dim in per_dimension(name, value)]  # type: ignore[arg-type]
            return layout.merged(inner_order(order, hard=hard))
        if name.startswith("grid_origin"):
            return layout.merged(grid_origin(per_dimension(name, value), hard=hard))
        usage, _, member = name.partition("chunk")
        grid = grid_argument(member.lstrip("_") or "grid", value)
        return layout.with_grid(usage + "chunk", grid)
    except SpecError as error:
        raise error.inside(name) from None
    except MismatchError as error:
        raise MismatchError(f"{name}: {error}") from None
