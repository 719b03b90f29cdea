"""`IndexDomain`: the positions that can be indexed.

A face over a `Frame` without maps; all algebra is in the frame modules. Immutable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self, SupportsIndex, overload

from tensorstore_py._display.public_name import public
from tensorstore_py._index.build import (
    DOMAIN_KEYWORDS,
    Json,
    domain_from_json,
    domain_to_json,
    frame_from_dims,
    make_domain,
)
from tensorstore_py._index.dim import (
    Dim,
    bounds_page,
    find_label,
    merge_labels,
    require_unique,
)
from tensorstore_py._index.frame import MAX_RANK, Frame, format_domain
from tensorstore_py._index.indexable import Reshapable
from tensorstore_py._index.interval import INF, INF_SIZE, BoundState, hull, int64_or_none, intersect
from tensorstore_py._index.numpy_style import IndexTerm
from tensorstore_py._index.operations import restrict, transpose
from tensorstore_py._index.selection import (
    DimSelectionLike,
    HasDimSpecs,
    normalize_index,
    parse_specs,
    require_distinct,
    resolve,
)
from tensorstore_py.errors import IndexingError

__all__ = ["IndexDomain", "array_domain", "bounds_of", "domain_of"]


@public
class IndexDomain(IndexTerm, Reshapable):
    """A box of integer positions with optional labels and implicit bounds.

    Args:
        rank: number of dimensions, or a sequence of `Dim`.
        inclusive_min: first position along each dimension.
        implicit_lower_bounds: whether resizing may move the lower bounds.
        exclusive_max: one past the last position along each dimension.
        inclusive_max: last position along each dimension.
        shape: number of positions along each dimension; starts at 0 without `inclusive_min`.
        implicit_upper_bounds: whether resizing may move the upper bounds.
        labels: a unique name for each dimension, or None or `""`.
        json: the JSON form instead of all others.

    Raises:
        ValueError: the arguments contradict each other or form no box.
        TypeError: an argument is of the wrong kind.

    Example:
        >>> domain = IndexDomain(shape=[4, 6], labels=["y", "x"])
        >>> domain
        { "y": [0, 4), "x": [0, 6) }
        >>> domain["x"].size
        6
    """

    __slots__ = ("_frame",)
    __hash__ = None  # type: ignore[assignment]

    _frame: Frame

    @overload
    def __init__(
        self,
        rank: SupportsIndex | None = None,
        *,
        inclusive_min: Sequence[SupportsIndex] | None = None,
        implicit_lower_bounds: Sequence[bool] | None = None,
        exclusive_max: Sequence[SupportsIndex] | None = None,
        inclusive_max: Sequence[SupportsIndex] | None = None,
        shape: Sequence[SupportsIndex] | None = None,
        implicit_upper_bounds: Sequence[bool] | None = None,
        labels: Sequence[str | None] | None = None,
    ) -> None: ...
    @overload
    def __init__(self, dimensions: Sequence[Dim]) -> None: ...
    @overload
    def __init__(self, *, json: object) -> None: ...

    def __init__(self, *args: object, **named: object) -> None:
        self._frame = _parse_arguments(args, named)

    @classmethod
    def _from_frame(cls, frame: Frame) -> IndexDomain:
        self = cls.__new__(cls)
        self._frame = frame.with_maps(()) if frame.maps else frame
        return self

    def _get_frame(self) -> Frame:
        return self._frame

    def _with_frame(self, frame: Frame) -> Self:
        return self._from_frame(frame)  # type: ignore[return-value]

    def _index_into(self, frame: Frame) -> Frame:
        return restrict(frame, self._frame)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return self._frame.rank

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._frame.rank

    @property
    def origin(self) -> tuple[int, ...]:
        """First position along each dimension."""
        return self._frame.lower

    @property
    def inclusive_min(self) -> tuple[int, ...]:
        """First position along each dimension."""
        return self._frame.lower

    @property
    def exclusive_max(self) -> tuple[int, ...]:
        """One past the last position along each dimension."""
        return self._frame.upper

    @property
    def inclusive_max(self) -> tuple[int, ...]:
        """Last position along each dimension."""
        return tuple([upper - 1 for upper in self._frame.upper])

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of positions along each dimension."""
        return self._frame.shape

    @property
    def size(self) -> int:
        """Number of positions in total; `2**63 - 1` if there are more."""
        total = 1
        for extent in self._frame.shape:
            total *= extent
        return min(total, INF_SIZE)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each dimension; empty where it has none."""
        return self._frame.labels

    @property
    def implicit_lower_bounds(self) -> tuple[bool, ...]:
        """Whether each lower bound is implicit."""
        return self._frame.implicit_lower

    @property
    def implicit_upper_bounds(self) -> tuple[bool, ...]:
        """Whether each upper bound is implicit."""
        return self._frame.implicit_upper

    @property
    def index_exp(self) -> tuple[slice, ...]:
        """The slices that select this domain from a NumPy array.

        Raises:
            ValueError: a bound is negative, which NumPy would count from the end.

        Example:
            >>> IndexDomain(shape=[2, 3]).index_exp
            (slice(0, 2, None), slice(0, 3, None))
        """
        slices = []
        for lower, upper in zip(self._frame.lower, self._frame.upper, strict=True):
            start = None if lower == -INF else lower
            stop = None if upper == INF + 1 else upper
            if (start or 0) < 0 or (stop or 0) < 0:
                raise ValueError(
                    f"Cannot convert domain {self!r} with negative bounds to index expression"
                )
            slices.append(slice(start, stop))
        return tuple(slices)

    def __len__(self) -> int:
        return self._frame.rank

    def __iter__(self) -> Iterator[Dim]:
        return iter([self._dim(dim) for dim in range(self._frame.rank)])

    def _dim(self, dim: int) -> Dim:
        return Dim._make(*self._frame.bounds(dim), self._frame.labels[dim])

    # A str is a sequence of labels to the type checker, but the first overload wins.
    @overload
    def __getitem__(self, identifier: int | str) -> Dim: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(
        self, identifier: slice | HasDimSpecs | Sequence[DimSelectionLike] | IndexTerm
    ) -> IndexDomain: ...

    def __getitem__(self, identifier: object) -> Dim | IndexDomain:
        if isinstance(identifier, str):
            return self._dim(find_label(identifier, self._frame.labels))
        number = int64_or_none(identifier)
        if number is not None:
            return self._dim(normalize_index(number, self._frame.rank))
        if isinstance(identifier, IndexTerm) and not isinstance(identifier, HasDimSpecs):
            return IndexDomain._from_frame(identifier._index_into(self._frame))
        frame = self._frame
        dims = require_distinct(resolve(parse_specs(identifier), frame.labels), frame.rank)
        return IndexDomain._from_frame(transpose(frame, dims))

    def intersect(self, other: IndexDomain) -> IndexDomain:
        """The positions that both have.

        Raises:
            ValueError: ranks or labels differ.

        Example:
            >>> IndexDomain(shape=[5]).intersect(IndexDomain(inclusive_min=[3]))
            { [3, 5) }
        """
        return self._merge(other, "intersect")

    def hull(self, other: IndexDomain) -> IndexDomain:
        """The smallest box that has the positions of both.

        Raises:
            ValueError: ranks or labels differ.

        Example:
            >>> IndexDomain(shape=[5]).hull(IndexDomain([Dim(8, 9)]))
            { [0, 9) }
        """
        return self._merge(other, "hull")

    def _merge(self, other: IndexDomain, action: str) -> IndexDomain:
        if self.rank != other.rank:
            raise ValueError(
                f"Cannot {action} index domain {self!r} with index domain {other!r}: "
                "Ranks do not match"
            )
        merge = intersect if action == "intersect" else hull
        dims = []
        for dim in range(self.rank):
            a, b = self._frame, other._frame
            try:
                text = merge_labels(a.labels[dim], b.labels[dim])
            except IndexingError as problem:
                raise ValueError(
                    f"Cannot {action} index domain {self!r} with index domain {other!r}: "
                    f"Mismatch in dimension {dim}: {problem}"
                ) from None
            dims.append(Dim._make(*merge(a.bounds(dim), b.bounds(dim)), text))
        return IndexDomain._from_frame(frame_from_dims(dims))

    def to_json(self) -> dict[str, Json]:
        """The JSON form, without defaults.

        Example:
            >>> IndexDomain(shape=[4, 6]).to_json()
            {'exclusive_max': [4, 6], 'inclusive_min': [0, 0]}
        """
        return domain_to_json(self._frame)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexDomain):
            return NotImplemented
        return self._frame.same_domain(other._frame)

    def __repr__(self) -> str:
        return format_domain(self._frame)

    def _repr_html_(self) -> str:
        return bounds_page("IndexDomain", repr(self), list(self))

    def __copy__(self) -> IndexDomain:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> IndexDomain:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (list(self),)


def bounds_of(domain: IndexDomain) -> list[BoundState]:
    """Of each dimension the first position, one past the last, and whether each is implicit."""
    return domain._frame.all_bounds()


def domain_of(bounds: Sequence[BoundState], labels: Iterable[str]) -> IndexDomain:
    """The domain with bounds as `bounds_of` gives them, which form intervals, and with labels.

    Raises:
        IndexingError: labels repeat.
    """
    names = tuple(labels)
    if any(names):
        require_unique(names)
    return IndexDomain._from_frame(Frame.of(bounds, names))


def array_domain(
    shape: Sequence[int],
    resizable: Sequence[bool] | None = None,
    labels: Sequence[str] | None = None,
) -> IndexDomain:
    """The domain of an array, from 0.

    Args:
        shape: extents.
        resizable: whether each upper bound is implicit; by default none is.
        labels: of all dimensions.

    Raises:
        ValueError: an extent is none, there are too many, or labels repeat.

    Example:
        >>> array_domain((4, 6), (True, False))
        { [0, 4*), [0, 6) }
    """
    rank = len(shape)
    if rank > MAX_RANK or min(shape, default=0) < 0 or max(shape, default=0) > INF:
        # Which says what is wrong with it.
        return IndexDomain(shape=shape, implicit_upper_bounds=resizable, labels=labels)
    flags = (False,) * rank if resizable is None else resizable
    bounds = [(0, extent, False, flag) for extent, flag in zip(shape, flags, strict=True)]
    return domain_of(bounds, ("",) * rank if labels is None else labels)


def _unpickle(dims: list[Dim]) -> IndexDomain:
    return IndexDomain._from_frame(frame_from_dims(dims))


def _parse_arguments(args: tuple[object, ...], named: dict[str, object]) -> Frame:
    if "json" in named and len(named) == 1 and not args:
        return domain_from_json(named["json"])
    if len(args) > 1:
        raise TypeError(f"IndexDomain takes 1 positional argument but {len(args)} were given")
    if "dimensions" in named and len(named) == 1 and not args:
        return frame_from_dims(named["dimensions"])
    if args and args[0] is not None and int64_or_none(args[0]) is None:
        if named:
            raise TypeError("IndexDomain takes no other argument next to a sequence of Dim")
        return frame_from_dims(args[0])
    if args and "rank" in named:
        raise TypeError("IndexDomain got multiple values for `rank`")
    for name in named:
        if name not in DOMAIN_KEYWORDS:
            raise TypeError(f"IndexDomain got an unexpected keyword argument {name!r}")
    return make_domain("", **dict(zip(("rank",), args, strict=False)), **named)
