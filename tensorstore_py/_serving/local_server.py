"""An HTTP server of this process, by aiohttp, which runs on the library's event loop.

So it needs no thread and no loop of its own: it serves beside scripts, notebooks and programs of
asyncio, ends with the process, and a forked child has none. Handlers run on that loop: they await
what waits, and leave what computes to others.

The invariants: no request reaches a handler that `Guard` does not let in; no answer and no log
shows the token; a handler whose client has gone away is cancelled.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fork import epoch, on_fork
from tensorstore_py._runtime.future import Promise
from tensorstore_py._serving.guard import Guard, is_loopback
from tensorstore_py.errors import (
    NotFoundError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

try:
    from aiohttp import web
    from aiohttp.http import HttpProcessingError
except ImportError as error:
    raise UnsupportedError(
        f'serving over HTTP needs aiohttp ({error}): pip install "tensorstore-py[serve]"'
    ) from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from typing import TypeAlias

    from tensorstore_py._runtime.future import Future

    Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
    #: A method of HTTP, a path of aiohttp's form below the token, and what answers.
    Route: TypeAlias = tuple[str, str, Handler]

__all__ = ["LocalServer", "failure"]

#: How long requests may go on after `close`.
_GRACE_S: Final = 1.0
_TOKEN_BYTES: Final = 18
_LAST_PORT: Final = 65535

_log: Final = logging.getLogger("tensorstore_py.serving")
#: Of aiohttp, which logs requests that are none as they came: with the token.
_protocol_log: Final = _log.getChild("http")
#: Of this process; changed on the loop alone.
_running: set[LocalServer] = set()


class LocalServer:
    """A server that was started; see `start`.

    Attributes:
        url: what all paths begin with, the token included; ends with "/".
        host: that of `url`.
        port: the one that it listens on.
        token: the first part of all paths; empty if there is none.
    """

    def __init__(
        self, guard: Guard, runner: web.AppRunner, host: str, listening: socket.socket
    ) -> None:
        self.host = host
        self.port = port = listening.getsockname()[1]
        self.token = guard.token
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{port}/" + (f"{guard.token}/" if guard.token else "")
        self._runner = runner
        self._listening = listening
        self._epoch = epoch()
        self._ended, self._end = Promise[None].new()
        self._stopping: Future[None] | None = None

    @classmethod
    def start(
        cls,
        routes: Iterable[Route],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | bool = True,
        cors: str | Sequence[str] | None = None,
    ) -> Future[Self]:
        """Start one.

        Args:
            routes: methods, paths and handlers: `("GET", "/info/{name}", handler)`. A path that
                can be got can be asked for by HEAD, too. Handlers are coroutine functions of a
                request of aiohttp; they run on the library's loop.
            host: the address to listen on; by default this machine's own, which others do not
                reach.
            port: 0, which is the default: any that is free.
            token: the first part of all paths; True: a new one, False: none.
            cors: origins whose pages may read; by default all (`"*"`) if there is a token, since
                who knows the URL may read, and none otherwise.

        Raises:
            SpecError: an argument is wrong.
            UnavailableError: the address or the port cannot be had.

        Example:
            >>> from aiohttp import web
            >>> async def hello(request):
            ...     return web.Response(text="hello")
            >>> with LocalServer.start([("GET", "/hello", hello)], token="t").result() as server:
            ...     import tensorstore_py as ts
            ...
            ...     ts.KvStore.open(server.url).result()["hello"]
            b'hello'
        """
        said = secrets.token_urlsafe(_TOKEN_BYTES) if token is True else token or ""
        if not all(each.isalnum() or each in "-_" for each in said):
            raise SpecError("a token consists of letters, digits, - and _")
        if not 0 <= port <= _LAST_PORT:
            raise SpecError(
                f"there is no port {port}; say one from 1 to {_LAST_PORT}, or 0 for any"
            )
        guard = Guard(said, loopback=is_loopback(host), cors=cors)
        runner = web.AppRunner(
            _application(guard, routes),
            access_log=None,
            logger=_protocol_log,
            shutdown_timeout=_GRACE_S,
            handler_cancellation=True,
        )

        async def body() -> Self:
            return await cls._started(guard, runner, host, port)

        return start(False, body)

    @classmethod
    async def _started(cls, guard: Guard, runner: web.AppRunner, host: str, port: int) -> Self:
        listening = await _listen(host, port)
        try:
            await runner.setup()
            await web.SockSite(runner, listening).start()
        except BaseException:
            listening.close()
            await runner.cleanup()
            raise
        address = listening.getsockname()[0]
        named = socket.gethostname() if address in ("0.0.0.0", "::") else host  # noqa: S104 - that the user has asked for
        server = cls(guard, runner, named, listening)
        _running.add(server)
        return server

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to the process that this one was forked from."""
        return self._stopping is not None or self._epoch != epoch()

    def close(self) -> None:
        """Stop. Requests that are under way have a second; again it is without effect."""
        if self._epoch == epoch():
            self._stop().result()

    async def aclose(self) -> None:
        """`close` in any event loop."""
        if self._epoch == epoch():
            await self._stop()

    def wait(self) -> None:
        """Block until it is closed, by another thread or by a signal's exception."""
        if self._epoch == epoch():
            self._end.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        """Without the token."""
        closed = ", closed" if self.closed else ""
        return f"{type(self).__name__}(http://{self.host}:{self.port}/{closed})"

    def _stop(self) -> Future[None]:
        if self._stopping is None:
            self._stopping = start(False, self._cleanup)
        return self._stopping

    async def _cleanup(self) -> None:
        if self in _running:
            _running.discard(self)
            # What connects while asyncio's server closes would fail there, and stay open.
            with suppress(NotImplementedError):
                asyncio.get_running_loop().remove_reader(self._listening)
            await asyncio.sleep(0)  # those that came before are taken
            await self._runner.cleanup()
            self._ended.set_result(None)


