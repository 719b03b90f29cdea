"""Blosc buffers whose blocks are compressed by Snappy, which the library is mostly built without.

Reading only. The layout, after c-blosc 1: behind the header, the offset of each block; a block is
one stream, or one for each byte of an element; a stream is its length and what it says, or, if that
is as long as what it stands for, the bytes themselves. Snappy: the decoded length, then literals
and copies from what was decoded already. No step makes more bytes than the header of the buffer
states, which the caller has compared with what a chunk can have.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from tensorstore_py.plugin.codec import Buffer

__all__ = ["FORMAT_SHIFT", "SNAPPY", "decode_snappy", "is_snappy", "uncompress"]

_HEADER = Struct("<BBBBIII")
_LENGTH = Struct("<i")
_BY_BYTES, _NOT_COMPRESSED, _BY_BITS, _ONE_STREAM = 0x01, 0x02, 0x04, 0x10
#: Where in the flags it says which compressor made the blocks, and Snappy's number there.
FORMAT_SHIFT, SNAPPY = 5, 2
#: A block is one stream for each byte of an element if these are few and the streams not short.
_MOST_STREAMS, _LEAST_STREAM = 16, 128


def is_snappy(data: Buffer) -> bool:
    """Whether a buffer with a checked header has blocks that Snappy compressed."""
    flags: int = data[2]
    return flags >> FORMAT_SHIFT == SNAPPY and not flags & _NOT_COMPRESSED


def decode_snappy(data: Buffer) -> bytes:
    """The decoded bytes of a buffer with a checked header.

    Raises:
        DataLossError: a block or a stream is not what the header says.
    """
    view = memoryview(data)
    _, _, flags, typesize, decoded, block, _ = _HEADER.unpack_from(view)
    count = -(-decoded // block) if decoded else 0
    starts = Struct(f"<{count}I").unpack_from(view, _HEADER.size)
    parts = []
    for number, start in enumerate(starts):
        size = min(block, decoded - number * block)
        split = (
            not flags & _ONE_STREAM
            and typesize <= _MOST_STREAMS
            and block // typesize >= _LEAST_STREAM
            and size == block
        )
        streams = typesize if split else 1
        values = _block(view, start, streams, size // streams)
        parts.append(_in_order(values, flags, typesize))
    return b"".join(parts)


def _block(view: memoryview, start: int, streams: int, size: int) -> bytes:
    """The streams of a block, one behind the other; each stands for `size` bytes."""
    found = []
    for _ in range(streams):
        if start + _LENGTH.size > len(view):
            raise DataLossError("corrupt blosc data: a block lies behind the end")
        (length,) = _LENGTH.unpack_from(view, start)
        start += _LENGTH.size
        if not 0 <= length <= len(view) - start:
            raise DataLossError(f"corrupt blosc data: a block states {length} bytes")
        stream = view[start : start + length]
        found.append(bytes(stream) if length == size else uncompress(stream, size))
        start += length
    return b"".join(found)


def _in_order(values: bytes, flags: int, typesize: int) -> bytes:
    """A block with the bytes of each element side by side again."""
    count = len(values) // typesize
    whole = count * typesize
    if flags & _BY_BYTES and typesize > 1:
        columns = np.frombuffer(values, np.uint8, whole).reshape(typesize, count)
        return columns.T.tobytes() + values[whole:]
    if flags & _BY_BITS and count and count % 8 == 0:
        rows = np.frombuffer(values, np.uint8, whole).reshape(typesize * 8, count // 8)
        bits = np.unpackbits(rows, axis=1, bitorder="little")
        return np.packbits(bits.T, axis=1, bitorder="little").tobytes() + values[whole:]
    return values


def uncompress(data: Buffer, size: int) -> bytes:
    """What a Snappy stream, without framing, stands for.

    Args:
        data: the stream.
        size: the number of bytes that it must stand for.

    Raises:
        DataLossError: it does not, or it is corrupt.

    Example:
        >>> uncompress(bytes([6, 0b100, 97, 98, 0b001, 2]), 6)
        b'ababab'
    """
    source = bytes(data)
    stated, at = _varint(source)
    if stated != size:
        raise DataLossError(f"corrupt snappy data: {stated} bytes are stated, not {size}")
    out = bytearray()
    end = len(source)
    while at < end:
        tag = source[at]
        kind = tag & 3
        if kind == 0:
            length, at = _literal(source, at)
            if length > end - at:
                raise DataLossError("corrupt snappy data: it ends within a literal")
            out += source[at : at + length]
            at += length
        else:
            length, back, at = _copy(source, at, kind)
            if not 0 < back <= len(out):
                raise DataLossError("corrupt snappy data: it copies from before its beginning")
            start = len(out) - back
            part = out[start : start + length]
            out += part if len(part) == length else (part * (length // back + 1))[:length]
        if len(out) > size:
            raise DataLossError(f"corrupt snappy data: more than {size} bytes")
    if len(out) != size:
        raise DataLossError(f"corrupt snappy data: {len(out)} bytes, not {size}")
    return bytes(out)


def _varint(source: bytes) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(source[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value, position + 1
    raise DataLossError("corrupt snappy data: no length")


def _literal(source: bytes, at: int) -> tuple[int, int]:
    """The length of a literal, and where it begins."""
    length = source[at] >> 2
    if length < 60:
        return length + 1, at + 1
    extra = length - 59
    return int.from_bytes(source[at + 1 : at + 1 + extra], "little") + 1, at + 1 + extra


def _copy(source: bytes, at: int, kind: int) -> tuple[int, int, int]:
    """The length of a copy, how far back it begins, and what comes next."""
    tag = source[at]
    if kind == 1:
        back = (tag >> 5 << 8) | (source[at + 1] if at + 1 < len(source) else 0)
        return (tag >> 2 & 7) + 4, back, at + 2
    width = 2 if kind == 2 else 4
    return (tag >> 2) + 1, int.from_bytes(source[at + 1 : at + 1 + width], "little"), at + 1 + width
