"""Parsing of NumPy-style index expressions into terms.

What stands between the brackets becomes an `IndexSpec`: a tuple of terms plus the counts that the
application needs. Nothing here looks at a domain.

Invariant: the arrays in a spec are int64, owned by the spec and never changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from tensorstore_py._index.interval import int64_or_none
from tensorstore_py._index.maps import IndexArray
from tensorstore_py.errors import IndexingError

__all__ = [
    "ArrayTerm",
    "IndexMode",
    "IndexSpec",
    "MaskTerm",
    "NumpyIndexTerm",
    "NumpyIndexingSpec",
    "SliceTerm",
    "SpecUse",
    "Term",
    "parse_index",
]

IndexMode: TypeAlias = Literal["default", "oindex", "vindex"]
"""How several index arrays combine: as NumPy, as an outer product, or jointly and in front."""

SpecUse: TypeAlias = Literal["direct", "initial", "chained"]
"""Applied to a whole domain, right after a dimension selection, or later in its chain."""

NumpyIndexTerm: TypeAlias = "int | slice | EllipsisType | np.ndarray | Iterable[object] | None"
NumpyIndexingSpec: TypeAlias = "NumpyIndexTerm | tuple[NumpyIndexTerm, ...]"


class SliceTerm(NamedTuple):
    """`start:stop:step` of one dimension; None takes the domain's bound."""

    start: int | None
    stop: int | None
    step: int

    def __str__(self) -> str:
        text = f"{'' if self.start is None else self.start}:"
        text += "" if self.stop is None else f"{self.stop}"
        return text if self.step == 1 else f"{text}:{self.step}"


class ArrayTerm:
    """An integer array: one dimension is indexed by its values."""

    __slots__ = ("values",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: IndexArray) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayTerm) and np.array_equal(self.values, other.values)

    def __str__(self) -> str:
        return repr(self.values)


class MaskTerm:
    """A bool array: as many dimensions as its rank, indexed by the positions that are true."""

    __slots__ = ("count", "positions")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, positions: tuple[IndexArray, ...], count: int) -> None:
        self.positions = positions
        self.count = count

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MaskTerm)
            and self.count == other.count
            and len(self.positions) == len(other.positions)
            and all(map(np.array_equal, self.positions, other.positions))
        )

    def __str__(self) -> str:
        shape = [int(axis.max()) + 1 if axis.size else 1 for axis in self.positions]
        mask = np.zeros(shape, dtype=bool)
        if self.count:
            mask[self.positions] = True
        return repr(mask)


Term: TypeAlias = int | SliceTerm | EllipsisType | ArrayTerm | MaskTerm | None


class IndexSpec:
    """A parsed index expression.

    Attributes:
        scalar: whether a single term was given outside a tuple; after a dimension selection it
            then applies to every selected dimension.
        consumed: dimensions of the indexed domain that the terms use up, without the ellipsis.
        added: number of `newaxis` terms.
        joint_shape: common shape of the arrays that are indexed jointly.
        joint_in_place: whether the joint dimensions stand where the first array stood
            (otherwise they come first).
        produced: dimensions of the new domain, without the ellipsis.
    """

    __slots__ = (
        "added",
        "consumed",
        "has_ellipsis",
        "joint_in_place",
        "joint_shape",
        "mode",
        "produced",
        "scalar",
        "terms",
        "use",
    )
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, terms: tuple[Term, ...], mode: IndexMode, use: SpecUse, scalar: bool
    ) -> None:
        self.terms = terms
        self.mode = mode
        self.use = use
        self.scalar = scalar
        self.added = terms.count(None)
        self.has_ellipsis = False
        self.consumed = 0
        self.produced = self.added
        self.joint_shape: tuple[int, ...] = ()
        self.joint_in_place = mode == "default"
        array_seen = array_ended = False
        for term in terms:
            if isinstance(term, int):
                self.consumed += 1
                continue
            if isinstance(term, ArrayTerm | MaskTerm):
                self._add_array(term)
                array_seen = True
                if array_ended:
                    self.joint_in_place = False
                continue
            array_ended = array_seen
            if isinstance(term, SliceTerm):
                self.consumed += 1
                self.produced += 1
            elif term is Ellipsis:
                if self.has_ellipsis:
                    raise IndexingError("An index can only have a single ellipsis (`...`)")
                self.has_ellipsis = True
        if self.added and use == "chained":
            raise IndexingError(
                "tensorstore.newaxis (`None`) not valid in chained indexing operations"
            )
        self.produced += len(self.joint_shape)

    def _add_array(self, term: ArrayTerm | MaskTerm) -> None:
        if isinstance(term, MaskTerm):
            shape: tuple[int, ...] = (term.count,)
            self.consumed += len(term.positions)
            if not term.positions and self.use != "direct":
                if self.mode == "oindex":
                    raise IndexingError(
                        "Zero-rank bool array incompatible with outer indexing of a "
                        "dimension selection"
                    )
                self.joint_in_place = False
        else:
            shape = term.values.shape
            self.consumed += 1
        if self.mode == "oindex":
            self.produced += len(shape)
            return
        try:
            self.joint_shape = np.broadcast_shapes(self.joint_shape, shape)
        except ValueError:
            raise IndexingError(
                f"Incompatible index array shapes: {_braces(shape)} vs {_braces(self.joint_shape)}"
            ) from None

    def repeated(self, count: int) -> IndexSpec:
        """The same expression with a scalar term written once for each of `count` dimensions."""
        if not self.scalar:
            return self
        return IndexSpec(self.terms * count, self.mode, self.use, scalar=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexSpec) and (
            (self.mode, self.use, self.scalar, self.terms)
            == (other.mode, other.use, other.scalar, other.terms)
        )

    def __str__(self) -> str:
        text = ",".join("..." if term is Ellipsis else str(term) for term in self.terms)
        return f"{text}," if not self.scalar and len(self.terms) == 1 else text

    def __reduce__(self) -> tuple[object, ...]:
        return IndexSpec, (self.terms, self.mode, self.use, self.scalar)


