"""Deflate: gzip's wrapper with a CRC-32 behind the data, or zlib's with an Adler-32.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/, and for `zlib`
https://numcodecs.readthedocs.io/en/stable/compress/zlib.html
Example: `{"name": "gzip", "configuration": {"level": 1}}`, `{"id": "zlib", "level": 1}`.
Limits: none; a value may be several gzip members one behind the other, but only one zlib stream.
libdeflate encodes, mostly in half the time, by the level of its own that makes about as much as
zlib does (docs/dependencies.md has a table): level 0 is zlib's, and level 9 of what repeats. It
decodes a single stream of a known size, in about half the time; all else, and what is corrupt, is
zlib's to decode. Where libdeflate is not installed, all is zlib's.
"""

from __future__ import annotations

import zlib
from functools import cache
from struct import pack
from typing import TYPE_CHECKING, Annotated

from tensorstore_py.plugin.codec import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Field,
    Level,
    StreamCodec,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GzipSpec", "ZlibSpec"]

#: The largest window; 16 more says "wrapped as gzip".
_ZLIB, _GZIP = 15, 31
_DEFAULT_LEVEL = 6
#: The level of libdeflate that is about as small as a level of zlib, and faster.
_LIBDEFLATE_LEVELS = {1: 2, 2: 4, 3: 5, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 9}
#: Whoever asks for the smallest gets it: of data that compress to an eighth, zlib makes less. The
#: first of them tell.
_SMALLEST = 9
_SAMPLE_BYTES = 1 << 15
_REPETITIVE = 8


@codec("gzip", family="zarr3", without=["use_zlib"])
@codec("gzip", family="zarr", without=["use_zlib"], level=1)
@codec("numcodecs.gzip", family="zarr3", without=["use_zlib"], level=1)
@codec(
    "gzip",
    family="n5",
    level=Annotated[
        int,
        Level(-1, 9),
        Field(default=-1, description="0 (store) to 9 (smallest); -1 leaves it to the library."),
    ],
    use_zlib=Field(default=False, alias="useZlib"),
)
class GzipSpec(BytesToBytesSpec):
    """Asked: `gzip`.

    Attributes:
        level: 0 (store) to 9 (smallest); 6 if nothing is asked.
        use_zlib: a zlib header and checksum instead of gzip's.

    Example:
        >>> GzipSpec.parse({"level": 9}).to_json()
        {'level': 9}
    """

    level: Annotated[int, Level(0, 9)] | None = None
    use_zlib: bool = False

    def resolved(self, chunk: ChunkType) -> GzipSpec:
        return self if self.level is not None else self.replace(level=_DEFAULT_LEVEL)

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        level = _DEFAULT_LEVEL if self.level in (None, -1) else self.level
        return _bound("gzip", level, _ZLIB if self.use_zlib else _GZIP)


@codec("zlib", family="zarr")
@codec("numcodecs.zlib", family="zarr3")
class ZlibSpec(BytesToBytesSpec):
    """Asked: `zlib`.

    Attributes:
        level: 0 (store) to 9 (smallest).
    """

    level: Annotated[int, Level(0, 9)] = 1

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return _bound("zlib", self.level, _ZLIB)


def _bound(name: str, level: int, window_bits: int) -> StreamCodec:
    """The codec, in the wrapper of a window; gzip's may stand one behind the other."""
    return StreamCodec(
        name,
        _compressor(level, window_bits),
        lambda: zlib.decompressobj(window_bits),
        (zlib.error,),
        concatenated=window_bits == _GZIP,
        at_once=_at_once(window_bits),
    )


@cache
def _at_once(window_bits: int) -> Callable[[Buffer, int], Buffer | None] | None:
    """How libdeflate decodes a stream of a known size, if it is there: in half the time."""
    try:
        import deflate  # noqa: PLC0415 - at first use, and not everywhere
    except ImportError:
        return None
    in_gzip = window_bits == _GZIP

    def trailer(plain: bytearray, size: int) -> bytes:
        """What a stream with these contents ends with: checksum, and in gzip's wrapper the size."""
        if in_gzip:
            return pack("<II", deflate.crc32(plain), size % 2**32)
        return deflate.adler32(plain).to_bytes(4, "big")

    def decode(data: Buffer, size: int) -> Buffer | None:
        try:
            plain = (deflate.gzip_decompress if in_gzip else deflate.zlib_decompress)(data, size)
        except deflate.DeflateError:
            return None
        # It has checked the first stream, wherever that ended: the data must end with its end, and
        # not only because the same stream stands there twice.
        end = trailer(plain, size)
        whole = bytes(data[-len(end) :]) == end and bytes(data[: len(data) // 2]).find(end) < 0
        return plain if whole and len(plain) == size else None

    return decode


@cache
def _compressor(level: int, window_bits: int) -> Callable[[Buffer], bytes]:
    def by_zlib(data: Buffer) -> bytes:
        return zlib.compress(data, level, window_bits)

    if level not in _LIBDEFLATE_LEVELS:
        return by_zlib
    try:
        import deflate  # noqa: PLC0415 - at first use, and not everywhere
    except ImportError:
        return by_zlib
    compress = deflate.gzip_compress if window_bits == _GZIP else deflate.zlib_compress
    its_level = _LIBDEFLATE_LEVELS[level]

    def by_libdeflate(data: Buffer) -> bytes:
        return bytes(compress(data, its_level))

    def to_the_smallest(data: Buffer) -> bytes:
        sample = memoryview(data).cast("B")[:_SAMPLE_BYTES]
        repeats = len(compress(sample, 1)) * _REPETITIVE < sample.nbytes
        return (by_zlib if repeats else by_libdeflate)(data)

    return to_the_smallest if level == _SMALLEST else by_libdeflate
