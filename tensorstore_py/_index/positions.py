"""Positions as NumPy counts them: from 0, negative ones from the end, slices cut to what there is.

What comes out are the terms of an index expression for a domain that begins at 0 in every
dimension. A position outside is an IndexError, as everywhere. Pure, like the rest of the room.
"""

from __future__ import annotations

from operator import index as as_index
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorstore_py.errors import IndexingError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["completed", "interval", "numpy_index", "position", "wrapped"]

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
Term: TypeAlias = "int | slice | EllipsisType | Array | None"


def numpy_index(item: object, shape: Shape) -> tuple[Term, ...]:
    """What `array[item]` means in NumPy, as terms for a domain that begins at 0.

    Raises:
        IndexingError: it is none of that, or there are too many.
        OutOfRangeError: a position outside; names the dimension.

    Example:
        >>> numpy_index((-1, slice(3, 99)), (5, 6))
        (4, slice(3, 6, 1))
    """
    parsed = [_parsed(term) for term in (item if isinstance(item, tuple) else (item,))]
    terms = _expanded(parsed, len(shape), sum(map(_dimensions, parsed)))
    # Beside arrays, NumPy takes an integer for an array of one position.
    jointly = any(isinstance(term, np.ndarray) for term in terms)
    found: list[Term] = []
    dim = 0
    for term in terms:
        if term is None or isinstance(term, EllipsisType):
            found.append(term)
            continue
        if isinstance(term, np.ndarray) and term.dtype.kind == "b":
            _check_mask(term, dim, shape)
            found.append(term)
            dim += term.ndim
            continue
        if isinstance(term, slice):
            found.append(interval(term, shape[dim]))
        elif isinstance(term, np.ndarray):
            found.append(wrapped(term, dim, shape[dim]))
        else:
            at = position(term, dim, shape[dim])
            found.append(np.array(at) if jointly else at)
        dim += 1
    return tuple(found)


def completed(terms: tuple[object, ...], shape: Shape) -> list[object]:
    """One term for each dimension; what is not mentioned is taken whole.

    Raises IndexingError: there are too many, or several ellipses.
    """
    count = sum(not isinstance(term, EllipsisType) for term in terms)
    return _expanded(terms, len(shape), count)


def position(position: int, dim: int, extent: int) -> int:
    """One position, counted from the beginning.

    Raises OutOfRangeError: it lies outside; names the dimension.
    """
    if not -extent <= position < extent:
        raise OutOfRangeError(
            f"index {position} is out of bounds for dimension {dim} with length {extent}"
        )
    return position + extent if position < 0 else position


def interval(term: slice, extent: int) -> slice:
    """The slice in positions of the array: inside of it, and empty at 0.

    Backwards it may stop at -1, which is the position before the first.
    """
    start, stop, step = term.indices(extent)
    if len(range(start, stop, step)) == 0:
        return slice(0, 0)
    return slice(start, stop, step)


def wrapped(found: Array, dim: int, extent: int) -> Array:
    """Positions that count from the beginning.

    Raises OutOfRangeError: one lies outside; names the dimension.
    """
    outside = (found < -extent) | (found >= extent)
    if outside.any():
        raise OutOfRangeError(
            f"index {found[outside].flat[0]} is out of bounds for dimension {dim} with length "
            f"{extent}"
        )
    positions = found.astype(np.int64)
    return np.where(positions < 0, positions + extent, positions)


def _parsed(term: object) -> Term:
    if term is None or isinstance(term, slice | EllipsisType):
        return term
    if not isinstance(term, bool | np.bool_):
        try:
            return as_index(term)  # type: ignore[arg-type]
        except TypeError:
            pass
    try:
        found = np.asarray(term)
    except ValueError as problem:  # nested lists of different lengths
        raise IndexingError(f"{term!r} is no index array: {problem}") from None
    if found.size == 0 and not isinstance(term, np.ndarray):
        return found.astype(np.int64)
    if found.dtype.kind not in "biu":
        raise IndexingError(
            "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays "
            f"are valid indices, not {term!r}"
        )
    return found


def _expanded(terms: Sequence[Any], rank: int, count: int) -> list[Any]:
    """The terms, of `count` dimensions, with whole slices for those that they do not mention."""
    places = [place for place, term in enumerate(terms) if isinstance(term, EllipsisType)]
    if len(places) > 1:
        raise IndexingError("an index can only have a single ellipsis ('...')")
    if count > rank:
        raise IndexingError(f"too many indices for array; expected {rank}, got {count}")
    missing = [slice(None)] * (rank - count)
    place = places[0] if places else len(terms)
    return [*terms[:place], *missing, *terms[place + 1 :]]


def _dimensions(term: object) -> int:
    """How many dimensions a term uses up."""
    if term is None or isinstance(term, EllipsisType):
        return 0
    if isinstance(term, np.ndarray) and term.dtype.kind == "b":
        return term.ndim
    return 1


def _check_mask(mask: Array, dim: int, shape: Shape) -> None:
    wanted = shape[dim : dim + mask.ndim]
    if mask.shape != wanted:
        raise IndexingError(
            f"a mask of shape {mask.shape} does not fit dimensions of shape {wanted}, from "
            f"dimension {dim} on"
        )
