"""Connections that are kept open, by where they lead: one pool for each event loop, one in all.

Their number is not limited: the stores' slots limit the requests. The last one that was used is the
first to be used again, so that those that are not needed get old and are closed. The invariants:
every connection that was made is in use, idle in here, or closed; a pool is only used on the loop
that made it, and is closed before that loop ends; a forked child leaves its parent's sockets alone.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._net.connection import HttpConnection, ReceiveBuffer, request_head
from tensorstore_py._net.failures import Failure, Retryability, connect_failure, status_error
from tensorstore_py._net.routing import Proxy, basic_credentials
from tensorstore_py._runtime.fork import on_fork
from tensorstore_py._runtime.loop import on_loop_end
from tensorstore_py.errors import SpecError, UnavailableError

if TYPE_CHECKING:
    from aiohappyeyeballs import AddrInfoType

    from tensorstore_py._net.idle_timeout import IdleTimeout

__all__ = ["ConnectionPool", "Endpoint", "close_pool", "connection_pool"]

#: After so long without a request, many servers have closed their side.
KEEP_ALIVE_S: Final = 30.0
#: For how long an address is used without asking the resolver again.
_DNS_CACHE_S: Final = 60.0
#: Before the next of several addresses is tried beside the first, RFC 8305.
_NEXT_ADDRESS_S: Final = 0.25
#: As much as a loop reads in one go.
_SHARED_BUFFER: Final = 2**18
_OWN_BUFFER: Final = 2**16
_LEARNT: Final = 2**23
#: Of the loop, until an aborted connection has closed its socket: two, and one more below TLS.
_TURNS_TO_CLOSE: Final = 10
_PORTS: Final = {"http": 80, "https": 443}


class ConnectionPool:
    """The connections of the running loop.

    Attributes:
        now: the loop's time.
    """

    def __init__(self) -> None:
        _load_libraries()
        _keep_what_is_freed()
        self._loop = loop = asyncio.get_running_loop()
        self.now = loop.time
        # These loops ask for space, fill it and tell so in one step, so one buffer does for all; it
        # is always in the processor's cache. Others may fill it while they do something else.
        is_shared = isinstance(loop, asyncio.SelectorEventLoop)
        self._buffer = ReceiveBuffer(_SHARED_BUFFER) if is_shared else None
        self._endpoints: dict[tuple[str, Proxy | None], Endpoint] = {}
        self._connections: set[HttpConnection] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    def endpoint(self, origin: str, proxy: Proxy | None = None) -> Endpoint:
        """Where requests to an origin go.

        Raises:
            Failure: it is none.
        """
        try:
            return self._endpoints[origin, proxy]
        except KeyError:
            made = self._endpoints[origin, proxy] = Endpoint(self, self._loop, origin, proxy)
            return made

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """What is trusted: what the environment says, else what the system trusts."""
        bundle = os.environ.get("TENSORSTORE_CA_BUNDLE") or None
        directory = os.environ.get("TENSORSTORE_CA_PATH") or None
        try:
            context = ssl.create_default_context(cafile=bundle, capath=directory)
        except OSError as error:
            raise Failure(
                f"the certificate authorities of TENSORSTORE_CA_BUNDLE or TENSORSTORE_CA_PATH "
                f"could not be read ({error.strerror}); correct the variable",
                UnavailableError,
            ) from error
        context.set_alpn_protocols(["http/1.1"])
        return context

    def add(self) -> HttpConnection:
        """A connection that is about to be made."""
        buffer = ReceiveBuffer(_OWN_BUFFER) if self._buffer is None else self._buffer
        made = HttpConnection(self._loop, buffer, self._connections.discard)
        self._connections.add(made)
        return made

    def sweep_soon(self) -> None:
        """Close in a while what will be too old by then."""
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(KEEP_ALIVE_S, self._sweep)

    async def aclose(self) -> None:
        """Close all connections, and wait until their sockets are closed."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in list(self._connections):
            connection.close()
        for _ in range(_TURNS_TO_CLOSE):
            if not self._connections:
                return
            await asyncio.sleep(0)

    def _sweep(self) -> None:
        self._sweeping = None
        too_old = self._loop.time() - KEEP_ALIVE_S
        for connection in list(self._connections):
            if connection.is_idle and connection.idle_since <= too_old:
                connection.close()
        for endpoint in self._endpoints.values():
            endpoint.forget_closed()
        if self._connections:
            self.sweep_soon()
        else:
            self._endpoints.clear()


