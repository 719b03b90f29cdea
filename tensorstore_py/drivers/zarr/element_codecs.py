"""Codecs of arrays, run over bytes: what a version 2 filter is.

A filter takes the bytes that the one before it gave for elements of a type that its own members
name. So a codec that is made for arrays is seen here as one from bytes to bytes, and filters follow
each other in any order.
"""

from __future__ import annotations

import numpy as np

from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
    ArrayToBytes,
    Buffer,
    BytesToBytes,
    ChunkType,
    size_error,
)
from tensorstore_py.plugin.driver import OPAQUE

__all__ = ["FilteredElements", "SerializedElements"]


class FilteredElements(BytesToBytes):
    """An array to array codec over bytes."""

    def __init__(self, codec: ArrayToArray, chunk: ChunkType) -> None:
        self._codec = codec
        self._chunk = chunk
        self._size = codec.encoded.size_bytes
        self.exact = codec.exact

    def encode(self, data: Buffer) -> Buffer:
        return _memory(self._codec.encode(_elements(data, self._chunk)))

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        if len(data) != self._size:
            raise size_error(len(data), self._size)
        return _memory(self._codec.decode(_elements(data, self._codec.encoded)))

    def encoded_size(self, size: int | None) -> int | None:
        return self._size


class SerializedElements(BytesToBytes):
    """An array to bytes codec over bytes.

    Args:
        codec: bound to `chunk`.
        chunk: what the bytes are; `OPAQUE` for bytes of any number.
    """

    def __init__(self, codec: ArrayToBytes, chunk: ChunkType) -> None:
        self._codec = codec
        self.exact = codec.exact
        self._chunk = chunk

    def encode(self, data: Buffer) -> Buffer:
        return self._codec.encode(_elements(data, self._chunk))

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        return _memory(self._codec.decode(data))

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        self._codec.decode_into(data, _elements(out, self._chunk))

    def encoded_size(self, size: int | None) -> int | None:
        return self._codec.encoded_size


def _elements(data: Buffer, chunk: ChunkType) -> Array:
    if chunk is OPAQUE:
        return np.frombuffer(data, np.uint8)
    return np.ndarray(chunk.shape, chunk.dtype, data)


def _memory(array: Array) -> Buffer:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
