"""LZ4, by numcodecs: one block behind four bytes that say how large it was.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/lz4.html
Example: `{"id": "lz4", "acceleration": 1}`.
Limits: 2 GiB a chunk. The stated size is compared with what the chunk must have, or with what the
data could unpack to at most, before anything is allocated. N5 has the streams of lz4-java, which
are read, and not written: no library here has their kind of checksum, which is not looked at.
"""

from __future__ import annotations

from functools import cache
from struct import Struct, pack, unpack_from
from typing import TYPE_CHECKING, Annotated

from tensorstore_py.errors import DataLossError, UnsupportedError
from tensorstore_py.plugin.codec import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Field,
    Level,
    SizedCodec,
    codec,
    share_numcodecs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Lz4", "Lz4Spec", "Lz4Stream", "Lz4StreamSpec"]

_HEADER = 4
#: Of a block of a stream: what it is, how it is stored, encoded and decoded size, checksum.
_BLOCK = Struct("<8sBiiI")
_MAGIC = b"LZ4Block"
_METHOD, _STORED, _COMPRESSED = 0xF0, 0x10, 0x20
#: No byte of a block stands for more bytes than this.
_MOST_PER_BYTE = 255


@codec("lz4", family="zarr")
@codec("numcodecs.lz4", family="zarr3")
class Lz4Spec(BytesToBytesSpec):
    """Asked: `lz4`.

    Attributes:
        acceleration: the larger the faster, and the less compressed.
    """

    acceleration: Annotated[int, Level(-(2**31), 2**31 - 1)] = 1

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Lz4(self.acceleration)


@codec("lz4", family="n5")
class Lz4StreamSpec(BytesToBytesSpec):
    """Asked: `lz4`, the way n5 writes it; only for reading.

    Attributes:
        blockSize: bytes of a block.
    """

    block_size: Annotated[int, Level(1, 2**31 - 1)] = Field(default=65536, alias="blockSize")

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Lz4Stream()


class Lz4(SizedCodec):
    """The bound codec."""

    def __init__(self, acceleration: int) -> None:
        self._compress, decompress = _library()
        self._acceleration = acceleration

        def unpack(data: Buffer, out: memoryview | None = None) -> bytes:
            (stated,) = unpack_from("<I", data)
            if stated > (len(data) - _HEADER) * _MOST_PER_BYTE:
                raise DataLossError(
                    f"corrupt lz4 data: {len(data)} bytes cannot stand for {stated} bytes, as "
                    "stated"
                )
            return decompress(data, out)

        super().__init__("lz4", unpack)

    def encode(self, data: Buffer) -> bytes:
        return self._compress(data, self._acceleration)

    def stated_size(self, data: Buffer) -> int:
        if len(data) <= _HEADER:
            raise DataLossError(f"{len(data)} bytes are too few for lz4 data")
        size: int = unpack_from("<I", data)[0]
        return size


class Lz4Stream(BytesToBytes):
    """The bound codec of n5: blocks, each behind a header with its sizes, and an empty one."""

    def __init__(self) -> None:
        self._blocks = Lz4(1)

    def encode(self, data: Buffer) -> bytes:
        raise UnsupportedError(
            'compression "lz4" of n5 can only be read; new arrays can have "zstd" or "blosc"'
        )

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        view = memoryview(data)
        parts: list[Buffer] = []
        most = (len(view) * _MOST_PER_BYTE) if size is None else size
        while len(view) >= _BLOCK.size:
            magic, token, encoded, decoded, _ = _BLOCK.unpack_from(view)
            if magic != _MAGIC or not 0 <= encoded <= len(view) - _BLOCK.size or decoded < 0:
                raise DataLossError("corrupt lz4 stream: no header of a block")
            if not decoded:
                break
            most -= decoded
            if most < 0:
                raise DataLossError(f"corrupt lz4 stream: more bytes than the {size} expected")
            body = view[_BLOCK.size : _BLOCK.size + encoded]
            parts.append(self._block(body, token & _METHOD, decoded))
            view = view[_BLOCK.size + encoded :]
        return self.checked(b"".join(parts), size)

    def _block(self, body: Buffer, method: int, size: int) -> Buffer:
        if method == _STORED and len(body) == size:
            return bytes(body)
        if method != _COMPRESSED:
            raise DataLossError("corrupt lz4 stream: a block of an unknown kind")
        return self._blocks.decode(pack("<I", size) + body, size)


@cache
def _library() -> tuple[Callable[[Buffer, int], bytes], Callable[..., bytes]]:
    from numcodecs import lz4  # noqa: PLC0415 - takes 60 ms

    share_numcodecs()
    return lz4.compress, lz4.decompress
