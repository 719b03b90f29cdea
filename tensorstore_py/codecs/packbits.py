"""Packbits: numbers in as few bits as they have.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits
Example: `{"name": "packbits", "configuration": {"first_bit": 0, "last_bit": 11}}`.
Limits: the lowest bit comes first. The `packbits` of version 2 is another codec, and numcodecs'.
"""

from __future__ import annotations

import sys
from math import prod
from typing import Annotated, ClassVar, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    Level,
    codec,
    size_error,
)

__all__ = ["PackBitsSpec", "PackedBits"]

_BIT = Annotated[int, Level(0, 63)]

#: Bits of the types that have fewer than their bytes in memory.
_FEWER_BITS: dict[np.dtype[np.generic], int] = {
    np.dtype(np.bool_): 1,
    **{np.dtype(each): 2 for each in (ml_dtypes.int2, ml_dtypes.uint2)},
    **{np.dtype(each): 4 for each in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn)},
    **{np.dtype(each): 6 for each in (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)},
}
_SIGNED = (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4))


@codec("packbits", family="zarr3")
class PackBitsSpec(ArrayToBytesSpec):
    """Asked: `packbits`.

    Attributes:
        padding_encoding: where the number of bits that fill up the last byte is stored.
        first_bit: the lowest bit of an element that is stored.
        last_bit: the highest one; the highest of all by default. For complex numbers both mean the
            bits of either part.

    Example:
        >>> PackBitsSpec.parse({"last_bit": 11, "first_bit": None}).to_json()
        {'last_bit': 11}
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"first_bit", "last_bit"})

    padding_encoding: Literal["first_byte", "last_byte", "none"] = "none"
    first_bit: _BIT | None = None
    last_bit: _BIT | None = None

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        count = _bits(chunk.dtype)
        if not count:
            raise SpecError(
                f'codec "packbits" stores booleans and numbers of a fixed size, not {chunk.dtype}'
            )
        last = count - 1 if self.last_bit is None else self.last_bit
        first = self.first_bit or 0
        if last >= count:
            raise SpecError(
                f"expected at most {count - 1}, the last bit of {chunk.dtype}, but found {last}",
                ("last_bit",),
            )
        if first > last:
            raise SpecError(
                f"expected at most {last}, the last bit that is stored, but found {first}",
                ("first_bit",),
            )
        return PackedBits(chunk, first, last, self.padding_encoding)


def _bits(dtype: np.dtype[np.generic]) -> int:
    """How many bits a number of that type has, or one part of a complex one; 0 if it is none."""
    if dtype.kind == "c":
        return 4 * dtype.itemsize
    if dtype.isbuiltin == 2 or dtype.kind in "biuf":
        return _FEWER_BITS.get(dtype, 8 * dtype.itemsize)
    return 0


class PackedBits(ArrayToBytes):
    """The bound codec of version 3; stores the bits from `first` to `last`."""

    encoded_size: int

    def __init__(self, chunk: ChunkType, first: int, last: int, padding: str) -> None:
        self._chunk = chunk
        parts = 2 if chunk.dtype.kind == "c" else 1
        self._rows = prod(chunk.shape) * parts
        self._row = 8 * chunk.dtype.itemsize // parts
        self._stored = slice(first, last + 1)
        self._signed = chunk.dtype.kind == "i" or chunk.dtype in _SIGNED
        bits = self._rows * (last + 1 - first)
        self._fill = -bits % 8
        self._padding = padding
        self.encoded_size = (bits + 7) // 8 + (padding != "none")

    def encode(self, array: Array) -> bytes:
        memory = self._little_endian(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        bits = np.unpackbits(memory, bitorder="little").reshape(self._rows, self._row)
        packed = np.packbits(bits[:, self._stored], bitorder="little").tobytes()
        if self._padding == "none":
            return packed
        fill = bytes([self._fill])
        return fill + packed if self._padding == "first_byte" else packed + fill

    def decode(self, data: Buffer) -> Array:
        if len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        packed = np.frombuffer(data, np.uint8)
        if self._padding != "none":
            at = 0 if self._padding == "first_byte" else -1
            if packed[at] != self._fill:
                raise DataLossError(
                    f"packbits: {self._fill} bits fill up the last byte, but the {self._padding} "
                    f"says {packed[at]}"
                )
            packed = packed[1:] if at == 0 else packed[:-1]
        width = self._stored.stop - self._stored.start
        numbers = np.unpackbits(packed, count=self._rows * width, bitorder="little")
        bits = np.zeros((self._rows, self._row), np.uint8)
        bits[:, self._stored] = numbers.reshape(self._rows, width)
        if self._signed:
            bits[:, self._stored.stop :] = bits[:, self._stored.stop - 1 : self._stored.stop]
        memory = self._little_endian(np.packbits(bits, bitorder="little"))
        return memory.view(self._chunk.dtype).reshape(self._chunk.shape)

    def _little_endian(self, memory: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bytes of numbers in memory, in the order in which they are counted here, or back."""
        if sys.byteorder == "little":
            return memory
        return np.ascontiguousarray(memory.reshape(-1, self._row // 8)[:, ::-1]).reshape(-1)
