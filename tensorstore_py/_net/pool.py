"""Connections that are kept open, by where they lead, for one event loop.

The library makes them: names, addresses, certificates and their faults are its business. What is
said over them is ours, see `line`. The last one that was used is the first to be used again, so
that those that are not needed get old and are closed. The invariant: every connection that was made
is in use, at rest here, or closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tensorstore_py._net.line import Desk, Line

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Destination", "LinePool"]

#: After so long at rest, many servers have closed their side.
KEEP_ALIVE_S: Final = 30.0
#: As much as a loop reads in one go.
_SHARED_DESK: Final = 2**18
_OWN_DESK: Final = 2**16
_LEARNT: Final = 2**22


class LinePool:
    """The connections of a loop.

    Args:
        session: makes them.

    Attributes:
        now: the loop's time.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        _keep_what_is_freed()
        self._loop = loop = asyncio.get_running_loop()
        self.now = loop.time
        # These loops ask for space, fill it and tell so in one step, so one desk does for all; it
        # is always in the processor's cache. Others may fill it while they do something else.
        shared = isinstance(loop, asyncio.SelectorEventLoop)
        self._desk = Desk(_SHARED_DESK) if shared else None
        self._destinations: dict[str, Destination | None] = {}
        self._lines: set[Line] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    def destination(self, origin: str) -> Destination | None:
        """Where an origin is; None if only the library's client can say how to talk to it."""
        try:
            return self._destinations[origin]
        except KeyError:
            made = Destination(self, origin) if _is_plain(origin) else None
            self._destinations[origin] = made
            return made

    async def connect(self, request: aiohttp.ClientRequest, destination: Destination) -> Line:
        """A new connection."""
        session = self._session
        connector = session.connector
        assert connector is not None
        connection = await connector.connect(request, [], session.timeout)
        try:
            desk = Desk(_OWN_DESK) if self._desk is None else self._desk
            line = Line(self._loop, connection, desk, destination.drop)
        except BaseException:
            connection.close()
            raise
        self._lines.add(line)
        return line

    def request(self, origin: str) -> aiohttp.ClientRequest:
        """What the library connects for."""
        import aiohttp  # noqa: PLC0415 - loaded by now
        import yarl  # noqa: PLC0415 - as above

        url = yarl.URL(f"{origin}/", encoded=True)
        return aiohttp.ClientRequest("GET", url, loop=self._loop, session=self._session)

    def forget(self, line: Line) -> None:
        """It is closed."""
        self._lines.discard(line)

    def sweep_soon(self) -> None:
        """See to those that get old."""
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(KEEP_ALIVE_S, self._sweep)

    def close(self) -> None:
        """Close all."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for line in list(self._lines):
            line.close()

    def _sweep(self) -> None:
        self._sweeping = None
        too_old = self._loop.time() - KEEP_ALIVE_S
        for line in list(self._lines):
            if line.is_resting and line.idle_since <= too_old:
                line.close()
        if self._lines:
            self.sweep_soon()
        else:
            self._destinations.clear()


class Destination:
    """One server.

    Args:
        pool: whose it is.
        origin: scheme, host and port.

    Attributes:
        host: what to send as `Host`.
    """

    def __init__(self, pool: LinePool, origin: str) -> None:
        self._pool = pool
        self._request = pool.request(origin)
        self._resting: list[Line] = []
        self.host = self._request.headers["Host"]

    async def line(self) -> Line:
        """A connection to use."""
        resting = self._resting
        while resting:
            line = resting.pop()
            if line.is_usable and line.idle_since > self._pool.now() - KEEP_ALIVE_S:
                return line
            line.close()
        return await self._pool.connect(self._request, self)

    def keep(self, line: Line) -> None:
        """An exchange is over; use the connection again if that can be."""
        if not line.is_usable:
            line.close()
            return
        line.rest(self._pool.now())
        self._resting.append(line)
        self._pool.sweep_soon()

    def drop(self, line: Line) -> None:
        """It is being closed."""
        self._pool.forget(line)
        if line in self._resting:
            self._resting.remove(line)


def _keep_what_is_freed() -> None:
    """Let the process keep some of the memory that it frees.

    The allocator of Linux gives what is freed at the end of its heap back to the kernel, down to
    128 KiB, and a value of 64 KiB then comes with sixteen page faults, which cost as much as all
    else about it. It learns from the first large block that is freed to keep twice as much.
    """
    bytearray(_LEARNT)


def _is_plain(origin: str) -> bool:
    """Whether nothing of it needs to be translated or taken out."""
    try:
        return origin.isascii() and "@" not in origin and bool(urlsplit(origin).hostname)
    except ValueError:
        return False
