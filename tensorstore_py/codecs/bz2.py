"""Bzip2: small and slow.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/bz2.html
Names: `bz2` (zarr), `numcodecs.bz2` (zarr3), `bzip2` (n5).
Example: `{"id": "bz2", "level": 1}`.
Limits: every block of up to `level` times 100 kB is one unit of work and of loss. A value may be
several streams one behind the other, as parallel compressors write them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated

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

__all__ = ["Bz2", "Bz2Spec", "N5Bzip2Spec", "NumcodecsBz2Spec"]


@codec("bz2", family="zarr")
class Bz2Spec(BytesToBytesSpec):
    """Asked: `bz2`.

    Attributes:
        level: block size in units of 100 kB, 1 to 9.

    Example:
        >>> Bz2Spec.parse({"level": 9}).to_json()
        {'level': 9}
    """

    level: Annotated[int, Level(1, 9)] = 1

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Bz2(self.level)


@codec("numcodecs.bz2", family="zarr3")
class NumcodecsBz2Spec(Bz2Spec):
    """Asked: `numcodecs.bz2`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsBz2Spec.codec_id
        'numcodecs.bz2'
    """


@codec("bzip2", family="n5")
class N5Bzip2Spec(BytesToBytesSpec):
    """Asked: `bzip2`, the way n5 writes it.

    Attributes:
        blockSize: in units of 100 kB, 1 to 9.

    Example:
        >>> N5Bzip2Spec.parse({}).to_json(include_defaults=True)
        {'blockSize': 9}
    """

    block_size: Annotated[int, Level(1, 9)] = Field(default=9, alias="blockSize")

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Bz2(self.block_size)


class Bz2(StreamCodec):
    """The bound codec.

    Args:
        level: as in the spec.
    """

    def __init__(self, level: int) -> None:
        compress, start = _library()
        super().__init__(
            "bzip2",
            lambda data: compress(data, level),
            start,
            (OSError, ValueError),
            unlimited=-1,
        )


@cache
def _library() -> tuple[Callable[[Buffer, int], bytes], Callable[[], StreamDecoder]]:
    from bz2 import BZ2Decompressor, compress  # noqa: PLC0415 - at first use

    return compress, BZ2Decompressor