def _braces(shape: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, shape)) + "}"


def parse_index(index: object, mode: IndexMode, use: SpecUse) -> IndexSpec:
    """Turn what stands between the brackets into a spec.

    Raises:
        IndexingError: a term has no meaning as an index.
        TypeError: a slice with bounds that are no integers.
    """
    if isinstance(index, tuple):
        terms = tuple(term for part in index for term in _parse_term(part))
        return IndexSpec(terms, mode, use, scalar=False)
    terms = tuple(_parse_term(index))
    return IndexSpec(terms, mode, use, scalar=_is_scalar(index, terms))


def _is_scalar(index: object, terms: tuple[Term, ...]) -> bool:
    """Whether one term was written that may stand for any number of dimensions."""
    if isinstance(index, slice):
        parts = (index.start, index.stop, index.step)
        return all(part is None or int64_or_none(part) is not None for part in parts)
    term = terms[0]
    return (
        term is None
        or isinstance(term, int)
        or (isinstance(term, ArrayTerm) and term.values.ndim == 0)
    )


def _parse_term(term: object) -> Iterable[Term]:
    if term is None or isinstance(term, EllipsisType):
        return (term,)
    if isinstance(term, slice):
        return _parse_slice(term)
    if not isinstance(term, bool | np.bool_ | np.ndarray):
        number = int64_or_none(term)
        if number is not None:
            return (number,)
    return (_parse_array(term),)


def _parse_array(term: object) -> Term:
    try:
        array = np.asarray(term)
    except ValueError as problem:  # ragged nesting
        raise IndexingError(f"{term!r} is no index array: {problem}") from None
    if array.size == 0 and not isinstance(term, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind == "b":
        if array.ndim == 0:
            return MaskTerm((), int(array))
        positions = tuple(axis.astype(np.int64, copy=False) for axis in np.nonzero(array))
        return MaskTerm(positions, len(positions[0]))
    if array.dtype.kind in "iu":
        return ArrayTerm(np.array(array, dtype=np.int64))
    if isinstance(term, np.ndarray):
        raise IndexingError("Arrays used as indices must be of integer (or boolean) type")
    hint = ""
    if isinstance(term, str):
        hint = f'; by the label of a dimension it is ts.d["{term}"][5]'
    raise IndexingError(
        "Only integers, slices (`:`), ellipsis (`...`), tensorstore.newaxis (`None`) and "
        f"integer or boolean arrays are valid indices, not {term!r}{hint}"
    )


def _parse_slice(term: slice) -> Iterable[Term]:
    """One slice, or one per element where its bounds are sequences (`slice((1, 2), (7, 8))`)."""
    parts = {name: _slice_part(getattr(term, name)) for name in ("start", "stop", "step")}
    rank: int | None = None
    previous = ""
    for name, part in parts.items():
        if not isinstance(part, tuple):
            continue
        if rank is not None and len(part) != rank:
            raise IndexingError(
                f"{name}={_bracketed(part)} (rank {len(part)}) is incompatible with "
                f"{previous}={_bracketed(parts[previous])} (rank {rank})"
            )
        rank, previous = len(part), name
    count = 1 if rank is None else rank
    columns = [part if isinstance(part, tuple) else (part,) * count for part in parts.values()]
    return [
        SliceTerm(start, stop, 1 if step is None else step)
        for start, stop, step in zip(*columns, strict=True)
    ]


def _slice_part(part: object) -> int | tuple[int | None, ...] | None:
    if part is None:
        return None
    number = int64_or_none(part)
    if number is not None:
        return number
    if isinstance(part, Iterable) and not isinstance(part, str | bytes):
        numbers = tuple((item, int64_or_none(item)) for item in part)
        if all(item is None or number is not None for item, number in numbers):
            return tuple(number for _, number in numbers)
    raise TypeError("slice indices must be integers or None or have an __index__ method")


def _bracketed(part: object) -> str:
    items = part if isinstance(part, tuple) else (part,)
    return "[" + ",".join(map(str, items)) + "]"
