"""Variable-length byte strings.

Specification: https://numcodecs.readthedocs.io/en/stable/other/vlen.html
Names: `vlen-bytes` (zarr).
Example: `{"id": "vlen-bytes"}`.
Limits: 4 GiB a byte string, 2**32 of them a chunk. The library holds the interpreter lock, as
whatever makes Python objects must.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    CountedItems,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["VLenBytesV2Spec"]


@codec("vlen-bytes", family="zarr")
class VLenBytesV2Spec(ArrayToBytesSpec):
    """Asked: `vlen-bytes`, the way version 2 writes it. It has no members.

    Example:
        >>> VLenBytesV2Spec().object_type
        'string'
    """

    @property
    def object_type(self) -> str:
        return "string"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        if not chunk.dtype.hasobject:
            raise SpecError(
                f'codec "vlen-bytes" stores byte strings, but the chunk holds {chunk.dtype}'
            )
        return CountedItems("vlen-bytes", chunk, *_library())


@cache
def _library() -> tuple[Callable[[Array], Buffer], Callable[[Buffer], Array]]:
    from numcodecs.vlen import VLenBytes  # noqa: PLC0415 - takes 60 ms

    library = VLenBytes()
    return library.encode, library.decode
