"""Connections: one session of the HTTP library for each event loop, which is one in all.

The library is imported here, at the first request. Its own ideas of retrying, of cookies, of
redirects and of unpacking are switched off, since a store has to know what went over the wire. The
number of connections is not limited: the stores' slots limit the requests. The invariant: a session
is only used on the loop that made it, and is closed before that loop ends; a forked child leaves
its parent's sockets alone.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

from tensorstore_py._net.failures import Failure
from tensorstore_py._net.pool import KEEP_ALIVE_S, LinePool
from tensorstore_py._runtime.fork import on_fork
from tensorstore_py._runtime.loop import on_loop_end
from tensorstore_py.errors import UnavailableError

if TYPE_CHECKING:
    import aiohttp
    import yarl

__all__ = ["close_session", "exact_url", "lines", "session"]

_DNS_CACHE_S: Final = 60
#: Signed URLs and tokens make for long header lines.
_LONGEST_LINE: Final = 2**16


class _Latest:
    """The loop that asked last, and its session: nearly always the same ones."""

    loop: asyncio.AbstractEventLoop | None = None
    session: aiohttp.ClientSession
    lines: LinePool
    url: type[yarl.URL]


_Both: TypeAlias = "tuple[aiohttp.ClientSession, LinePool]"
_latest = _Latest()
_sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, _Both] = WeakKeyDictionary()
_abandoned: list[object] = []


def session() -> aiohttp.ClientSession:
    """The session of the running loop."""
    lines()
    return _latest.session


def lines() -> LinePool:
    """The connections of the running loop."""
    loop = asyncio.get_running_loop()
    if loop is _latest.loop:
        return _latest.lines
    found = _sessions.get(loop)
    if found is None:
        made = _make()
        found = _sessions[loop] = made, LinePool(made)
    _latest.loop = loop
    _latest.session, _latest.lines = found
    return _latest.lines


async def close_session() -> None:
    """Close the running loop's session, if it has one."""
    found = _sessions.pop(asyncio.get_running_loop(), None)
    _latest.loop = None
    if found is not None:
        found[1].close()
        await found[0].close()


def exact_url(url: str) -> yarl.URL:
    """A URL that goes over the wire as it is. Only for who has a session."""
    return _latest.url(url, encoded=True)


def _make() -> aiohttp.ClientSession:
    try:
        import aiohttp  # noqa: PLC0415 - 0.2 s that only network stores should cost
        import yarl  # noqa: PLC0415 - the library's URLs
    except OSError as error:
        # Its files cannot be opened just now, as a rule because too many others are open.
        raise Failure(
            f"the library aiohttp could not be loaded ({error}); close files, or raise the limit "
            "of open ones, and try again",
            UnavailableError,
        ) from error

    _latest.url = yarl.URL

    trusted = _trusted_authorities()
    made = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,
            ssl=True if trusted is None else trusted,
            keepalive_timeout=KEEP_ALIVE_S,
            ttl_dns_cache=_DNS_CACHE_S,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        requote_redirect_url=False,
        timeout=aiohttp.ClientTimeout(total=None),
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
    )
    # Otherwise a request is silently sent twice after a reset: a conditional write that succeeded
    # would then be reported as refused, and attempts would not be what they are counted as.
    made._retry_connection = False
    return made


def _trusted_authorities() -> ssl.SSLContext | None:
    bundle = os.environ.get("TENSORSTORE_CA_BUNDLE") or None
    directory = os.environ.get("TENSORSTORE_CA_PATH") or None
    if bundle is None and directory is None:
        return None
    return ssl.create_default_context(cafile=bundle, capath=directory)


def _leave_to_parent() -> None:
    # The connections are the parent's. Detached, a session does not complain of not being closed.
    for found, pool in _sessions.values():
        _abandoned.append((found.connector, pool))
        found.detach()
    _sessions.clear()
    _latest.loop = None


on_fork(_leave_to_parent)
on_loop_end(close_session)
