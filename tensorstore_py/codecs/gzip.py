"""Gzip: deflate with a header and a CRC-32 behind it; n5 can ask for zlib's header instead.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/
Names: `gzip` (zarr, zarr3, n5), `numcodecs.gzip` (zarr3).
Example: `{"name": "gzip", "configuration": {"level": 1}}`.
Limits: none; a value may be several gzip members one behind the other. Where they are installed,
`isal` encodes levels 1 and 2, several times faster at the size that zlib reaches there, and
libdeflate 4 to 8, up to three times faster and no larger. libdeflate decodes a single member of a
known size, in about half the time; all else, and what is corrupt, is `isal`'s or zlib's to decode.
"""

from __future__ import annotations

import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Field,
    Level,
    StreamCodec,
    StreamDecoder,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Gzip", "GzipSpec", "GzipV2Spec", "N5GzipSpec", "NumcodecsGzipSpec"]

_WINDOW_BITS = 31  # the largest window, wrapped as gzip
_ZLIB_WINDOW_BITS = 15  # wrapped as zlib

_TRAILER = struct.Struct("<II")  # CRC-32 and size

#: Where the next level of libdeflate is as small as zlib is, and faster.
_LIBDEFLATE_LEVELS = range(4, 9)


@codec("gzip", family="zarr3")
class GzipSpec(BytesToBytesSpec):
    """Asked: `gzip`.

    Attributes:
        level: 0 (store) to 9 (smallest); 6 if nothing is asked.

    Example:
        >>> GzipSpec.parse({"level": 9}).to_json()
        {'level': 9}
    """

    level: Annotated[int, Level(0, 9)] | None = None

    def resolved(self, chunk: ChunkType) -> GzipSpec:
        return self if self.level is not None else self.replace(level=6)

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Gzip(6 if self.level is None else self.level)


@codec("gzip", family="zarr")
class GzipV2Spec(BytesToBytesSpec):
    """Asked: `gzip`, the way version 2 writes it.

    Attributes:
        level: 0 (store) to 9 (smallest).
    """

    level: Annotated[int, Level(0, 9)] = 1

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Gzip(self.level)


@codec("numcodecs.gzip", family="zarr3")
class NumcodecsGzipSpec(GzipV2Spec):
    """Asked: `numcodecs.gzip`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsGzipSpec.codec_id
        'numcodecs.gzip'
    """


@codec("gzip", family="n5")
class N5GzipSpec(BytesToBytesSpec):
    """Asked: `gzip`, the way n5 writes it.

    Attributes:
        level: 0 (store) to 9 (smallest); -1 leaves it to the library, which takes 6.
        useZlib: a zlib header and checksum instead of gzip's.

    Example:
        >>> N5GzipSpec.parse({"useZlib": True}).to_json(include_defaults=True)
        {'level': -1, 'useZlib': True}
    """

    level: Annotated[int, Level(-1, 9)] = -1
    use_zlib: bool = Field(default=False, alias="useZlib")

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Gzip(6 if self.level == -1 else self.level, wrapped_as_zlib=self.use_zlib)


class Gzip(StreamCodec):
    """The bound codec.

    Args:
        level: as in the spec.
        wrapped_as_zlib: zlib's header instead of gzip's; then nothing may stand behind the stream.
    """

    def __init__(self, level: int, *, wrapped_as_zlib: bool = False) -> None:
        window_bits = _ZLIB_WINDOW_BITS if wrapped_as_zlib else _WINDOW_BITS
        super().__init__(
            "gzip",
            *_library(level, window_bits),
            concatenated=not wrapped_as_zlib,
            at_once=None if wrapped_as_zlib else _at_once(),
        )


class _Library(NamedTuple):
    compress: Callable[[Buffer], bytes]
    start: Callable[[], StreamDecoder]
    failures: tuple[type[Exception], ...]


@cache
def _library(level: int, window_bits: int) -> _Library:
    try:
        from isal import isal_zlib  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        return _Library(
            _compressor(level, window_bits), lambda: zlib.decompressobj(window_bits), (zlib.error,)
        )

    def by_isal(data: Buffer) -> bytes:
        return isal_zlib.compress(data, level, window_bits)

    return _Library(
        by_isal if level in (1, 2) else _compressor(level, window_bits),
        lambda: isal_zlib.decompressobj(window_bits),
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
            plain = deflate.gzip_decompress(data, size)
        except deflate.DeflateError:
            return None
        # It has checked the first stream, wherever that ended: the data must end with its end, and
        # not only because the same stream stands there twice.
        end = _TRAILER.pack(deflate.crc32(plain), size % 2**32)
        whole = bytes(data[-len(end) :]) == end and bytes(data[: len(data) // 2]).find(end) < 0
        return plain if whole and len(plain) == size else None

    return decode


def _compressor(level: int, window_bits: int) -> Callable[[Buffer], bytes]:
    def by_zlib(data: Buffer) -> bytes:
        return zlib.compress(data, level, window_bits)

    if level not in _LIBDEFLATE_LEVELS:
        return by_zlib
    try:
        import deflate  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        return by_zlib
    gzip = window_bits == _WINDOW_BITS
    compress = deflate.gzip_compress if gzip else deflate.zlib_compress

    def by_libdeflate(data: Buffer) -> bytes:
        return bytes(compress(data, level + 1))

    return by_libdeflate
