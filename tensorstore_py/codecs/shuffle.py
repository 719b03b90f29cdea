"""Shuffle: the first bytes of all elements, then the second bytes, and so on.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/shuffle.html
Names: `shuffle` (zarr), `numcodecs.shuffle` (zarr3).
Example: `{"id": "shuffle", "elementsize": 4}`.
Limits: the data must be a whole number of elements. It is NumPy's copying, because the library's
own holds the interpreter lock while it works.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Level,
    codec,
    size_error,
)

__all__ = ["NumcodecsShuffleSpec", "Shuffle", "ShuffleSpec"]


@codec("shuffle", family="zarr")
class ShuffleSpec(BytesToBytesSpec):
    """Asked: `shuffle`.

    Attributes:
        elementsize: bytes of an element; 0 and 1 change nothing.

    Example:
        >>> ShuffleSpec.parse({}).to_json(include_defaults=True)
        {'elementsize': 4}
    """

    elementsize: Annotated[int, Level(0, 2**31 - 1)] = 4

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return _bound(chunk, self.elementsize)


@codec("numcodecs.shuffle", family="zarr3")
class NumcodecsShuffleSpec(BytesToBytesSpec):
    """Asked: `numcodecs.shuffle`, which is how version 3 writes the codec of version 2.

    Attributes:
        elementsize: bytes of an element; the size of the array's elements by default.

    Example:
        >>> NumcodecsShuffleSpec.parse({"elementsize": None}).to_json()
        {}
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"elementsize"})

    elementsize: Annotated[int, Level(0, 2**31 - 1)] | None = None

    def resolved(self, chunk: ChunkType) -> NumcodecsShuffleSpec:
        size = chunk.dtype.itemsize if self.elementsize is None else self.elementsize
        if self.elementsize is None and not size:
            raise SpecError("the size of an element is not known here: state it", ("elementsize",))
        return self.replace(elementsize=size)

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return _bound(chunk, self.resolved(chunk).elementsize or 0)


def _bound(chunk: ChunkType, elementsize: int) -> BytesToBytes:
    size = max(elementsize, 1)
    if chunk.size_bytes % size:
        raise SpecError(
            f"a chunk of {chunk.size_bytes} bytes is no whole number of elements of {size}",
            ("elementsize",),
        )
    return Shuffle(size)


class Shuffle(BytesToBytes):
    """The bound codec.

    Args:
        size: bytes of an element.
    """

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
