"""Generations from what a server says of a value: its ETag, else the date of its last change.

The layout is the reference's: a zero byte and the text of a strong ETag. Where there is none, a
date that is certain to change with the value will do; it cannot be sent as a condition, so it is
compared here. The invariant: two values with the same generation are the same value, unless the
server gives no sign at all, which is the generation `NO_SIGN`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tensorstore_py.plugin import UNKNOWN, http_date

__all__ = ["NO_SIGN", "etag_of", "generation_of", "is_unchanged"]

#: The reference's, too: there is a value, and nothing is known of its version.
NO_SIGN: Final = b"\x10"
_BY_DATE: Final = b"\x01"
_STRONG: Final = re.compile(r'\s*"([^"]+)"\s*\Z')
#: What may go into a header between quotes.
_SENDABLE: Final = re.compile(rb"\x00[\x20\x21\x23-\x7e]+\Z")


def generation_of(headers: Mapping[str, str], size: int | None) -> bytes:
    r"""The generation of a value.

    Args:
        headers: of a successful answer.
        size: of the whole value, if it is known.

    Example:
        >>> generation_of({"ETag": '"5f-2"'}, 10), generation_of({"ETag": 'W/"5f"'}, 10)
        (b'\x005f-2', b'\x10')
    """
    etag = _STRONG.match(headers.get("ETag", ""))
    if etag is not None:
        return b"\0" + etag[1].encode("utf-8", "surrogateescape")
    text = headers.get("Last-Modified")
    changed, now = http_date(text), http_date(headers.get("Date"))
    # A date counts seconds: within the second of a change there may be another one.
    if text is None or changed is None or now is None or now <= changed or size is None:
        return NO_SIGN
    return _BY_DATE + f"{changed:.0f}:{size}".encode()


def etag_of(generation: bytes) -> str | None:
    r"""The ETag to send as a condition; None if the generation is not made of one.

    Example:
        >>> etag_of(b"\x005f-2"), etag_of(b"\x10")
        ('"5f-2"', None)
    """
    if _SENDABLE.match(generation) is None:
        return None
    return f'"{generation[1:].decode()}"'


def is_unchanged(generation: bytes, if_not_equal: bytes | None) -> bool:
    """Whether the generation proves that a caller who has `if_not_equal` need not be sent it."""
    return generation == if_not_equal and generation not in (NO_SIGN, UNKNOWN)