class Endpoint:
    """One origin, reached directly or through a proxy.

    Args:
        pool: whose connections it uses.
        loop: the running one.
        origin: scheme, user and password if any, host and port, as in the URL.
        proxy: where requests go instead.

    Attributes:
        host: what to send as `Host`.
        headers: what to send besides: credentials of the URL, or for the proxy.
        prefix: what to send before the path; a proxy wants to be told all of a URL.

    Raises:
        Failure: the origin is none.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        loop: asyncio.AbstractEventLoop,
        origin: str,
        proxy: Proxy | None,
    ) -> None:
        self._pool = pool
        self._loop = loop
        self._proxy = proxy
        self._idle: list[HttpConnection] = []
        self._addresses: list[AddrInfoType] = []
        self._resolved_at = 0.0
        self._resolving: asyncio.Future[Any] | None = None
        self._scheme, userinfo, self._name, self._port = _parsed(origin)
        place = f"[{self._name}]" if ":" in self._name else self._name
        is_default = self._port == _PORTS[self._scheme]
        self.host = place if is_default else f"{place}:{self._port}"
        self.headers: dict[str, str] = {}
        self.prefix = ""
        if userinfo:
            self.headers["Authorization"] = basic_credentials(userinfo)
        if proxy is not None and self._scheme == "http":
            self.prefix = f"http://{self.host}"
            if proxy.authorization is not None:
                self.headers["Proxy-Authorization"] = proxy.authorization

    def idle(self, now: float) -> HttpConnection | None:
        """An idle connection to use; None if there is none."""
        connections = self._idle
        while connections:
            connection = connections.pop()
            if connection.is_reusable and connection.idle_since > now - KEEP_ALIVE_S:
                return connection
            connection.close()
        return None

    def release(self, connection: HttpConnection, now: float) -> None:
        """The response was taken; use the connection again if that can be."""
        if connection.rest(now):
            self._idle.append(connection)
            self._pool.sweep_soon()
        else:
            connection.close()

    def close_idle(self) -> None:
        """Close the idle connections: one that was used later turned out to be closed."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def forget_closed(self) -> None:
        """Drop the idle connections that were closed meanwhile."""
        self._idle = [each for each in self._idle if each.is_reusable]

    async def connect(self, idle: IdleTimeout) -> HttpConnection:
        """A new connection to use."""
        connection = self._pool.add()
        try:
            if self._proxy is None:
                await self._open(connection, self._scheme, self._name, self._port)
            else:
                scheme, _, name, port = _parsed(self._proxy.url)
                await self._open(connection, scheme, name, port)
                if self._scheme == "https":
                    idle.progress()
                    await self._tunnel(connection, idle)
        except BaseException:
            connection.close()
            raise
        idle.progress()
        return connection

    async def _open(self, connection: HttpConnection, scheme: str, name: str, port: int) -> None:
        """Connect to a server, or to the proxy."""
        from aiohappyeyeballs import start_connection  # noqa: PLC0415 - at the first request

        is_secure = scheme == "https"
        context = self._pool.tls if is_secure else None
        try:
            addresses = await self._resolve(name, port)
            # Several addresses are tried side by side, so that one that is dead costs no minutes.
            made = await start_connection(
                addresses,
                happy_eyeballs_delay=_NEXT_ADDRESS_S,
                interleave=1,
            )
            await self._loop.create_connection(
                lambda: connection,
                sock=made,
                ssl=context,
                server_hostname=name.removesuffix(".") if is_secure else None,
            )
        except (OSError, UnicodeError) as error:
            self._resolved_at = 0.0
            raise connect_failure(error, to_proxy=self._proxy is not None) from error

    async def _tunnel(self, connection: HttpConnection, idle: IdleTimeout) -> None:
        """Ask the proxy to lead to the server, and make what goes through secure."""
        proxy = self._proxy
        assert proxy is not None
        name = f"[{self._name}]" if ":" in self._name else self._name
        target = f"{name}:{self._port}"
        headers = (
            {} if proxy.authorization is None else {"Proxy-Authorization": proxy.authorization}
        )
        head = request_head("CONNECT", target, target, headers, None)
        response = await connection.request(head, "CONNECT", WHOLE, False, idle)
        if response.status >= 300:
            raise Failure(
                f"the proxy refused with status {response.status}",
                status_error(response.status),
                Retryability.LITTLE,
            )
        try:
            await connection.start_tls(self._pool.tls, self._name.removesuffix("."))
        except OSError as error:
            raise connect_failure(error) from error

    async def _resolve(self, name: str, port: int) -> list[AddrInfoType]:
        """The addresses of a host; asked for once, however many connections are being made."""
        try:
            found: Any = socket.getaddrinfo(
                name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except OSError:  # it is a name, for which a resolver has to be asked
            found = None
        if found is not None:
            return cast("list[AddrInfoType]", found)
        if self._resolved_at > self._pool.now() - _DNS_CACHE_S:
            return self._addresses
        if self._resolving is None:
            asked = self._loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
            self._resolving = asyncio.ensure_future(asked)
            self._resolving.add_done_callback(self._on_resolved)
        return cast("list[AddrInfoType]", await asyncio.shield(self._resolving))

    def _on_resolved(self, resolving: asyncio.Future[Any]) -> None:
        self._resolving = None
        if not resolving.cancelled() and resolving.exception() is None:
            self._addresses = resolving.result()
            self._resolved_at = self._pool.now()


def _parsed(origin: str) -> tuple[str, str, str, int]:
    """Scheme, user and password, host and port of an origin.

    Raises:
        Failure: it is none.
    """
    try:
        parts = urlsplit(origin)
        name, port = parts.hostname, parts.port
        if not name or parts.scheme not in _PORTS:
            raise ValueError(origin)
        if not name.isascii():
            name = name.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError among them
        raise Failure("the URL is not valid", SpecError) from None
    userinfo = parts.netloc.rpartition("@")[0]
    return parts.scheme, userinfo, name, _PORTS[parts.scheme] if port is None else port


class _Latest:
    """The loop that asked last, and its pool: nearly always the same ones."""

    loop: asyncio.AbstractEventLoop | None = None
    pool: ConnectionPool


_latest = _Latest()
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ConnectionPool] = WeakKeyDictionary()
_abandoned: list[ConnectionPool] = []


