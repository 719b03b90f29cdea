"""Zlib: deflate with an Adler-32 checksum behind it.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/zlib.html
Names: `zlib` (zarr), `numcodecs.zlib` (zarr3).
Example: `{"id": "zlib", "level": 1}`.
Limits: unlike gzip, nothing may stand behind the stream. Where they are installed, `isal` encodes
levels 1 and 2, several times faster at the size that zlib reaches there, and libdeflate 4 to 8, up
to three times faster and no larger. libdeflate decodes a stream of a known size, in about half the
time; all else, and what is corrupt, is `isal`'s or zlib's to decode.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Level,
    StreamCodec,
    StreamDecoder,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NumcodecsZlibSpec", "Zlib", "ZlibSpec"]

#: Where the next level of libdeflate is as small as zlib is, and faster.
_LIBDEFLATE_LEVELS = range(4, 9)


@codec("zlib", family="zarr")
class ZlibSpec(BytesToBytesSpec):
    """Asked: `zlib`.

    Attributes:
        level: 0 (store) to 9 (smallest).

    Example:
        >>> ZlibSpec.parse({}).to_json(include_defaults=True)
        {'level': 1}
    """

    level: Annotated[int, Level(0, 9)] = 1

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Zlib(self.level)


@codec("numcodecs.zlib", family="zarr3")
class NumcodecsZlibSpec(ZlibSpec):
    """Asked: `numcodecs.zlib`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsZlibSpec.codec_id
        'numcodecs.zlib'
    """


class Zlib(StreamCodec):
    """The bound codec.

    Args:
        level: as in the spec.
    """

    def __init__(self, level: int) -> None:
        super().__init__("zlib", *_library(level), concatenated=False, at_once=_at_once())


class _Library(NamedTuple):
    compress: Callable[[Buffer], bytes]
    start: Callable[[], StreamDecoder]
    failures: tuple[type[Exception], ...]


@cache
def _library(level: int) -> _Library:
    try:
        from isal import isal_zlib  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        return _Library(_compressor(level), zlib.decompressobj, (zlib.error,))

    def by_isal(data: Buffer) -> bytes:
        return isal_zlib.compress(data, level)

    return _Library(
        by_isal if level in (1, 2) else _compressor(level),
        isal_zlib.decompressobj,
        (isal_zlib.error,),  # type: ignore[arg-type]  # a class, whatever its stub says
    )


@cache
def _at_once() -> Callable[[Buffer, int], Buffer | None] | None:
    """How libdeflate decodes a stream of a known size, if it is there: in half the time."""
    try:
        import deflate  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        return None

    def decode(data: Buffer, size: int) -> Buffer | None:
        try:
            plain = deflate.zlib_decompress(data, size)
        except deflate.DeflateError:
            return None
        # It has checked the first stream, wherever that ended: the data must end with its end, and
        # not only because the same stream stands there twice.
        end = deflate.adler32(plain).to_bytes(4, "big")
        whole = bytes(data[-len(end) :]) == end and bytes(data[: len(data) // 2]).find(end) < 0
        return plain if whole and len(plain) == size else None

    return decode


def _compressor(level: int) -> Callable[[Buffer], bytes]:
    def by_zlib(data: Buffer) -> bytes:
        return zlib.compress(data, level)

    if level not in _LIBDEFLATE_LEVELS:
        return by_zlib
    try:
        import deflate  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        return by_zlib

    def by_libdeflate(data: Buffer) -> bytes:
        return bytes(deflate.zlib_compress(data, level + 1))

    return by_libdeflate
