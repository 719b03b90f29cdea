"""Python objects of any length: text, byte strings, and arrays of one dimension.

Specification: https://numcodecs.readthedocs.io/en/stable/other/vlen.html and, for version 3,
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8
Example: `{"id": "vlen-utf8"}`, `{"name": "vlen-bytes"}`, `{"id": "vlen-array", "dtype": "<i4"}`.
Limits: 4 GiB an element, 2**32 of them a chunk. The library holds the interpreter lock, as whatever
makes Python objects must. Elements of `vlen-array` are of one type; None is stored as an array of
length 0. Each object stands behind its length in bytes, all of them behind their number. The
invariant: a number that lies is found out before anything is allocated for it, and the library
never sees data that is too short for the number.
"""

from __future__ import annotations

from math import prod
from struct import unpack_from
from typing import ClassVar, Protocol

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    ElementType,
    codec,
)

__all__ = ["CountedItems", "VLenArraySpec", "VLenBytesSpec", "VLenUtf8Spec"]

_SIZE = 4


class _StringsSpec(ArrayToBytesSpec):
    """Asked: a serializer of strings, or of byte strings, of any length.

    Attributes:
        items: what it takes, for error messages.
        other: the type of the items that it does not take, and how these are called.
    """

    items: ClassVar[str]
    other: ClassVar[tuple[type, str]]

    def check(self, chunk: ChunkType) -> None:
        """Refuse chunks of anything else."""
        found = str(chunk.dtype)
        other, name = self.other
        # Objects do not say of which type they are; the one that stands for missing ones does.
        if chunk.dtype.hasobject and isinstance(chunk.fill_value.item(), other):
            found = name
        elif chunk.dtype.hasobject:
            return
        raise SpecError(f'codec "{self.codec_id}" stores {self.items}, but the chunk holds {found}')


@codec("vlen-utf8", family="zarr")
@codec("vlen-utf8", family="zarr3")
class VLenUtf8Spec(_StringsSpec):
    """Asked: `vlen-utf8`. It has no members."""

    items = "strings"
    other = (bytes, "byte strings")

    @property
    def object_type(self) -> str:
        return "ustring"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        self.check(chunk)
        from numcodecs import vlen  # noqa: PLC0415 - takes 60 ms

        return CountedItems(self.codec_id, chunk, vlen.VLenUTF8())


@codec("vlen-bytes", family="zarr")
@codec("vlen-bytes", family="zarr3")
class VLenBytesSpec(_StringsSpec):
    """Asked: `vlen-bytes`. It has no members."""

    items = "byte strings"
    other = (str, "text")

    @property
    def object_type(self) -> str:
        return "string"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        self.check(chunk)
        from numcodecs import vlen  # noqa: PLC0415 - takes 60 ms

        return CountedItems(self.codec_id, chunk, vlen.VLenBytes())


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
        from numcodecs import vlen  # noqa: PLC0415 - takes 60 ms

        return CountedItems("vlen-array", chunk, vlen.VLenArray(np.dtype(self.dtype)))


class _Library(Protocol):
    def encode(self, buf: Array, /) -> Buffer: ...
    def decode(self, buf: Buffer, /) -> Array: ...


class CountedItems(ArrayToBytes):
    """The bound codec; the library encodes flat objects, with their number and lengths."""

    def __init__(self, name: str, chunk: ChunkType, library: _Library) -> None:
        self._name = name
        self._shape = chunk.shape
        self._count = prod(chunk.shape)
        self._library = library

    def encode(self, array: Array) -> Buffer:
        flat = array.ravel()
        # What a user writes is not ours to change, but the library takes memory that it could.
        return self._library.encode(flat if flat.flags.writeable else flat.copy())

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
            return self._library.decode(data).reshape(self._shape)
        except ValueError as error:
            raise DataLossError(f"corrupt {self._name} data: {error}") from error
