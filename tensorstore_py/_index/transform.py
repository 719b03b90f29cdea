"""`IndexTransform`: from the positions of a view to those of what it is a view of.

A face over a `Frame`; all algebra is in the frame modules. Immutable.

The chunk engine reads these, all plain tuples: `input_rank`, `output_rank`, `input_origin`,
`input_shape`, `input_exclusive_max`, `implicit_lower_bounds`, `implicit_upper_bounds` and `maps`.
Index arrays are relative: element `[0, 0]` belongs to position `input_origin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, SupportsIndex, overload

from tensorstore_py._display.public_name import public
from tensorstore_py._index.build import (
    DOMAIN_KEYWORDS,
    Json,
    frame_from_dims,
    frame_from_json,
    frame_to_json,
    make_domain,
    with_output,
)
from tensorstore_py._index.compose import compose as compose_frames
from tensorstore_py._index.compose import propagate, same_maps, shown_maps, transform_position
from tensorstore_py._index.dim import Dim
from tensorstore_py._index.domain import IndexDomain
from tensorstore_py._index.frame import Frame, format_frame, identity_maps
from tensorstore_py._index.indexable import Indexable
from tensorstore_py._index.interval import int64_or_none
from tensorstore_py._index.maps import OutputIndexMap, OutputIndexMaps
from tensorstore_py._index.numpy_style import IndexTerm, index_into

__all__ = ["IndexTransform", "compose", "identity", "propagate_bounds"]

_KEYWORDS = {
    name if name.startswith("implicit") else f"input_{name}": name for name in DOMAIN_KEYWORDS
}


@public
class IndexTransform(IndexTerm, Indexable):
    """A domain and one output index map per output dimension.

    Args:
        input_rank: number of input dimensions; or the domain, as `IndexDomain` or sequence of
            `Dim`.
        input_inclusive_min: first position along each input dimension.
        implicit_lower_bounds: whether resizing may move the lower bounds.
        input_exclusive_max: one past the last position.
        input_inclusive_max: last position.
        input_shape: number of positions; starts at 0 without `input_inclusive_min`.
        implicit_upper_bounds: whether resizing may move the upper bounds.
        input_labels: a unique name for each input dimension, or None or `""`.
        output: an `OutputIndexMap` for each output dimension; the identity by default.
        json: the JSON form instead of all others.

    Attributes:
        maps: the output index maps as a tuple.

    Raises:
        ValueError: the arguments contradict each other.
        TypeError: an argument is of the wrong kind.

    Example:
        >>> view = IndexTransform(input_shape=[4, 6], input_labels=["y", "x"])[2, 1:5:2]
        >>> view
        Rank 1 -> 2 index space transform:
          Input domain:
            0: [0, 2) "x"
          Output index maps:
            out[0] = 2
            out[1] = 1 + 2 * in[0]
        <BLANKLINE>
        >>> view([1])
        (2, 3)
    """

    __slots__ = ("_frame",)
    __hash__ = None  # type: ignore[assignment]

    _frame: Frame

    @overload
    def __init__(
        self,
        input_rank: SupportsIndex | None = None,
        *,
        input_inclusive_min: Sequence[SupportsIndex] | None = None,
        implicit_lower_bounds: Sequence[bool] | None = None,
        input_exclusive_max: Sequence[SupportsIndex] | None = None,
        input_inclusive_max: Sequence[SupportsIndex] | None = None,
        input_shape: Sequence[SupportsIndex] | None = None,
        implicit_upper_bounds: Sequence[bool] | None = None,
        input_labels: Sequence[str | None] | None = None,
        output: Sequence[OutputIndexMap] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        domain: IndexDomain | Sequence[Dim],
        output: Sequence[OutputIndexMap] | None = None,
    ) -> None: ...
    @overload
    def __init__(self, *, json: object) -> None: ...

    def __init__(self, *args: object, **named: object) -> None:
        self._frame = _parse_arguments(args, named)

    @classmethod
    def _from_frame(cls, frame: Frame) -> IndexTransform:
        self = cls.__new__(cls)
        self._frame = frame
        return self

    def _index_into(self, frame: Frame) -> Frame:
        return compose_frames(frame, self._frame)

    def _get_transform(self) -> IndexTransform:
        return self

    def _with_transform(self, transform: IndexTransform) -> Self:
        return transform  # type: ignore[return-value]

    def __getitem__(self, index: object) -> Self:
        new = IndexTransform.__new__(IndexTransform)
        new._frame = index_into(self._frame, index, "default")
        return new  # type: ignore[return-value]

    @property
    def domain(self) -> IndexDomain:
        """The input domain."""
        return IndexDomain._from_frame(self._frame)

    @property
    def input_rank(self) -> int:
        """Number of input dimensions."""
        return len(self._frame.lower)

    @property
    def output_rank(self) -> int:
        """Number of output dimensions."""
        return len(self._frame.maps)

    @property
    def input_origin(self) -> tuple[int, ...]:
        """First position along each input dimension."""
        return self._frame.lower

    @property
    def input_inclusive_min(self) -> tuple[int, ...]:
        """First position along each input dimension."""
        return self._frame.lower

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Number of positions along each input dimension."""
        return self._frame.shape

    @property
    def input_exclusive_max(self) -> tuple[int, ...]:
        """One past the last position along each input dimension."""
        return self._frame.upper

    @property
    def input_inclusive_max(self) -> tuple[int, ...]:
        """Last position along each input dimension."""
        return tuple([upper - 1 for upper in self._frame.upper])

    @property
    def input_labels(self) -> tuple[str, ...]:
        """Name of each input dimension; empty where it has none."""
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
    def maps(self) -> tuple[OutputIndexMap, ...]:
        """The output index maps, for fast access."""
        return self._frame.maps

    @property
    def output(self) -> OutputIndexMaps:
        """The output index maps as a sequence with range checks."""
        return OutputIndexMaps(shown_maps(self._frame))

    def __call__(self, indices: Sequence[SupportsIndex]) -> tuple[int, ...]:
        """The output position of one input position.

        Raises:
            ValueError: the position has the wrong length or lies outside the domain.
        """
        return transform_position(self._frame, indices)

    def to_json(self) -> dict[str, Json]:
        """The JSON form, without defaults.

        Example:
            >>> IndexTransform(2)[3].to_json()
            {'input_rank': 1, 'output': [{'offset': 3}, {'input_dimension': 0}]}
        """
        return frame_to_json(self._frame)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexTransform):
            return NotImplemented
        a, b = self._frame, other._frame
        return a is b or (a.same_domain(b) and same_maps(a, b))

    def __repr__(self) -> str:
        return format_frame(self._frame)

    def __copy__(self) -> IndexTransform:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> IndexTransform:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (list(self.domain), self._frame.maps)


