"""Copying the keys of a range from store to store, whatever their temperaments.

Keys are listed a page at a time, and each value is held while it is copied: memory does not grow
with the range. Where the target lies in the range, what is copied there must not be copied again:
then all keys are listed first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from tensorstore_py._api.keys import next_page
from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.kvstore import KvStore, ListEntry, ReadResult
from tensorstore_py._runtime.fan_out import fan_out, within

__all__ = ["CopyRange", "copy_key"]


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
        copied = self.to_path + key.removeprefix(self.from_path)
        await copy_key(self.source, key, self.sink, copied, lambda: self._read(key))


async def copy_key(
    source: KvStore,
    key: str,
    sink: KvStore,
    copied: str,
    read: Callable[[], Coroutine[Any, Any, ReadResult]] | None = None,
) -> int | None:
    """Copy one value, without moving its bytes through here where the medium can do that.

    Args:
        source: from where.
        key: the whole key; it is no error if nothing is there.
        sink: where to.
        copied: the whole key there.
        read: reads it, if not as it is now.

    Returns:
        How many bytes went through here; None if the medium copied them.
    """
    inline = source.inline and sink.inline
    if await within(inline, source.inline, lambda: source.copy_to(key, sink, copied)):
        return None
    asked = read or partial(source.read, key)
    found = await within(inline, source.inline, asked)
    if found.state != "value":
        return 0
    await within(inline, sink.inline, lambda: sink.write(copied, found.value))
    return len(found.value)
