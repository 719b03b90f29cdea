"""Delta: each element as its difference from the one before.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/delta.html
Names: `delta` (zarr), `numcodecs.delta` (zarr3).
Example: `{"id": "delta", "dtype": "<i4", "astype": "<i2"}`.
Limits: numbers and time differences only; nothing checks whether `astype` can hold every
difference and the first element, so values that do not fit come back changed.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ChunkType,
    ElementType,
    codec,
    flat_view,
    model_validator,
    native_type,
    recast,
    viewed_as,
)

__all__ = ["Delta", "DeltaSpec", "NumcodecsDeltaSpec"]


@codec("delta", family="zarr")
class DeltaSpec(ArrayToArraySpec):
    """Asked: `delta`.

    Attributes:
        dtype: the elements as they are in the array.
        astype: the differences as they are stored; `dtype` by default.

    Example:
        >>> DeltaSpec.parse({"dtype": "i4"}).to_json()
        {'astype': '<i4', 'dtype': '<i4'}
    """

    dtype: ElementType
    astype: ElementType | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        # Specs that mean the same must be equal.
        return self if self.astype is not None else self.replace(astype=self.dtype)

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        return _bound(chunk, np.dtype(self.dtype), np.dtype(self.astype or self.dtype))


@codec("numcodecs.delta", family="zarr3")
class NumcodecsDeltaSpec(ArrayToArraySpec):
    """Asked: `numcodecs.delta`, which is how version 3 writes the codec of version 2.

    Attributes:
        dtype: the elements as they are in the array; the array's own type by default.
        astype: the differences as they are stored; `dtype` by default.

    Example:
        >>> NumcodecsDeltaSpec.parse({"dtype": "int32"}).to_json()
        {'dtype': '<i4'}
    """

    dtype: ElementType | None = None
    astype: ElementType | None = None

    def resolved(self, chunk: ChunkType) -> NumcodecsDeltaSpec:
        return self.replace(dtype=self.dtype or native_type(None, chunk).str)

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        dtype = native_type(self.dtype, chunk)
        return _bound(chunk, dtype, native_type(self.astype or dtype.str, chunk))


def _bound(
    chunk: ChunkType, dtype: np.dtype[np.generic], stored: np.dtype[np.generic]
) -> ArrayToArray:
    for member, named in (("dtype", dtype), ("astype", stored)):
        if named.kind not in "biufcm":
            raise SpecError("expected a type of numbers", (member,))
    return Delta(viewed_as(chunk, dtype), stored)


class Delta(ArrayToArray):
    """The bound codec.

    Args:
        decoded: the chunk in terms of the codec's own element type.
        stored: type of the differences.
    """

    def __init__(self, decoded: ChunkType, stored: np.dtype[np.generic]) -> None:
        self._decoded = decoded
        self.encoded = recast(decoded, stored)

    def encode(self, array: Array) -> Array:
        flat = flat_view(array, self._decoded.dtype)
        out = np.empty(flat.shape, self.encoded.dtype)
        with np.errstate(all="ignore"):
            out[:1] = flat[:1]
            out[1:] = np.diff(flat)
        return out.reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        out = np.empty(array.size, self._decoded.dtype)
        with np.errstate(all="ignore"):
            np.cumsum(array.reshape(-1), out=out)
        return out.reshape(self._decoded.shape)
