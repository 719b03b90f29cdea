"""What of each stored element is opened (all of it, one field, or its bytes), and its serializer.

A view is where it lies in the element's bytes, and how it is seen: text and raw bytes of a fixed
length as characters and bytes with one more dimension, sub-arrays as dimensions, a record as one
value. All of a view's own dimensions are behind the array's.

Elements are stored side by side with all their fields, so whatever is opened of them is a strided
view of a chunk's bytes. Writing one field starts from what is stored, or from the fill value, and
leaves the other fields alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tensorstore_py._interface.array_info import asked_fill_value
from tensorstore_py._interface.codec import Array, ArrayToBytes, check_characters, size_error
from tensorstore_py._interface.kvstore import Buffer
from tensorstore_py._spec.dtype import dtype
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._spec.schema import Schema

__all__ = ["ElementView", "FieldBytes", "needs_a_look", "normalised"]


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

    def asked_fill_value(self, asked: Schema) -> Array | None:
        """The fill value that a schema asks for; errors are those of `asked_fill_value`."""
        return asked_fill_value(asked, self.data_type, self.inner_shape)

    def broadcast(self, value: Array) -> Array:
        """A fill value in the inner shape.

        Raises:
            SpecError: it is of another shape.
        """
        while value.ndim > len(self.inner_shape) and value.shape[0] == 1:
            value = value[0]
        try:
            return np.broadcast_to(value, self.inner_shape)
        except ValueError:
            raise SpecError(
                f"a fill value of shape {list(value.shape)} does not broadcast to the data type's "
                f"inner shape {list(self.inner_shape)}"
            ) from None


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


class FieldBytes(ArrayToBytes):
    """The bound codec.

    Args:
        view: what to see of each element.
        chunks: extents of a chunk, without the view's inner dimensions.
        order: memory order of the elements, `"C"` or `"F"`.
        fill_value: bytes of one element, all fields together.
    """

    encoded_size: int

    def __init__(
        self, view: ElementView, chunks: tuple[int, ...], order: str, fill_value: bytes
    ) -> None:
        self.encoded_size = prod(chunks) * len(fill_value)
        self.partial = view.size_bytes != len(fill_value)
        self._view = view
        self._chunks = chunks
        self._strides = _strides(chunks, len(fill_value), order)
        self._fill_value = fill_value
        # Whether stored elements are those in memory, bit for bit.
        self._plain = (
            not self.partial
            and view.stored == view.native
            and not needs_a_look(view.native)
            and (order == "C" or len(chunks) < 2)
        )

    def encode(self, array: Array) -> Buffer:
        data = self._filled()
        self._of(data)[...] = array
        return data

    def encode_over(self, array: Array, stored: Buffer | None, *, keep_fill: bool) -> Buffer | None:
        data = self._filled() if stored is None else bytearray(stored)
        if len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        self._of(data)[...] = array
        if not keep_fill and data == self._filled():
            return None
        return data

    def decode(self, data: Buffer) -> Array:
        if len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        found = self._of(data)
        check_characters(found)
        if self._plain or not (found.dtype.names or found.dtype == np.bool_):
            return found
        return normalised(found, self._view.native)

    def direct(self, out: Array) -> memoryview | None:
        if not self._plain or not out.flags.carray or not self.encoded_size:
            return None
        return out.reshape(-1).view(np.uint8).data

    def _filled(self) -> bytearray:
        # Not kept: how large it is may be a lie of the metadata, and only writing needs it.
        return bytearray(self._fill_value) * (self.encoded_size // len(self._fill_value))

    def _of(self, data: Buffer) -> Array:
        return self._view.of(data, self._chunks, self._strides)


def _strides(shape: tuple[int, ...], size: int, order: str) -> tuple[int, ...]:
    strides: list[int] = []
    for extent in shape if order == "F" else reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(strides if order == "F" else reversed(strides))
