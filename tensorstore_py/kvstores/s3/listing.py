"""Listings: what to ask for, and a page of the answer.

A page is at most a thousand keys, and a listing holds one at a time. Keys are asked for
percent-encoded, since XML cannot say all of them. The keys of a page are in order, so a listing
ends with the first one that is past the range.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.s3.address import encode
from tensorstore_py.plugin import KeyRange, ListEntry, decode_key

__all__ = ["Page", "directory_query", "first_query", "next_query", "parse_page"]

_CONTENTS: Final = re.compile(rb"<Contents>(.*?)</Contents>", re.DOTALL)
_KEY: Final = re.compile(rb"<Key>(.*?)</Key>", re.DOTALL)
_PREFIX: Final = re.compile(
    rb"<CommonPrefixes>\s*<Prefix>(.*?)</Prefix>\s*</CommonPrefixes>", re.DOTALL
)
_SIZE: Final = re.compile(rb"<Size>\s*(\d+)\s*</Size>")
_TOKEN: Final = re.compile(rb"<NextContinuationToken>(.*?)</NextContinuationToken>", re.DOTALL)
_TRUNCATED: Final = re.compile(rb"<IsTruncated>\s*true\s*</IsTruncated>")
_ENCODED: Final = re.compile(rb"<EncodingType>\s*url\s*</EncodingType>")
_ROOT: Final = re.compile(rb"\s*(?:<\?xml[^>]*\?>\s*)?<ListBucketResult[\s>/]")


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


def parse_page(body: bytes) -> Page:
    """What a page says.

    Raises:
        DataLossError: it is no page of a listing.
    """
    if _ROOT.match(body) is None:
        raise DataLossError("the server answered a listing with something else")
    is_encoded = _ENCODED.search(body) is not None
    entries = []
    for found in _CONTENTS.finditer(body):
        item = found[1]
        key = _KEY.search(item)
        if key is None:
            raise DataLossError("the server listed something without a key")
        size = _SIZE.search(item)
        entries.append(ListEntry(_text(key[1], is_encoded), int(size[1]) if size else -1))
    shared = _PREFIX.findall(body)
    prefixes = tuple(_text(prefix, is_encoded) for prefix in shared)
    if _TRUNCATED.search(body) is None:
        return Page(entries, None, prefixes)
    token = _TOKEN.search(body)
    if token is None:
        raise DataLossError("the server listed a part and did not say how to go on")
    return Page(entries, _text(token[1], is_encoded=False), prefixes)


def _text(raw: bytes, is_encoded: bool) -> str:
    text = unescape(raw.decode("utf-8", "surrogateescape"))
    return unquote_plus(text, errors="surrogateescape") if is_encoded else text
