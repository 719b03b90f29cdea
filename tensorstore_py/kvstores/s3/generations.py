r"""Generations of values in S3: their ETags.

The layout is the reference's: a zero byte, and the ETag with its quotes. Servers that send ETags
without quotes get the same generations. A generation of any other form is of no value in S3.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["etag_of", "generation_of", "quoted"]

_ETAG: Final = re.compile(rb'\x00("[\x20\x21\x23-\x7e\x80-\xff]*")\Z')


def quoted(etag: str) -> str:
    """The ETag as HTTP has it.

    Example:
        >>> quoted("5f-2"), quoted('"5f-2"')
        ('"5f-2"', '"5f-2"')
    """
    etag = etag.strip()
    return etag if etag.startswith('"') else f'"{etag}"'


def generation_of(etag: str) -> bytes:
    r"""The generation of a value with an ETag.

    Example:
        >>> generation_of('"5f-2"')
        b'\x00"5f-2"'
    """
    return b"\0" + quoted(etag).encode("utf-8", "surrogateescape")


def etag_of(generation: bytes) -> str | None:
    r"""The ETag, with its quotes; None if no value can have that generation.

    Example:
        >>> etag_of(b'\x00"5f-2"'), etag_of(b"other")
        ('"5f-2"', None)
    """
    found = _ETAG.match(generation)
    return None if found is None else found[1].decode("utf-8", "surrogateescape")
