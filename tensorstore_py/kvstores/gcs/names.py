"""Names of objects: which keys can be one. The rules are those that the reference checks."""

from __future__ import annotations

import re
from typing import Final

from tensorstore_py.errors import SpecError

__all__ = ["check_key"]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MOST_BYTES: Final = 1024
_RESERVED: Final = ".well-known/acme-challenge"


def check_key(key: str) -> bytes:
    r"""The key as UTF-8.

    Raises:
        SpecError: the service has no such names.

    Example:
        >>> check_key("a/é")
        b'a/\xc3\xa9'
    """
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        raise _refused(key, "it is not valid UTF-8") from None
    if not encoded:
        raise _refused(key, "it is empty")
    if len(encoded) > _MOST_BYTES:
        raise _refused(key, f"it has {len(encoded)} bytes, and {_MOST_BYTES} is the most")
    if key in (".", ".."):
        raise _refused(key, "that name is reserved")
    if key.startswith(_RESERVED):
        raise _refused(key, f'names that begin with "{_RESERVED}" are reserved')
    if _CONTROL.search(key):
        raise _refused(key, "it has control characters in it")
    return encoded


def _refused(key: str, why: str) -> SpecError:
    shown = key if len(key) <= 60 else f"{key[:60]}…"
    return SpecError(f"the key {shown!r} cannot be the name of an object in a bucket: {why}")
