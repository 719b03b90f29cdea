"""Bitround: numbers with their last bits rounded away, so that they compress.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/bitround.html and, for version 3,
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/bitround
Example: `{"id": "bitround", "keepbits": 7}`,
`{"name": "bitround", "configuration": {"keepbits": 7}}`.
Limits: lossy when written, does nothing when read. Version 2 has floats of 16, 32 and 64 bits only.
In version 3 integers keep bits from the highest that is set, which is the sign of a negative one.
"""

from __future__ import annotations

from typing import Annotated

import ml_dtypes
import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ChunkType,
    Level,
    codec,
)

__all__ = ["BitRound", "BitRoundIntegers", "BitRoundSpec", "BitRoundV2Spec"]

#: Bits of the mantissa by the size of a float.
_MANTISSA = {2: 10, 4: 23, 8: 52}
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@codec("bitround", family="zarr3")
class BitRoundSpec(ArrayToArraySpec):
    """Asked: `bitround`, the way version 3 writes it.

    Attributes:
        keepbits: bits of the mantissa to keep, or of an integer from the highest that is set.

    Example:
        >>> BitRoundSpec.parse({"keepbits": 7}).to_json()
        {'keepbits': 7}
    """

    keepbits: Annotated[int, Level(1, 64)]

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        dtype = chunk.dtype
        if dtype == _BFLOAT16:
            return BitRound(chunk, dtype, 7, self.keepbits)
        if dtype.isbuiltin == 1 and dtype.kind in "fc":
            part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
            return BitRound(chunk, part, _MANTISSA[part.itemsize], self.keepbits)
        if dtype.kind in "iumM":
            return BitRoundIntegers(chunk, self.keepbits)
        raise SpecError(f'codec "bitround" rounds numbers and times, not {dtype}')


@codec("bitround", family="zarr")
@codec("numcodecs.bitround", family="zarr3")
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
        dtype = chunk.dtype
        mantissa = _MANTISSA.get(dtype.itemsize, 0) if dtype.kind == "f" else 0
        if not mantissa or dtype.isbuiltin == 2:
            raise SpecError(f"expected floating-point elements of 2, 4 or 8 bytes, not {dtype}")
        if self.keepbits > mantissa:
            raise SpecError(
                f"expected at most {mantissa}, which is all that {dtype} has, "
                f"but found {self.keepbits}",
                ("keepbits",),
            )
        return BitRound(chunk, dtype, mantissa, self.keepbits)


class BitRound(ArrayToArray):
    """The bound codec for floats.

    `part` is the type of one float (of either part of a complex one), `mantissa` its bits there.
    """

    def __init__(
        self, chunk: ChunkType, part: np.dtype[np.generic], mantissa: int, keepbits: int
    ) -> None:
        self._part = part
        # In the byte order of the floats, which version 2 may have either way.
        self._bits = np.dtype("u2" if part == _BFLOAT16 else part.str.replace("f", "u"))
        self._dropped = max(mantissa - keepbits, 0)
        # Elements that are missing are not rounded by anybody.
        self.encoded = chunk

    def encode(self, array: Array) -> Array:
        if not self._dropped:
            return array
        values = np.array(array, order="C").reshape(-1)
        bits = values.view(self._bits)
        finite = np.isfinite(values.view(self._part))
        dropped = bits.dtype.type(self._dropped)
        half = bits.dtype.type((1 << (self._dropped - 1)) - 1)
        # Ties go to the even neighbour; a carry runs into the exponent, as rounding up must.
        rounded = bits + (((bits >> dropped) & bits.dtype.type(1)) + half)
        rounded &= ~bits.dtype.type((1 << self._dropped) - 1)
        # What is no number has no bits to spare: one that is not a number stays so.
        np.copyto(bits, rounded, where=finite)
        return values.reshape(array.shape)

    def decode(self, array: Array) -> Array:
        return array

    def view_of(self, out: Array) -> Array | None:
        return out


class BitRoundIntegers(ArrayToArray):
    """The bound codec for integers, and for times as the integers that they are stored as."""

    def __init__(self, chunk: ChunkType, keepbits: int) -> None:
        self.encoded = chunk
        self._keepbits = keepbits
        self._bits = np.dtype(f"u{chunk.dtype.itemsize}")

    def encode(self, array: Array) -> Array:
        bits = np.array(array, order="C").reshape(-1).view(self._bits)
        one = self._bits.type(1)
        # Without the bit below the highest one nothing can round up to the next power of two.
        exponents = np.frexp((bits & ~(bits >> one)).astype(np.float64))[1]
        dropped = np.maximum(exponents - self._keepbits, 0).astype(self._bits)
        half = (one << np.maximum(dropped, one) - one) - one
        raised = bits + np.where(dropped > 0, ((bits >> dropped) & one) + half, 0)
        raised = np.where(raised < bits, np.iinfo(self._bits).max, raised).astype(self._bits)
        rounded = (raised >> dropped) << dropped
        out: Array = rounded.view(self.encoded.dtype).reshape(array.shape)
        return out

    def decode(self, array: Array) -> Array:
        return array

    def view_of(self, out: Array) -> Array | None:
        return out
