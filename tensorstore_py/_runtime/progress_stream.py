"""`ProgressStream`: progress of an operation as an async iterator.

Whoever tells never waits for whoever listens: what was not taken when there is newer news is
dropped, so it holds one `Progress` at a time. The last one is never dropped.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from tensorstore_py._runtime.gate import Mutex

if TYPE_CHECKING:
    from typing import Self

    from tensorstore_py._runtime.progress import Progress

__all__ = ["ProgressStream"]


class ProgressStream:
    """How far an operation is, for `async for` in any event loop.

    Pass it as `progress=`. It ends when the operation does, in whichever way; errors are the
    Future's matter. One task listens, to one operation.

    Example:
        >>> import asyncio
        >>> import tensorstore_py as ts
        >>> async def main():
        ...     spec = {"driver": "zarr3", "kvstore": "memory://"}
        ...     store = await ts.open(spec, create=True, dtype="uint8", shape=[8])
        ...     stream = ts.ProgressStream()
        ...     reading = store.read(progress=stream)
        ...     last = [event async for event in stream][-1]
        ...     return await reading, last.fraction
        >>> asyncio.run(main())
        (array([0, 0, 0, 0, 0, 0, 0, 0], dtype=uint8), 1.0)
    """

    __slots__ = ("_closed", "_listener", "_mutex", "_news")

    def __init__(self) -> None:
        self._mutex = Mutex()
        self._news: Progress | None = None
        self._closed = False
        self._listener: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    def __call__(self, progress: Progress) -> None:
        """There is news; from any thread."""
        with self._mutex:
            self._news = progress
            listener, self._listener = self._listener, None
        _wake(listener)

    def close(self) -> None:
        """There will be no more."""
        with self._mutex:
            self._closed = True
            listener, self._listener = self._listener, None
        _wake(listener)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Progress:
        while True:
            with self._mutex:
                news, self._news = self._news, None
                if news is not None:
                    return news
                if self._closed:
                    raise StopAsyncIteration
                loop = asyncio.get_running_loop()
                waiting: asyncio.Future[None] = loop.create_future()
                self._listener = loop, waiting
            await waiting


def _wake(listener: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None) -> None:
    if listener is not None:
        loop, waiting = listener
        with suppress(RuntimeError):  # its loop is closed: nobody listens any more
            loop.call_soon_threadsafe(_settle, waiting)


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
