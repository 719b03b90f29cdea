"""CRC-32C, which formats and services use to tell damaged data.

Source: RFC 3720, section 12.1.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["crc32c", "crc32c_by_table"]


def crc32c(data: Buffer) -> int:
    """The CRC-32C of some bytes; memory of any type serves that is contiguous.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    return _function()(data)


@cache
def _function() -> Callable[[Buffer], int]:
    """The fastest function that is installed."""
    try:
        from fastcrc import crc32  # noqa: PLC0415 - loads a shared library: only where it is needed
    except ImportError:
        return crc32c_by_table
    function: Callable[[Buffer], int] = crc32.iscsi
    return function


def crc32c_by_table(data: Buffer) -> int:
    """CRC-32C, one byte at a time, for platforms that the library has no build for.

    Example:
        >>> hex(crc32c_by_table(b"123456789"))
        '0xe3069283'
    """
    table = _table()
    register = 0xFFFFFFFF
    for byte in memoryview(data).cast("B"):
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
