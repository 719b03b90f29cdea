"""One attempt: a request goes out, its answer comes in, or a `Failure` says why not.

The body goes straight into one buffer, and only as far as it is wanted. There is no limit on how
long an exchange takes, only on how long nothing happens in it: while connecting, while sending,
before the answer and between its pieces. The invariant: a body that is handed on has the length
that the headers promised.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._net.byte_ranges import Cut, cut_of, resolve
from tensorstore_py._net.digests import check_digests
from tensorstore_py._net.failures import Failure, Patience, damaged, is_nonsense, translate
from tensorstore_py._net.heads import request_head
from tensorstore_py._net.line import CREDIT, ERROR_BODY, PIECE
from tensorstore_py._net.message import HttpResponse
from tensorstore_py._net.proxies import Proxy, origin_of, proxy_for
from tensorstore_py._net.sessions import exact_url, lines, session
from tensorstore_py._net.stall import StallGuard, Watch
from tensorstore_py._net.unpacking import packings, unpacked
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py.errors import UnavailableError, UnsupportedError

if TYPE_CHECKING:
    import aiohttp

    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._net.library_answer import LibraryAnswer
    from tensorstore_py._net.message import HttpRequest
    from tensorstore_py._net.pool import Destination

__all__ = ["Wire"]

_Answer: TypeAlias = "aiohttp.ClientResponse | LibraryAnswer"

#: Sent in one go, behind the head.
_SENT_AT_ONCE: Final = 2**17
#: Checking more takes long enough to keep other exchanges waiting.
_CHECKED_ON_LOOP: Final = 2**19
#: Packed bytes; unpacking more takes as long.
_UNPACKED_ON_LOOP: Final = 2**14


class Wire:
    """How one store exchanges messages.

    Args:
        stall_s: for how long nothing may happen.
        least_rate: how many bytes a second have to move while something does.
        unpack: undo a `Content-Encoding`, as browsers do; else the bytes stay as they were sent.
        digests: the checksums that headers state, to be verified; None for no checks.
    """

    def __init__(
        self,
        *,
        stall_s: float,
        least_rate: float = 0.0,
        unpack: bool = False,
        digests: Callable[[Mapping[str, str]], Mapping[str, bytes]] | None = None,
    ) -> None:
        self._guard = StallGuard(stall_s, least_rate)
        self._digests = digests
        self._unpack = unpack
        self._proxies: dict[str, Proxy | None] = {}

    async def exchange(self, request: HttpRequest, byte_range: ByteRange = WHOLE) -> HttpResponse:
        """Send a request and receive what is wanted of the answer.

        Args:
            request: with all headers, `Range` among them.
            byte_range: what the request asks for.

        Raises:
            Failure: there is no usable answer.
        """
        began = time.time()
        url = request.url
        # What stands before the path: scheme, host and port.
        origin = url[: _path_start(url)]
        with self._guard.watch() as watch:
            try:
                try:
                    proxy = self._proxies[origin]
                except KeyError:
                    proxy = self._proxies[origin] = proxy_for(origin_of(url))
                destination = lines().destination(origin) if proxy is None else None
                if destination is None:
                    return await self._by_library(request, proxy, byte_range, began, watch)
                return await self._directly(request, destination, byte_range, began, watch)
            except Failure:
                raise
            except Exception as error:
                raise translate(error) or error from error

    async def _directly(
        self,
        request: HttpRequest,
        destination: Destination,
        byte_range: ByteRange,
        began: float,
        watch: Watch,
    ) -> HttpResponse:
        """Over a connection of ours."""
        method, body, url = request.method, request.body, request.url
        target = url[_path_start(url) :] or "/"
        line = await destination.line()
        try:
            if body is None:
                head = request_head(method, target, destination.host, request.headers, None)
                await line.begin(head, method, byte_range, self._unpack, watch)
            else:
                parts = body if isinstance(body, tuple) else (body,)
                size = sum([memoryview(part).nbytes for part in parts])
                head = request_head(method, target, destination.host, request.headers, size)
                if size <= _SENT_AT_ONCE:
                    head, parts = b"".join((head, *parts)), ()
                answered = line.begin(head, method, byte_range, self._unpack, watch)
                for part in parts:
                    await line.send(part)
                await answered
            found = line.head
            if found is None:
                answer = await line.library_answer()
                watch.receives()
                response = await self._receive(request, answer, byte_range, began, watch)
                destination.keep(line)
                return response
            if line.is_excessive and line.cut is not None:
                raise damaged("the server sent more than it said")
        except BaseException:
            line.close()
            raise
        received, cut = line.body, line.cut
        destination.keep(line)
        status, fields = found.status, found.fields
        response = HttpResponse(status, fields, received, reason=found.reason, time=began)
        if cut is not None:
            response.size = cut.size
            if cut.take != cut.length:
                assert cut.take is not None
                response.body = memoryview(received)[cut.skip : cut.skip + cut.take]
            elif method == "GET" and byte_range.is_whole:
                await self._check(fields, received, watch)
        return response

    async def _by_library(
        self,
        request: HttpRequest,
        proxy: Proxy | None,
        byte_range: ByteRange,
        began: float,
        watch: Watch,
    ) -> HttpResponse:
        """By the library's client."""
        headers, body, url = request.headers, request.body, request.url
        data: Buffer | AsyncIterator[memoryview] | None = None
        if body is not None:
            parts = body if isinstance(body, tuple) else (body,)
            size = sum(memoryview(part).nbytes for part in parts)
            headers = {**headers, "Content-Length": str(size)}
            data = _pieces(parts, watch) if size else b""
        if proxy is not None and url.startswith("http:"):
            headers = {**headers, **proxy.headers}
        client = session()
        response = await client.request(
            request.method,
            exact_url(url),
            headers=headers,
            data=data,
            allow_redirects=False,
            proxy=None if proxy is None else proxy.url,
            proxy_headers=None if proxy is None else proxy.headers,
        )
        try:
            watch.receives()
            return await self._receive(request, response, byte_range, began, watch)
        except BaseException:
            response.close()
            raise

    async def _receive(
        self,
        request: HttpRequest,
        response: _Answer,
        byte_range: ByteRange,
        began: float,
        watch: Watch,
    ) -> HttpResponse:
        headers, status = response.headers, response.status
        if request.method == "HEAD" or status in (204, 304):
            response.release()
            return HttpResponse(status, headers, reason=response.reason or "", time=began)
        how = packings(headers) if self._unpack else ()
        if how and 200 <= status < 300:
            return await self._receive_packed(response, byte_range, how, began, watch)
        cut = cut_of(byte_range, status, headers)
        if cut is None:
            start = b"" if how else await _beginning(response, ERROR_BODY, watch)
            if how:
                response.close()
            return HttpResponse(status, headers, start, reason=response.reason or "", time=began)
        if status == 416:
            response.close()
            return HttpResponse(206, headers, size=cut.size, time=began)
        body = await _fill(response, cut, byte_range, watch)
        if request.method == "GET" and byte_range.is_whole:
            await self._check(headers, body, watch)
        return HttpResponse(
            status, headers, body, reason=response.reason or "", size=cut.size, time=began
        )

    async def _check(self, headers: Mapping[str, str], body: Buffer, watch: Watch) -> None:
        """Compare a whole value with the checksums that came with it."""
        stated = None if self._digests is None else self._digests(headers)
        if not stated:
            return
        if len(body) <= _CHECKED_ON_LOOP:
            check_digests(stated, body)
        else:
            await offload(False, lambda: check_digests(stated, body))
            watch.move()

    async def _receive_packed(
        self,
        response: _Answer,
        byte_range: ByteRange,
        how: tuple[str, ...],
        began: float,
        watch: Watch,
    ) -> HttpResponse:
        """All of a packed body, since its end is what shows that it is whole."""
        headers, status = response.headers, response.status
        if status == 206:
            raise Failure(
                f"the value is stored packed (Content-Encoding: {', '.join(how)}), so a part of it "
                f"is of no use; store it as it is, and leave the packing to codecs",
                UnsupportedError,
            )
        cut = cut_of(WHOLE, status, headers)
        assert cut is not None
        packed = await _fill(response, cut, WHOLE, watch)
        if len(packed) <= _UNPACKED_ON_LOOP:
            body = unpacked(packed, how)
        else:
            body = await offload(False, lambda: unpacked(packed, how))
            watch.move()
        start, stop = resolve(byte_range, len(body))
        return HttpResponse(
            status,
            headers,
            memoryview(body)[start:stop],
            reason=response.reason or "",
            size=len(body),
            time=began,
        )


