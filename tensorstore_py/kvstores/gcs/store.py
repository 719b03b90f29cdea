"""The Google Cloud Storage store: values in a bucket, by the JSON API.

Conditions are the service's own generations, so reads, writes and deletes on condition are atomic
among all clients. An operation is one request, but for large values (see `uploads`). What comes
back wrong is found by checksums; if nothing comes back, the mark of a write tells what became of
it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    OutOfRangeError,
    UnavailableError,
)
from tensorstore_py.kvstores.gcs.credentials import GcsSigner, Grant
from tensorstore_py.kvstores.gcs.own_writes import ObjectThrottle, OwnConditionalWrites
from tensorstore_py.kvstores.gcs.protocol import (
    FOREIGN,
    GcsDialect,
    directory_parameters,
    generation_of,
    is_condition,
    json_object,
    listing_parameters,
    number_of,
    parse_page,
)
from tensorstore_py.kvstores.gcs.uploads import (
    Settle,
    checksum_of,
    in_one_piece,
    is_older,
    mark_in,
    new_mark,
    replaces,
    resource,
    send_in_session,
)
from tensorstore_py.kvstores.gcs.urls import Bucket, check_key
from tensorstore_py.plugin.http import (
    CoalescedReads,
    HttpClient,
    HttpRequest,
    HttpResponse,
    HttpTiming,
    Page,
    PagedListing,
    RateLimits,
    RetriesModel,
    whole_number,
)
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    ByteRange,
    KeyRange,
    KvStore,
    ListEntry,
    ReadResult,
    RetryPolicy,
    Semaphore,
    ServerCopy,
    ServiceReport,
    ServiceState,
    TimestampedStorageGeneration,
    encode_path,
    fan_out,
    offload,
)

__all__ = ["GcsStore"]

Described = dict[str, Any]

_JSON: Final = {"Content-Type": "application/json; charset=UTF-8"}
_READ: Final = frozenset({200, 206, 404})
_LOOKED: Final = frozenset({200, 404})
_WRITTEN: Final = frozenset({200, 201})
_DELETED: Final = frozenset({200, 204, 404})
#: Servers that cannot copy by themselves say one of the last two.
_COPIED: Final = frozenset({200, 404, 405, 501})
#: How often a copy may get no further.
_COPYING: Final = RetryPolicy(attempts=32, initial_s=0.1, longest_s=10.0)
#: Larger values go in a session.
_LARGE: Final = 2**24
#: Above that size, a checksum is computed off the loop.
_AT_ONCE: Final = 2**20


class GcsStore(CoalescedReads, PagedListing[dict[str, str]], ServerCopy, ServiceReport, KvStore):
    """Values in a bucket.

    Args:
        bucket: where.
        slots: how many requests at a time.
        retries: how often to try again.
        rates: how many requests a second; None for no limits.
        grant: whose credentials are used; None for none.
        large_bytes: values above that size are sent in sessions.
        timing: the clock.
    """

    inline = False

    def __init__(
        self,
        bucket: Bucket,
        *,
        slots: Semaphore,
        retries: RetriesModel,
        rates: RateLimits | None = None,
        grant: Grant | None = None,
        large_bytes: int = _LARGE,
        timing: HttpTiming | None = None,
    ) -> None:
        self.width = slots.limit
        self.bucket = bucket
        self._large_bytes = large_bytes
        self._now = (HttpTiming() if timing is None else timing).now
        self.identity = f"gcs:{bucket.service.address}/{bucket.name}"
        self._own_writes = OwnConditionalWrites(self.identity)
        self._grant = grant
        signer = None if grant is None else GcsSigner(grant)
        self._client = HttpClient(
            slots=slots,
            retries=retries,
            describe=self.describe_key,
            dialect=GcsDialect(signer),
            signer=signer,
            throttle=ObjectThrottle(self.identity, rates, timing),
            timing=timing,
        )

    # Reading.

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        name = check_key(key)
        query = ""
        if is_condition(if_equal):
            number = number_of(if_equal)
            if number == FOREIGN:
                found = await self._look(key, name, "")
                found.state = "missing" if found.state == "missing" else "unspecified"
                return found
            query = f"&ifGenerationMatch={number}"
        if is_condition(if_not_equal) and (number := number_of(if_not_equal)) > 0:
            query += f"&ifGenerationNotMatch={number}"
        if byte_range.start == byte_range.stop:
            return await self._look(key, name, query, byte_range, if_not_equal)
        request = HttpRequest("GET", self.bucket.value(name, query), {}, key=key)
        response = await self._client.send(request, _allowed(_READ, query), byte_range)
        if response.status not in (200, 206):
            return self._without_value(key, response, if_not_equal)
        generation = generation_of(response.headers.get("x-goog-generation"))
        if generation is not None:
            self._own_writes.seen(key, number_of(generation), response.time)
            stamp = TimestampedStorageGeneration(generation, response.time)
            return ReadResult("value", response.body, stamp)
        if not len(response.body) and not byte_range.is_whole:
            # Of a part without bytes in it, not all servers say the generation.
            return await self._look(key, name, query, byte_range, if_not_equal)
        raise FailedPreconditionError(
            f"cannot read {self.describe_key(key)}: the server does not say its generation "
            f"(x-goog-generation), so no write could be made safe; use another emulator"
        )

    async def _look(
        self,
        key: str,
        name: bytes,
        query: str,
        byte_range: ByteRange = WHOLE,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """What a read of no bytes finds: whether a value is there, and its generation."""
        url = self.bucket.description(name, "generation,size", query)
        request = HttpRequest("GET", url, {}, key=key)
        response = await self._client.send(request, _allowed(_LOOKED, query), parse=_described)
        if response.status != 200:
            return self._without_value(key, response, if_not_equal)
        said = cast(Described, response.parsed)
        stamp = TimestampedStorageGeneration(self._generation(said, key), response.time)
        self._own_writes.seen(key, number_of(stamp.generation), response.time)
        if not byte_range.is_whole:
            try:
                start, stop = byte_range.resolve(int(str(said.get("size", ""))))
            except OutOfRangeError as error:
                raise OutOfRangeError(f"cannot read {self.describe_key(key)}: {error}") from None
            if start < stop:  # it has grown since
                return await self.read(key, byte_range, if_equal=stamp.generation)
        return ReadResult("value", b"", stamp)

    def range_query(self, key_range: KeyRange) -> dict[str, str]:
        return listing_parameters(key_range)

    def directory_query(self, prefix: str) -> dict[str, str]:
        return directory_parameters(prefix)

    async def page(self, query: dict[str, str], token: str | None, prefix: str) -> Page:
        asked = {**query, "pageToken": token} if token else query
        prefix = query.get("prefix", "")
        action = "list" if prefix else f"list {self.describe_key('')} at"
        url = self.bucket.listing(asked)
        request = HttpRequest("GET", url, {}, action=action, key=prefix)
        response = await self._client.send(request, {200}, parse=_page)
        return cast(Page, response.parsed)

    async def service_state(self, prefix: str) -> ServiceState:
        """What the service says of itself; see the function `service_state`."""
        grant = self._grant
        credentials = None if grant is None else await grant.described()
        url = self.bucket.listing({"maxResults": "1", "prefix": prefix})
        request = HttpRequest("GET", url, {}, action="list", key=prefix)
        response = await self._client.send(request, {200, 403})
        date = response.date()
        return ServiceState(credentials, None if date is None else date - response.time)

    # Writing.

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        name = check_key(key)
        if not is_condition(if_equal):
            return await self._store(key, name, value, None)
        number = number_of(if_equal)
        async with self._own_writes.turn(key):
            if number == FOREIGN or self._own_writes.is_late(key, number):
                return TimestampedStorageGeneration.now(UNKNOWN)
            stamp = await self._store(key, name, value, number)
            if stamp.generation != UNKNOWN:
                self._own_writes.replaced(key, number)
            return stamp

    async def _store(
        self, key: str, name: bytes, value: Buffer | None, number: int | None
    ) -> TimestampedStorageGeneration:
        """Write or delete, if the generation is `number`; 0 stands for no value."""
        if value is None:
            return await self._delete(key, name, number)
        response = await self._upload(key, name, value, number)
        stamp = TimestampedStorageGeneration(UNKNOWN, response.time)
        if response.status != 412:
            stamp.generation = self._generation(cast(Described, response.parsed), key)
        return stamp

    async def _upload(
        self, key: str, name: bytes, value: Buffer, number: int | None
    ) -> HttpResponse:
        size = memoryview(value).nbytes
        if size > _AT_ONCE:
            checksum = await offload(False, lambda: checksum_of(value))
        else:
            checksum = checksum_of(value)
        mark = None if number is None else new_mark(number)
        said = resource(key, checksum, mark)
        query = "&fields=generation"
        resolve_ambiguous: Settle | None = None
        if number is not None and mark is not None:
            query += f"&ifGenerationMatch={number}"
            resolve_ambiguous = partial(self._whose, key, name, number, mark, self._now())
        if size > self._large_bytes:
            url = self.bucket.upload("resumable", query)
            begin = HttpRequest("POST", url, _JSON, said, action="write", key=key)
            address = self.bucket.service.address
            return await send_in_session(
                self._client, begin, address, value, resolve_ambiguous, parse=_described
            )
        headers, body = in_one_piece(said, value)
        url = self.bucket.upload("multipart", query)
        request = HttpRequest("POST", url, headers, body, action="write", key=key)
        return await self._client.send(
            request,
            _allowed(_WRITTEN, query),
            resolve_ambiguous=resolve_ambiguous,
            parse=_described,
        )

    async def _whose(
        self, key: str, name: bytes, number: int, mark: str, began: float
    ) -> HttpResponse | None:
        """After an answer was lost and the condition does not hold: is what is there ours?

        Returns:
            The answer that was lost; None if the write, which began then, was not carried out.

        Raises:
            AbortedError: that cannot be known any more.
        """
        url = self.bucket.description(name, "generation,metadata,timeCreated")
        request = HttpRequest("GET", url, {}, action="look at", key=key)
        response = await self._client.send(request, {200, 404}, parse=_described)
        if response.status == 200:
            said = cast(Described, response.parsed)
            found = mark_in(said)
            if found == mark:
                return response
            now = response.date()
            age_s = self._now() - began
            if replaces(found, number) or (now is not None and is_older(said, now - age_s)):
                return None  # another client's write is where ours would have been
        raise AbortedError(
            f"cannot tell whether {self.describe_key(key)} was written: the answer was lost, and "
            f"by now it has been replaced; read it, and decide what is left to do"
        )

    async def _delete(
        self, key: str, name: bytes, number: int | None
    ) -> TimestampedStorageGeneration:
        query = "" if number is None else f"&ifGenerationMatch={number}"
        url = self.bucket.object(name, query)
        request = HttpRequest("DELETE", url, {}, action="delete", key=key)
        response = await self._client.send(request, _allowed(_DELETED, query))
        gone = response.status != 412
        if response.status == 404 and number and not response.ambiguous:
            gone = False  # nothing was there, and so not what was to be deleted
        return TimestampedStorageGeneration(NO_VALUE if gone else UNKNOWN, response.time)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        async def delete(entry: ListEntry) -> None:
            # Whatever it is called: others may have made objects that we would not.
            await self._delete(entry.key, entry.key.encode(), None)

        async for page in self.pages(key_range):
            await fan_out(False, page, delete, count=len(page), width=self.width)

    async def copy_to(self, key: str, target: KvStore, target_key: str) -> bool:
        if not isinstance(target, GcsStore) or target.bucket.service != self.bucket.service:
            return False
        name, there = check_key(key), check_key(target_key)
        token, done = "", -1
        attempts = _COPYING.begin("copy", partial(self.describe_key, key), inline=False)
        while True:
            url = self.bucket.rewrite(name, target.bucket, there, token)
            request = HttpRequest("POST", url, {}, b"", action="copy", key=key)
            response = await self._client.send(request, _COPIED, parse=json_of)
            if response.status != 200:
                return False
            said = cast(Described, response.parsed)
            if said.get("done") is True:
                return True
            token = str(said.get("rewriteToken") or "")
            if not token:
                return False
            before, done = done, whole_number(said.get("totalBytesRewritten")) or 0
            if done <= before:
                problem = UnavailableError(
                    f"cannot copy {self.describe_key(key)}: the service got no further than "
                    f"{done} bytes of it in {attempts.failed + 1} attempts; try later",
                    attempts.failed + 1,
                )
                await attempts.lost(error=problem)

    def describe_key(self, key: str) -> str:
        return f'"gs://{self.bucket.name}/{encode_path(key)}"'

    def _without_value(
        self, key: str, response: HttpResponse, if_not_equal: bytes | None
    ) -> ReadResult:
        stamp = TimestampedStorageGeneration(UNKNOWN, response.time)
        if response.status == 404:
            stamp.generation = NO_VALUE
            return ReadResult("missing", b"", stamp)
        if response.status == 304 and if_not_equal is not None:
            stamp.generation = if_not_equal
            self._own_writes.seen(key, number_of(if_not_equal), response.time)
        return ReadResult("unspecified", b"", stamp)

    def _generation(self, said: Described, key: str) -> bytes:
        found = generation_of(said.get("generation"))
        if found is None:
            raise DataLossError(
                f"the service does not say the generation of {self.describe_key(key)}"
            )
        return found


def json_of(response: HttpResponse) -> Described:
    """What an answer says, see `json_object`."""
    return json_object(response.body)


def _described(response: HttpResponse) -> Described:
    """What an answer says of an object.

    Raises:
        DataLossError: it is not whole, or does not say the generation.
    """
    said = json_object(response.body)
    if generation_of(said.get("generation")) is None:
        raise DataLossError("the service does not say the generation")
    return said


def _page(response: HttpResponse) -> Page:
    return parse_page(response.body)


def _allowed(statuses: frozenset[int], query: str) -> frozenset[int]:
    """The statuses of an answer, with those that the conditions of a query may be told by."""
    if "&ifGenerationMatch=" in query:
        statuses |= {412}
    if "&ifGenerationNotMatch=" in query:
        statuses |= {304}
    return statuses
