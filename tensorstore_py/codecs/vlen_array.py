"""Ragged arrays: each element is a flat array of its own length.

Specification: https://numcodecs.readthedocs.io/en/stable/other/vlen.html
Names: `vlen-array` (zarr).
Example: `{"id": "vlen-array", "dtype": "<i4"}`.
Limits: 4 GiB an element, 2**32 of them a chunk. Elements of one dimension and one type; None is
stored as an array of length 0.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    CountedItems,
    ElementType,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["VLenArraySpec"]


@codec("vlen-array", family="zarr")
class VLenArraySpec(ArrayToBytesSpec):
    """Asked: `vlen-array`.

    Attributes:
        dtype: the type of the numbers in each element.

    Example:
        >>> VLenArraySpec.parse({"dtype": "i4"}).to_json()
        {'dtype': '<i4'}
    """

    dtype: ElementType

    @property
    def object_type(self) -> str:
        return "object"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        if not chunk.dtype.hasobject:
            raise SpecError(f'codec "vlen-array" stores arrays, but the chunk holds {chunk.dtype}')
        return CountedItems("vlen-array", chunk, *_library(self.dtype))


@cache
def _library(dtype: str) -> tuple[Callable[[Array], Buffer], Callable[[Buffer], Array]]:
    from numcodecs.vlen import VLenArray  # noqa: PLC0415 - takes 60 ms

    library = VLenArray(np.dtype(dtype))
    return library.encode, library.decode
