"""Astype: elements stored as another type.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/astype.html
Names: `astype` (zarr).
Example: `{"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f8"}`.
Limits: lossy where the stored type is narrower; nothing checks whether values fit.
"""

from __future__ import annotations

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ChunkType,
    ElementType,
    codec,
    flat_view,
    viewed_as,
)

__all__ = ["AsType", "AsTypeSpec"]


@codec("astype", family="zarr")
class AsTypeSpec(ArrayToArraySpec):
    """Asked: `astype`.

    Attributes:
        encode_dtype: the elements as they are stored.
        decode_dtype: the elements as they are in the array.

    Example:
        >>> AsTypeSpec.parse({"encode_dtype": "f4", "decode_dtype": "f8"}).to_json()
        {'decode_dtype': '<f8', 'encode_dtype': '<f4'}
    """

    encode_dtype: ElementType
    decode_dtype: ElementType

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        stored = np.dtype(self.encode_dtype)
        decoded = viewed_as(chunk, np.dtype(self.decode_dtype))
        for member, dtype in (("encode_dtype", stored), ("decode_dtype", decoded.dtype)):
            if dtype.kind == "V":
                raise SpecError(f"expected a type that can be converted, not {dtype}", (member,))
        return AsType(decoded, stored)


class AsType(ArrayToArray):
    """The bound codec.

    Args:
        decoded: the chunk in terms of `decode_dtype`.
        stored: the other type.
    """

    def __init__(self, decoded: ChunkType, stored: np.dtype[np.generic]) -> None:
        self._decoded = decoded
        self.encoded = ChunkType(decoded.shape, stored, np.zeros((), stored))

    def encode(self, array: Array) -> Array:
        flat = flat_view(array, self._decoded.dtype)
        with np.errstate(all="ignore"):
            return flat.astype(self.encoded.dtype).reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        try:
            with np.errstate(all="ignore"):
                return array.astype(self._decoded.dtype).reshape(self._decoded.shape)
        except ValueError as error:  # text that is no number
            raise DataLossError(f"astype: {error}") from error
