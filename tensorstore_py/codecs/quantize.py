"""Quantize: floats rounded to a number of decimal digits, by a power of two for compression's sake.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/quantize.html
Names: `quantize` (zarr), `numcodecs.quantize` (zarr3).
Example: `{"id": "quantize", "digits": 3, "dtype": "<f8", "astype": "<f4"}`.
Limits: lossy when written; floating-point elements only.
"""

from __future__ import annotations

import math
from typing import Annotated, Self

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    AfterValidator,
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ChunkType,
    ElementType,
    Level,
    codec,
    flat_view,
    model_validator,
    native_type,
    recast,
    viewed_as,
)

__all__ = ["NumcodecsQuantizeSpec", "Quantize", "QuantizeSpec"]


def _float(text: str) -> str:
    if np.dtype(text).kind != "f":
        raise SpecError(f'expected a floating-point type such as "<f4", but found "{text}"')
    return text


FloatType = Annotated[ElementType, AfterValidator(_float)]


@codec("quantize", family="zarr")
class QuantizeSpec(ArrayToArraySpec):
    """Asked: `quantize`.

    Attributes:
        digits: decimal digits behind the point that are kept; negative ones stand before it.
        dtype: the elements as they are in the array.
        astype: the elements as they are stored; `dtype` by default.

    Example:
        >>> QuantizeSpec.parse({"digits": 2, "dtype": "f4"}).to_json()
        {'astype': '<f4', 'digits': 2, 'dtype': '<f4'}
    """

    digits: Annotated[int, Level(-300, 300)]
    dtype: FloatType
    astype: FloatType | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        # Specs that mean the same must be equal.
        return self if self.astype is not None else self.replace(astype=self.dtype)

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        decoded = viewed_as(chunk, np.dtype(self.dtype))
        return Quantize(decoded, np.dtype(self.astype or self.dtype), self.digits)


@codec("numcodecs.quantize", family="zarr3")
class NumcodecsQuantizeSpec(ArrayToArraySpec):
    """Asked: `numcodecs.quantize`, which is how version 3 writes the codec of version 2.

    Attributes:
        digits: decimal digits behind the point that are kept; negative ones stand before it.
        dtype: the elements as they are in the array; the array's own type by default.
        astype: the elements as they are stored; `dtype` by default.

    Example:
        >>> NumcodecsQuantizeSpec.parse({"digits": 2}).to_json()
        {'digits': 2}
    """

    digits: Annotated[int, Level(-300, 300)]
    dtype: FloatType | None = None
    astype: FloatType | None = None

    def resolved(self, chunk: ChunkType) -> NumcodecsQuantizeSpec:
        return self.replace(dtype=self.dtype or _float(native_type(None, chunk).str))

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        dtype = native_type(self.resolved(chunk).dtype, chunk)
        stored = native_type(self.astype or dtype.str, chunk)
        return Quantize(viewed_as(chunk, dtype), stored, self.digits)


class Quantize(ArrayToArray):
    """The bound codec.

    Args:
        decoded: the chunk in terms of the codec's own element type.
        stored: type of the rounded values.
        digits: as in the spec.
    """

    def __init__(self, decoded: ChunkType, stored: np.dtype[np.generic], digits: int) -> None:
        self._decoded = decoded
        self._scale = power_of_two(digits)
        self.encoded = recast(decoded, stored)

    def encode(self, array: Array) -> Array:
        values = flat_view(array, self._decoded.dtype).astype(self._decoded.dtype)
        with np.errstate(all="ignore"):
            rounded = np.around(np.multiply(values, self._scale)) / self._scale
            return rounded.astype(self.encoded.dtype).reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        with np.errstate(all="ignore"):
            return array.astype(self._decoded.dtype).reshape(self._decoded.shape)


def power_of_two(digits: int) -> float:
    """The least power of two that tells numbers apart which differ in that decimal digit.

    Example:
        >>> power_of_two(1), power_of_two(3)
        (16.0, 1024.0)
    """
    exponent = math.log10(10.0**-digits)
    whole = math.floor(exponent) if exponent < 0 else math.ceil(exponent)
    return float(2.0 ** math.ceil(math.log2(10.0**-whole)))
