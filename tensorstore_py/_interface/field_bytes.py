"""The serializer for views that the plain one cannot see: records, and one field of several.

Elements are stored side by side with all their fields, so whatever is opened of them is a strided
view of a chunk's bytes. Writing one field starts from what is stored, or from the fill value, and
leaves the other fields alone.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tensorstore_py._interface.codec import Array, ArrayToBytes, size_error
from tensorstore_py._interface.element_type import check_characters
from tensorstore_py._interface.element_view import ElementView, needs_a_look, normalised
from tensorstore_py._interface.kvstore import Buffer

__all__ = ["FieldBytes"]


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
