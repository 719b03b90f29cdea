"""How values get into a bucket and out of it: plainly, in parts, and under conditions.

The invariant: of two conditional writers of one generation at most one is told that it succeeded,
also where the answer to its write got lost. Every conditional write has a mark of its own for that,
since two writers may write the same bytes; where it does not tell any more, an error says so.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tensorstore_py.errors import AbortedError, UnsupportedError
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.conditions import Quotes, ServerConditions, conditions_of
from tensorstore_py.kvstores.s3.generations import etag_of, generation_of
from tensorstore_py.kvstores.s3.multipart import LARGE_BYTES, PART_BYTES, put_parts
from tensorstore_py.kvstores.s3.signer import checksum_header
from tensorstore_py.plugin import (
    NO_VALUE,
    UNKNOWN,
    Buffer,
    ByteRange,
    Gate,
    HttpResponse,
    TimestampedStorageGeneration,
    holds,
)

__all__ = ["S3Writes", "stored_generation"]

_WRITTEN: Final = frozenset({200, 201, 204})
_REFUSED: Final = frozenset({404, 412})
_LOOKED: Final = frozenset({200, 206, 404})
_DELETED: Final = frozenset({200, 202, 204, 404})
#: Says whose write a value is, so that one whose answer got lost can be told from another's.
_MARK: Final = "x-amz-meta-tensorstore-write"
#: S3's limit of one request.
_MOST_AT_ONCE: Final = 5 * 2**30

Settle = Callable[[], Awaitable[HttpResponse | None]]


class _Mark:
    """What only one write has, and what that one replaces.

    Attributes:
        text: as it is stored beside the value.
        seen: the one that was found instead.
    """

    def __init__(self, conditions: Mapping[str, str]) -> None:
        replaced = conditions.get("If-Match", "none").strip('"')
        self.text = f"{replaced}/{secrets.token_hex(12)}"
        self.seen = ""

    @property
    def is_others_turn(self) -> bool:
        """Whether another write replaced what this one meant to."""
        return self.seen.partition("/")[0] == self.text.partition("/")[0]


class S3Writes:
    """Writes to one bucket.

    Args:
        bucket: where.
        use_conditional_write: see `S3Store`.
        large_bytes: values of more bytes go in parts.
        part_bytes: how large a part is.
    """

    def __init__(
        self,
        bucket: S3Bucket,
        use_conditional_write: bool | None,
        *,
        large_bytes: int = LARGE_BYTES,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._bucket = bucket
        self._declared = use_conditional_write
        self._large_bytes = large_bytes
        self._part_bytes = part_bytes
        self._conditions: ServerConditions | None = None
        self._gate = Gate(inline=False)

    async def put(self, key: str, value: Buffer) -> TimestampedStorageGeneration:
        """Write a value, whatever is there."""
        response = await self._send(key, _flat(value), {})
        return await self._stored(key, response)

    async def delete(self, key: str) -> TimestampedStorageGeneration:
        """Delete a key, whatever is there."""
        response = await self._bucket.send("DELETE", key, {}, _DELETED, action="delete")
        return TimestampedStorageGeneration(NO_VALUE, response.time)

    async def put_if(
        self, key: str, value: Buffer, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        """Write a value where a generation is; see `KvStore.write`."""
        if if_equal != NO_VALUE and etag_of(if_equal) is None:
            return _refused(time.time())  # no value of S3's has such a generation
        if self._declared is not False:
            return await self._put_under_condition(key, _flat(value), if_equal)
        async with self._gate.hold(key):
            found = await self.look(key)
            if not holds(if_equal, stored_generation(found)):
                return _refused(found.time)
            return await self.put(key, value)

    async def delete_if(self, key: str, if_equal: bytes) -> TimestampedStorageGeneration:
        """Delete where a generation is.

        The store looks first, since some servers heed conditions of a write and not of this.
        """
        if if_equal != NO_VALUE and etag_of(if_equal) is None:
            return _refused(time.time())
        async with self._gate.hold(key):
            found = await self.look(key)
            if not holds(if_equal, stored_generation(found)):
                return _refused(found.time)
            if found.status == 404:
                return TimestampedStorageGeneration(NO_VALUE, found.time)
            return await self._delete_under_condition(key, if_equal)

    async def look(self, key: str) -> HttpResponse:
        """What is there, without its bytes; status 404 if nothing is.

        A read of no bytes, since errors say what they are about, and answers to HEAD cannot.
        """
        headers = {"Range": "bytes=0-0"}
        response = await self._bucket.send(
            "GET", key, headers, _LOOKED, action="look at", byte_range=ByteRange(0, 0)
        )
        if response.status == 206 and "ETag" not in response.headers:  # there are no bytes
            response = await self._bucket.send("HEAD", key, {}, _LOOKED, action="look at")
            response.size = int(response.headers.get("Content-Length", "0"))
        return response

    async def _put_under_condition(
        self, key: str, body: Buffer, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        conditions = await self._server()
        if self._declared is None and not conditions.heeded:
            await conditions.require(self._bucket, key)
        etag = etag_of(if_equal)
        if etag is None:
            response = await self._send(key, body, {"If-None-Match": "*"})
        else:
            response = await self._send(key, body, {"If-Match": conditions.if_match(etag)})
            if conditions.quotes is Quotes.UNKNOWN:
                conditions.quotes = Quotes.UNKNOWN if response.status in _REFUSED else Quotes.KEPT
                if response.status == 412:
                    if stored_generation(await self.look(key)) != if_equal:
                        return _refused(response.time)
                    response = await self._send(key, body, {"If-Match": etag.strip('"')})
                    if response.status in _WRITTEN:
                        conditions.quotes = Quotes.DROPPED
        if response.status in _REFUSED:
            return _refused(response.time)
        return await self._stored(key, response)

    async def _send(self, key: str, body: Buffer, conditions: Mapping[str, str]) -> HttpResponse:
        """Send a value in one request or several."""
        is_aws = (await self._bucket.address()).is_aws
        expected = _WRITTEN | _REFUSED if conditions else _WRITTEN
        mark = _Mark(conditions)

        async def settle() -> HttpResponse | None:
            found = await self.look(key)
            mark.seen = found.headers.get(_MARK, "")
            return found if mark.seen == mark.text else None

        # Putting parts together under a condition is what only AWS is known to do.
        if len(body) > (self._large_bytes if is_aws or not conditions else _MOST_AT_ONCE):
            if conditions and not is_aws:
                raise UnsupportedError(
                    f"cannot write {self._bucket.describe(key)} under a condition: {len(body)} "
                    f"bytes are more than one request takes; store it in smaller values"
                )
            response = await put_parts(
                self._bucket,
                key,
                body,
                {_MARK: mark.text},
                conditions,
                expected,
                settle,
                self._part_bytes,
            )
        else:
            # Other servers refuse headers that they do not know.
            headers = {**conditions, **(await checksum_header(body) if is_aws else {})}
            if conditions:
                headers[_MARK] = mark.text
            response = await self._bucket.send(
                "PUT", key, headers, expected, action="write", body=body, settle=settle
            )
        if response.status in _REFUSED and response.lost and not mark.is_others_turn:
            raise AbortedError(
                f"cannot tell whether {self._bucket.describe(key)} was written: the answer was "
                f"lost, and by now something else is there; read it, and decide what is left to do"
            )
        return response

    async def _delete_under_condition(
        self, key: str, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        etag = etag_of(if_equal)
        assert etag is not None
        headers = {"If-Match": (await self._server()).if_match(etag)}
        response = await self._bucket.send(
            "DELETE", key, headers, _DELETED | {412, 501}, action="delete"
        )
        if response.status == 501:
            return await self.delete(key)
        if response.status in _REFUSED:
            lost = response.ambiguous and (await self.look(key)).status == 404
            if not lost:
                return _refused(response.time)
        return TimestampedStorageGeneration(NO_VALUE, response.time)

    async def _server(self) -> ServerConditions:
        if self._conditions is None:
            self._conditions = conditions_of((await self._bucket.address()).base)
        return self._conditions

    async def _stored(self, key: str, response: HttpResponse) -> TimestampedStorageGeneration:
        """The stamp of what was written."""
        if "ETag" not in response.headers:
            response = await self.look(key)
        return TimestampedStorageGeneration(stored_generation(response), response.time)


def stored_generation(response: HttpResponse) -> bytes:
    """The generation of what an answer is about.

    Raises:
        UnsupportedError: the server gives no ETags.
    """
    if response.status == 404:
        return NO_VALUE
    etag = response.headers.get("ETag")
    if not etag:
        raise UnsupportedError("the server says no ETag of a value, which is its generation in S3")
    return generation_of(etag)


def _refused(at: float) -> TimestampedStorageGeneration:
    return TimestampedStorageGeneration(UNKNOWN, at)


def _flat(value: Buffer) -> Buffer:
    return value.cast("B") if isinstance(value, memoryview) else value
