"""`ChunkLayout` and `ChunkLayout.Grid`: the user's handles of constraints, or of an open array's.

`update` swaps one immutable value (`LayoutConstraints`, `GridConstraints`) for the next in a single
assignment, so that readers on other threads see either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import ClassVar, SupportsIndex, TypeAlias, TypedDict, TypeVar, Unpack

import numpy as np

from tensorstore_py._display.info import columns, rows
from tensorstore_py._display.page import page
from tensorstore_py._display.public_name import public
from tensorstore_py._index import IndexDomain
from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.arguments import check_names, spelled_out
from tensorstore_py._spec.grid_constraints import (
    NO_GRID,
    SOFT,
    GridConstraints,
    PerDim,
    aspect_ratios,
    extents,
    merge_elements,
    merge_rank,
)
from tensorstore_py._spec.json_value import freeze
from tensorstore_py._spec.layout_constraints import (
    NO_LAYOUT,
    LayoutConstraints,
    finalized,
    grid_origin,
    inner_order,
)
from tensorstore_py._spec.model import MemberType
from tensorstore_py._spec.pretty import folded_json, json_page, pretty
from tensorstore_py.errors import MismatchError, SpecError

__all__ = [
    "ChunkLayout",
    "Grid",
    "GridArguments",
    "LayoutArguments",
    "LayoutConstraints",
    "grid_argument",
    "per_dimension",
    "with_array_layout",
    "with_layout",
]

T = TypeVar("T", int, float)
V = TypeVar("V")


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


def _given_grid(
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
    """The arguments, named one by one for editors (see `spelled_out`)."""
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
        found = _given_grid(**constraints)
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
        return _value(self._state[1].elements, hard=True)

    @property
    def elements_soft_constraint(self) -> int | None:
        """Soft constraint on the number of elements."""
        return _value(self._state[1].elements, hard=False)

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


def _value(constraint: tuple[V, bool] | None, *, hard: bool) -> V | None:
    return None if constraint is None or constraint[1] != hard else constraint[0]


def grid_argument(name: str, value: object) -> GridConstraints:
    """The constraints that one keyword argument of `Grid` adds. Raises SpecError, TypeError."""
    hard = not name.endswith(SOFT)
    name = name.removesuffix(SOFT)
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
    """`value` as a sequence of one value per dimension. Raises TypeError: it is none."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise TypeError(f"{name}: expected a list of one value per dimension, but found {value!r}")
    return value


_Shape: TypeAlias = Sequence[int | None] | None
_Ratio: TypeAlias = Sequence[float | None] | None


#: `ChunkLayout` has a `Grid`, too, which jedi takes for its own value without this name.
_Grid: TypeAlias = Grid


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
    """The arguments, named one by one for editors (see `spelled_out`)."""
    found = locals()
    check_names("ChunkLayout", found.pop("unknown"), LayoutArguments.__annotations__)
    return found


@public
class ChunkLayout(MemberType):
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

    _schema_name: ClassVar[str] = "ChunkLayout"
    __slots__ = ("_constraints",)
    __hash__ = None  # type: ignore[assignment]
    _constraints: LayoutConstraints

    Grid: TypeAlias = _Grid

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
        self._constraints = with_layout(self._constraints, **_given(**constraints))  # type: ignore[arg-type]

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
        return _value(self._constraints.inner_order, hard=True)

    @property
    def inner_order_soft_constraint(self) -> tuple[int, ...] | None:
        """Soft constraint on the order of the dimensions inside a chunk."""
        return _value(self._constraints.inner_order, hard=False)

    @property
    def grid_origin(self) -> tuple[int | None, ...] | None:
        """Hard constraints on the grid origin; None if the rank is unknown."""
        return _part(self._constraints.rank, self._constraints.grid_origin, hard=True)

    @property
    def grid_origin_soft_constraint(self) -> tuple[int | None, ...] | None:
        """Soft constraints on the grid origin; None if the rank is unknown."""
        return _part(self._constraints.rank, self._constraints.grid_origin, hard=False)

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
        return _page(self)

    def __repr__(self) -> str:
        return pretty("ChunkLayout", self.to_json())

    def __reduce__(self) -> tuple[Callable[..., ChunkLayout], tuple[LayoutConstraints]]:
        return ChunkLayout.of, (self._constraints,)


def with_layout(
    layout: LayoutConstraints, /, **constraints: Unpack[LayoutArguments]
) -> LayoutConstraints:
    """The constraints with others added, said as the arguments of `ChunkLayout`, in their order.

    Raises:
        SpecError, MismatchError, TypeError: as for `ChunkLayout`.
    """
    for name, value in constraints.items():
        if value is not None:
            layout = _with_argument(layout, name, value)
    return layout


def with_array_layout(
    layout: LayoutConstraints,
    rank: int,
    *,
    write_chunk: Sequence[int | None] | None,
    read_chunk: Sequence[int | None] | None,
    inner_order: tuple[int, ...] | None,
) -> LayoutConstraints:
    """The constraints with those of an array whose grid begins at 0, all hard.

    Args:
        layout: the constraints.
        rank: number of dimensions.
        write_chunk: extents; None is unconstrained.
        read_chunk: likewise.
        inner_order: dimensions from outermost to innermost.

    Raises:
        SpecError, MismatchError: as for `ChunkLayout`, with the argument's name.
    """
    stated = LayoutConstraints(
        rank,
        None if not inner_order else (inner_order, True),
        PerDim((0,) * rank, (True,) * rank) if rank else None,
        _hard_sizes(write_chunk),
        _hard_sizes(read_chunk),
    )
    try:
        return layout.merged(stated)
    except (SpecError, MismatchError):
        # Added one by one they are the same, and it is seen which of them it is.
        return with_layout(
            layout,
            rank=rank,
            write_chunk_shape=write_chunk,
            grid_origin=(0,) * rank,
            read_chunk_shape=read_chunk,
            inner_order=inner_order,
        )


def _hard_sizes(sizes: Sequence[int | None] | None) -> GridConstraints:
    if not sizes:
        return NO_GRID
    return GridConstraints(PerDim(tuple(sizes), tuple([size is not None for size in sizes])))


def _with_argument(layout: LayoutConstraints, name: str, value: object) -> LayoutConstraints:
    hard = not name.endswith(SOFT)
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


def _page(layout: ChunkLayout) -> str:
    """The page of a layout: a line for each dimension, or for all if their number is not known."""
    if layout.rank < 0:
        return json_page("ChunkLayout", "", [], layout.to_json)
    names = ["Dimension", "Grid origin", "Write chunk", "Read chunk", "Codec chunk"]
    parts = [
        layout.grid_origin,
        layout.write_chunk.shape,
        layout.read_chunk.shape,
        layout.codec_chunk.shape,
    ]
    lines = [
        [dim, *("" if part is None or part[dim] is None else f"{part[dim]:,}" for part in parts)]
        for dim in range(layout.rank)
    ]
    order = layout.inner_order
    inner = None if order is None else rows([("Inner order", ", ".join(map(str, order)))])
    table = columns(names, lines) if lines else None
    return page("ChunkLayout", "", table, inner, folded_json(layout.to_json))
