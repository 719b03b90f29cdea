"""Compression methods of entries: by number to read, by the member `compression` to write.

Decoding never makes more bytes than the directory says, whatever the data would make, and what it
makes has the checksum that the directory says. Zstandard comes from the codec of that name.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple, cast

from tensorstore_py.errors import DataLossError, ResourceExhaustedError, UnsupportedError
from tensorstore_py.plugin.codec import BytesToBytes, BytesToBytesSpec
from tensorstore_py.plugin.driver import OPAQUE, parse_codec_json
from tensorstore_py.plugin.kvstore import Buffer, decode_streams

__all__ = ["STORED", "Packed", "pack", "unpack"]

STORED: Final = 0
_DEFLATE: Final = 8
_BZIP2: Final = 12
_LZMA: Final = 14
_ZSTD_OLD: Final = 20
_ZSTD: Final = 93
_XZ: Final = 95
_NUMBERS: Final = {"store": STORED, "deflate": _DEFLATE, "zstd": _ZSTD, "xz": _XZ}
_NAMES: Final = {
    1: "shrink", 6: "implode", 9: "deflate64", 10: "dcl implode", 16: "cmpsc", 18: "terse",
    19: "lz77", 94: "mp3", 96: "jpeg", 97: "wavpack", 98: "ppmd", 99: "aes",
}  # fmt: skip
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
#: No deflate stream is denser than one byte for so many.
_DENSEST_DEFLATE: Final = 1032
#: What decoding xz may take beside the value, whatever the data asks for.
_MOST_MEMORY: Final = 1 << 30


class Packed(NamedTuple):
    """A value as an entry has it.

    Attributes:
        method: the number of its compression.
        data: compressed.
        crc: of the value.
        size: of the value, in bytes.
    """

    method: int
    data: bytes
    crc: int
    size: int


def pack(value: Buffer, compression: str) -> Packed:
    """A value ready to be put into an archive; left as it is if compression does not help.

    Example:
        >>> pack(bytes(1000), "deflate").method, pack(b"x", "deflate").method
        (8, 0)
    """
    flat = bytes(value)
    data = _COMPRESSORS[compression](flat) if flat else flat
    method = _NUMBERS[compression]
    if len(data) >= len(flat):
        data, method = flat, STORED
    return Packed(method, data, zlib.crc32(flat), len(flat))


def unpack(method: int, data: Buffer, size: int, crc: int) -> Buffer:
    """The value of an entry.

    Raises:
        UnsupportedError: the method is not known here; names it.
        DataLossError: the data is damaged.
        ResourceExhaustedError: the value does not fit in memory.
    """
    decoder = _DECODERS.get(method)
    if decoder is None:
        name = _NAMES.get(method)
        raise UnsupportedError(
            f"it is compressed by method {method}{f' ({name})' if name else ''}, which is not "
            "supported; pack the archive again, with deflate or zstd"
        )
    try:
        value = decoder(data, size)
    except MemoryError:
        raise ResourceExhaustedError(
            f"its value takes {size} bytes of memory, which cannot be had"
        ) from None
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, OverflowError) as error:
        if isinstance(error, DataLossError):
            raise
        raise DataLossError(f"corrupt data: {error}") from error
    if zlib.crc32(value) != crc:
        raise DataLossError("its checksum is wrong")
    return value


def _stored(data: Buffer, size: int) -> Buffer:
    if len(data) != size:
        raise DataLossError(f"{len(data)} bytes are stored, {size} were expected")
    return data


def _inflate(data: Buffer, size: int) -> bytes:
    if size > _DENSEST_DEFLATE * (len(data) + 1):
        raise DataLossError(f"{len(data)} deflated bytes cannot stand for {size} bytes, as stated")
    return decode_streams(
        data, size, lambda: zlib.decompressobj(-15), unlimited=0, concatenated=False
    )


def _bunzip2(data: Buffer, size: int) -> bytes:
    return decode_streams(data, size, bz2.BZ2Decompressor, unlimited=-1, concatenated=False)


def _unxz(data: Buffer, size: int) -> bytes:
    return decode_streams(
        data,
        size,
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_MEMORY),
        unlimited=-1,
        concatenated=True,
    )


def _unlzma(data: Buffer, size: int) -> bytes:
    """Two bytes of version, the length of the properties, these, and the bare stream."""
    if len(data) < 9 or struct.unpack_from("<H", data, 2)[0] != 5:
        raise DataLossError("corrupt data: no LZMA properties")
    code, rest = data[4], data[9:]
    # No match reaches farther back than the value is long: no more need be set aside for it.
    reach = max(4096, min(size, int.from_bytes(bytes(data[5:9]), "little")))
    lzma1 = {"id": lzma.FILTER_LZMA1, "dict_size": reach}
    lzma1 |= {"lc": code % 9, "lp": code // 9 % 5, "pb": code // 45}
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[lzma1])
    value = decoder.decompress(rest, size + 1)
    if len(value) != size:
        raise DataLossError(f"truncated after {len(value)} decoded bytes, {size} were expected")
    return value


def _unzstd(data: Buffer, size: int) -> bytes:
    if not size and bytes(data[:4]) == _ZSTD_MAGIC:
        return b""  # the library takes a frame of nothing for a broken one
    return bytes(_zstd().decode(data, size))


@cache
def _zstd() -> BytesToBytes:
    spec = parse_codec_json("zarr3", {"name": "zstd", "configuration": {"level": 3}})
    return cast("BytesToBytesSpec", spec).bind(OPAQUE)


def _deflate(value: bytes) -> bytes:
    encoder = zlib.compressobj(wbits=-15)
    return encoder.compress(value) + encoder.flush()


_COMPRESSORS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "store": bytes,
    "deflate": _deflate,
    "zstd": lambda value: bytes(_zstd().encode(value)),
    "xz": lzma.compress,
}
_DECODERS: Final[dict[int, Callable[[Buffer, int], Buffer]]] = {
    STORED: _stored,
    _DEFLATE: _inflate,
    _BZIP2: _bunzip2,
    _LZMA: _unlzma,
    _ZSTD_OLD: _unzstd,
    _ZSTD: _unzstd,
    _XZ: _unxz,
}
