"""Packbits: eight booleans in a byte.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/packbits.html
Names: `packbits` (zarr), `numcodecs.packbits` (zarr3).
Example: `{"id": "packbits"}`.
Limits: elements of one byte, of which it is stored whether they are 0. The first byte stored is the
number of bits that fill up the last one.
"""

from __future__ import annotations

import numpy as np

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ChunkType,
    codec,
    flat_view,
    viewed_as,
)

__all__ = ["NumcodecsPackBitsSpec", "PackBits", "PackBitsV2Spec"]

_BOOL = np.dtype(np.bool_)
_BYTE = np.dtype(np.uint8)


@codec("packbits", family="zarr")
class PackBitsV2Spec(ArrayToArraySpec):
    """Asked: `packbits`, the way version 2 writes it. It has no members.

    Example:
        >>> PackBitsV2Spec().to_json()
        {}
    """

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        return PackBits(viewed_as(chunk, _BOOL))


@codec("numcodecs.packbits", family="zarr3")
class NumcodecsPackBitsSpec(PackBitsV2Spec):
    """Asked: `numcodecs.packbits`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsPackBitsSpec.codec_id
        'numcodecs.packbits'
    """


class PackBits(ArrayToArray):
    """The bound codec.

    Args:
        decoded: the chunk as booleans.
    """

    def __init__(self, decoded: ChunkType) -> None:
        self._decoded = decoded
        self._count = decoded.size_bytes
        size = 1 + (self._count + 7) // 8
        self.encoded = ChunkType((size,), _BYTE, np.zeros((), _BYTE))

    def encode(self, array: Array) -> Array:
        out = np.empty(self.encoded.shape, _BYTE)
        out[0] = -self._count % 8
        out[1:] = np.packbits(flat_view(array, _BOOL) != 0)
        return out

    def decode(self, array: Array) -> Array:
        bits = array.view(_BYTE)
        if bits[0] != -self._count % 8:
            raise DataLossError(
                f"packbits: the chunk's {self._count} bits leave {-self._count % 8} bits of the "
                f"last byte, but the first byte says {bits[0]}"
            )
        unpacked = np.unpackbits(bits[1:], count=self._count)
        return unpacked.view(_BOOL).reshape(self._decoded.shape)