async def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens; of a name that has several addresses, on the first of them."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UnavailableError(
            f"cannot listen on port {port} of {host}: {error.strerror or error}; "
            "choose another address, or port 0 for any port that is free"
        ) from error


def _application(guard: Guard, routes: Iterable[Route]) -> web.Application:
    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        if guard.refusal(request.method, request.rel_url.raw_path, request.headers) is None:
            response.headers.update(guard.response_headers(request.headers))

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        path = request.rel_url.raw_path
        refused = guard.refusal(request.method, path, request.headers)
        if refused is not None:
            return failure(*refused)
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            return web.Response(status=204)
        below = path.removeprefix(f"/{guard.token}")
        return await _answer(request, handler, below)

    application = web.Application(middlewares=[check])
    application.on_response_prepare.append(add_headers)
    prefix = "/{token}" if guard.token else ""
    for method, path, handler in routes:
        for each in ("GET", "HEAD") if method == "GET" else (method,):
            application.router.add_route(each, f"{prefix}{path}", handler)
    return application


async def _answer(request: web.Request, handler: Handler, path: str) -> web.StreamResponse:
    """What a handler answers; what it raises says no more than of which kind it is."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        said = error.text or ""
        return failure(error.status, error.reason if said.startswith(f"{error.status}: ") else said)
    except NotFoundError:
        return failure(404, "there is nothing here")
    except (TensorStoreError, OSError) as error:
        if isinstance(error, ConnectionError):
            raise  # the client's: it has gone away
        _log.warning("%s %s: %s", request.method, path, error)
        return failure(502, f"what is served could not be read: {type(error).__name__}")
    except Exception:  # noqa: BLE001 - whatever a handler raises is an answer, too
        _log.exception("%s %s", request.method, path)
        return failure(500, "the server has failed; what it printed says why")


def _is_no_bad_request(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


_protocol_log.addFilter(_is_no_bad_request)


def failure(status: int, reason: str) -> web.Response:
    """An answer that says what is wrong, as JSON."""
    document: dict[str, Any] = {"status": status, "error": reason}
    return web.json_response(document, status=status, dumps=json.dumps)


def _close_all() -> None:
    """Close what still runs when the process ends, while the loop runs that it needs for that."""

    async def body() -> None:
        await asyncio.gather(*(server._cleanup() for server in list(_running)))

    if _running:
        with suppress(Exception):  # there is nobody left to tell
            start(False, body).result(timeout=2 * _GRACE_S)


atexit.register(_close_all)  # what was registered before, as the end of the loop, comes after it
on_fork(_running.clear)
