"""The S3 store: values in a bucket.

A read is one GET, a listing one for each thousand keys; parts of a value that lie close together
are read together. What writes is in `writes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, cast

from tensorstore_py.errors import DataLossError, OutOfRangeError, SpecError
from tensorstore_py.kvstores.s3.address import encode
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.dialect import XmlElement, error_code, etag_of, parse_xml
from tensorstore_py.kvstores.s3.listing import (
    BatchDeletes,
    directory_query,
    first_query,
    next_query,
    parse_page,
    parse_uploads,
)
from tensorstore_py.kvstores.s3.writes import S3Writes, stored_generation
from tensorstore_py.plugin.http import (
    EtagReads,
    HttpResponse,
    Page,
    PagedListing,
)
from tensorstore_py.plugin.kvstore import (
    ALL,
    Buffer,
    ByteRange,
    KeyRange,
    KvStore,
    PartedWrite,
    ServerCopy,
    ServiceReport,
    ServiceState,
    TimestampedStorageGeneration,
)

__all__ = ["S3Store"]

Keys = list[str]

_LISTED: Final = frozenset({200})
#: What a copy may be answered with.
_COPIED: Final = frozenset({200, 400, 403, 404, 405, 501})
#: What a question about uploads may be answered with, by servers that do not tell.
_REPORTED: Final = frozenset({200, 400, 403, 405, 501})
_LONGEST_KEY: Final = 1024


class S3Store(EtagReads, PagedListing[str], ServerCopy, PartedWrite, ServiceReport, KvStore):
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
        self._writes = S3Writes(bucket, use_conditional_write)

    def describe_key(self, key: str) -> str:
        return self._bucket.describe(key)

    async def get(
        self,
        key: str,
        byte_range: ByteRange,
        headers: Mapping[str, str],
        statuses: frozenset[int],
    ) -> HttpResponse:
        _check_key(key)
        if byte_range.is_whole:
            headers = {**headers, "x-amz-checksum-mode": "ENABLED"}
        try:
            response = await self._bucket.send(
                "GET", key, headers, statuses, action="read", byte_range=byte_range
            )
        except OutOfRangeError:
            # Some servers do not say how large the value is: nothing may be all that was asked for.
            if byte_range.start <= 0 or byte_range.stop is not None:
                raise
            response = await self._writes.look(key)
            if response.size != byte_range.start:
                raise
        if response.status == 206 and "ETag" not in response.headers:
            response = await self._writes.look(key)  # no bytes of a value that has none
        return response

    def generation_of(self, response: HttpResponse) -> bytes:
        return stored_generation(response)

    def etag_of(self, generation: bytes) -> str | None:
        return etag_of(generation)

    def range_query(self, key_range: KeyRange) -> str:
        return first_query(key_range)

    def directory_query(self, prefix: str) -> str:
        return directory_query(prefix)

    async def page(self, query: str, token: str | None, prefix: str) -> Page:
        asked = next_query(query, token) if token else query
        response = await self._bucket.send(
            "GET", "", {}, _LISTED, action="list", query=asked, parse=_page
        )
        return cast(Page, response.parsed)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        _check_key(key)
        writes = self._writes
        if if_equal:
            if value is None:
                return await writes.delete_if(key, if_equal)
            return await writes.put_if(key, value, if_equal)
        return await writes.delete(key) if value is None else await writes.put(key, value)

    async def write_parts(
        self,
        key: str,
        size: int,
        load: Callable[[int, int], Awaitable[Buffer]],
        part_bytes: int,
    ) -> TimestampedStorageGeneration:
        """In a multipart upload; see the function `write_parts`."""
        _check_key(key)
        return await self._writes.put_loaded(key, size, load, part_bytes)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        """Delete the keys of a range, page by page while the next one is listed."""
        batches = BatchDeletes(self._bucket, self._writes.delete, self.width)

        async def delete(keys: Keys) -> None:
            await batches.delete(keys)

        running: asyncio.Task[None] | None = None
        try:
            async for page in self.pages(key_range):
                if running is not None:
                    await running
                running = asyncio.create_task(delete([entry.key for entry in page]))
            if running is not None:
                await running
        finally:
            if running is not None:
                running.cancel()

    async def service_state(self, prefix: str) -> ServiceState:
        """What the service says of itself; see the function `service_state`."""
        credentials = await self._bucket.credentials_described()
        asked = f"encoding-type=url&max-uploads=1000&prefix={encode(prefix, '')}&uploads="
        response = await self._bucket.send(
            "GET", "", {}, _REPORTED, action="list unfinished uploads of", query=asked
        )
        date = response.date()
        ahead = None if date is None else date - response.time
        unfinished = None
        if response.status == 200:
            with suppress(DataLossError):  # a server that does not know the question
                unfinished = parse_uploads(response.body)
        return ServiceState(credentials, ahead, unfinished)

    async def copy_to(self, key: str, target: KvStore, target_key: str) -> bool:
        """Copy within the service; see the function `copy_value`."""
        if not isinstance(target, S3Store) or not await _is_one_service(self, target):
            return False
        _check_key(target_key)
        source = f"/{self._bucket.name}/{encode(key)}"
        response = await target._bucket.send(
            "PUT",
            target_key,
            {"x-amz-copy-source": source},
            _COPIED,
            action="copy to",
            parse=_copied,
        )
        # What cannot be copied, because it is too large or not allowed, may still be read.
        return response.status == 200 or error_code(response) == "NoSuchKey"


def _page(response: HttpResponse) -> Page:
    return parse_page(response.body)


def _copied(response: HttpResponse) -> XmlElement:
    """What a copy says, which begins to answer before it is made."""
    return parse_xml(response.body, "CopyObjectResult")


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


async def _is_one_service(source: S3Store, target: S3Store) -> bool:
    """Whether one service has both buckets, and the same keys are for both."""
    if source._bucket.credentials != target._bucket.credentials or not source._bucket.name:
        return False
    here, there = await source._bucket.address(), await target._bucket.address()
    if here.is_aws or there.is_aws:
        return here.is_aws and there.is_aws
    return here.base.rpartition("/")[0] == there.base.rpartition("/")[0]
