"""One HTTP/1.1 connection: a request goes out, its response comes in, then the next request.

asyncio moves the bytes and `httptools` parses them. A body whose length is known and that is wanted
whole does not pass through the parser: it is received where it stays. The states, and what an
arriving byte or the end of the connection means in each:

| state | entered by | bytes that arrive | the connection ends |
|---|---|---|---|
| IDLE | connecting, `rest()` | were not asked for: it is closed | the pool forgets it |
| HEAD | `request()` | are parsed; interim (1xx) responses are skipped | a failure |
| DIRECT | a known length, all of it wanted | go into the body's buffer | a failure |
| PARSED | chunks, no length, a part of a large body | are parsed | a failure, or the body's end |
| DONE | the wanted part is here, or a failure | are excess | |

Whatever is in DONE goes to IDLE only if it may be used again.

The invariant: a connection is used again only after a request that left it whole and a response
that ended where it said, and that nothing followed; and a body that is handed on has the length
that the headers promised.
"""

from __future__ import annotations

import asyncio
import enum
import sys
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Final, cast

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._net.byte_ranges import BodyWindow, body_window, resolve
from tensorstore_py._net.content_encoding import check_whole, content_encodings
from tensorstore_py._net.failures import Failure, connection_lost, damaged, not_http, short
from tensorstore_py._net.message import HeaderFields, HttpResponse
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from httptools import HttpResponseParser

    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._net.idle_timeout import IdleTimeout

__all__ = ["ERROR_BODY", "PIECE", "HttpConnection", "ReceiveBuffer", "request_head"]

#: No more is allocated on the mere word of a server; beyond it a buffer grows with what arrives.
CREDIT: Final = 2**28
#: What is read of a response that is an error. A body up to this size is received whole, whatever
#: is wanted of it: the connection is worth more.
ERROR_BODY: Final = 2**16
#: Of a body that is sent; progress is seen in such steps.
PIECE: Final = 2**18
#: How much of a response may be anything but body: head, interim responses, frames of chunks. Small
#: chunks have frames larger than themselves.
_OVERHEAD: Final = 2**18
_OVERHEAD_PER_BYTE: Final = 16
_HEAD_END: Final = b"\r\n\r\n"
_EMPTY: Final = memoryview(bytearray())
_NO_STREAM: Final = BytesIO()


#: Names of headers as servers write most of them.
_LOWER: Final = {
    name.encode(): name.lower()
    for name in (
        "Accept-Ranges", "Age", "Cache-Control", "Connection", "Content-Encoding",
        "Content-Length", "Content-Range", "Content-Type", "Date", "ETag", "Expires",
        "Last-Modified", "Server", "Transfer-Encoding", "Vary", "Via", "x-amz-id-2",
        "x-amz-request-id", "x-amz-checksum-crc32c", "x-amz-server-side-encryption",
        "x-goog-generation", "x-goog-hash", "x-goog-metageneration", "x-goog-storage-class",
        "x-goog-stored-content-encoding", "x-goog-stored-content-length", "X-GUploader-UploadID",
    )
}  # fmt: skip


class ReceiveBuffer:
    """Where the beginning of a response arrives."""

    __slots__ = ("bytes", "view")

    def __init__(self, size: int) -> None:
        self.bytes = bytearray(size)
        self.view = memoryview(self.bytes)


