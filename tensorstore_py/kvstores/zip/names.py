"""Names of entries, to and from keys. Pure; nothing here knows of positions or data.

Names are UTF-8 where they say so (bit 11), or where they happen to be: the reference writes UTF-8
and does not say so. All others are in code page 437, as the format's own specification has it.
"""

from __future__ import annotations

import struct
from binascii import crc32
from typing import Final

from tensorstore_py.errors import SpecError

__all__ = ["UTF8", "encode_name", "key_of"]

#: The flag of names in UTF-8.
UTF8: Final = 0x800
_UNICODE_PATH: Final = 0x7075
_LONGEST: Final = 0xFFFF


def key_of(name: bytes, flags: int, extra: bytes) -> str:
    r"""The key that a name stands for.

    Args:
        name: as stored.
        flags: of the entry.
        extra: its extra fields, one of which may have the name once more, in UTF-8.

    Example:
        >>> key_of("é".encode(), 0, b""), key_of(b"\x82", 0, b"")
        ('é', 'é')
    """
    if name.isascii():
        return name.decode("ascii")
    if flags & UTF8:
        return name.decode("utf-8", "surrogateescape")
    for kind, data in fields(extra):
        belongs = data[1:5] == crc32(name).to_bytes(4, "little")
        if kind == _UNICODE_PATH and data[:1] == b"\1" and belongs:
            return data[5:].decode("utf-8", "surrogateescape")
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("cp437")


def encode_name(key: str) -> tuple[bytes, int]:
    r"""The name for a new entry, and its flags.

    Raises:
        SpecError: no entry can have that name; names the key.

    Example:
        >>> encode_name("a/b"), encode_name("é")
        ((b'a/b', 0), (b'\xc3\xa9', 2048))
    """
    if not key or key.endswith("/"):
        raise SpecError(
            f'a zip archive has no value under the key "{key}": names that are empty or end in "/" '
            "are directories; use another key"
        )
    try:
        name = key.encode("utf-8")
    except UnicodeEncodeError:
        shown = key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise SpecError(
            f'a zip archive cannot have the key "{shown}": names are text; use another key'
        ) from None
    if "\0" in key or len(name) > _LONGEST:
        raise SpecError(
            f'a zip archive cannot have the key "{key[:80]}": names have no NUL and at most '
            f"{_LONGEST} bytes; use another key"
        )
    return name, 0 if name.isascii() else UTF8


def fields(extra: bytes) -> list[tuple[int, bytes]]:
    """The extra fields by their numbers, as far as they are well-formed."""
    found, place = [], 0
    while place + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, place)
        place += 4
        if place + size > len(extra):
            break
        found.append((kind, extra[place : place + size]))
        place += size
    return found
