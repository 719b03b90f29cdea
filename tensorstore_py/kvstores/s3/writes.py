"""How values get into a bucket: plainly, in parts, and under conditions.

The invariant: of two conditional writers of one generation at most one is told that it succeeded,
also where the answer to its write got lost. Every conditional write has a mark of its own for that,
since two writers may write the same bytes; where it does not tell any more, an error says so.

AWS heeds conditions. Of another server it is found out before the first conditional write, which
has to be refused if it cannot hold. Some only understand ETags without quotes. What is too large
for one request goes in parts, which are views of the value; it is there whole or not at all.
"""

from __future__ import annotations

import asyncio
import enum
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.kvstores.s3.address import encode
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.dialect import error_code, etag_of, generation_of, named, parse_xml
from tensorstore_py.kvstores.s3.signing import checksum_header
from tensorstore_py.plugin.http import HttpResponse
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    UNKNOWN,
    Buffer,
    ByteRange,
    KeyedLock,
    TimestampedStorageGeneration,
    fan_out,
    holds,
)

__all__ = [
    "LARGE_BYTES",
    "PART_BYTES",
    "Quotes",
    "S3Writes",
    "ServerConditions",
    "conditions_of",
    "put_parts",
    "stored_generation",
]

#: An ETag that no value has: it is no MD5, nor what any server makes.
_IMPOSSIBLE: Final = '"00000000000000000000000000000000-0"'
_PROBE_REFUSED: Final = frozenset({404, 409, 412})
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
    statuses = _PROBE_REFUSED | _NOT_UNDERSTOOD | {200}
    response: HttpResponse = await bucket.send(
        "PUT", scratch, headers, statuses, action="test conditional writes at", body=b""
    )
    if response.status == 200:
        await bucket.send("DELETE", scratch, {}, _DELETED, action="delete")
        return False
    return response.status in _PROBE_REFUSED


#: Values of more bytes than this go in parts.
LARGE_BYTES: Final = 2**27
PART_BYTES: Final = 2**25
#: S3's.
_MOST_PARTS: Final = 10_000
_LEAST_PART_BYTES: Final = 5 * 2**20
_WIDTH: Final = 8
#: Of parts that are made when they are sent, so that one is sent while the next one is made.
_LOADED_WIDTH: Final = 2
_DONE: Final = frozenset({200})
_DISCARDED: Final = frozenset({200, 204, 404})
_ABORT_S: Final = 10.0


class Content(NamedTuple):
    """What is sent in parts.

    Attributes:
        size: of all of it, in bytes.
        load: gives the bytes from the first up to the second number.
        width: how many parts may be in memory at a time.
    """

    size: int
    load: Callable[[int, int], Awaitable[Buffer]]
    width: int

    @classmethod
    def of(cls, body: Buffer) -> Content:
        """A value that is in memory, of which parts are views."""
        view = memoryview(body)

        async def load(start: int, stop: int) -> Buffer:
            return view[start:stop]

        return cls(len(view), load, _WIDTH)


