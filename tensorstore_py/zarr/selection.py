"""Selections as NumPy and zarr-python take them, turned into index terms of a `TensorStore`.

Pure. Here positions count from the end if they are negative, slices may reach outside, and what
lies outside otherwise is an IndexError; the terms that come out are positions in the array and
nothing else. What NumPy and zarr-python understand alike means that; where they differ, it is
zarr-python's meaning, but slices may run backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any, Literal, TypeAlias

import numpy as np

from tensorstore_py._index.positions import completed, interval, position, wrapped
from tensorstore_py.errors import IndexingError

__all__ = [
    "Fields",
    "Selected",
    "basic_selection",
    "block_selection",
    "coordinate_selection",
    "mask_selection",
    "orthogonal_selection",
    "selection",
    "split_fields",
    "vector_selection",
]

Fields: TypeAlias = "str | list[str] | None"
Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[Any]]
Terms = tuple["int | slice | Array", ...]


@dataclass(frozen=True, slots=True)
class Selected:
    """What to apply to a `TensorStore` whose positions begin at 0.

    Attributes:
        mode: how: by `[...]`, `.oindex[...]` or `.vindex[...]`.
        terms: one for each dimension.
    """

    mode: Literal["basic", "oindex", "vindex"]
    terms: Terms


def split_fields(item: object) -> tuple[object, Fields]:
    """A selection without the names of fields that are among it.

    Example:
        >>> split_fields("a"), split_fields((3, "a", "b"))
        ((Ellipsis, 'a'), (3, ['a', 'b']))
    """
    if isinstance(item, str):
        return ..., item
    if isinstance(item, list) and item and all(isinstance(each, str) for each in item):
        return ..., item
    if not isinstance(item, tuple):
        return item, None
    names = [each for each in item if isinstance(each, str)]
    rest = tuple(each for each in item if not isinstance(each, str))
    fields: Fields = names[0] if len(names) == 1 else names or None
    if not names:
        return item, None
    return (rest[0] if len(rest) == 1 else rest or ...), fields


def selection(item: object, shape: Shape) -> Selected:
    """What `array[item]` selects.

    Args:
        item: integers, slices, an ellipsis, arrays of integers or Booleans.
        shape: of the array.

    Raises:
        IndexingError: it is none of that, or there are too many.
        OutOfRangeError: a position outside; names the dimension.
    """
    if _is_mask(item) and np.ndim(item) != 1:  # type: ignore[arg-type]
        return mask_selection(item, shape)
    if _is_mask(item) and len(shape) == 1:
        return orthogonal_selection(item, shape)
    terms = _as_tuple(item)
    arrays = [each for each in terms if _is_array(each)]
    if not arrays:
        return basic_selection(item, shape)
    jointly = len(terms) == len(shape) and all(
        _is_array(each) or _is_integer(each) for each in terms
    )
    if jointly and not any(_is_mask(each) for each in arrays):
        return coordinate_selection(item, shape)
    if len(arrays) > 1 and not (len(arrays) == len(terms) == len(shape)):
        raise IndexingError(
            "several arrays beside slices can mean two things: select with oindex, each along its "
            "own dimension, or with vindex, jointly"
        )
    return orthogonal_selection(item, shape)


def basic_selection(item: object, shape: Shape) -> Selected:
    """What integers and slices select.

    Raises:
        IndexingError, OutOfRangeError: as `selection`.
    """
    return Selected("basic", tuple(_basic(_as_tuple(item), shape)))


def vector_selection(item: object, shape: Shape) -> Selected:
    """What `array.vindex[item]` selects: by positions or by a mask.

    Raises:
        IndexingError, OutOfRangeError, ValueError: as `coordinate_selection`.
    """
    terms = _with_arrays(item)
    if len(terms) == 1 and _is_mask(terms[0]):
        return mask_selection(terms[0], shape)
    return coordinate_selection(item, shape)


def orthogonal_selection(item: object, shape: Shape) -> Selected:
    """What `array.oindex[item]` selects: each array along its own dimension.

    Raises:
        IndexingError, OutOfRangeError: as `selection`.
    """
    terms: list[int | slice | Array] = []
    for dim, term in enumerate(completed(_with_arrays(item), shape)):
        if _is_array(term):
            terms.append(_along(term, dim, shape[dim]))
        else:
            terms.append(_basic_term(term, dim, shape[dim], "orthogonal"))
    return Selected("oindex", tuple(terms))


def coordinate_selection(item: object, shape: Shape) -> Selected:
    """What `array.vindex[item]` selects by positions: the arrays together name single elements.

    Raises:
        IndexingError, OutOfRangeError: as `selection`.
        ValueError: the arrays do not broadcast.
    """
    terms = _with_arrays(item)
    if len(terms) != len(shape) or not all(
        _is_integer(each) or (_is_array(each) and not _is_mask(each)) for each in terms
    ):
        raise IndexingError(
            "vindex takes an array of integers for each dimension, or one array of Booleans of the "
            f"array's shape, {shape}; use oindex to select along each dimension by itself"
        )
    arrays = [wrapped(np.asarray(each), dim, shape[dim]) for dim, each in enumerate(terms)]
    found = np.broadcast_arrays(*arrays)
    # A single position is an array of one element, as in zarr-python.
    return Selected("vindex", tuple(np.atleast_1d(each) for each in found))


def mask_selection(item: object, shape: Shape) -> Selected:
    """What `array.vindex[mask]` selects: the elements where the mask is true, in order.

    Raises:
        IndexingError: the mask is none of the array's shape.
    """
    if isinstance(item, tuple) and len(item) == 1:
        (item,) = item
    mask = np.asarray(item)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise IndexingError(
            f"a mask is an array of Booleans of the array's shape, {shape}, but this is "
            f"{mask.dtype} of shape {mask.shape}"
        )
    return Selected("vindex", np.nonzero(mask))


def block_selection(item: object, shape: Shape, chunks: Shape) -> Selected:
    """What `array.blocks[item]` selects: whole chunks, by their place in the grid.

    Raises:
        IndexingError, OutOfRangeError: as `selection`.
    """
    terms: list[int | slice | Array] = []
    for dim, term in enumerate(completed(_as_tuple(item), shape)):
        size, extent = chunks[dim], shape[dim]
        count = -(-extent // size)
        if _is_integer(term):
            cell = position(index(term), dim, count)  # type: ignore[arg-type]
            terms.append(slice(cell * size, min((cell + 1) * size, extent)))
        elif isinstance(term, slice) and term.step in (None, 1):
            low, high, _ = term.indices(count)
            terms.append(slice(low * size, min(max(low, high) * size, extent)))
        else:
            raise IndexingError(
                "unsupported selection item for block indexing: expected an integer or a slice "
                f"with step 1, got {term!r}"
            )
    return Selected("basic", tuple(terms))


def _as_tuple(item: object) -> tuple[object, ...]:
    return item if isinstance(item, tuple) else (item,)


def _with_arrays(item: object) -> tuple[object, ...]:
    """The terms, lists of any depth as arrays."""
    return tuple(np.asarray(each) if isinstance(each, list) else each for each in _as_tuple(item))


def _is_integer(term: object) -> bool:
    if isinstance(term, bool | np.bool_):
        return False
    return isinstance(term, int | np.integer)


def _is_array(term: object) -> bool:
    """Whether it is an array of integers or Booleans, or a list that says as much."""
    if isinstance(term, np.ndarray):
        return term.dtype.kind in "iub"
    if not isinstance(term, list) or not term:
        return False
    return all(isinstance(each, int | np.integer | np.bool_) for each in term)


def _is_mask(term: object) -> bool:
    if isinstance(term, np.ndarray):
        return bool(term.dtype.kind == "b")
    return isinstance(term, list) and _is_array(term) and np.asarray(term).dtype.kind == "b"


def _basic(terms: tuple[object, ...], shape: Shape) -> list[int | slice]:
    return [
        _basic_term(term, dim, shape[dim], "basic")
        for dim, term in enumerate(completed(terms, shape))
    ]


def _basic_term(term: object, dim: int, extent: int, kind: str) -> int | slice:
    if _is_integer(term):
        return position(index(term), dim, extent)  # type: ignore[arg-type]
    if isinstance(term, slice):
        return interval(term, extent)
    expected = (
        "integer or slice" if kind == "basic" else "integer, slice, or array of one dimension"
    )
    raise IndexingError(
        f"unsupported selection item for {kind} indexing: expected {expected}, got {term!r}"
    )


def _along(term: object, dim: int, extent: int) -> Array:
    """An array of positions along one dimension."""
    found = np.asarray(term)
    if found.ndim != 1:
        what = "Boolean" if found.dtype.kind == "b" else "integer"
        raise IndexingError(
            f"{what} arrays in an orthogonal selection must be 1-dimensional only, but that for "
            f"dimension {dim} has {found.ndim}"
        )
    if found.dtype.kind == "b":
        if len(found) != extent:
            raise IndexingError(
                f"Boolean array has the wrong length for dimension {dim}; expected {extent}, got "
                f"{len(found)}"
            )
        return np.nonzero(found)[0]
    return wrapped(found, dim, extent)