async def _pieces(parts: tuple[Buffer, ...], watch: Watch) -> AsyncIterator[memoryview]:
    """A body bit by bit, so that it is seen when it gets stuck."""
    for part in parts:
        view = memoryview(part).cast("B")
        for at in range(0, len(view), PIECE):
            watch.move(PIECE if at else 0)
            yield view[at : at + PIECE]
    watch.move(PIECE)


async def _fill(response: _Answer, cut: Cut, byte_range: ByteRange, watch: Watch) -> Buffer:
    """The wanted bytes of a body."""
    content = response.content
    connection = response.connection
    protocol = None if connection is None else connection.protocol
    if cut.take is None:
        return await _unmeasured(response, byte_range, watch)
    body: Buffer
    if cut.take == cut.length:
        # Small bodies are mostly there already, in one piece.
        body = await content.readany()
        if len(body) < cut.take:
            body = await _window(content, cut, watch, body)
    else:
        body = await _window(content, cut, watch, b"")
        if cut.length is None or cut.skip + cut.take < cut.length:
            response.close()  # rather than to receive what nobody wants
            return body
    if len(body) > cut.take or (not content.is_eof() and await content.readany()):
        raise damaged("the server sent more than it said")
    if protocol is not None and is_nonsense(protocol.exception()):
        raise damaged("what follows the answer on the connection is none")
    return body


