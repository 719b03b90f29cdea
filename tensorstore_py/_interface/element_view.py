"""What of each stored element is opened: all of it, one field, or its bytes.

A view is where it lies in the element's bytes, and how it is seen: text and raw bytes of a fixed
length as characters and bytes with one more dimension, sub-arrays as dimensions, a record as one
value. All of a view's own dimensions are behind the array's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tensorstore_py._interface.codec import Array
from tensorstore_py._interface.kvstore import Buffer
from tensorstore_py._spec.dtype import dtype

__all__ = ["ElementView", "needs_a_look", "normalised"]


@dataclass(frozen=True, slots=True)
class ElementView:
    """See the head of this file.

    Attributes:
        name: the field's, with dots where it is nested; "" for the whole element.
        data_type: what users see.
        stored: the NumPy type of what is stored, byte order included.
        inner_shape: the dimensions that it adds to the array's.
        inner_strides: bytes from one to the next of each of them.
        offset: bytes in front of it in each stored element.
    """

    name: str
    data_type: dtype
    stored: np.dtype[np.generic]
    inner_shape: tuple[int, ...] = ()
    inner_strides: tuple[int, ...] = ()
    offset: int = 0

    @property
    def native(self) -> np.dtype[np.generic]:
        """The NumPy type of arrays in memory."""
        return self.data_type.array_dtype

    @property
    def size_bytes(self) -> int:
        """Bytes that it shows of each stored element."""
        return self.stored.itemsize * prod(self.inner_shape)

    def inside(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> ElementView:
        """The same view where the element is itself part of a larger one."""
        return ElementView(
            self.name,
            self.data_type,
            self.stored,
            (*shape, *self.inner_shape),
            (*strides, *self.inner_strides),
            offset + self.offset,
        )

    def of(self, data: Buffer, shape: tuple[int, ...] = (), strides: tuple[int, ...] = ()) -> Array:
        """The view on an array of elements.

        Args:
            data: the elements' bytes; the view is writable if they are.
            shape: of the array of elements.
            strides: bytes from one element to the next.
        """
        return np.ndarray(
            (*shape, *self.inner_shape),
            self.stored,
            data,
            self.offset,
            (*strides, *self.inner_strides),
        )


def normalised(array: Array, native: np.dtype[np.generic]) -> Array:
    """Stored elements in their type in memory; a copy only where something changes.

    A stored truth value may be any byte, but NumPy computes with 0 and 1.
    """
    if array.dtype == np.bool_:
        return np.asarray(array.view(np.uint8) != 0)
    if not needs_a_look(native):
        return array.astype(native, copy=False)
    found = array.astype(native)
    _normalise(found)
    return found


def needs_a_look(dtype: np.dtype[np.generic]) -> bool:
    """Whether stored values of the type, or of one in it, may be none: truth values and text."""
    if dtype.names is None:
        return dtype.base.kind in "bU"
    return any(needs_a_look(field[0]) for field in (dtype.fields or {}).values())


def _normalise(array: NDArray[np.generic]) -> None:
    for name in array.dtype.names or ():
        field = array[name]  # type: ignore[call-overload]
        if field.dtype == np.bool_:
            field[...] = field.view(np.uint8) != 0
        else:
            _normalise(field)
