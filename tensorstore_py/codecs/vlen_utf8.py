"""Variable-length text: strings as UTF-8.

Specification: https://numcodecs.readthedocs.io/en/stable/other/vlen.html
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8
Names: `vlen-utf8` (zarr, zarr3).
Example: `{"id": "vlen-utf8"}`, `{"name": "vlen-utf8"}`.
Limits: 4 GiB a string, 2**32 of them a chunk. The library holds the interpreter lock, as
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

__all__ = ["VLenUtf8Spec"]


@codec("vlen-utf8", family="zarr")
@codec("vlen-utf8", family="zarr3")
class VLenUtf8Spec(ArrayToBytesSpec):
    """Asked: `vlen-utf8`. It has no members.

    Example:
        >>> VLenUtf8Spec().object_type
        'ustring'
    """

    @property
    def object_type(self) -> str:
        return "ustring"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        found = str(chunk.dtype)
        # Objects do not say of which type they are; the one that stands for missing ones does.
        if chunk.dtype.hasobject and isinstance(chunk.fill_value.item(), bytes):
            found = "byte strings"
        elif chunk.dtype.hasobject:
            return CountedItems("vlen-utf8", chunk, *_library())
        raise SpecError(f'codec "vlen-utf8" stores strings, but the chunk holds {found}')


@cache
def _library() -> tuple[Callable[[Array], Buffer], Callable[[Buffer], Array]]:
    from numcodecs.vlen import VLenUTF8  # noqa: PLC0415 - takes 60 ms

    library = VLenUTF8()
    return library.encode, library.decode
