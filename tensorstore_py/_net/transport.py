"""One attempt: a request goes out, its response comes in, or a `Failure` says why not.

There is no limit on how long an attempt takes, only on how long nothing moves in it: while
connecting, while sending, before the response and between its pieces. The invariant: a body that is
handed on is the part that was asked for, as long as the headers promised, and passed the checksums
that came with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._net.byte_ranges import resolve
from tensorstore_py._net.checksums import check_digests
from tensorstore_py._net.connection import request_head
from tensorstore_py._net.content_encoding import content_encodings, decoded
from tensorstore_py._net.counts import Attempt, body_bytes
from tensorstore_py._net.failures import Failure, damaged
from tensorstore_py._net.idle_timeout import IdleTimeout, IdleTimeouts
from tensorstore_py._net.pool import connection_pool
from tensorstore_py._net.routing import Proxy, origin_of, proxy_for
from tensorstore_py._runtime.fan_out import offload

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._net.message import HttpRequest, HttpResponse
    from tensorstore_py._net.pool import Endpoint

__all__ = ["HttpTransport"]

#: Sent in one go, behind the head.
_SENT_AT_ONCE: Final = 2**17
#: Checking more takes long enough to keep other requests waiting.
_CHECKED_ON_LOOP: Final = 2**19
#: Compressed bytes; decompressing more takes as long.
_DECODED_ON_LOOP: Final = 2**14


class HttpTransport:
    """How one store sends requests.

    Args:
        idle_s: for how long nothing may move.
        least_rate: how many bytes a second have to move while something does.
        unpack: undo a `Content-Encoding`, as browsers do; else the bytes stay as they were sent.
        digests: the checksums that headers state, to be verified; None for no checks.
    """

    def __init__(
        self,
        *,
        idle_s: float,
        least_rate: float = 0.0,
        unpack: bool = False,
        digests: Callable[[Mapping[str, str]], Mapping[str, bytes]] | None = None,
    ) -> None:
        self._timeouts = IdleTimeouts(idle_s, least_rate)
        self._digests = digests
        self._unpack = unpack
        self._proxies: dict[str, Proxy | None] = {}

    async def attempt(self, request: HttpRequest, byte_range: ByteRange = WHOLE) -> HttpResponse:
        """Send a request and receive what is wanted of the response.

        Raises:
            Failure: there is no usable response.
        """
        began = time.time()
        url = request.url
        path_at = url.find("/", 8)
        # What stands before the path: scheme, host and port.
        origin, target = (url[:path_at], url[path_at:]) if path_at > 0 else (url, "/")
        with self._timeouts.watch() as idle, Attempt(request) as under_way:
            try:
                proxy = self._proxies[origin]
            except KeyError:
                proxy = self._proxies[origin] = proxy_for(origin_of(url))
            endpoint = connection_pool().endpoint(origin, proxy)
            message, parts = _message(request, endpoint, target)
            connection = endpoint.idle(idle.moved)
            if connection is None:
                connection = await endpoint.connect(idle)
            try:
                received = connection.request(
                    message, request.method, byte_range, self._unpack, idle
                )
                for part in parts:
                    await connection.send(part)
                response = await received
                if connection.is_contradicted:
                    raise damaged("the server sent more than it said")
            except BaseException as error:
                connection.close()
                if isinstance(error, Failure) and error.is_prompt:
                    endpoint.close_idle()
                raise
            is_value = connection.window is not None
            endpoint.release(connection, idle.moved)
            response.time = began
            under_way.response = response
            if is_value and (self._unpack or self._digests is not None):
                await self._finish(request, response, byte_range, idle)
            return response

    async def _finish(
        self, request: HttpRequest, response: HttpResponse, byte_range: ByteRange, idle: IdleTimeout
    ) -> None:
        """Decompress a value, or compare it with the checksums that came with it."""
        headers, body = response.headers, response.body
        is_packed = self._unpack and "content-encoding" in headers and response.status < 300
        how = content_encodings(headers) if is_packed else ()
        if how:
            if len(body) <= _DECODED_ON_LOOP:
                body = decoded(body, how)
            else:
                body = await offload(False, lambda: decoded(response.body, how))
                idle.progress()
            start, stop = resolve(byte_range, len(body))
            response.size = len(body)
            response.body = memoryview(body)[start:stop]
        elif request.method == "GET" and byte_range.is_whole and self._digests is not None:
            stated = self._digests(headers)
            if stated and len(body) <= _CHECKED_ON_LOOP:
                check_digests(stated, body)
            elif stated:
                await offload(False, lambda: check_digests(stated, body))
                idle.progress()


def _message(
    request: HttpRequest, endpoint: Endpoint, target: str
) -> tuple[bytes, tuple[Buffer, ...]]:
    """What to send at once, and what behind it."""
    method, body, headers = request.method, request.body, request.headers
    target = endpoint.prefix + target
    if endpoint.headers:
        given = {name.lower() for name in headers}
        more = {n: value for n, value in endpoint.headers.items() if n.lower() not in given}
        headers = {**headers, **more}
    if body is None:
        return request_head(method, target, endpoint.host, headers, None), ()
    size = body_bytes(body)
    head = request_head(method, target, endpoint.host, headers, size)
    parts = body if isinstance(body, tuple) else (body,)
    return (b"".join((head, *parts)), ()) if size <= _SENT_AT_ONCE else (head, parts)
