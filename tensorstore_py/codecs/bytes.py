"""Elements side by side in C order, each in one of the two byte orders: the plain serializer.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/
Example: `{"name": "bytes", "configuration": {"endian": "little"}}`.
Limits: every element takes its itemsize in memory: 1- to 4-bit types take a byte each. Encoding and
decoding are views wherever memory and storage agree. Stored booleans are checked, because a numpy
boolean that is neither 0 nor 1 breaks whoever computes with it; and so is text, which may hold
numbers that are no characters.
"""

from __future__ import annotations

import sys
from typing import Literal

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    codec,
    size_error,
)

__all__ = ["Bytes", "BytesSpec"]


@codec("bytes", family="zarr3", aliases=["endian"])
class BytesSpec(ArrayToBytesSpec):
    """Asked: `bytes`.

    Attributes:
        endian: byte order; meaningless for one-byte elements, little if nothing is asked.

    Example:
        >>> BytesSpec.parse({"endian": "big"}).to_json()
        {'endian': 'big'}
    """

    endian: Literal["little", "big"] | None = None

    def resolved(self, chunk: ChunkType) -> BytesSpec:
        # Records say it even where no field has a byte order: their fields may be any type.
        if chunk.dtype.names is not None or _swaps(chunk.dtype):
            return self.replace(endian=self.endian or "little")
        return self.replace(endian=None)

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        if chunk.dtype.hasobject:
            raise SpecError(
                'codec "bytes" stores elements of fixed size, not Python objects: use a codec '
                "for elements of variable length"
            )
        return Bytes(chunk, self.resolved(chunk).endian or sys.byteorder)


class Bytes(ArrayToBytes):
    """The bound codec."""

    encoded_size: int
    exact = True

    def __init__(self, chunk: ChunkType, endian: str) -> None:
        self.encoded_size = chunk.size_bytes
        self._chunk = chunk
        self._shape = chunk.shape
        self._dtype = chunk.dtype
        self._swap = endian != sys.byteorder
        self._stored = _stored_dtype(chunk.dtype) if self._swap else chunk.dtype
        self._checked = chunk.dtype.kind in "bU"
        # Types that other languages know have a buffer format; the rest takes the longer way.
        self._has_format = chunk.dtype.isbuiltin == 1 and chunk.dtype.kind in "biufc"

    def encode(self, array: Array) -> Buffer:
        if self._swap:
            # An extension type has no other byte order: its bits go out as an integer's.
            array = array.view(self._stored.newbyteorder("=")).astype(self._stored)
        array = np.ascontiguousarray(array)
        if not self.encoded_size:
            return b""
        return self._memory(array)

    def decode(self, data: Buffer) -> Array:
        if len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        array = np.ndarray(self._shape, self._stored, data)
        if self._checked:
            self._chunk.check_elements(array)
        if self._stored.kind != self._dtype.kind:
            return array.astype(self._stored.newbyteorder("=")).view(self._dtype)
        return array

    def of_rows(self, count: int) -> Bytes | None:
        if not self._shape:
            return None
        rows = object.__new__(Bytes)
        rows.__dict__.update(self.__dict__)
        rows._shape = (count, *self._shape[1:])
        rows.encoded_size = self.encoded_size // self._shape[0] * count
        return rows

    def direct(self, out: Array) -> memoryview | None:
        if self._swap or self._checked or not out.flags.carray or not self.encoded_size:
            return None
        return self._memory(out)

    def _memory(self, array: Array) -> memoryview:
        if self._has_format:
            return array.data.cast("B")
        return array.reshape(-1).view(np.uint8).data


def _swaps(dtype: np.dtype[np.generic]) -> bool:
    """Whether the type has a byte order at all."""
    if dtype.isbuiltin == 2:
        return dtype.itemsize > 1
    return dtype != dtype.newbyteorder()


def _stored_dtype(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The other byte order of a type."""
    if dtype.isbuiltin == 2 and dtype.itemsize > 1:
        dtype = np.dtype(f"u{dtype.itemsize}")
    return dtype.newbyteorder()
