"""The serializer for one field of several: chunks hold the other fields, too.

Elements are stored side by side with all their fields, so one field is a strided view of a
chunk's bytes. Writing it starts from what is stored, or from the fill value, and leaves the other
fields alone.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tensorstore_py.drivers.zarr.data_type import StoredField
from tensorstore_py.plugin import Array, ArrayToBytes, Buffer, size_error

__all__ = ["FieldBytes"]


class FieldBytes(ArrayToBytes):
    """The bound codec.

    Args:
        field: the field to see.
        chunks: extents of a chunk, without the field's inner dimensions.
        order: memory order of the elements, `"C"` or `"F"`.
        fill_value: bytes of one element, all fields together.
    """

    partial = True
    encoded_size: int

    def __init__(
        self, field: StoredField, chunks: tuple[int, ...], order: str, fill_value: bytes
    ) -> None:
        self.encoded_size = prod(chunks) * len(fill_value)
        self._field = field
        self._shape = (*chunks, *field.inner_shape)
        self._strides = (
            *_strides(chunks, len(fill_value), order),
            *_strides(field.inner_shape, field.native.itemsize, "C"),
        )
        self._filled = fill_value * prod(chunks)

    def encode(self, array: Array) -> Buffer:
        data = bytearray(self._filled)
        self._view(data)[...] = array
        return data

    def encode_over(self, array: Array, stored: Buffer | None, *, keep_fill: bool) -> Buffer | None:
        data = bytearray(self._filled if stored is None else stored)
        if len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        self._view(data)[...] = array
        if not keep_fill and data == self._filled:
            return None
        return data

    def decode(self, data: Buffer) -> Array:
        if len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        view = self._view(data)
        if view.dtype == np.bool_:
            # A stored truth value may be any byte, but NumPy computes with 0 and 1.
            return np.asarray(view.view(np.uint8) != 0)
        return view

    def _view(self, data: Buffer) -> Array:
        field = self._field
        return np.ndarray(self._shape, field.stored, data, field.offset, self._strides)


def _strides(shape: tuple[int, ...], size: int, order: str) -> tuple[int, ...]:
    strides: list[int] = []
    for extent in shape if order == "F" else reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(strides if order == "F" else reversed(strides))
