"""Many keys, a page at a time: `KvStore.keys` lists them, `CopyRange` copies them to another store.

However many keys there are, one page of them is held, and of a copy the values on their way. A
listing waits until its next page is asked for; it runs where the store's operations run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.kvstore import KvStore, ListEntry, ReadResult
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._interface.read_modify_write import Copied
from tensorstore_py._interface.store_abilities import (
    ReferenceCopy,
    copy_value,
    list_keys,
    read_as_of,
)
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._runtime.future import Future

__all__ = ["PAGE", "CopyRange", "Keys", "copy_key", "next_page"]

T = TypeVar("T")

PAGE = 1000


class Begin(Protocol):
    """Begins an operation of the store."""

    def __call__(self, body: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """As `start` does."""


async def next_page(listing: AsyncIterator[ListEntry]) -> list[ListEntry]:
    """The next entries of a listing; none if it is over."""
    page = []
    async for entry in listing:
        page.append(entry)
        if len(page) == PAGE:
            break
    return page


class Keys:
    """Keys, each iteration a listing of its own: with `async for`, or with `for`.

    Args:
        begin: begins an operation of the store.
        store: whose keys.
        wanted: which of them.
        skipped: how many bytes to drop from the front of each key.

    Example:
        >>> import tensorstore_py as ts
        >>> store = ts.KvStore.open("memory://").result()
        >>> store["a/x"], store["a/y"] = b"1", b"2"
        >>> for key in (store / "a/").keys():
        ...     print(key)
        b'x'
        b'y'
    """

    def __init__(
        self,
        begin: Begin,
        store: KvStore,
        wanted: KeyRange,
        skipped: int = 0,
    ) -> None:
        self._begin = begin
        self._store = store
        self._wanted = wanted
        self._skipped = skipped

    def __iter__(self) -> Iterator[bytes]:
        pages = self._pages()
        try:
            while page := self._begin(lambda: _next(pages)).result():
                yield from page
        finally:
            # The garbage collector may end it, on any thread: none may wait.
            start(self._store.inline, lambda: _end(pages))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pages = self._pages()
        try:
            while page := await self._begin(lambda: _next(pages)):
                for key in page:
                    yield key
        finally:
            await start(self._store.inline, lambda: _end(pages))

    async def entries(self) -> AsyncGenerator[ListEntry, None]:
        """Whole keys, and the sizes of their values where the store lists these."""
        listing = self._store.list(self._wanted)
        try:
            while page := await self._begin(lambda: next_page(listing)):
                for entry in page:
                    yield entry
        finally:
            await start(self._store.inline, lambda: _end(listing))

    async def collect(self) -> list[bytes]:
        """All of them, where the store's operations run."""
        keys: list[bytes] = []
        async for page in self._pages():
            keys += page
        return keys

    def _pages(self) -> AsyncIterator[Sequence[bytes]]:
        return list_keys(self._store, self._wanted, self._skipped)


async def _next(pages: AsyncIterator[T]) -> T | None:
    async for page in pages:
        return page
    return None


async def _end(listing: AsyncIterator[object]) -> None:
    close = getattr(listing, "aclose", None)
    if close is not None:
        await close()


class CopyRange(NamedTuple):
    """A copy of the keys in `wanted`, under other names.

    A key that begins with `from_path` in the source begins with `to_path` in the target. With a
    `staleness_bound`, in s since 1970, values may be as old as that.
    """

    source: KvStore
    sink: KvStore
    wanted: KeyRange
    from_path: str
    to_path: str
    staleness_bound: float | None = None

    @property
    def inline(self) -> bool:
        """Whether copying runs inline."""
        return self.source.inline and self.sink.inline

    async def run(self) -> None:
        """Copy all of it."""
        if await self._refer():
            return
        width = None if self.inline else max(self.source.width, self.sink.width)
        listing = self.source.list(self.wanted)
        first = await self._all(listing) if self._feeds_itself() else None
        while keys := first or await self._next(listing):
            await fan_out(self.inline, keys, self._copy_one, count=len(keys), width=width)
            if first:
                return

    async def _refer(self) -> bool:
        """Have the target refer to what is stored, if it can; whether that is all."""
        sink = self.sink
        base = sink.base if isinstance(sink, Overlay) else sink
        if not isinstance(base, ReferenceCopy):
            return False
        asked = partial(base.values_of, self.source, self.wanted, self.staleness_bound)
        found = await within(self.inline, base.inline, asked)
        if found is None:
            return False
        copied = {self._target_key(key): value for key, value in found.items()}
        if isinstance(sink, Overlay):
            for key, value in copied.items():
                await sink.update(key, Copied(value))
        elif copied:
            await within(self.inline, base.inline, lambda: base.write_batch(copied, {}))
        return True

    def _target_key(self, key: str) -> str:
        return self.to_path + key.removeprefix(self.from_path)

    async def _read(self, key: str) -> ReadResult:
        if self.staleness_bound is None:
            return await self.source.read(key)
        return await read_as_of(self.source, key, WHOLE, self.staleness_bound)

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
        copied = self._target_key(key)
        await copy_key(self.source, key, self.sink, copied, lambda: self._read(key))


async def copy_key(
    source: KvStore,
    key: str,
    sink: KvStore,
    copied: str,
    read: Callable[[], Coroutine[Any, Any, ReadResult]] | None = None,
) -> int | None:
    """Copy one value, if there is one, without moving its bytes through here if the store can.

    Returns:
        How many bytes went through here; None if the store copied them.
    """
    inline = source.inline and sink.inline
    if await within(inline, source.inline, lambda: copy_value(source, key, sink, copied)):
        return None
    asked = read or partial(source.read, key)
    found = await within(inline, source.inline, asked)
    if found.state != "value":
        return 0
    await within(inline, sink.inline, lambda: sink.write(copied, found.value))
    return len(found.value)
