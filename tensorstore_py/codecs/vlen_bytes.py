"""Variable-length byte strings.

Specification: https://numcodecs.readthedocs.io/en/stable/other/vlen.html
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-bytes
Names: `vlen-bytes` (zarr, zarr3).
Example: `{"id": "vlen-bytes"}`, `{"name": "vlen-bytes"}`.
Limits: 4 GiB a byte string, 2**32 of them a chunk. The library holds the interpreter lock, as
whatever makes Python objects must.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py.plugin import CountedItemsSpec, codec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py.plugin import Array, Buffer

__all__ = ["VLenBytesSpec"]


@codec("vlen-bytes", family="zarr")
@codec("vlen-bytes", family="zarr3")
class VLenBytesSpec(CountedItemsSpec):
    """Asked: `vlen-bytes`. It has no members.

    Example:
        >>> VLenBytesSpec().object_type
        'string'
    """

    items = "byte strings"
    not_missing = (str, "text")

    @property
    def object_type(self) -> str:
        return "string"

    def library(self) -> tuple[Callable[[Array], Buffer], Callable[[Buffer], Array]]:
        from numcodecs.vlen import VLenBytes  # noqa: PLC0415 - takes 60 ms

        codec = VLenBytes()
        return codec.encode, codec.decode
