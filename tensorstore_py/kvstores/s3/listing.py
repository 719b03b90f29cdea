"""Many keys at once: what to ask for, a page of the answer, and deleting the keys of a page.

A page is at most a thousand keys, and a listing holds one at a time. Keys are asked for
percent-encoded, since XML cannot say all of them. The keys of a page are in order, so a listing
ends with the first one that is past the range. What a server cannot delete by one request, or says
that it did not, is deleted one by one, which gives proper errors.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.s3.address import encode
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.dialect import named, parse_xml
from tensorstore_py.plugin.http import HttpResponse, Page, whole_number
from tensorstore_py.plugin.kvstore import KeyRange, ListEntry, fan_out

if TYPE_CHECKING:
    from tensorstore_py.plugin.kvstore import Buffer


__all__ = [
    "BatchDeletes",
    "directory_query",
    "first_query",
    "next_query",
    "parse_page",
    "parse_uploads",
]

_ROOT: Final = "ListBucketResult"


def first_query(key_range: KeyRange) -> str:
    """The query of the first page.

    Example:
        >>> first_query(KeyRange.prefix("a/"))
        'encoding-type=url&list-type=2&prefix=a%2F'
    """
    prefix = key_range.common_prefix()
    query = f"encoding-type=url&list-type=2&prefix={encode(prefix, '')}"
    low = key_range.inclusive_min.decode("utf-8", "surrogateescape")
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
        size = whole_number((item.findtext(size_tag) or "").strip())
        entries.append(ListEntry(_text(key, is_encoded), -1 if size is None else size))
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


def parse_uploads(body: Buffer) -> list[str]:
    """The keys of uploads in parts that were begun and not ended, of the first page.

    Raises:
        DataLossError: it is no listing of uploads.
    """
    root = parse_xml(body, "ListMultipartUploadsResult")
    is_encoded = (root.findtext(named(root, "EncodingType")) or "").strip() == "url"
    keys = [item.findtext(named(root, "Key")) for item in root.findall(named(root, "Upload"))]
    return [_text(key, is_encoded) for key in keys if key is not None]


def _text(text: str, is_encoded: bool) -> str:
    return unquote_plus(text, errors="surrogateescape") if is_encoded else text


_UNABLE: Final = frozenset({400, 403, 405, 501})
#: What XML cannot say, or parsers change.
_UNSAYABLE: Final = re.compile(r"[\x00-\x1f\x7f\ufffe\uffff]")


class BatchDeletes:
    """Deletes the keys of pages of a listing."""

    def __init__(
        self, bucket: S3Bucket, delete: Callable[[str], Awaitable[object]], width: int
    ) -> None:
        self._bucket = bucket
        self._delete = delete
        self._width = width
        self._is_able = True

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete at most a thousand keys.

        Raises:
            TensorStoreError: a key could not be deleted.
        """
        left = [key for key in keys if _UNSAYABLE.search(key)] if self._is_able else list(keys)
        sayable = [key for key in keys if not _UNSAYABLE.search(key)] if self._is_able else []
        if len(sayable) == 1:
            left += sayable
        elif sayable:
            left += await self._together(sayable)

        async def one(key: str) -> None:
            await self._delete(key)

        await fan_out(False, left, one, count=len(left), width=self._width)

    async def _together(self, keys: Sequence[str]) -> Sequence[str]:
        """Delete several keys; returns those that are left."""
        items = "".join([f"<Object><Key>{escape(key)}</Key></Object>" for key in keys])
        body = (
            f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>{items}'
            f"</Delete>"
        ).encode()
        digest = hashlib.md5(body, usedforsecurity=False).digest()
        headers = {"Content-MD5": b64encode(digest).decode(), "Content-Type": "application/xml"}
        statuses = _UNABLE | {200, 204}
        response = await self._bucket.send(
            "POST",
            "",
            headers,
            statuses,
            action="delete",
            query="delete=",
            body=body,
            parse=_left,
        )
        if response.status in _UNABLE:
            self._is_able = response.status == 403  # of this page some may be allowed
            return keys
        return keys if response.parsed is None else cast(Sequence[str], response.parsed)


def _left(response: HttpResponse) -> Sequence[str] | None:
    """The keys that an answer says were not deleted; None if it does not say of all which.

    Raises:
        DataLossError: it is not whole.
    """
    if response.status != 200:
        return None
    root = parse_xml(response.body, "DeleteResult")
    failed = [item.findtext(named(root, "Key")) for item in root.findall(named(root, "Error"))]
    left = [key for key in failed if key]
    return left if len(left) == len(failed) else None