class State(enum.Enum):
    """What the connection is doing; see the head of this file."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    DIRECT = enum.auto()
    PARSED = enum.auto()
    DONE = enum.auto()


# Looked up once: as attributes of an enum they cost a tenth of a request's parsing.
_IDLE, _HEAD, _DIRECT, _PARSED, _DONE = State


class HttpConnection(asyncio.BufferedProtocol):
    """A connection.

    Args:
        loop: the running one.
        receive_buffer: may be one for all connections of a loop that asks for space, fills it and
            tells so in one step.
        closed: called when the connection ended, once.

    Attributes:
        window: of the last response: which part of its body was wanted; None if it has no value.
        idle_since: the loop's time when the last response was complete.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receive_buffer: ReceiveBuffer,
        closed: Callable[[HttpConnection], None],
    ) -> None:
        import httptools  # noqa: PLC0415 - only programs that use a network need it

        self._httptools = httptools
        self._loop = loop
        self._receive_buffer = receive_buffer
        self._closed = closed
        self._transport: asyncio.Transport
        self._state = _IDLE
        self._is_made = False
        self._is_lost = False
        self._is_sending = False
        self._is_full = False
        self._has_excess = False
        self._keeps_alive = True
        self._space = receive_buffer.view
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._room: asyncio.Future[None] | None = None
        self._idle: IdleTimeout | None = None
        self._response: HttpResponse | None = None
        self._parser: HttpResponseParser | None = None
        self._view = _EMPTY
        self._collected = bytearray()
        # Called by the parser, too. Functions of Python would take as long as all else in a head.
        self._lines: dict[bytes, bytes] = {}
        self._reasons: list[bytes] = []
        self.on_header = self._lines.setdefault
        self.on_status = self._reasons.append
        self.window: BodyWindow | None = None
        self.idle_since = 0.0

    # Called by the transport room.

    def request(
        self,
        message: bytes,
        method: str,
        byte_range: ByteRange,
        unpack: bool,
        idle: IdleTimeout,
    ) -> asyncio.Future[HttpResponse]:
        """Send a request, or its beginning.

        The body of the response is the part `byte_range`, however much came, and all of it where a
        `Content-Encoding` is to be undone (`unpack`). `idle` is told of all progress.

        Returns:
            Done when the response is here, or a `Failure`.
        """
        self._method, self._byte_range, self._unpack = method, byte_range, unpack
        self._idle = idle
        self._waiter = waiter = self._loop.create_future()
        if self._is_lost:
            self._fail(connection_lost(None))
            return waiter
        self._state = _HEAD
        self._head_is_complete = self._is_complete = False
        self._lines.clear()
        self._reasons.clear()
        self._fields: dict[str, str] = {}
        self._received = self._body_size = 0
        self._parser = parser = self._httptools.HttpResponseParser(self)
        # As tolerant as browsers are: line feeds alone, control characters in values.
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        transport = self._transport
        transport.write(message)
        waiting = transport.get_write_buffer_size()
        self._was_full = waiting > 0
        if waiting:
            idle.sends(transport.get_write_buffer_size, waiting)
        return waiter

    async def send(self, part: Buffer) -> None:
        """Send more of the request, at the pace at which it leaves, until there is a response."""
        view = memoryview(part).cast("B")
        self._is_sending = self._was_full = True
        transport, idle = self._transport, self._idle
        assert idle is not None
        idle.sends(transport.get_write_buffer_size, transport.get_write_buffer_size())
        for at in range(0, len(view), PIECE):
            if self._is_full and self._state is not _DONE:
                self._room = self._loop.create_future()
                await self._room
            # A closing transport logs a warning about whatever is written to it.
            if self._state is _DONE or transport.is_closing():
                return
            piece = view[at : at + PIECE]
            idle.sent(len(piece))
            transport.write(piece)
        self._is_sending = False

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Speak TLS from now on, through the tunnel that a proxy opened."""
        self._is_made = False  # if it fails, asyncio closes what it has and does not say so
        transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        if transport is None:
            raise ConnectionResetError
        self._transport = transport
        self._is_made = True

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent."""
        return (
            self._keeps_alive
            and not self._is_lost
            and not self._has_excess
            and not self._is_sending
            and not self._transport.is_closing()
        )

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self._state is _IDLE

    @property
    def is_contradicted(self) -> bool:
        """Whether more came than the response to a successful read said."""
        return self._has_excess and self.window is not None

    def rest(self, now: float) -> bool:
        """Note that the response was taken. Returns whether another request can be sent."""
        if self._is_lost or self._has_excess or self._is_sending or not self._keeps_alive:
            return False
        self.idle_since = now
        self._state = _IDLE
        self._waiter = self._idle = self._parser = None
        return True

    def close(self) -> None:
        """Close the connection at once; what was not sent yet is dropped."""
        waiter = self._waiter
        if waiter is not None and not waiter.cancel() and not waiter.cancelled():
            waiter.exception()  # otherwise asyncio logs that it was never retrieved
        self._state = _DONE
        self._keeps_alive = False
        self._drop_body()
        if self._is_made:
            self._transport.abort()
        else:
            self._closed(self)

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._is_made = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._space

    def buffer_updated(self, nbytes: int) -> None:
        state = self._state
        if state is _IDLE or state is _DONE:
            self._has_excess = True
            if state is _IDLE:
                self.close()
            return
        idle = self._idle
        assert idle is not None
        idle.received(nbytes)
        try:
            if state is _DIRECT:
                self._filled += nbytes
                if self._filled >= self._length:
                    self._end_direct()
                else:
                    self._make_space()
            else:
                self._received += nbytes
                self._parse(self._receive_buffer, nbytes)
        except Failure as failure:
            self._fail(failure)

    def eof_received(self) -> None:
        return  # and so asyncio closes the connection

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake_sender()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        state = self._state
        if state is _PARSED and exc is None and not self._is_framed():
            try:
                self._end_parsed(is_end=True)
            except Failure as failure:
                self._fail(failure)
        elif state is not _IDLE and state is not _DONE:
            self._fail(connection_lost(exc, is_within=state is not _HEAD or self._received > 0))
        self._parser = None  # which holds on to this object
        self._wake_sender()
        self._closed(self)

    # Called by the parser. An exception in here would come out of it as another one.

    def on_message_begin(self) -> None:
        if self._is_complete:
            self._has_excess = True

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        if self._is_complete:
            return
        self._head_is_complete = True
        self._status = parser.get_status_code()
        fields = self._fields
        for name, value in self._lines.items():  # what comes behind them are trailers
            lower = _LOWER.get(name) or name.decode("latin-1").lower()
            fields.setdefault(lower, value.decode("utf-8", "surrogateescape").strip(" \t"))

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        self._collected += body

    def on_message_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        if self._is_complete:
            return
        if 100 <= self._status < 200:
            # The response is yet to come, and perhaps waits for the rest of the request.
            self._head_is_complete = False
            self._fields = {}
            self._lines.clear()
            self._reasons.clear()
            if self._idle is not None:
                self._idle.awaits()
        else:
            self._is_complete = True
            self._keeps_alive = parser.should_keep_alive()

    # How a response is received.

    def _parse(self, source: ReceiveBuffer, nbytes: int) -> None:
        view = source.view[:nbytes]
        if self._state is _HEAD:
            # The head by itself, so that a body may go where it stays.
            end = source.bytes.find(_HEAD_END, 0, nbytes)
            if end >= 0 and end + 4 < nbytes:
                self._feed(bytes(view[: end + 4]))
                view = view[end + 4 :]
                if self._begin_body(view):
                    return
        self._feed(view)
        if self._received > _OVERHEAD + _OVERHEAD_PER_BYTE * self._body_size:
            raise not_http("it has headers, or frames of chunks, without an end")
        if self._state is _PARSED or not self._begin_body(_EMPTY):
            self._collect()

    def _feed(self, data: bytes | memoryview) -> None:
        parser = self._parser
        assert parser is not None
        try:
            parser.feed_data(data)
        except self._httptools.HttpParserUpgrade:
            raise damaged("the server answered 101, which is no answer to this request") from None
        except self._httptools.HttpParserError:
            if not self._is_complete:
                raise not_http() from None
            self._has_excess = True

    def _begin_body(self, rest: memoryview) -> bool:
        """Decide how the body is received, once the head is here.

        Args:
            rest: what came behind the head and was not parsed yet.

        Returns:
            Whether the parser is done with its part.
        """
        if not self._head_is_complete or self._state is not _HEAD:
            return False
        parser = self._parser
        assert parser is not None
        status, method, fields = self._status, self._method, self._fields
        headers = HeaderFields(fields)
        reason = b"".join(self._reasons).decode("utf-8", "surrogateescape")
        self._response = response = HttpResponse(status, headers, reason=reason)
        if not self._is_complete:  # else the parser said it then, and has forgotten it since
            self._keeps_alive = parser.should_keep_alive()
        self.window = None
        if method == "HEAD" or status in (204, 304) or (method == "CONNECT" and status < 300):
            self._has_excess = self._has_excess or len(rest) > 0 or self._body_size > 0
            self._succeed(b"")
            return True
        length = self._length_of(fields)
        is_packed = self._unpack and "content-encoding" in fields and status < 300
        if is_packed and content_encodings(headers):
            check_whole(status, headers)
            self._byte_range = WHOLE
        self.window = window = body_window(self._byte_range, status, headers)
        if status == 416 and window is not None:
            response.status = 206
        if window is not None:
            response.size = window.size
        is_whole = window is not None and window.skip == 0 and window.take == length
        if length is None or not (length <= ERROR_BODY or is_whole):
            self._state = _PARSED
            self._plan_parsed(window)
            return False
        if self._collected:  # a head that came in pieces was parsed together with what follows
            rest = memoryview(bytes(self._collected) + rest)
        self._begin_direct(rest, length)
        return True

    def _length_of(self, fields: dict[str, str]) -> int | None:
        """What `Content-Length` says; the parser has refused what is no number."""
        if "transfer-encoding" in fields:
            return None
        text = fields.get("content-length")
        return None if text is None else int(text)

    def _is_framed(self) -> bool:
        """Whether the response itself says where its body ends."""
        fields = self._fields
        return "chunked" in fields.get("transfer-encoding", "").lower() or (
            "transfer-encoding" not in fields and "content-length" in fields
        )

    def _begin_direct(self, rest: memoryview, length: int) -> None:
        size = len(rest)
        if size >= length:
            self._has_excess = self._has_excess or size > length
            self._end_body(bytes(rest[:length]))
            return
        self._state = _DIRECT
        self._filled, self._length = size, length
        self._allocate(min(length, CREDIT), rest)
        self._make_space()

    def _allocate(self, size: int, begin: memoryview) -> None:
        # Its bytes become the body without a copy. One more, to see whether there is more.
        self._buffer = BytesIO(bytes(size + 1))
        self._view = self._buffer.getbuffer()
        self._view[: len(begin)] = begin

    def _make_space(self) -> None:
        size = len(self._view)
        if self._filled >= size - 1 and size <= self._length:
            self._space = _EMPTY
            self._allocate(min(self._length, 2 * size), self._view[: self._filled])
        self._space = self._view[self._filled :]

    def _end_direct(self) -> None:
        self._has_excess = self._filled > self._length
        self._drop_body()
        try:
            self._buffer.truncate(self._length)
            body: Buffer = self._buffer.getvalue()
        except BufferError:  # a loop that holds on to what it filled
            body = bytes(self._buffer.getbuffer()[: self._length])
        self._buffer = _NO_STREAM
        self._end_body(body)

    def _end_body(self, body: Buffer) -> None:
        """All of a body of known length is here."""
        window = self.window
        if self.is_contradicted:
            raise damaged("the server sent more than it said")
        if window is not None and window.take != window.length:
            assert window.take is not None
            body = memoryview(body)[window.skip : window.skip + window.take]
        self._succeed(body)

    def _plan_parsed(self, window: BodyWindow | None) -> None:
        """Say which bytes to keep, and whether to wait for the end: `_skip`, `_take`, `_waits`."""
        self._skipped = 0
        self._waits = False
        if window is None:
            self._skip, self._take = 0, ERROR_BODY
        elif window.take is not None:
            self._skip, self._take = window.skip, window.take
            self._waits = window.skip + window.take == window.length
        else:
            start, stop = self._byte_range.start, self._byte_range.stop
            is_bounded = start >= 0 and stop is not None
            self._skip = start if is_bounded else 0
            self._take = stop - start if is_bounded and stop is not None else sys.maxsize

    def _collect(self) -> None:
        """See what the parser found of a body of which a part is wanted, or the length unknown."""
        if self._state is not _PARSED:
            return
        self._lines.clear()  # of trailers
        collected = self._collected
        missing = self._skip - self._skipped
        if missing > 0:
            self._skipped += min(missing, len(collected))
            del collected[:missing]
        if self._is_complete:
            self._end_parsed(is_end=True)
        elif self._skipped >= self._skip and len(collected) >= self._take + self._waits:
            self._end_parsed(is_end=False)

    def _end_parsed(self, *, is_end: bool) -> None:
        """Everything that is wanted is here, or the body ended.

        Args:
            is_end: whether it did; otherwise the rest is not received.
        """
        window, collected = self.window, self._collected
        self._keeps_alive = self._keeps_alive and is_end and self._is_complete
        body: Buffer = collected
        if window is None:
            body = bytes(collected[:ERROR_BODY])
        elif self._has_excess or (self._waits and len(collected) > self._take):
            raise damaged("the server sent more than it said")
        elif window.take is not None:
            if len(collected) < window.take:
                raise short(len(collected), window.take)
            body = memoryview(collected)[: window.take]
        elif not is_end:
            body = memoryview(collected)[: self._take]
        else:
            if not self._is_framed():
                raise damaged(
                    "the server said neither how long the answer is nor where it ends, so that it "
                    "cannot be known to be whole; use a server that sends Content-Length"
                )
            start, stop = resolve(self._byte_range, self._body_size)
            body = memoryview(collected)[start - self._skip : stop - self._skip]
        self._succeed(body)

    def _succeed(self, body: Buffer) -> None:
        self._state = _DONE
        response, waiter = self._response, self._waiter
        assert response is not None
        response.body = body
        if self._was_full:
            # What the server did not want to read would be in the way of the next request.
            self._is_sending = self._is_sending or self._transport.get_write_buffer_size() > 0
            self._wake_sender()
        # A body that idle connections kept would be memory, and no longer in the processor's cache.
        self._response, self._collected = None, bytearray()
        if waiter is not None and not waiter.done():
            waiter.set_result(response)

    def _fail(self, failure: Failure) -> None:
        self._state = _DONE
        self._keeps_alive = False
        self._drop_body()
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(failure)
        self._wake_sender()

    def _wake_sender(self) -> None:
        """Whoever waits to send more goes on, or sees that there is no need."""
        room = self._room
        if room is not None and not room.done():
            room.set_result(None)

    def _drop_body(self) -> None:
        """Let go of where a body was received."""
        space, self._space = self._space, self._receive_buffer.view
        view, self._view = self._view, _EMPTY
        if view is _EMPTY:
            return
        # A stream that is found to be garbage together with views of it complains.
        for each in (space, view):
            with suppress(BufferError):
                each.release()