def connection_pool() -> ConnectionPool:
    """The connections of the running loop."""
    loop = asyncio.get_running_loop()
    if loop is not _latest.loop:
        found = _pools.get(loop)
        if found is None:
            found = _pools[loop] = ConnectionPool()
        _latest.loop, _latest.pool = loop, found
    return _latest.pool


async def close_pool() -> None:
    """Close the running loop's connections, if it has any."""
    found = _pools.pop(asyncio.get_running_loop(), None)
    _latest.loop = None
    if found is not None:
        await found.aclose()


def _leave_to_parent() -> None:
    # The connections are the parent's. Were they finalised here, they would be taken out of the set
    # of sockets that the kernel watches for the parent, too.
    _abandoned.extend(_pools.values())
    _pools.clear()
    _latest.loop = None


def _load_libraries() -> None:
    try:
        import aiohappyeyeballs  # noqa: F401, PLC0415 - only programs that use a network need it
        import httptools  # noqa: F401, PLC0415 - as above
    except ModuleNotFoundError:
        raise
    except (ImportError, OSError) as error:
        # As a rule its files cannot be opened because too many others are open.
        raise Failure(
            f"a library could not be loaded ({error}); close files, or raise the limit of open "
            "ones, and try again",
            UnavailableError,
        ) from error


def _keep_what_is_freed() -> None:
    """Let the process keep some of the memory that it frees.

    The allocator of Linux gives what is freed at the end of its heap back to the kernel, down to
    128 KiB, and a value of 64 KiB then comes with sixteen page faults, which cost as much as all
    else about it. It learns from the first large block that is freed to keep twice as much.
    """
    bytearray(_LEARNT)


on_fork(_leave_to_parent)
on_loop_end(close_pool)
