"""Astype: elements stored as another type.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/astype.html
Names: `astype` (zarr), `numcodecs.astype` (zarr3).
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
    native_type,
    recast,
    viewed_as,
)

__all__ = ["AsType", "AsTypeSpec", "NumcodecsAsTypeSpec"]


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
        return _bound(chunk, np.dtype(self.encode_dtype), np.dtype(self.decode_dtype))


@codec("numcodecs.astype", family="zarr3")
class NumcodecsAsTypeSpec(ArrayToArraySpec):
    """Asked: `numcodecs.astype`, which is how version 3 writes the codec of version 2.

    Attributes:
        encode_dtype: the elements as they are stored.
        decode_dtype: the elements as they are in the array; the array's own type by default.

    Example:
        >>> NumcodecsAsTypeSpec.parse({"encode_dtype": "float32"}).to_json()
        {'encode_dtype': '<f4'}
    """

    encode_dtype: ElementType
    decode_dtype: ElementType | None = None

    def resolved(self, chunk: ChunkType) -> NumcodecsAsTypeSpec:
        return self.replace(decode_dtype=self.decode_dtype or native_type(None, chunk).str)

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        encode_dtype = native_type(self.encode_dtype, chunk)
        return _bound(chunk, encode_dtype, native_type(self.decode_dtype, chunk))


def _bound(
    chunk: ChunkType, stored: np.dtype[np.generic], dtype: np.dtype[np.generic]
) -> ArrayToArray:
    decoded = viewed_as(chunk, dtype)
    for member, named in (("encode_dtype", stored), ("decode_dtype", dtype)):
        if named.kind == "V":
            raise SpecError(f"expected a type that can be converted, not {named}", (member,))
    return AsType(decoded, stored)


class AsType(ArrayToArray):
    """The bound codec.

    Args:
        decoded: the chunk in terms of `decode_dtype`.
        stored: the other type.
    """

    def __init__(self, decoded: ChunkType, stored: np.dtype[np.generic]) -> None:
        self._decoded = decoded
        self.encoded = recast(decoded, stored)

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