async def put_parts(
    bucket: S3Bucket,
    key: str,
    content: Content,
    headers: Mapping[str, str],
    conditions: Mapping[str, str],
    expected: frozenset[int],
    resolve_ambiguous: Callable[[], Awaitable[HttpResponse | None]],
    part_bytes: int = PART_BYTES,
) -> HttpResponse:
    """Write a value in parts; the answer is that to putting them together.

    The first request has the value's `headers`, the last one the `conditions`; `expected` are the
    statuses of that which the caller deals with.
    """
    size = max(part_bytes, -(-content.size // _MOST_PARTS))
    response = await bucket.send(
        "POST", key, headers, _DONE, action="write", query="uploads=", parse=_begun
    )
    upload = f"uploadId={encode(str(response.parsed), '')}"
    etags = [""] * -(-content.size // size)

    async def send(number: int) -> None:
        part = await content.load(number * size, min((number + 1) * size, content.size))
        query = f"partNumber={number + 1}&{upload}"
        sent = await bucket.send(
            "PUT", key, {}, _DONE, action="write", query=query, body=part, parse=_part_etag
        )
        etags[number] = str(sent.parsed)

    try:
        await fan_out(False, range(len(etags)), send, count=len(etags), width=content.width)
        response = await bucket.send(
            "POST",
            key,
            conditions,
            expected | {404},
            action="write",
            query=upload,
            body=_listed(etags),
            resolve_ambiguous=resolve_ambiguous,
            parse=_whole_etag,
        )
        if error_code(response) == "NoSuchUpload":
            resolved = await resolve_ambiguous() if response.ambiguous else None
            if resolved is None:
                raise FailedPreconditionError(
                    f"cannot write {bucket.describe(key)}: somebody discarded its parts; write "
                    f"again"
                )
            return resolved
    except BaseException:
        await _abort(bucket, key, upload)
        raise
    if response.status not in (200, 201):
        await _abort(bucket, key, upload)
    return _with_etag(response)


def _begun(response: HttpResponse) -> str:
    """The name of the upload that an answer says was begun."""
    root = parse_xml(response.body, "InitiateMultipartUploadResult")
    found = root.findtext(named(root, "UploadId"))
    if not found:
        raise DataLossError("the server began no upload")
    return found


def _part_etag(response: HttpResponse) -> str:
    """The ETag of a part, by which it is put together with others."""
    found = response.headers.get("ETag")
    if not found:
        raise DataLossError("the server does not say the ETag of a part")
    return found


def _whole_etag(response: HttpResponse) -> str | None:
    """The ETag of the value that parts were put together to; None if the answer does not say."""
    root = parse_xml(response.body, "CompleteMultipartUploadResult")
    found = root.findtext(named(root, "ETag"))
    return found.strip() if found else None


def _listed(etags: list[str]) -> bytes:
    parts = [
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    ]
    return (
        f'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"{''.join(parts)}</CompleteMultipartUpload>"
    ).encode()


async def _abort(bucket: S3Bucket, key: str, upload: str) -> None:
    """Discard the parts; that this fails changes nothing about what went wrong."""
    try:
        async with asyncio.timeout(_ABORT_S):
            await bucket.send("DELETE", key, {}, _DISCARDED, action="discard", query=upload)
    except (TensorStoreError, TimeoutError):
        return


def _with_etag(response: HttpResponse) -> HttpResponse:
    """The answer, with the ETag that its text has as the header that it is elsewhere."""
    etag = response.parsed
    if not isinstance(etag, str) or "ETag" in response.headers:
        return response
    changed = HttpResponse(response.status, {**response.headers, "ETag": etag}, time=response.time)
    changed.ambiguous = response.ambiguous
    changed.lost = response.lost
    return changed


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
    """Writes to one bucket."""

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
        self._gate = KeyedLock(inline=False)

    async def put(self, key: str, value: Buffer) -> TimestampedStorageGeneration:
        """Write a value, whatever is there."""
        response = await self._send(key, _flat(value), {})
        return await self._stored(key, response)

    async def put_loaded(
        self, key: str, size: int, load: Callable[[int, int], Awaitable[Buffer]], part_bytes: int
    ) -> TimestampedStorageGeneration:
        """Write a value whose parts are made when they are sent, whatever is there."""
        if size <= part_bytes:
            return await self.put(key, await load(0, size))

        async def resolve_ambiguous() -> HttpResponse | None:
            found = await self.look(key)
            return found if found.headers.get(_MARK) == mark.text else None

        mark = _Mark({})
        response = await put_parts(
            self._bucket,
            key,
            Content(size, load, _LOADED_WIDTH),
            {_MARK: mark.text},
            {},
            _WRITTEN,
            resolve_ambiguous,
            max(part_bytes, _LEAST_PART_BYTES),
        )
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
        async with self._gate.acquire(key):
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
        async with self._gate.acquire(key):
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
        response = await self._bucket.send(
            "GET", key, {}, _LOOKED, action="look at", byte_range=ByteRange(0, 0)
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

        async def resolve_ambiguous() -> HttpResponse | None:
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
                Content.of(body),
                {_MARK: mark.text},
                conditions,
                expected,
                resolve_ambiguous,
                self._part_bytes,
            )
        else:
            # Other servers refuse headers that they do not know.
            headers = {**conditions, **(await checksum_header(body) if is_aws else {})}
            if conditions:
                headers[_MARK] = mark.text
            response = await self._bucket.send(
                "PUT",
                key,
                headers,
                expected,
                action="write",
                body=body,
                resolve_ambiguous=resolve_ambiguous,
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
