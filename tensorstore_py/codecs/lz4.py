"""LZ4, by numcodecs: one block behind four bytes that say how large it was.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/lz4.html
Names: `lz4` (zarr), `numcodecs.lz4` (zarr3).
Example: `{"id": "lz4", "acceleration": 1}`.
Limits: 2 GiB a chunk. The stated size is compared with what the chunk must have, or with what the
data could unpack to at most, before anything is allocated.
"""

from __future__ import annotations

from functools import cache
from struct import unpack_from
from typing import TYPE_CHECKING, Annotated

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Level,
    TooLargeError,
    codec,
    size_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Lz4", "Lz4Spec", "NumcodecsLz4Spec"]

_HEADER = 4
#: No byte of a block stands for more bytes than this.
_MOST_PER_BYTE = 255


@codec("lz4", family="zarr")
class Lz4Spec(BytesToBytesSpec):
    """Asked: `lz4`.

    Attributes:
        acceleration: the larger the faster, and the less compressed.

    Example:
        >>> Lz4Spec.parse({}).to_json(include_defaults=True)
        {'acceleration': 1}
    """

    acceleration: Annotated[int, Level(-(2**31), 2**31 - 1)] = 1

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Lz4(self.acceleration)


@codec("numcodecs.lz4", family="zarr3")
class NumcodecsLz4Spec(Lz4Spec):
    """Asked: `numcodecs.lz4`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsLz4Spec.codec_id
        'numcodecs.lz4'
    """


class Lz4(BytesToBytes):
    """The bound codec.

    Args:
        acceleration: as in the spec.
    """

    def __init__(self, acceleration: int) -> None:
        self._compress, self._decompress = _library()
        self._acceleration = acceleration

    def encode(self, data: Buffer) -> bytes:
        return self._compress(data, self._acceleration)

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        _check_size(data, size)
        try:
            return self._decompress(data)
        except (RuntimeError, ValueError) as error:
            raise DataLossError(f"corrupt lz4 data: {error}") from error

    def decode_within(self, data: Buffer, most: int) -> bytes:
        (stated,) = unpack_from("<I", bytes(data[:_HEADER]).ljust(_HEADER, b"\0"))
        if stated > most:
            raise TooLargeError(most)
        return self.decode(data)

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        _check_size(data, out.nbytes)
        try:
            self._decompress(data, out)
        except (RuntimeError, ValueError) as error:
            raise DataLossError(f"corrupt lz4 data: {error}") from error


def _check_size(data: Buffer, size: int | None) -> None:
    if len(data) <= _HEADER:
        raise DataLossError(f"{len(data)} bytes are too few for lz4 data")
    (stated,) = unpack_from("<I", data)
    if size is not None and stated != size:
        raise size_error(stated, size)
    if stated > (len(data) - _HEADER) * _MOST_PER_BYTE:
        raise DataLossError(
            f"corrupt lz4 data: {len(data)} bytes cannot stand for {stated} bytes, as stated"
        )


@cache
def _library() -> tuple[Callable[[Buffer, int], bytes], Callable[..., bytes]]:
    from numcodecs.lz4 import compress, decompress  # noqa: PLC0415 - takes 60 ms

    return compress, decompress