async def _window(content: aiohttp.StreamReader, cut: Cut, watch: Watch, piece: bytes) -> bytearray:
    """`cut.take` bytes after `cut.skip` bytes, in one buffer; `piece` was received already."""
    assert cut.take is not None
    skip, take = cut.skip, cut.take
    buffer = bytearray(min(take, CREDIT))
    filled = len(piece)
    buffer[:filled] = piece
    while filled < take or skip:
        piece = await content.readany()
        if not piece:
            raise _short(filled, take)
        watch.move(len(piece))
        if skip:
            skip, piece = max(0, skip - len(piece)), piece[skip:]
        stop = min(take, filled + len(piece))
        if stop > len(buffer):
            buffer.extend(bytes(min(take - len(buffer), max(stop, 2 * len(buffer)))))
        buffer[filled:stop] = piece[: stop - filled]
        filled = stop
    return buffer


async def _unmeasured(response: _Answer, byte_range: ByteRange, watch: Watch) -> Buffer:
    """The wanted part of a body of unknown length: as little of it as will do."""
    start, stop = byte_range.start, byte_range.stop
    if start >= 0 and stop is not None:
        body = await _up_to(stop, response.content, watch)
        if len(body) >= stop:
            response.close()
            return memoryview(body)[start:stop]
    else:
        body = await _up_to(None, response.content, watch)
    _check_framing(response)
    start, stop = resolve(byte_range, len(body))
    return memoryview(body)[start:stop]


async def _up_to(size: int | None, content: aiohttp.StreamReader, watch: Watch) -> bytearray:
    """What comes until there are so many bytes, or until the end."""
    body = bytearray()
    while (size is None or len(body) < size) and (piece := await content.readany()):
        watch.move(len(piece))
        body += piece
    return body


async def _beginning(response: _Answer, limit: int, watch: Watch) -> bytes:
    """The first bytes of a body that only explains something."""
    content = response.content
    body = bytearray()
    while len(body) < limit:
        piece = await content.readany()
        if not piece:
            return bytes(body)
        watch.move(len(piece))
        body += piece
    response.close()
    return bytes(body[:limit])


def _check_framing(response: _Answer) -> None:
    """Refuse a body whose end is the end of the connection: a cut would look the same."""
    headers = response.headers
    if "chunked" not in headers.get("Transfer-Encoding", "") and "Content-Length" not in headers:
        raise damaged(
            "the server said neither how long the answer is nor where it ends, so that it cannot "
            "be known to be whole; use a server that sends Content-Length"
        )


def _short(found: int, expected: int) -> Failure:
    text = f"the answer ended after {found} of {expected} bytes"
    return Failure(text, UnavailableError, Patience.FULL, may_have_run=True)


def _path_start(url: str) -> int:
    found = url.find("/", 8)
    return len(url) if found < 0 else found
