"""Bitround: floats with the last bits of their mantissa rounded away, so that they compress.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/bitround.html
Names: `bitround` (zarr), `numcodecs.bitround` (zarr3).
Example: `{"id": "bitround", "keepbits": 7}`.
Limits: lossy when written, does nothing when read; 16-, 32- and 64-bit floats.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ChunkType,
    Level,
    codec,
)

__all__ = ["BitRound", "BitRoundV2Spec", "NumcodecsBitRoundSpec"]

#: Bits of the mantissa by the size of a float.
_MANTISSA = {2: 10, 4: 23, 8: 52}


@codec("bitround", family="zarr")
class BitRoundV2Spec(ArrayToArraySpec):
    """Asked: `bitround`, the way version 2 writes it.

    Attributes:
        keepbits: bits of the mantissa to keep.

    Example:
        >>> BitRoundV2Spec.parse({"keepbits": 7}).to_json()
        {'keepbits': 7}
    """

    keepbits: Annotated[int, Level(0, 52)]

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        return BitRound(chunk, self.keepbits)


@codec("numcodecs.bitround", family="zarr3")
class NumcodecsBitRoundSpec(BitRoundV2Spec):
    """Asked: `numcodecs.bitround`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsBitRoundSpec.codec_id
        'numcodecs.bitround'
    """


class BitRound(ArrayToArray):
    """The bound codec.

    Args:
        chunk: what is rounded.
        keepbits: as in the spec.

    Raises:
        SpecError: the chunk holds no such floats, or they have fewer bits than are kept.
    """

    def __init__(self, chunk: ChunkType, keepbits: int) -> None:
        self.encoded = chunk
        mantissa = _MANTISSA.get(chunk.dtype.itemsize, 0) if chunk.dtype.kind == "f" else 0
        if not mantissa or chunk.dtype.isbuiltin == 2:
            raise SpecError(
                f"expected floating-point elements of 2, 4 or 8 bytes, but they are {chunk.dtype}"
            )
        if keepbits > mantissa:
            raise SpecError(
                f"expected at most {mantissa}, which is all that {chunk.dtype} has, "
                f"but found {keepbits}",
                ("keepbits",),
            )
        self._dropped = mantissa - keepbits
        self._bits = np.dtype(chunk.dtype.str.replace("f", "u"))

    def encode(self, array: Array) -> Array:
        if not self._dropped:
            return array
        bits = np.array(array, order="C").view(self._bits)
        one = bits.dtype.type(1)
        dropped = bits.dtype.type(self._dropped)
        half = bits.dtype.type((1 << (self._dropped - 1)) - 1)
        # Ties go to the even neighbour; a carry runs into the exponent, as rounding up must.
        bits += ((bits >> dropped) & one) + half
        bits &= ~bits.dtype.type((1 << self._dropped) - 1)
        return bits.view(self.encoded.dtype)

    def decode(self, array: Array) -> Array:
        return array

    def view_of(self, out: Array) -> Array | None:
        return out
