"""What may be written to an array of any Python objects, and how it becomes one.

A list or an array can be an element as well as a dimension, so the target's rank decides: they are
taken apart as deep as the target has dimensions, and as long as they are of one length; what is
below is elements, which are kept as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["as_objects"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def as_objects(source: object, rank: int) -> Array:
    """`source` as an array of objects.

    Args:
        source: an array, nested lists, or a single object.
        rank: how many dimensions it may have at most.

    Example:
        >>> as_objects([[1, 2], [3]], 1).tolist()
        [[1, 2], [3]]
        >>> as_objects(np.arange(3), 0).item()
        array([0, 1, 2])
    """
    if isinstance(source, np.ndarray) and source.dtype.hasobject and source.ndim <= rank:
        return source
    elements: Sequence[object] = [source]
    shape: tuple[int, ...] = ()
    while len(shape) < rank:
        lengths = {_length(each) for each in elements}
        length = lengths.pop() if len(lengths) == 1 else None
        if length is None:
            break
        shape = (*shape, length)
        elements = [inner for element in elements for inner in cast("Sequence[object]", element)]
    flat = np.empty(len(elements), object)
    for place, element in enumerate(elements):
        flat[place] = element
    return flat.reshape(shape)


def _length(element: object) -> int | None:
    """How many elements it has, if it can be taken apart."""
    if isinstance(element, list | tuple) or (isinstance(element, np.ndarray) and element.ndim):
        return len(element)
    return None
