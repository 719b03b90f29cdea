"""One block: a header that states the shape, and big-endian values in Fortran order, compressed.

A stored block may be smaller than the chunk, as others write those at the upper bounds; what it
does not reach is 0. Blocks are written whole, so that nothing is lost when the array grows. As the
header, which is not compressed, stands in front of the rest, and says how much that is, one codec
does both.
"""

from __future__ import annotations

from math import prod
from struct import Struct

import numpy as np

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.codec import Array, ArrayToBytes, Buffer, ChunkType, CodecModel
from tensorstore_py.plugin.codec import BytesToBytesSpec as CompressionSpec

__all__ = ["BlockCodec"]

#: mode, number of dimensions
_START = Struct(">HH")
_MODES = {1: "blocks of variable length", 2: "blocks of objects"}
_LARGEST_EXTRA = 1 << 16


class BlockCodec(ArrayToBytes):
    """The bound codec.

    Args:
        chunk: a whole block.
        compression: how what is behind the header is compressed.

    Raises:
        SpecError: the compression cannot be bound.

    Example:
        >>> import numpy as np
        >>> from tensorstore_py.plugin.codec import ChunkType
        >>> from tensorstore_py.plugin.driver import parse_codec_json
        >>> chunk = ChunkType((2, 1), np.dtype("uint16"), np.zeros((), "uint16"))
        >>> codec = BlockCodec(chunk, parse_codec_json("n5", {"type": "raw"}))
        >>> codec.encode(np.array([[1], [2]], "uint16")).hex(" ", -4)
        '00000002 00000002 00000001 00010002'
    """

    exact = True

    def __init__(self, chunk: ChunkType, compression: CodecModel) -> None:
        assert isinstance(compression, CompressionSpec)
        self._shape = chunk.shape
        self._stored = chunk.dtype.newbyteorder(">")
        self._compression = compression.bind(chunk)
        self._sizes = Struct(f">{len(chunk.shape)}I")
        self._header = _START.pack(0, len(chunk.shape)) + self._sizes.pack(*chunk.shape)
        self.most_bytes = len(self._header) + 2 * chunk.size_bytes + _LARGEST_EXTRA

    def encode(self, array: Array) -> bytes:
        values = np.ascontiguousarray(array.T, self._stored)
        data = values.reshape(-1).view(np.uint8).data
        return b"".join((self._header, self._compression.encode(data)))

    def decode(self, data: Buffer) -> Array:
        found = self._found(data)
        if found.shape == self._shape:
            return found
        padded: Array = np.zeros(self._shape, self._stored.newbyteorder("="), "F")
        padded[tuple(map(slice, found.shape))] = found
        return padded

    def decode_into(self, data: Buffer, out: Array) -> None:
        shape, values = self._split(data)
        if shape == self._shape and self._stored.itemsize == 1 and out.T.flags.carray:
            self._compression.decode_into(values, out.T.reshape(-1).view(np.uint8).data)
            return
        found = self._decompressed(shape, values)
        if shape != self._shape:
            out[...] = 0
        out[tuple(map(slice, shape))] = found

    def _found(self, data: Buffer) -> Array:
        return self._decompressed(*self._split(data))

    def _decompressed(self, shape: tuple[int, ...], values: Buffer) -> Array:
        """The values that are stored, as a view of what they are decompressed to."""
        size = prod(shape) * self._stored.itemsize
        decoded = self._compression.decode(values, size)
        return np.ndarray(shape, self._stored, decoded, order="F")

    def _split(self, data: Buffer) -> tuple[tuple[int, ...], Buffer]:
        """The shape that the header states, and what is behind.

        Raises:
            DataLossError: this is no header of a block of this array, or that of a kind of block
                that has no fixed number of values.
        """
        view = memoryview(data)
        if len(view) < _START.size:
            raise DataLossError(f"{len(view)} bytes are too few for the header of a block")
        mode, rank = _START.unpack_from(view)
        if mode in _MODES:
            raise DataLossError(f"{_MODES[mode]} (mode {mode}) are not supported")
        if mode:
            raise DataLossError(f"the header of a block states mode {mode}, which does not exist")
        if rank != len(self._shape):
            raise DataLossError(
                f"the header of a block states {rank} dimensions, but the array has "
                f"{len(self._shape)}"
            )
        if len(view) < len(self._header):
            raise DataLossError(f"{len(view)} bytes are too few for the header of a block")
        shape: tuple[int, ...] = self._sizes.unpack_from(view, _START.size)
        if any(size > most for size, most in zip(shape, self._shape, strict=True)):
            raise DataLossError(
                f"a block of shape {list(shape)} is stored, but blockSize is {list(self._shape)}"
            )
        return shape, view[len(self._header) :]
