"""Bytes to bytes without compressing: shuffle, base64, and raw, which says "as it is".

Specification: https://numcodecs.readthedocs.io/en/stable/filter/shuffle.html,
https://numcodecs.readthedocs.io/en/stable/filter/base64.html and, for raw,
https://github.com/saalfeldlab/n5#file-system-specification
Example: `{"id": "shuffle", "elementsize": 4}`, `{"id": "base64"}`, `{"type": "raw"}`.
Limits: what is shuffled must be a whole number of elements. Base64 makes chunks larger, and is of
use only where stored values must be text.
"""

from __future__ import annotations

import binascii
from typing import Annotated, ClassVar

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Level,
    codec,
    size_error,
)

__all__ = ["Base64Spec", "RawSpec", "Shuffle", "ShuffleSpec"]


@codec("numcodecs.shuffle", family="zarr3")
@codec("shuffle", family="zarr", elementsize=4, nullable=frozenset())
class ShuffleSpec(BytesToBytesSpec):
    """Asked: `shuffle`: the first bytes of all elements, then the second bytes, and so on.

    Attributes:
        elementsize: bytes of an element; 0 and 1 change nothing. In version 3 the size of the
            array's elements by default.
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"elementsize"})

    elementsize: Annotated[int, Level(0, 2**31 - 1)] | None = None

    def resolved(self, chunk: ChunkType) -> ShuffleSpec:
        size = chunk.dtype.itemsize if self.elementsize is None else self.elementsize
        if self.elementsize is None and not size:
            raise SpecError("the size of an element is not known here: state it", ("elementsize",))
        return self.replace(elementsize=size)

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        size = max(self.resolved(chunk).elementsize or 0, 1)
        if chunk.size_bytes % size:
            raise SpecError(
                f"a chunk of {chunk.size_bytes} bytes is no whole number of elements of {size}",
                ("elementsize",),
            )
        return Shuffle(size)


class Shuffle(BytesToBytes):
    """The bound codec: NumPy's copying, because the library's own holds the interpreter lock."""

    def __init__(self, size: int) -> None:
        self._size = size

    def encode(self, data: Buffer) -> Buffer:
        if len(data) % self._size:
            raise ValueError(
                f'codec "shuffle": {len(data)} bytes are no whole number of elements of '
                f"{self._size} bytes"
            )
        out = np.empty(len(data), np.uint8)
        rows, planes = _rows(data, self._size), _planes(out.data, self._size)
        for position in range(self._size):
            planes[position] = rows[:, position]
        return out.data

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        out = np.empty(len(data) if size is None else size, np.uint8).data
        self.decode_into(data, out)
        return out

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        if len(data) != out.nbytes:
            raise size_error(len(data), out.nbytes)
        if len(data) % self._size:
            raise DataLossError(
                f"shuffle: {len(data)} bytes are no whole number of elements of {self._size} bytes"
            )
        rows, planes = _rows(out, self._size), _planes(data, self._size)
        # Plane by plane: NumPy's own way through a transposition is up to six times slower.
        for position in range(self._size):
            rows[:, position] = planes[position]

    def encoded_size(self, size: int | None) -> int | None:
        return size


def _rows(data: Buffer, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """One row for each element."""
    return np.ndarray((len(data) // size, size), np.uint8, data)


def _planes(data: Buffer, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """One row for each byte of an element."""
    return np.ndarray((size, len(data) // size), np.uint8, data)


@codec("base64", family="zarr")
class Base64Spec(BytesToBytesSpec):
    """Asked: `base64`: four letters for three bytes. It has no members."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return _Base64()


class _Base64(BytesToBytes):
    """The bound codec `base64`; the library's own takes letters for data that are none."""

    def encode(self, data: Buffer) -> bytes:
        return binascii.b2a_base64(data, newline=False)

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        try:
            decoded = binascii.a2b_base64(data, strict_mode=True)
        except binascii.Error as error:
            raise DataLossError(f"corrupt base64 data: {error}") from error
        return self.checked(decoded, size)

    def encoded_size(self, size: int | None) -> int | None:
        return None if size is None else -(-size // 3) * 4


@codec("raw", family="n5")
class RawSpec(BytesToBytesSpec):
    """Asked: `raw`. It has no members."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return _Raw()


class _Raw(BytesToBytes):
    """The bound codec `raw`; where the size is known, any other one is damage."""

    def encode(self, data: Buffer) -> Buffer:
        return data

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        if size is not None and len(data) != size:
            raise size_error(len(data), size)
        return data

    def encoded_size(self, size: int | None) -> int | None:
        return size
