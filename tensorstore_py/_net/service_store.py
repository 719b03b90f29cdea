"""What stores of network services have in common: parts read together, and listings in pages.

A store inherits these beside `KvStore`. `CoalescedReads` has `read_ranges`; `PagedListing` has
`list` and `list_directory`, and needs to be told how to ask for one page.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from tensorstore_py._interface.key_range import ALL, KeyRange, encode_key
from tensorstore_py._interface.store_abilities import DirectoryListing, RangeRead
from tensorstore_py._net.coalesce import read_coalesced
from tensorstore_py._net.service import Paging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tensorstore_py._interface.byte_range import ByteRange
    from tensorstore_py._interface.kvstore import ListEntry, ReadResult

__all__ = ["CoalescedReads", "Page", "PagedListing"]

Q = TypeVar("Q")
#: Inside the class `list` is a method.
Entries: TypeAlias = "list[ListEntry]"


class CoalescedReads(RangeRead):
    """A store whose `read_ranges` is few calls of `read`; see `coalesce`."""

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        async def read(byte_range: ByteRange) -> ReadResult:
            return await self.read(key, byte_range)

        return await read_coalesced(read, ranges, width=self.width)


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
