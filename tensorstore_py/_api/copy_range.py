"""Copying the keys of a range from store to store, whatever their temperaments.

Keys are listed a page at a time, and each value is held while it is copied: memory does not grow
with the range. Where the target lies in the range, what is copied there must not be copied again:
then all keys are listed first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from tensorstore_py._api.keys import next_page
from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.kvstore import KvStore, ListEntry, ReadResult
from tensorstore_py._runtime.fan_out import fan_out, within

__all__ = ["CopyRange"]


class CopyRange(NamedTuple):
    """What is to be copied.

    Attributes:
        source: from where.
        sink: where to.
        wanted: which keys of the source.
        from_path: what they begin with there.
        to_path: what they begin with here, instead.
        staleness_bound: values may be as old as that, in s since 1970; None: as they are now.
    """

    source: KvStore
    sink: KvStore
    wanted: KeyRange
    from_path: str
    to_path: str
    staleness_bound: float | None = None

    @property
    def inline(self) -> bool:
        """The temperament of the copying."""
        return self.source.inline and self.sink.inline

    async def run(self) -> None:
        """Copy all of it."""
        width = None if self.inline else max(self.source.width, self.sink.width)
        listing = self.source.list(self.wanted)
        first = await self._all(listing) if self._feeds_itself() else None
        while keys := first or await self._next(listing):
            await fan_out(self.inline, keys, self._copy_one, count=len(keys), width=width)
            if first:
                return

    async def _read(self, key: str) -> ReadResult:
        if self.staleness_bound is None:
            return await self.source.read(key)
        return await self.source.read_as_of(key, WHOLE, self.staleness_bound)

    async def _next(self, listing: AsyncIterator[ListEntry]) -> list[str]:
        page = await within(self.inline, self.source.inline, lambda: next_page(listing))
        return [entry.key for entry in page]

    def _feeds_itself(self) -> bool:
        return type(self.source) is type(self.sink) and (
            self.to_path in self.wanted
            or KeyRange.prefix(self.to_path).inclusive_min <= self.wanted.inclusive_min
        )

    async def _all(self, listing: AsyncIterator[ListEntry]) -> list[str]:
        async def collect() -> list[str]:
            return [entry.key async for entry in listing]

        return await within(self.inline, self.source.inline, collect)

    async def _copy_one(self, key: str) -> None:
        source, sink = self.source, self.sink
        copied = self.to_path + key.removeprefix(self.from_path)
        if await within(self.inline, source.inline, lambda: source.copy_to(key, sink, copied)):
            return
        found = await within(self.inline, source.inline, lambda: self._read(key))
        if found.state == "value":
            await within(self.inline, sink.inline, lambda: sink.write(copied, found.value))
