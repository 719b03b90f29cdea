"""Listings: what to ask for, and a page of the answer.

A page is at most a thousand keys, and a listing holds one at a time. Keys are asked for
percent-encoded, since XML cannot say all of them. The keys of a page are in order, so a listing
ends with the first one that is past the range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote_plus

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.s3.address import encode
from tensorstore_py.kvstores.s3.xml_answer import named, parse_xml
from tensorstore_py.plugin import KeyRange, ListEntry, decode_key

if TYPE_CHECKING:
    from tensorstore_py.plugin import Buffer

__all__ = ["Page", "directory_query", "first_query", "next_query", "parse_page"]

_ROOT: Final = "ListBucketResult"


class Page(NamedTuple):
    """A page of a listing.

    Attributes:
        entries: keys and sizes.
        token: what to ask for the next page with; None if this is the last one.
        prefixes: what further keys begin with, if one level was asked for; end in `/`.
    """

    entries: list[ListEntry]
    token: str | None
    prefixes: tuple[str, ...] = ()


def first_query(key_range: KeyRange) -> str:
    """The query of the first page.

    Example:
        >>> first_query(KeyRange.prefix("a/"))
        'encoding-type=url&list-type=2&prefix=a%2F'
    """
    prefix = key_range.common_prefix()
    query = f"encoding-type=url&list-type=2&prefix={encode(prefix, '')}"
    low = decode_key(key_range.inclusive_min)
    if len(low) > len(prefix):
        query += f"&start-after={encode(_before(low), '')}"
    return query


def directory_query(prefix: str) -> str:
    """The query of the first page of one level.

    Args:
        prefix: ends in `/`, or is empty.

    Example:
        >>> directory_query("a/")
        'delimiter=%2F&encoding-type=url&list-type=2&prefix=a%2F'
    """
    return f"delimiter=%2F&encoding-type=url&list-type=2&prefix={encode(prefix, '')}"


def next_query(query: str, token: str) -> str:
    """The query of a further page."""
    return f"continuation-token={encode(token, '')}&{query.partition('&start-after=')[0]}"


def _before(key: str) -> str:
    """A key that is less than `key`, with few between."""
    head, last = key[:-1], ord(key[-1])
    if last == 0:
        return head  # there is nothing in between
    return head + chr(last - 1) + "~" if 0x21 < last < 0x7F else head


def parse_page(body: Buffer) -> Page:
    """What a page says.

    Raises:
        DataLossError: it is no page of a listing, or not all of one.
    """
    root = parse_xml(body, _ROOT)
    key_tag, size_tag, prefix_tag = (named(root, name) for name in ("Key", "Size", "Prefix"))
    is_encoded = (root.findtext(named(root, "EncodingType")) or "").strip() == "url"
    entries = []
    for item in root.findall(named(root, "Contents")):
        key = item.findtext(key_tag)
        if key is None:
            raise DataLossError("the server listed something without a key")
        size = (item.findtext(size_tag) or "").strip()
        is_number = size.isascii() and size.isdecimal()
        entries.append(ListEntry(_text(key, is_encoded), int(size) if is_number else -1))
    shared = [item.findtext(prefix_tag) for item in root.findall(named(root, "CommonPrefixes"))]
    prefixes = tuple(_text(prefix, is_encoded) for prefix in shared if prefix is not None)
    if len(prefixes) < len(shared):
        raise DataLossError("the server listed a common prefix without saying it")
    is_cut = (root.findtext(named(root, "IsTruncated")) or "").strip() == "true"
    if not is_cut:
        return Page(entries, None, prefixes)
    token = root.findtext(named(root, "NextContinuationToken"))
    if not token:
        raise DataLossError("the server listed a part and did not say how to go on")
    return Page(entries, token, prefixes)


def _text(text: str, is_encoded: bool) -> str:
    return unquote_plus(text, errors="surrogateescape") if is_encoded else text
