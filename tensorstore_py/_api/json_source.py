"""What may be written to an array of JSON values, and how it becomes one.

A list is an element as well as a dimension, so the target's rank decides: lists are taken apart as
deep as the target has dimensions, and as long as they are of one length; what is below is elements.
Elements are turned into plain JSON, so nothing of the source is kept by reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from tensorstore_py._spec.json_value import freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["as_json_array"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def as_json_array(source: object, rank: int | None = None) -> Array:
    """`source` as an array of JSON values.

    Args:
        source: an array, whatever turns itself into one, nested lists, or a single value.
        rank: how many dimensions it may have at most; None for as many as it has.

    Raises:
        TypeError: an element has no JSON form, such as bytes.
        OverflowError: a number that 64 bits cannot hold.

    Example:
        >>> as_json_array([[1, 2], [3, 4]], 1).tolist()
        [[1, 2], [3, 4]]
        >>> as_json_array([[1, 2], [3, 4]], 1).shape, as_json_array([[1, 2], [3, 4]], 2).shape
        ((2,), (2, 2))
    """
    if _is_array(source):
        array = np.asarray(source)
        if rank != 0:
            return _filled(array.shape, array.reshape(-1))
        source = array.tolist()
    elements: Sequence[object] = [source]
    shape: tuple[int, ...] = ()
    while rank is None or len(shape) < rank:
        length = _common_length(elements)
        if length is None:
            break
        shape = (*shape, length)
        elements = [inner for element in elements for inner in cast("Sequence[object]", element)]
    return _filled(shape, elements)


def _common_length(elements: Sequence[object]) -> int | None:
    """How long all elements are, if they are lists of one length."""
    lengths = {len(each) if isinstance(each, list | tuple) else None for each in elements}
    return lengths.pop() if len(lengths) == 1 else None


def _filled(shape: tuple[int, ...], elements: Sequence[object] | Array) -> Array:
    flat = np.empty(len(elements), object)
    for place, element in enumerate(elements):
        flat[place] = thaw(freeze(element, objects=False))
    return flat.reshape(shape)


def _is_array(source: object) -> bool:
    if isinstance(source, np.ndarray | memoryview):
        return True
    return hasattr(source, "__array_interface__") or hasattr(source, "__array__")
