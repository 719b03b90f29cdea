"""Scale and offset: `(x - offset) * scale` is stored, in the array's own type.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset
Example: `{"name": "scale_offset", "configuration": {"offset": 5, "scale": 0.1}}`; with `cast_value`
behind it, floats are stored as small integers.
Limits: integers and real floats. A number that the type cannot hold on the way is an error; so is
an integer that was stored and is no multiple of the scale.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.codecs.exact_numbers.arithmetic import (
    UnrepresentableError,
    cast_numbers,
    integer_bounds,
)
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ChunkType,
    codec,
    dtype,
    parse_number,
)

__all__ = ["ScaleOffset", "ScaleOffsetSpec"]


@codec("scale_offset", family="zarr3")
class ScaleOffsetSpec(ArrayToArraySpec):
    """Asked: `scale_offset`.

    Attributes:
        offset: is subtracted first; 0 by default. A number as fill values are written.
        scale: multiplies what is left; 1 by default.

    Example:
        >>> ScaleOffsetSpec.parse({"offset": 5, "scale": 0.1}).to_json()
        {'offset': 5, 'scale': 0.1}
    """

    offset: int | float | str | None = None
    scale: int | float | str | None = None

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        try:
            data_type = dtype(chunk.dtype)
        except ValueError:
            data_type = None
        if data_type is None or data_type.kind not in "iuf":
            raise SpecError(f'codec "scale_offset" is for integers and floats, not {chunk.dtype}')
        members = []
        for member, value in (("offset", self.offset), ("scale", self.scale)):
            usual = 0 if member == "offset" else 1
            try:
                members.append(parse_number(usual if value is None else value, data_type))
            except SpecError as error:
                raise error.inside(member) from None
        offset, scale = members
        if not scale.astype(bool):
            raise SpecError("expected a number other than 0", ("scale",))
        return ScaleOffset(chunk, offset, scale)


class ScaleOffset(ArrayToArray):
    """The bound codec; offset and scale are of the chunk's type and rank 0.

    Raises:
        SpecError: the fill value cannot be stored.
    """

    def __init__(self, chunk: ChunkType, offset: Array, scale: Array) -> None:
        self._dtype = chunk.dtype
        self._bounds = integer_bounds(chunk.dtype)
        # Small types are computed with as larger ones; what they do not hold is found afterwards.
        self._computed = chunk.dtype
        if chunk.dtype.isbuiltin != 1:
            self._computed = np.dtype(np.float64 if self._bounds is None else np.int64)
        self._offset = _numbers(offset.astype(self._computed))
        self._scale = _numbers(scale.astype(self._computed))
        self._changes = bool(self._offset != 0 or self._scale != 1)
        try:
            fill_value = self._forwards(chunk.fill_value)
        except UnrepresentableError as error:
            raise SpecError(f"the fill value cannot be stored: {error}") from None
        self.encoded = ChunkType(chunk.shape, chunk.dtype, np.asarray(fill_value))

    def encode(self, array: Array) -> Array:
        try:
            return self._forwards(array)
        except UnrepresentableError as error:
            raise ValueError(f'codec "scale_offset": {error}') from None

    def decode(self, array: Array) -> Array:
        try:
            return self._backwards(array)
        except UnrepresentableError as error:
            raise DataLossError(
                f'codec "scale_offset": what is stored does not fit: {error}'
            ) from None

    def view_of(self, out: Array) -> Array | None:
        return None if self._changes else out

    def _forwards(self, array: Array) -> Array:
        if not self._changes:
            return array
        values = _numbers(array.astype(self._computed, copy=False))
        if self._bounds is None:
            with np.errstate(all="ignore"):
                moved = self._real(values, values - self._offset)
                return self._real(moved, moved * self._scale).astype(self._dtype, copy=False)
        offset, scale = int(self._offset), int(self._scale)
        for extreme in _extremes(values):
            self._check(extreme - offset, (extreme - offset) * scale)
        return ((values - self._offset) * self._scale).astype(self._dtype, copy=False)

    def _backwards(self, array: Array) -> Array:
        if not self._changes:
            return array
        values = _numbers(array.astype(self._computed, copy=False))
        if self._bounds is None:
            with np.errstate(all="ignore"):
                moved = self._real(values, values / self._scale)
                return self._real(moved, moved + self._offset).astype(self._dtype, copy=False)
        offset, scale = int(self._offset), int(self._scale)
        for extreme in _extremes(values):
            self._check(extreme // scale, extreme // scale + offset)
        whole, rest = np.divmod(values, self._scale)
        if rest.any():
            raise UnrepresentableError(f"{values[rest != 0][0]} is no multiple of {scale}")
        return (whole + self._offset).astype(self._dtype, copy=False)

    def _check(self, *numbers: int) -> None:
        assert self._bounds is not None
        low, high = self._bounds
        for number in numbers:
            if not low <= number <= high:
                raise UnrepresentableError(f"{number} is no number of type {self._dtype}")

    def _real(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """The outcome of one step, as the chunk's type holds it."""
        if self._computed != self._dtype:
            return _numbers(cast_numbers(after, self._dtype).astype(self._computed))
        beyond = np.isfinite(before) & ~np.isfinite(after)
        if beyond.any():
            raise UnrepresentableError(f"{before[beyond][0]} grows beyond {self._dtype}")
        return after


def _extremes(values: NDArray[np.float64]) -> tuple[int, ...]:
    """Least and greatest number; whatever fits these fits all between them."""
    return (int(values.min()), int(values.max())) if values.size else ()


def _numbers(array: Array) -> NDArray[np.float64]:
    """The array, for the type checker: binding made sure that it can be computed with."""
    return cast("NDArray[np.float64]", array)