#: What is sent unless the request says otherwise. Values stay as they were stored, since parts of a
#: packed one are of no use.
_USUAL: Final = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": "tensorstore_py",
}
#: Requests that never have a body.
_BODILESS: Final = frozenset({"GET", "HEAD"})


def request_head(
    method: str, target: str, host: str, headers: Mapping[str, str], size: int | None
) -> bytes:
    r"""The head of a request.

    Args:
        method: such as `"GET"`.
        target: path and query, encoded.
        host: of the URL, for `Host` unless the headers have another one.
        headers: by name.
        size: of the body; None if there is none.

    Raises:
        Failure: a header has a line break in it.

    Example:
        >>> request_head("GET", "/a", "there", {"Accept": "text/xml"}, None)
        b'GET /a HTTP/1.1\r\nHost: there\r\nAccept: text/xml\r\nAccept-Encoding: identity\r\n...'
    """
    is_told_host, extra = _extra(tuple(headers), size is not None)
    lines = [f"{method} {target} HTTP/1.1"]
    if not is_told_host:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += extra
    if size is not None:
        lines.append(f"Content-Length: {size}")
    elif method not in _BODILESS:
        lines.append("Content-Length: 0")
    lines.append("\r\n")
    text = "\r\n".join(lines)
    breaks = len(lines)
    if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text:
        raise Failure("a header has a line break in its value", SpecError)
    return text.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=256)
def _extra(names: tuple[str, ...], has_body: bool) -> tuple[bool, list[str]]:
    """Whether headers of these names have the host among them, and what else goes along."""
    given = {name.lower() for name in names}
    usual = {**_USUAL, "Content-Type": "application/octet-stream"} if has_body else _USUAL
    extra = [f"{name}: {value}" for name, value in usual.items() if name.lower() not in given]
    return "host" in given, extra
