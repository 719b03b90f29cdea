"""Objects of any length, each behind its length in bytes, all of them behind their number.

What the variable-length serializers have in common; which objects, and how they become bytes, is
the codec's own business. The invariant: a number that lies is found out before anything is
allocated for it, and a library never sees data that is too short for the number.
"""

from __future__ import annotations

from struct import unpack_from
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._interface.codec import ArrayToBytes
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.codec import Array, ChunkType
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["CountedItems"]

_SIZE = 4


class CountedItems(ArrayToBytes):
    """A bound codec for objects of variable length.

    Args:
        name: of the codec, for error messages.
        chunk: what is stored.
        encode: flat objects to bytes, the number and lengths included.
        decode: the inverse; `ValueError` for data that cannot be.
    """

    def __init__(
        self,
        name: str,
        chunk: ChunkType,
        encode: Callable[[Array], Buffer],
        decode: Callable[[Buffer], Array],
    ) -> None:
        self._name = name
        self._shape = chunk.shape
        self._count = int(np.prod(chunk.shape, dtype=np.int64))
        self._encode = encode
        self._decode = decode

    def encode(self, array: Array) -> Buffer:
        flat = array.ravel()
        # What a user writes is not ours to change, but the library takes memory that it could.
        return self._encode(flat if flat.flags.writeable else flat.copy())

    def decode(self, data: Buffer) -> Array:
        if len(data) < _SIZE * (self._count + 1):
            raise DataLossError(
                f"{self._name}: {len(data)} bytes are too few for {self._count} elements and "
                "their lengths"
            )
        (found,) = unpack_from("<I", data)
        if found != self._count:
            raise DataLossError(
                f"{self._name}: the data holds {found} elements, expected {self._count}"
            )
        try:
            return self._decode(data).reshape(self._shape)
        except ValueError as error:
            raise DataLossError(f"corrupt {self._name} data: {error}") from error
