"""Raw: no compression, said in so many words.

Specification: https://github.com/saalfeldlab/n5#file-system-specification
Names: `raw` (n5).
Example: `{"type": "raw"}`.
Limits: none; where the size is known, any other one is damage.
"""

from __future__ import annotations

from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    codec,
    size_error,
)

__all__ = ["Raw", "RawSpec"]


@codec("raw", family="n5")
class RawSpec(BytesToBytesSpec):
    """Asked: `raw`.

    Example:
        >>> RawSpec.parse({}).to_json()
        {}
    """

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Raw()


class Raw(BytesToBytes):
    """The bound codec."""

    def encode(self, data: Buffer) -> Buffer:
        return data

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        if size is not None and len(data) != size:
            raise size_error(len(data), size)
        return data

    def encoded_size(self, size: int | None) -> int | None:
        return size
