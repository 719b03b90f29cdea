"""Variable-length text: strings as UTF-8.

Specification: https://numcodecs.readthedocs.io/en/stable/other/vlen.html
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8
Names: `vlen-utf8` (zarr, zarr3).
Example: `{"id": "vlen-utf8"}`, `{"name": "vlen-utf8"}`.
Limits: 4 GiB a string, 2**32 of them a chunk. The library holds the interpreter lock, as
whatever makes Python objects must.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py.plugin import CountedItemsSpec, codec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py.plugin import Array, Buffer

__all__ = ["VLenUtf8Spec"]


@codec("vlen-utf8", family="zarr")
@codec("vlen-utf8", family="zarr3")
class VLenUtf8Spec(CountedItemsSpec):
    """Asked: `vlen-utf8`. It has no members.

    Example:
        >>> VLenUtf8Spec().object_type
        'ustring'
    """

    items = "strings"
    not_missing = (bytes, "byte strings")

    @property
    def object_type(self) -> str:
        return "ustring"

    def library(self) -> tuple[Callable[[Array], Buffer], Callable[[Buffer], Array]]:
        from numcodecs.vlen import VLenUTF8  # noqa: PLC0415 - takes 60 ms

        codec = VLenUTF8()
        return codec.encode, codec.decode
