"""The HTTP store: values that any web server has, to read.

A read is one GET, never a HEAD: signed URLs allow one and not the other. Conditions go out as ETags
and are checked again when the answer is here, since servers may ignore them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.kvstores.http.generations import etag_of, generation_of, is_unchanged
from tensorstore_py.kvstores.http.resources import HttpRequestRetries
from tensorstore_py.kvstores.http.urls import Place, check_key
from tensorstore_py.plugin import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    ByteRange,
    HttpClient,
    HttpRequest,
    HttpResponse,
    KeyRange,
    KvStore,
    ListEntry,
    ReadResult,
    Slots,
    TimestampedStorageGeneration,
    holds,
    range_header,
    read_coalesced,
    show_url,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["HttpStore"]

Results = list[ReadResult]

#: Without a value: by HTTP, 204 says that there is nothing to send, not that there is no value.
_ANSWERS: Final = frozenset({200, 203, 206, 404, 410})
_BASE_HEADERS: Final = {
    "Accept": "*/*",
    # Parts of a packed value are of no use.
    "Accept-Encoding": "identity",
    "User-Agent": "tensorstore_py",
}


class HttpStore(KvStore):
    """Values below a URL.

    Args:
        base_url: scheme, host, maybe the beginning of the path, maybe a query.
        headers: extra ones, sent with every request.
        slots: how many requests at a time.
        retries: how often to try again.
        client: sends the requests; by default one is made.
    """

    inline = False
    writable = False
    listable = False

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        *,
        slots: Slots | None = None,
        retries: HttpRequestRetries | None = None,
        client: HttpClient | None = None,
    ) -> None:
        slots = Slots(32) if slots is None else slots
        self.width = slots.limit
        self._place = Place.of(base_url)
        given = {name.lower() for name in headers or {}}
        base = {name: value for name, value in _BASE_HEADERS.items() if name.lower() not in given}
        self._headers = {**base, **(headers or {})}
        self._says_how_fresh = "cache-control" in given
        self._client = client or HttpClient(
            slots=slots,
            retries=HttpRequestRetries() if retries is None else retries,
            describe=self.describe_key,
            redirects=True,
            unpack=True,
        )

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        return await self._read(key, byte_range, None, if_equal, if_not_equal)

    async def read_as_of(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float,
        *,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        return await self._read(key, byte_range, staleness_bound, None, if_not_equal)

    async def _read(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float | None,
        if_equal: bytes | None,
        if_not_equal: bytes | None,
    ) -> ReadResult:
        headers = dict(self._headers)
        if not self._says_how_fresh:
            freshness = _freshness(staleness_bound)
            if freshness is not None:
                headers["Cache-Control"] = freshness
        wanted = range_header(byte_range)
        if wanted is not None:
            headers["Range"] = wanted
        expected = _ANSWERS
        if if_equal is not None and (etag := etag_of(if_equal)) is not None:
            headers["If-Match"] = etag
            expected |= {412}
        if if_not_equal is not None and (etag := etag_of(if_not_equal)) is not None:
            headers["If-None-Match"] = etag
            expected |= {304}
        check_key(key)
        request = HttpRequest("GET", self._place.url(key), headers, key=key)
        response = await self._client.send(request, expected, byte_range)
        if byte_range.stop is None and response.size == byte_range.start > 0 == len(response.body):
            # Nothing is left there, which is said in an error that most servers give no version.
            nothing = ByteRange(byte_range.start, byte_range.start)
            return await self._read(key, nothing, staleness_bound, if_equal, if_not_equal)
        return _result(response, if_equal, if_not_equal)

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        async def read(byte_range: ByteRange) -> ReadResult:
            return await self.read(key, byte_range)

        return await read_coalesced(read, ranges, width=self.width)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        raise UnsupportedError(
            f"cannot {'delete' if value is None else 'write'} {self.describe_key(key)}: the http "
            f"store is read-only"
        )

    def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        raise UnsupportedError(
            f"cannot list {show_url(self._place.url(''))}: HTTP has no listing; open what is there "
            f"by its path"
        )

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        raise UnsupportedError(
            f"cannot delete at {show_url(self._place.url(''))}: the http store is read-only"
        )

    def describe_key(self, key: str) -> str:
        return f'"{show_url(self._place.url(key))}"'


def _freshness(staleness_bound: float | None) -> str | None:
    """What to say to caches on the way; by default they have to look again."""
    if staleness_bound is None:
        return "no-cache"
    age_s = time.time() - staleness_bound
    if age_s == math.inf:
        return None
    return f"max-age={age_s:.0f}" if age_s >= 1 else "no-cache"


def _result(
    response: HttpResponse, if_equal: bytes | None, if_not_equal: bytes | None
) -> ReadResult:
    status, stamp = response.status, TimestampedStorageGeneration(UNKNOWN, _true_since(response))
    if status in (404, 410):
        stamp.generation = NO_VALUE
        return ReadResult("missing", b"", stamp)
    if status in (304, 412):
        if status == 304:
            assert if_not_equal is not None
            stamp.generation = if_not_equal
        return ReadResult("unspecified", b"", stamp)
    stamp.generation = generation_of(response.headers, response.size)
    if not holds(if_equal, stamp.generation) or is_unchanged(stamp.generation, if_not_equal):
        return ReadResult("unspecified", b"", stamp)
    return ReadResult("value", response.body, stamp)


def _true_since(response: HttpResponse) -> float:
    """The time of an answer; of one that a cache kept, when it was new."""
    age = response.headers.get("Age", "")
    return response.time - (int(age) if age.isascii() and age.isdecimal() else 0)
