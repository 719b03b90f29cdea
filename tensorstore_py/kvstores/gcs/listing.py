"""Listings: what to ask for a range of keys, and what a page of the answer says.

The service compares names as bytes of UTF-8, as we do, but takes bounds as text only. A bound that
is none is replaced by one that lets more in, and what is outside is dropped here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin import ListEntry

if TYPE_CHECKING:
    from tensorstore_py.plugin import Buffer, KeyRange

__all__ = ["Page", "directory_parameters", "json_object", "listing_parameters", "parse_page"]

_PAGE: Final = 1000
_FIELDS: Final = "items(name,size),nextPageToken"


class Page(NamedTuple):
    """A page of a listing.

    Attributes:
        entries: keys and sizes.
        token: what to ask for the next page with; empty after the last one.
        prefixes: what further keys begin with, if one level was asked for; end in `/`.
    """

    entries: list[ListEntry]
    token: str
    prefixes: tuple[str, ...]


def listing_parameters(key_range: KeyRange) -> dict[str, str]:
    r"""What to ask for; the range must not be empty.

    Example:
        >>> from tensorstore_py.plugin import KeyRange
        >>> found = listing_parameters(KeyRange(b"a/1", b"a/7\0"))
        >>> found["prefix"], found["startOffset"], found["endOffset"]
        ('a/', 'a/1', 'a/7!')
    """
    asked = {"maxResults": str(_PAGE), "fields": _FIELDS}
    prefix = _sendable(key_range.common_prefix().encode("utf-8", "surrogateescape"))
    if prefix:
        asked["prefix"] = prefix
    low = _sendable(key_range.inclusive_min)
    if low and low != prefix:
        asked["startOffset"] = low
    high = _sendable(key_range.exclusive_max)
    if high.encode() != key_range.exclusive_max:
        # Names have no control characters, so this lets in all that the rest of the bound may.
        high = f"{high}!" if key_range.exclusive_max[len(high.encode())] < 0x20 else ""
    if high:
        asked["endOffset"] = high
    return asked


def directory_parameters(prefix: str) -> dict[str, str]:
    """What to ask for one level.

    Args:
        prefix: ends in `/`, or is empty; names cannot be sent that are no text.

    Example:
        >>> directory_parameters("a/")["delimiter"]
        '/'
    """
    asked = {"maxResults": str(_PAGE), "fields": f"prefixes,{_FIELDS}", "delimiter": "/"}
    return asked | ({"prefix": prefix} if prefix else {})


def _sendable(bound: bytes) -> str:
    """The longest beginning that is text without control characters."""
    text = bound.decode("utf-8", "surrogateescape")
    for at, character in enumerate(text):
        if not character.isprintable() and (character < " " or "\ud800" <= character <= "\udfff"):
            return text[:at]
    return text


def parse_page(body: Buffer) -> Page:
    """What a page says.

    Raises:
        DataLossError: it is no page, or not all of one.
    """
    page = json_object(body)
    try:
        entries = [
            ListEntry(str(item["name"]), int(item.get("size", -1)))
            for item in page.get("items", ())
        ]
        prefixes = tuple(str(prefix) for prefix in page.get("prefixes", ()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataLossError(f"the service sent no listing ({type(error).__name__})") from None
    return Page(entries, str(page.get("nextPageToken") or ""), prefixes)


def json_object(body: Buffer) -> dict[str, Any]:
    """An answer of the service, of which every one in JSON is an object.

    Raises:
        DataLossError: it is not whole, or something else.
    """
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError) as error:
        raise DataLossError(
            f"the service's answer is no whole JSON document ({type(error).__name__})"
        ) from None
    if not isinstance(found, dict):
        raise DataLossError("the service's answer is no JSON object")
    return found
