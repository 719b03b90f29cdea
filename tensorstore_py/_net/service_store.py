"""What stores of network services have in common: reads by ETags, of several parts, and listings.

A store inherits these beside `KvStore`. `CoalescedReads` has `read_ranges`; `EtagReads` has `read`,
too, and needs to be told how to GET; `PagedListing` has `list` and `list_directory`, and needs to
be told how to ask for one page.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.coalesce import read_coalesced
from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
    holds,
)
from tensorstore_py._interface.key_range import ALL, KeyRange, encode_key
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._interface.store_abilities import DirectoryListing, RangeRead
from tensorstore_py._net.service import Paging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence

    from tensorstore_py._interface.kvstore import ListEntry
    from tensorstore_py._net.message import HttpResponse

__all__ = ["CoalescedReads", "EtagReads", "Page", "PagedListing"]

Q = TypeVar("Q")
#: Inside the class `list` is a method.
Entries: TypeAlias = "list[ListEntry]"


class CoalescedReads(RangeRead):
    """A store whose `read_ranges` is few calls of `read`; see `coalesce`."""

    made_of_others = frozenset({"read_ranges"})

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        spared = len(ranges)

        async def read(byte_range: ByteRange) -> ReadResult:
            nonlocal spared
            spared -= 1
            return await self.read(key, byte_range)

        found = await read_coalesced(read, ranges, width=self.width, inline=self.inline)
        if self.metrics is not None:
            self.metrics.note(("read", spared, 0, 0, 0.0))  # asked for, too
        return found


_FOUND: Final = frozenset({200, 206, 404})
_MISSING: Final = frozenset({404, 410})


class EtagReads(CoalescedReads):
    """A store of which a read is one GET.

    Conditions go out as ETags, and are checked again here, since servers may ignore them.
    """

    @abstractmethod
    async def get(
        self,
        key: str,
        byte_range: ByteRange,
        headers: Mapping[str, str],
        statuses: frozenset[int],
    ) -> HttpResponse:
        """The response to a GET.

        Args:
            key: of the value.
            byte_range: which part of it.
            headers: to send.
            statuses: to expect.
        """

    @abstractmethod
    def generation_of(self, response: HttpResponse) -> bytes:
        """The generation of the value in a successful response."""

    @abstractmethod
    def etag_of(self, generation: bytes) -> str | None:
        """The ETag, with its quotes; None if no value with an ETag has that generation."""

    # No coroutine around another one, which would be resumed with it each time.
    def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> Coroutine[Any, Any, ReadResult]:
        return self.read_by_get(key, byte_range, {}, if_equal, if_not_equal)

    async def read_by_get(
        self,
        key: str,
        byte_range: ByteRange,
        headers: Mapping[str, str],
        if_equal: bytes | None,
        if_not_equal: bytes | None,
    ) -> ReadResult:
        """What `read` does, with further headers."""
        statuses = _FOUND
        if if_equal is not None and (etag := self.etag_of(if_equal)) is not None:
            headers = {**headers, "If-Match": etag}
            statuses |= {412}
        if if_not_equal is not None and (etag := self.etag_of(if_not_equal)) is not None:
            headers = {**headers, "If-None-Match": etag}
            statuses |= {304}
        response = await self.get(key, byte_range, headers, statuses)
        stamp = TimestampedStorageGeneration(UNKNOWN, response.time)
        if response.status in _MISSING:
            stamp.generation = NO_VALUE
            return ReadResult("missing", b"", stamp)
        if response.status == 304 and if_not_equal is not None:
            stamp.generation = if_not_equal
        if response.status in (304, 412):
            return ReadResult("unspecified", b"", stamp)
        stamp.generation = self.generation_of(response)
        if not holds(if_equal, stamp.generation) or stamp.generation == if_not_equal:
            return ReadResult("unspecified", b"", stamp)
        return ReadResult("value", response.body, stamp)


class Page(NamedTuple):
    """A page of a listing.

    Attributes:
        entries: keys and sizes, in the order of the keys.
        token: what to ask for the next page with; None or empty after the last one.
        prefixes: what further keys begin with, if one level was asked for; end in `/`.
    """

    entries: list[ListEntry]
    token: str | None
    prefixes: tuple[str, ...] = ()


class PagedListing(DirectoryListing, Generic[Q]):
    """A store whose listings come in pages; no more than one is held."""

    @abstractmethod
    def range_query(self, key_range: KeyRange) -> Q:
        """What to ask for all keys of a range that is not empty; more keys may be told."""

    @abstractmethod
    def directory_query(self, prefix: str) -> Q:
        """What to ask for one level."""

    @abstractmethod
    async def page(self, query: Q, token: str | None, prefix: str) -> Page:
        """One page.

        Args:
            query: what to ask for.
            token: of the page before; None for the first one.
            prefix: of the range, for errors.
        """

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        async for page in self.pages(key_range):
            for entry in page:
                yield entry

    async def pages(self, key_range: KeyRange) -> AsyncIterator[Entries]:
        """The entries of a range, page by page."""
        if key_range.empty:
            return
        last = key_range.exclusive_max
        query = self.range_query(key_range)
        async for page in self._asked(query, key_range.common_prefix()):
            yield [entry for entry in page.entries if entry.key in key_range]
            if last and page.entries and encode_key(page.entries[-1].key) >= last:
                return

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        size = len(prefix)
        async for page in self._asked(self.directory_query(prefix), prefix):
            for key in (*page.prefixes, *(entry.key for entry in page.entries)):
                if len(key) > size:
                    yield key[size:]

    async def _asked(self, query: Q, prefix: str) -> AsyncIterator[Page]:
        """The pages of an answer, each asked for when the one before it was looked at."""
        paging = Paging(self.describe_key(prefix))
        token = None
        while True:
            page = await self.page(query, token, prefix)
            paging.page([*page.prefixes, *(entry.key for entry in page.entries)], page.token)
            yield page
            if not page.token:
                return
            token = page.token
