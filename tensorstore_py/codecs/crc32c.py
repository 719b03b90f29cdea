"""CRC-32C: four bytes that tell whether the data is still what was written.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/
Names: `crc32c` (zarr, zarr3), `numcodecs.crc32c` (zarr3).
Example: `{"name": "crc32c"}`; in version 2 `{"id": "crc32c", "location": "start"}`.
Limits: none. The checksum covers everything else and is stored little-endian. The invariant: bytes
that fail the check never leave here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tensorstore_py.plugin import (
    BytesToBytes,
    BytesToBytesSpec,
    Checksum,
    ChecksumSpec,
    ChunkType,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Crc32c", "Crc32cSpec", "Crc32cV2Spec", "NumcodecsCrc32cSpec"]


@codec("crc32c", family="zarr3")
class Crc32cSpec(BytesToBytesSpec):
    """Asked: `crc32c`. It has no members.

    Example:
        >>> Crc32cSpec().to_json()
        {}
    """

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Crc32c()


@codec("crc32c", family="zarr")
class Crc32cV2Spec(ChecksumSpec):
    """Asked: `crc32c`, the way version 2 writes it.

    Attributes:
        location: where the checksum stands; at the end if nothing is said.

    Example:
        >>> Crc32cV2Spec.parse({"location": "start"}).to_json()
        {'location': 'start'}
    """

    usual = "end"

    def function(self) -> Callable[[object], int]:
        return checksum_function()


@codec("numcodecs.crc32c", family="zarr3")
class NumcodecsCrc32cSpec(Crc32cV2Spec):
    """Asked: `numcodecs.crc32c`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsCrc32cSpec.codec_id
        'numcodecs.crc32c'
    """


class Crc32c(Checksum):
    """The bound codec."""

    def __init__(self) -> None:
        super().__init__("CRC-32C", checksum_function(), "end")


@cache
def checksum_function() -> Callable[[object], int]:
    """The fastest checksum function that is installed."""
    try:
        from google_crc32c import value  # noqa: PLC0415 - at first use
    except ImportError:
        return checksum_by_table
    function: Callable[[object], int] = value
    return function


def checksum_by_table(data: object) -> int:
    """CRC-32C, one byte at a time, for platforms that the library has no build for.

    Example:
        >>> hex(checksum_by_table(b"123456789"))
        '0xe3069283'
    """
    table = _table()
    register = 0xFFFFFFFF
    for byte in memoryview(data):  # type: ignore[arg-type]
        register = table[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


@cache
def _table() -> list[int]:
    table = []
    for register in range(256):
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
        table.append(register)
    return table
