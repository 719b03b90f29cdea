"""Elements as a list in some notation of nested lists, with their type and shape at its end.

The form that JSON and MessagePack codecs share: `[…elements, "|O", [2, 3]]`. The invariant: what
the list says of itself is only compared with the chunk, never believed, so that a list that lies
allocates nothing and no type comes from the data.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py._interface.codec import Array, ChunkType

__all__ = ["listed_elements"]


def listed_elements(codec: str, stored: object, chunk: ChunkType) -> Array:
    """The elements as an array of the chunk's shape and type.

    Args:
        codec: its name, for error messages.
        stored: elements nested by the dimensions of the stated shape, the type, the shape.
        chunk: what must come out; its dimensions may be other ones of the same product.

    Raises:
        DataLossError: the list is of another form, type or size, or an element does not fit.

    Example:
        >>> from tensorstore_py._interface.codec import ChunkType
        >>> chunk = ChunkType((2,), np.dtype(object), np.array(None))
        >>> listed_elements("json2", [[1], "a", "|O", [2]], chunk)
        array([list([1]), 'a'], dtype=object)
    """
    if not isinstance(stored, list) or len(stored) < 2:
        raise DataLossError(f"{codec}: the data is no list of elements, their type and their shape")
    *elements, kind, shape = stored
    if kind not in (chunk.dtype.str, chunk.dtype.str.encode()):
        raise DataLossError(f"{codec}: the data holds elements of {kind!r}, expected {chunk.dtype}")
    if not _is_shape(shape) or prod(shape) != prod(chunk.shape):
        raise DataLossError(f"{codec}: the data has shape {shape!r}, expected {list(chunk.shape)}")
    flat = list(_leaves(codec, elements, shape or [1]))
    try:
        array = np.fromiter(flat, chunk.dtype, len(flat))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataLossError(f"{codec}: an element is no {chunk.dtype}: {error}") from error
    return array.reshape(chunk.shape)


def _is_shape(shape: object) -> bool:
    return isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in shape)


def _leaves(codec: str, elements: object, shape: Sequence[int]) -> Iterator[object]:
    if not isinstance(elements, list) or len(elements) != shape[0]:
        raise DataLossError(f"{codec}: the elements are not nested as the data's shape says")
    if len(shape) == 1:
        yield from elements
        return
    for inner in elements:
        yield from _leaves(codec, inner, shape[1:])
