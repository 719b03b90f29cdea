"""Writes under a condition: what a server can do about them, and how it wants to be told.

AWS heeds `If-Match` and `If-None-Match`. Of another server it is found out before the first
conditional write: a write under a condition that cannot hold has to be refused. Some servers only
understand ETags without their quotes, which shows when one is refused that is right. The invariant:
a conditional write is never sent to a server that is not known to heed conditions, unless the user
declared that it does.
"""

from __future__ import annotations

import enum
import secrets
from typing import Final

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.plugin import HttpResponse

__all__ = ["Quotes", "ServerConditions", "conditions_of"]

#: An ETag that no value has: it is no MD5, nor what any server makes.
_IMPOSSIBLE: Final = '"00000000000000000000000000000000-0"'
_REFUSED: Final = frozenset({404, 409, 412})
_DELETED: Final = frozenset({200, 204, 404})
_NOT_UNDERSTOOD: Final = frozenset({400, 405, 501})


class Quotes(enum.Enum):
    """How a server wants ETags in `If-Match` of a write.

    Attributes:
        UNKNOWN: as they are, until one is refused that is right.
        KEPT: as they are.
        DROPPED: without their quotes.
    """

    UNKNOWN = enum.auto()
    KEPT = enum.auto()
    DROPPED = enum.auto()


class ServerConditions:
    """What is known of one server; shared by all stores that talk to it.

    Attributes:
        heeded: whether it heeds conditions of writes; None as long as that is not known.
        quotes: how it wants ETags.
    """

    __slots__ = ("heeded", "quotes")

    def __init__(self) -> None:
        self.heeded: bool | None = None
        self.quotes = Quotes.UNKNOWN

    def if_match(self, etag: str) -> str:
        """What to send for an ETag."""
        return etag.strip('"') if self.quotes is Quotes.DROPPED else etag

    async def require(self, bucket: S3Bucket, key: str) -> None:
        """Make sure that the server heeds conditions.

        Args:
            bucket: of the server.
            key: about to be written; a name beside it is tried out.

        Raises:
            UnsupportedError: it does not.
        """
        if self.heeded is None:
            self.heeded = (await bucket.address()).is_aws or await _tried_out(bucket, key)
        if not self.heeded:
            raise UnsupportedError(
                f"cannot write {bucket.describe(key)} under a condition: the server has no "
                f"conditional writes, so that two writers could undo each other's work; if there "
                f'is only one, say so by "use_conditional_write": false'
            )


_known: dict[str, ServerConditions] = {}


def conditions_of(base: str) -> ServerConditions:
    """What is known of the server of a bucket's URL."""
    return _known.setdefault(base, ServerConditions())


async def _tried_out(bucket: S3Bucket, key: str) -> bool:
    """Whether a write that cannot be right is refused; nothing is stored if it is."""
    scratch = f"{key[:400]}.{secrets.token_hex(8)}.tensorstore-condition-test"
    headers = {"If-Match": _IMPOSSIBLE}
    statuses = _REFUSED | _NOT_UNDERSTOOD | {200}
    response: HttpResponse = await bucket.send(
        "PUT", scratch, headers, statuses, action="test conditional writes at", body=b""
    )
    if response.status == 200:
        await bucket.send("DELETE", scratch, {}, _DELETED, action="delete")
        return False
    return response.status in _REFUSED
