"""Deleting many keys by one request, where the server can do that.

What it cannot delete, or says that it did not, is deleted one by one, which gives proper errors.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, cast
from xml.sax.saxutils import escape

from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.xml_answer import named, parse_xml
from tensorstore_py.plugin import HttpResponse, fan_out

__all__ = ["BatchDeletes"]

_UNABLE: Final = frozenset({400, 403, 405, 501})
#: What XML cannot say, or parsers change.
_UNSAYABLE: Final = re.compile(r"[\x00-\x1f\x7f\ufffe\uffff]")


class BatchDeletes:
    """Deletes the keys of pages of a listing.

    Args:
        bucket: where.
        delete: deletes one key.
        width: how many requests at a time, if it has to be one by one.
    """

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
