"""Variable-length byte strings.

Specification: https://numcodecs.readthedocs.io/en/stable/other/vlen.html
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-bytes
Names: `vlen-bytes` (zarr, zarr3).
Example: `{"id": "vlen-bytes"}`, `{"name": "vlen-bytes"}`.
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

__all__ = ["VLenBytesSpec"]


@codec("vlen-bytes", family="zarr")
@codec("vlen-bytes", family="zarr3")
class VLenBytesSpec(ArrayToBytesSpec):
    """Asked: `vlen-bytes`. It has no members.

    Example:
        >>> VLenBytesSpec().object_type
        'string'
    """

    @property
    def object_type(self) -> str:
        return "string"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        found = str(chunk.dtype)
        # Objects do not say of which type they are; the one that stands for missing ones does.
        if chunk.dtype.hasobject and isinstance(chunk.fill_value.item(), str):
            found = "text"
        elif chunk.dtype.hasobject:
            return CountedItems("vlen-bytes", chunk, *_library())
        raise SpecError(f'codec "vlen-bytes" stores byte strings, but the chunk holds {found}')


@cache
def _library() -> tuple[Callable[[Array], Buffer], Callable[[Buffer], Array]]:
    from numcodecs.vlen import VLenBytes  # noqa: PLC0415 - takes 60 ms

    library = VLenBytes()
    return library.encode, library.decode
