"""A bound codec chain: array to array, then one array to bytes, then bytes to bytes.

It runs per chunk, on any thread, and owns the one decision that makes reading fast: when the
stored bytes, once decompressed, are exactly the destination's memory, they are decompressed
straight into it; otherwise into this thread's scratch buffer and copied out from there. A
scratch array is valid only until the same thread decodes again, so it never leaves here
except as the documented return of `decode_scratch`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py._interface.codec import TooLargeError
from tensorstore_py._runtime.buffers import scratch
from tensorstore_py.errors import ResourceExhaustedError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.codec import (
        Array,
        ArrayToArray,
        ArrayToBytes,
        BytesToBytes,
        ChunkType,
    )
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["UNPACKED_BYTES", "CodecChain"]

_LARGEST_HEADER = 1 << 16
_LIGHT_BYTES = 1 << 17
#: What NumPy can number.
_LARGEST_CHUNK = 2**63 - 1

#: What compressed data of variable length may unpack to, if nothing else is asked for.
UNPACKED_BYTES: Final = 64 * 2**20
#: And, where this is more: so many times what is stored, and so much an element, which is about
#: what the elements take as Python objects.
_TIMES_STORED = 100
_AN_ELEMENT = 64


@dataclass(frozen=True, slots=True)
class CodecChain:
    """A chain bound to one chunk type.

    Arrays are of `chunk.shape` and `chunk.dtype`, in any memory layout. All that decodes raises
    `DataLossError` where the bytes are corrupt or of the wrong size.

    Attributes:
        chunk: what the chain encodes.
        to_array: array-to-array codecs, in encoding order.
        to_bytes: the serializer.
        compressors: bytes-to-bytes codecs, in encoding order.
        unpacked_bytes: how much compressed data may always unpack to, where neither a size nor a
            limit follows from the chunk.
        sizes: bytes that go into each compressor; None where that depends on the values.
        limits: bytes that go into each compressor at most; None where nothing is known.
        is_light: whether a chunk is small, and to decode it is little more than to copy it.
        row_bytes: the size in bytes of each position of the first axis, where those are stored one
            after the other; None where they are not.
        part_row_bytes: the same of what is compressed, where the compressor's data have parts that
            can be decoded without the rest, and chunks are large enough for it.

    Raises:
        SpecError: such chunks are larger than any memory.
    """

    chunk: ChunkType
    to_array: tuple[ArrayToArray, ...]
    to_bytes: ArrayToBytes
    compressors: tuple[BytesToBytes, ...]
    unpacked_bytes: int = field(default=UNPACKED_BYTES, compare=False)
    sizes: tuple[int | None, ...] = field(init=False, compare=False)
    limits: tuple[int | None, ...] = field(init=False, compare=False)
    is_light: bool = field(init=False, compare=False)
    row_bytes: int | None = field(init=False, compare=False)
    part_row_bytes: int | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for chunk in (self.chunk, *(codec.encoded for codec in self.to_array)):
            _check_addressable(chunk)
        sizes: list[int | None] = []
        limits: list[int | None] = []
        size = self.to_bytes.encoded_size
        limit = self.to_bytes.most_bytes if size is None else size
        for compressor in self.compressors:
            sizes.append(size)
            limits.append(limit)
            size = compressor.encoded_size(size)
            limit = _expanded(limit) if size is None else size
        object.__setattr__(self, "sizes", tuple(sizes))
        object.__setattr__(self, "limits", tuple(limits))
        # What compresses makes sizes that depend on the values.
        is_light = size is not None and max(size, self.chunk.size_bytes) <= _LIGHT_BYTES
        object.__setattr__(self, "is_light", is_light)
        plain = not self.to_array and bool(self.chunk.size_bytes)
        row = self.to_bytes.of_rows(1) if plain else None
        row_bytes = None if row is None else row.encoded_size
        # To look for parts of a small chunk takes longer than they save.
        large = self.chunk.size_bytes > _LIGHT_BYTES
        in_parts = large and len(self.compressors) == 1 and self.compressors[0].has_parts
        object.__setattr__(self, "row_bytes", None if self.compressors else row_bytes)
        object.__setattr__(self, "part_row_bytes", row_bytes if in_parts else None)

    def unpacking(self, unpacked_bytes: int) -> CodecChain:
        """The chain with another limit for data of variable length; in shards, too."""
        to_bytes = self.to_bytes.unpacking(unpacked_bytes)
        if unpacked_bytes == self.unpacked_bytes and to_bytes is self.to_bytes:
            return self
        return replace(self, to_bytes=to_bytes, unpacked_bytes=unpacked_bytes)

    def encode(self, array: Array) -> Buffer:
        """The stored bytes of a whole chunk."""
        for to_array in self.to_array:
            array = to_array.encode(array)
        data = self.to_bytes.encode(array)
        for compressor in self.compressors:
            data = compressor.encode(data)
        return data

    def encode_over(self, array: Array, stored: Buffer | None, *, keep_fill: bool) -> Buffer | None:
        """The stored bytes of a chunk that holds more, see `ArrayToBytes.encode_over`."""
        for to_array in self.to_array:
            array = to_array.encode(array)
        if stored is not None:
            stored = self._to_serialized(stored)
        data = self.to_bytes.encode_over(array, stored, keep_fill=keep_fill)
        if data is None:
            return None
        for compressor in self.compressors:
            data = compressor.encode(data)
        return data

    def decode(self, data: Buffer) -> Array:
        """The chunk as an array of its own, or as a read-only view of `data`."""
        return self._from_bytes(self._to_serialized(data))

    def decode_into(self, data: Buffer, out: Array) -> None:
        """Decode a whole chunk to `out`."""
        view = self._view_of(out)
        if view is None:
            out[...] = self.decode_scratch(data)
            return
        memory = self.to_bytes.direct(view) if self.compressors else None
        if memory is not None:
            self._decompress(data, memory)
        else:
            self.to_bytes.decode_into(self._decompressed(data), view)

    def decode_scratch(self, data: Buffer) -> Array:
        """The chunk as an array in this thread's scratch memory (or a view of `data`).

        Valid until this thread decodes again: copy from it at once.
        """
        return self._from_bytes(self._decompressed(data))

    def decodes_in_place(self) -> bool:
        """Whether a compressor writes a chunk of C order right where it is to be (`decode_to`)."""
        if not self.compressors or self.to_array or self.to_bytes.encoded_size is None:
            return False
        return self.to_bytes.direct(np.empty(self.chunk.shape, self.chunk.dtype)) is not None

    def decode_to(self, data: Buffer, memory: memoryview) -> None:
        """Decode a whole chunk, in C order, to memory of its size; if it `decodes_in_place`."""
        self._decompress(data, memory)

    def decode_rows(self, data: Buffer, count: int) -> Array:
        """The first `count` positions of the first axis; may be a view of `data`."""
        rows = self.to_bytes.of_rows(count)
        assert rows is not None
        return rows.decode(data)

    def decode_part(self, data: Buffer, low: int, high: int) -> Array | None:
        """Positions `[low, high)` of the first axis, as `decode_scratch` gives them.

        None if they take all that is stored, or nearly so.
        """
        size, serialized = self.part_row_bytes, self.sizes[0]
        assert size is not None
        assert serialized is not None
        part = self.compressors[0].part(data, serialized, low * size, high * size)
        if part is None:
            return None
        memory = scratch(part.high - part.low)
        self.compressors[0].decode_into(part.data, memory)
        return self.decode_rows(memory[low * size - part.low : high * size - part.low], high - low)

    def exact(self) -> bool:
        """Whether it is certain that decoding gives back, bit by bit, what was encoded."""
        serialized = self.to_bytes.exact and not self.to_bytes.partial
        converted = all(codec.exact for codec in self.to_array)
        return serialized and converted and all(codec.exact for codec in self.compressors)

    def encoded_size(self) -> int | None:
        """Size in bytes of every encoded chunk, if it does not depend on the values."""
        size = self.to_bytes.encoded_size
        for compressor in self.compressors:
            size = compressor.encoded_size(size)
        return size

    def most_bytes(self) -> int | None:
        """An upper bound on the size of a valid encoded chunk; None if nothing is known of it."""
        size = self.encoded_size()
        if size is not None or not self.compressors:
            return self.to_bytes.most_bytes if size is None else size
        return _expanded(self.limits[-1])

    def _to_serialized(self, data: Buffer, stop: int = 0) -> Buffer:
        """Stored bytes, decompressed; as far as the compressor at `stop`."""
        for number in range(len(self.compressors) - 1, stop - 1, -1):
            compressor, size, limit = self.compressors[number], self.sizes[number], None
            if size is None:
                limit = self.limits[number]
            if size is not None:
                data = compressor.decode(data, size)
            elif limit is not None:
                data = compressor.decode_within(data, limit)
            else:
                data = self._unpacked(compressor, data)
        return data

    def _unpacked(self, compressor: BytesToBytes, data: Buffer) -> Buffer:
        """What data of variable length unpacks to, within reason."""
        limit = max(
            self.unpacked_bytes, _TIMES_STORED * len(data), _AN_ELEMENT * prod(self.chunk.shape)
        )
        try:
            return compressor.decode_within(data, limit)
        except TooLargeError:
            raise ResourceExhaustedError(
                f"{len(data)} bytes unpack to more than {limit}, the limit for data of variable "
                'length; if they are to be trusted, raise "limit_bytes" of the context resource '
                '"unpacking_limit" above that'
            ) from None

    def _from_bytes(self, data: Buffer) -> Array:
        array = self.to_bytes.decode(data)
        for to_array in reversed(self.to_array):
            array = to_array.decode(array)
        return array

    def _view_of(self, out: Array) -> Array | None:
        """`out` in the layout that the serializer sees, unless a codec changes values."""
        view: Array | None = out
        for to_array in self.to_array:
            if view is None:
                return None
            view = to_array.view_of(view)
        return view

    def _decompressed(self, data: Buffer) -> Buffer:
        """The serialized bytes, in scratch memory where their size is known."""
        if not self.compressors:
            return data
        size = self.to_bytes.encoded_size
        if size is None:
            return self._to_serialized(data)
        memory = scratch(size)
        self._decompress(data, memory)
        return memory

    def _decompress(self, data: Buffer, memory: memoryview) -> None:
        if len(self.compressors) > 1:
            # Each gets the size that must come out, so that none unpacks more than a chunk needs.
            data = self._to_serialized(data, 1)
        self.compressors[0].decode_into(data, memory)


def _check_addressable(chunk: ChunkType) -> None:
    if chunk.size_bytes > _LARGEST_CHUNK:
        raise SpecError(
            f"chunks of shape {list(chunk.shape)} and type {chunk.dtype} take {chunk.size_bytes} "
            "bytes, more than any memory; use smaller chunks"
        )


def _expanded(size: int | None) -> int | None:
    """What a compressor makes at most of so many bytes that do not compress, and then some."""
    return None if size is None else 2 * size + _LARGEST_HEADER
