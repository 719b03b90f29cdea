"""The S3 store: values in a bucket.

A read is one GET and a write one PUT, or several for a large value. Conditions are the server's
where it heeds them. The invariant: of two conditional writers of one generation at most one is told
that it succeeded, also where the answer to its write got lost.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import OutOfRangeError, SpecError, UnsupportedError
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.conditions import Quotes, ServerConditions, conditions_of
from tensorstore_py.kvstores.s3.generations import etag_of, generation_of
from tensorstore_py.kvstores.s3.listing import first_query, next_query, parse_page
from tensorstore_py.kvstores.s3.signer import checksum_header
from tensorstore_py.plugin import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    ByteRange,
    Gate,
    HttpResponse,
    KeyRange,
    KvStore,
    ListEntry,
    ReadResult,
    TimestampedStorageGeneration,
    holds,
    range_header,
    read_coalesced,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["S3Store"]

Results = list[ReadResult]

_READ: Final = frozenset({*range(200, 300), 404})
_WRITTEN: Final = frozenset({200, 201, 204})
_DELETED: Final = frozenset({200, 202, 204, 404})
_LOOKED: Final = frozenset({200, 404})
#: Says whose write a value is, so that one whose answer got lost can be told from another's.
_MARK: Final = "x-amz-meta-tensorstore-write"
_LONGEST_KEY: Final = 1024


class S3Store(KvStore):
    """Values in a bucket.

    Args:
        bucket: where.
        width: how many requests there may be at a time.
        use_conditional_write: True: the server heeds conditions of writes. False: it does not, and
            the store looks first, which is safe for one writer at a time. None: found out.
    """

    inline = False

    def __init__(
        self, bucket: S3Bucket, *, width: int = 32, use_conditional_write: bool | None = None
    ) -> None:
        self.width = width
        self._bucket = bucket
        self._declared = use_conditional_write
        self._conditions: ServerConditions | None = None
        self._gate = Gate(inline=False)

    def describe_key(self, key: str) -> str:
        return self._bucket.describe(key)

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        _check_key(key)
        headers = {}
        wanted = range_header(byte_range)
        if wanted is None:
            headers["x-amz-checksum-mode"] = "ENABLED"
        else:
            headers["Range"] = wanted
        expected = _READ
        if if_equal and (etag := etag_of(if_equal)) is not None:
            headers["If-Match"] = etag
            expected |= {412}
        if if_not_equal and (etag := etag_of(if_not_equal)) is not None:
            headers["If-None-Match"] = etag
            expected |= {304}
        try:
            response = await self._bucket.send(
                "GET", key, headers, expected, action="read", byte_range=byte_range
            )
        except OutOfRangeError:
            # Some servers do not say how large the value is: nothing may be all that was asked for.
            if byte_range.start <= 0 or byte_range.stop is not None:
                raise
            response = await self._look(key)
            if response.headers.get("Content-Length") != str(byte_range.start):
                raise
        if response.status == 206 and "ETag" not in response.headers:
            response = await self._look(key)  # no bytes of a value that has none
        return _result(response, if_equal, if_not_equal)

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        async def read(byte_range: ByteRange) -> ReadResult:
            return await self.read(key, byte_range)

        return await read_coalesced(read, ranges, width=self.width)

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        if key_range.empty:
            return
        last = key_range.exclusive_max
        first = first_query(key_range)
        query: str | None = first
        while query is not None:
            response = await self._bucket.send("GET", "", {}, {200}, action="list", query=query)
            page = parse_page(bytes(response.body))
            for entry in page.entries:
                if entry.key in key_range:
                    yield entry
                elif last and entry.key.encode("utf-8", "surrogateescape") >= last:
                    return
            query = None if page.token is None else next_query(first, page.token)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        _check_key(key)
        if if_equal:
            return await self._write_if(key, value, if_equal)
        return await self._delete(key) if value is None else await self._put(key, value)

    async def _put(self, key: str, value: Buffer) -> TimestampedStorageGeneration:
        body = _flat(value)
        response = await self._bucket.send(
            "PUT", key, await self._body_headers(body), _WRITTEN, action="write", body=body
        )
        return await self._stored(key, response)

    async def _delete(self, key: str) -> TimestampedStorageGeneration:
        response = await self._bucket.send("DELETE", key, {}, _DELETED, action="delete")
        return TimestampedStorageGeneration(NO_VALUE, response.time)

    async def _write_if(
        self, key: str, value: Buffer | None, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        if if_equal != NO_VALUE and etag_of(if_equal) is None:
            return _refused(time.time())  # no value of S3's has such a generation
        if value is None:
            async with self._gate.hold(key):
                return await self._delete_if(key, if_equal)
        if self._declared is not False:
            return await self._put_if(key, _flat(value), if_equal)
        async with self._gate.hold(key):
            found = await self._look(key)
            if not holds(if_equal, _generation(found)):
                return _refused(found.time)
            return await self._put(key, value)

    async def _put_if(
        self, key: str, body: Buffer, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        """Write under a condition that the server checks."""
        conditions = await self._checked_conditions(key)
        etag = etag_of(if_equal)
        mark = secrets.token_hex(16)
        headers = {**await self._body_headers(body), _MARK: mark}
        if etag is None:
            headers["If-None-Match"] = "*"
        else:
            headers["If-Match"] = conditions.if_match(etag)

        async def settle() -> HttpResponse | None:
            found = await self._look(key)
            return found if found.headers.get(_MARK) == mark else None

        async def put() -> HttpResponse:
            return await self._bucket.send(
                "PUT",
                key,
                headers,
                _WRITTEN | {404, 412},
                action="write",
                body=body,
                settle=settle,
            )

        response = await put()
        if etag is not None and conditions.quotes is Quotes.UNKNOWN:
            if response.status == 412:
                if _generation(await self._look(key)) != if_equal:
                    return _refused(response.time)
                headers["If-Match"] = etag.strip('"')
                response = await put()
                if response.status in _WRITTEN:
                    conditions.quotes = Quotes.DROPPED
            elif response.status in _WRITTEN:
                conditions.quotes = Quotes.KEPT
        if response.status in (404, 412):
            return _refused(response.time)
        return await self._stored(key, response)

    async def _delete_if(self, key: str, if_equal: bytes) -> TimestampedStorageGeneration:
        """Delete under a condition, which not all servers check that check one of a write."""
        found = await self._look(key)
        if not holds(if_equal, _generation(found)):
            return _refused(found.time)
        if found.status == 404:
            return TimestampedStorageGeneration(NO_VALUE, found.time)
        etag = etag_of(if_equal)
        assert etag is not None
        conditions = await self._server()
        headers = {"If-Match": conditions.if_match(etag)}
        response = await self._bucket.send(
            "DELETE", key, headers, _DELETED | {412, 501}, action="delete"
        )
        if response.status == 501:
            return await self._delete(key)
        lost = response.ambiguous and response.status in (404, 412)
        if lost and (await self._look(key)).status == 404:
            return TimestampedStorageGeneration(NO_VALUE, response.time)
        if response.status in (404, 412):
            return _refused(response.time)
        return TimestampedStorageGeneration(NO_VALUE, response.time)

    async def _look(self, key: str) -> HttpResponse:
        return await self._bucket.send("HEAD", key, {}, _LOOKED, action="look at")

    async def _server(self) -> ServerConditions:
        if self._conditions is None:
            self._conditions = conditions_of((await self._bucket.address()).base)
        return self._conditions

    async def _checked_conditions(self, key: str) -> ServerConditions:
        conditions = await self._server()
        if self._declared is None and not conditions.heeded:
            await conditions.require(self._bucket, key)
        return conditions

    async def _body_headers(self, body: Buffer) -> dict[str, str]:
        # Other servers refuse headers that they do not know.
        is_aws = (await self._bucket.address()).is_aws
        return await checksum_header(body) if is_aws else {}

    async def _stored(self, key: str, response: HttpResponse) -> TimestampedStorageGeneration:
        """The stamp of what was written."""
        if "ETag" not in response.headers:
            response = await self._look(key)
        return TimestampedStorageGeneration(_generation(response), response.time)


def _check_key(key: str) -> None:
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= _LONGEST_KEY:
        shown = key if len(key) < 80 else f"{key[:80]}..."
        raise SpecError(
            f"Invalid S3 object name {shown!r}: a key of S3 is 1 to {_LONGEST_KEY} bytes of UTF-8"
        )


def _flat(value: Buffer) -> Buffer:
    return value.cast("B") if isinstance(value, memoryview) else value


def _generation(response: HttpResponse) -> bytes:
    etag = response.headers.get("ETag")
    if response.status == 404:
        return NO_VALUE
    if not etag:
        raise UnsupportedError("the server says no ETag of a value, which is its generation in S3")
    return generation_of(etag)


def _refused(at: float) -> TimestampedStorageGeneration:
    return TimestampedStorageGeneration(UNKNOWN, at)


def _result(
    response: HttpResponse, if_equal: bytes | None, if_not_equal: bytes | None
) -> ReadResult:
    status, stamp = response.status, TimestampedStorageGeneration(UNKNOWN, response.time)
    if status in (204, 404):
        stamp.generation = NO_VALUE
        return ReadResult("missing", b"", stamp)
    if status in (304, 412):
        if status == 304:
            assert if_not_equal is not None
            stamp.generation = if_not_equal
        return ReadResult("unspecified", b"", stamp)
    stamp.generation = _generation(response)
    if not holds(if_equal, stamp.generation) or stamp.generation == if_not_equal:
        return ReadResult("unspecified", b"", stamp)
    return ReadResult("value", response.body, stamp)
