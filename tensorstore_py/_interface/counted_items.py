"""Objects of any length, each behind its length in bytes, all of them behind their number.

What the variable-length serializers have in common; which objects, and how they become bytes, is
the codec's own business. The invariant: a number that lies is found out before anything is
allocated for it, and a library never sees data that is too short for the number.
"""

from __future__ import annotations

from abc import abstractmethod
from struct import unpack_from
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tensorstore_py._interface.codec import ArrayToBytes, ArrayToBytesSpec
from tensorstore_py.errors import DataLossError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.codec import Array, ChunkType
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["CountedItems", "CountedItemsSpec"]

_SIZE = 4


class CountedItemsSpec(ArrayToBytesSpec):
    """Asked: a serializer of strings, or of byte strings, of any length.

    Attributes:
        items: what it takes, for error messages.
        not_missing: what stands for missing elements of a chunk that it does not take, and how
            these are called.
    """

    items: ClassVar[str]
    not_missing: ClassVar[tuple[type, str]]

    @abstractmethod
    def library(self) -> tuple[Callable[[Array], Buffer], Callable[[Buffer], Array]]:
        """How to encode and decode, see `CountedItems`."""

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        found = str(chunk.dtype)
        other, name = self.not_missing
        # Objects do not say of which type they are; the one that stands for missing ones does.
        if chunk.dtype.hasobject and isinstance(chunk.fill_value.item(), other):
            found = name
        elif chunk.dtype.hasobject:
            return CountedItems(self.codec_id, chunk, *self.library())
        raise SpecError(f'codec "{self.codec_id}" stores {self.items}, but the chunk holds {found}')


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
