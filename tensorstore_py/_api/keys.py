"""`KvStore.keys`: a listing that is looked at while it goes on, a page at a time.

However many keys there are, one page of them is held. The listing waits until the next page is
asked for; it runs where the store's operations run, and ends with whoever iterates.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from tensorstore_py._interface.key_range import encode_key
from tensorstore_py._interface.kvstore import ListEntry
from tensorstore_py._runtime.future import Future
from tensorstore_py._runtime.start import start

__all__ = ["PAGE", "Keys", "next_page"]

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
        inline: the store's temperament.
        listing: begins a listing.
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
        inline: bool,
        listing: Callable[[], AsyncIterator[ListEntry]],
        skipped: int = 0,
    ) -> None:
        self._inline = inline
        self._begin = begin
        self._listing = listing
        self._skipped = skipped

    def __iter__(self) -> Iterator[bytes]:
        listing = self._listing()
        try:
            while page := self._begin(lambda: next_page(listing)).result():
                yield from self._shown(page)
        finally:
            # Whoever lets go of it may be the garbage collector, on any thread: none may wait.
            start(self._inline, lambda: _end(listing))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self.entries()) as entries:
            async for entry in entries:
                yield encode_key(entry.key)[self._skipped :]

    async def entries(self) -> AsyncGenerator[ListEntry, None]:
        """Whole keys, and the sizes of their values where the store lists these."""
        listing = self._listing()
        try:
            while page := await self._begin(lambda: next_page(listing)):
                for entry in page:
                    yield entry
        finally:
            await start(self._inline, lambda: _end(listing))

    async def collect(self) -> list[bytes]:
        """All of them, where the store's operations run."""
        return self._shown([entry async for entry in self._listing()])

    def _shown(self, entries: list[ListEntry]) -> list[bytes]:
        return [encode_key(entry.key)[self._skipped :] for entry in entries]


async def _end(listing: AsyncIterator[ListEntry]) -> None:
    close = getattr(listing, "aclose", None)
    if close is not None:
        await close()
