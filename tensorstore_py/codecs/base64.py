"""Base64: bytes as text, four letters for three bytes.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/base64.html
Names: `base64` (zarr).
Example: `{"id": "base64"}`.
Limits: it makes chunks larger; of use only where stored values must be text.
"""

from __future__ import annotations

import binascii

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    codec,
    size_error,
)

__all__ = ["Base64", "Base64Spec"]


@codec("base64", family="zarr")
class Base64Spec(BytesToBytesSpec):
    """Asked: `base64`. It has no members.

    Example:
        >>> Base64Spec().to_json()
        {}
    """

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Base64()


class Base64(BytesToBytes):
    """The bound codec."""

    def encode(self, data: Buffer) -> bytes:
        return binascii.b2a_base64(data, newline=False)

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        try:
            decoded = binascii.a2b_base64(data, strict_mode=True)
        except binascii.Error as error:
            raise DataLossError(f"corrupt base64 data: {error}") from error
        if size is not None and len(decoded) != size:
            raise size_error(len(decoded), size)
        return decoded

    def encoded_size(self, size: int | None) -> int | None:
        return None if size is None else -(-size // 3) * 4
