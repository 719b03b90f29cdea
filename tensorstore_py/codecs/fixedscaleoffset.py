"""Fixed scale and offset: `round((x - offset) * scale)`, so that floats are stored as integers.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/fixedscaleoffset.html
Names: `fixedscaleoffset` (zarr), `numcodecs.fixedscaleoffset` (zarr3).
Example: `{"id": "fixedscaleoffset", "dtype": "<f8", "astype": "<u2", "offset": 1000, "scale": 10}`.
Limits: lossy; nothing checks whether `astype` can hold the scaled values, and NaN has no integer.
"""

from __future__ import annotations

from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

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

__all__ = ["FixedScaleOffset", "FixedScaleOffsetSpec", "NumcodecsFixedScaleOffsetSpec"]


@codec("fixedscaleoffset", family="zarr")
class FixedScaleOffsetSpec(ArrayToArraySpec):
    """Asked: `fixedscaleoffset`.

    Attributes:
        offset: is subtracted first.
        scale: multiplies what is left; not 0.
        dtype: the elements as they are in the array.
        astype: the rounded values as they are stored; `dtype` by default.

    Example:
        >>> FixedScaleOffsetSpec.parse({"offset": 5, "scale": 10, "dtype": "f8"}).to_json()
        {'astype': '<f8', 'dtype': '<f8', 'offset': 5, 'scale': 10}
    """

    offset: int | float
    scale: int | float
    dtype: ElementType
    astype: ElementType | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        # Specs that mean the same must be equal.
        return self if self.astype is not None else self.replace(astype=self.dtype)

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        decoded = viewed_as(chunk, np.dtype(self.dtype))
        return _bound(decoded, np.dtype(self.astype or self.dtype), self.offset, self.scale)


@codec("numcodecs.fixedscaleoffset", family="zarr3")
class NumcodecsFixedScaleOffsetSpec(ArrayToArraySpec):
    """Asked: `numcodecs.fixedscaleoffset`, which is how version 3 writes the codec of version 2.

    Attributes:
        offset: is subtracted first.
        scale: multiplies what is left; not 0.
        dtype: the elements as they are in the array; the array's own type by default.
        astype: the rounded values as they are stored; `dtype` by default.

    Example:
        >>> NumcodecsFixedScaleOffsetSpec.parse({"offset": 5, "scale": 10}).to_json()
        {'offset': 5, 'scale': 10}
    """

    offset: int | float
    scale: int | float
    dtype: ElementType | None = None
    astype: ElementType | None = None

    def resolved(self, chunk: ChunkType) -> NumcodecsFixedScaleOffsetSpec:
        return self.replace(dtype=self.dtype or native_type(None, chunk).str)

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        dtype = native_type(self.dtype, chunk)
        stored = native_type(self.astype or dtype.str, chunk)
        return _bound(viewed_as(chunk, dtype), stored, self.offset, self.scale)


def _bound(
    decoded: ChunkType, stored: np.dtype[np.generic], offset: float, scale: float
) -> ArrayToArray:
    if not scale:
        raise SpecError("expected a number other than 0", ("scale",))
    bound = FixedScaleOffset(decoded, stored, offset, scale)
    one = recast(ChunkType((1,), decoded.dtype, decoded.fill_value), decoded.dtype)
    probe = FixedScaleOffset(one, stored, offset, scale)
    try:
        probe.decode(probe.encode(np.zeros(1, decoded.dtype)))
    except (TypeError, OverflowError) as error:
        raise SpecError(
            f"offset {offset} and scale {scale} are not possible for {decoded.dtype} elements: "
            f"{error}"
        ) from None
    return bound


class FixedScaleOffset(ArrayToArray):
    """The bound codec.

    Args:
        decoded: the chunk in terms of the codec's own element type.
        stored: type of the rounded values.
        offset: as in the spec.
        scale: as in the spec.
    """

    def __init__(
        self,
        decoded: ChunkType,
        stored: np.dtype[np.generic],
        offset: float,
        scale: float,
    ) -> None:
        self._decoded = decoded
        self._offset = offset
        self._scale = scale
        self.encoded = recast(decoded, stored)

    def encode(self, array: Array) -> Array:
        values = _numbers(flat_view(array, self._decoded.dtype))
        with np.errstate(all="ignore"):
            scaled = np.around((values - self._offset) * self._scale)
            return scaled.astype(self.encoded.dtype).reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        values = _numbers(array)
        with np.errstate(all="ignore"):
            restored = (values / self._scale) + self._offset
            return restored.astype(self._decoded.dtype).reshape(self._decoded.shape)


def _numbers(array: Array) -> NDArray[np.float64]:
    """The array, for the type checker: binding made sure that it can be computed with."""
    return cast("NDArray[np.float64]", array)