def compose(outer: IndexTransform, inner: IndexTransform) -> IndexTransform:
    """`outer[inner]`: positions are inner's, outputs are outer's.

    Raises:
        OutOfRangeError: `inner` leaves outer's domain.
        IndexError: inner's output rank is not outer's input rank.
    """
    return IndexTransform._from_frame(compose_frames(outer._frame, inner._frame))


def identity(domain: IndexDomain) -> IndexTransform:
    """The transform that maps each position of `domain` to itself."""
    frame = domain._frame
    return IndexTransform._from_frame(frame.with_maps(identity_maps(frame.rank)))


def propagate_bounds(driver_domain: IndexDomain, transform: IndexTransform) -> IndexTransform:
    """Resolve a transform against the present domain of what it is a view of.

    Implicit bounds of `transform` take what the domain has; explicit bounds, constants and all
    values of index arrays are checked against it.

    Raises:
        OutOfRangeError: naming the dimension, what lies outside, and the valid range.

    Example:
        >>> view = IndexTransform(2).mark_bounds_implicit[True][2:]
        >>> propagate_bounds(IndexDomain(shape=[5, 7]), view).domain
        { [2, 5), [0, 7) }
    """
    return IndexTransform._from_frame(propagate(driver_domain._frame, transform._frame))


def _unpickle(dims: list[Dim], maps: tuple[OutputIndexMap, ...]) -> IndexTransform:
    return IndexTransform._from_frame(frame_from_dims(dims).with_maps(maps))


def _parse_arguments(args: tuple[object, ...], named: dict[str, object]) -> Frame:
    if "json" in named and len(named) == 1 and not args:
        return frame_from_json(named["json"])
    first = args[0] if args else named.get("domain")
    if (args or "domain" in named) and first is not None and int64_or_none(first) is None:
        names = ("domain", "output")
        given = {**dict(zip(names, args, strict=False)), **named}
        if len(args) > 2 or set(given) - set(names) or len(given) != len(args) + len(named):
            raise TypeError("IndexTransform takes only `output` next to a domain")
        domain = given["domain"]
        frame = domain._frame if isinstance(domain, IndexDomain) else frame_from_dims(domain)
        return with_output(frame, given.get("output"))
    if len(args) > 1 or (args and "input_rank" in named):
        raise TypeError("IndexTransform takes one positional argument, the input rank")
    output = named.pop("output", None)
    for name in named:
        if name not in _KEYWORDS:
            raise TypeError(f"IndexTransform got an unexpected keyword argument {name!r}")
    given = {_KEYWORDS[name]: value for name, value in named.items()}
    given |= dict(zip(("rank",), args, strict=False))
    return with_output(make_domain("input_", **given), output)
