"""An HTTP server that goes wrong on purpose, for tests of what speaks HTTP.

What it serves is a plain function from a request to a reply; what goes wrong with a reply on its
way is a `Fault`, taken from a plan, one for each request:

    server = FaultServer(values.handle, plan=[status(503), reset_within(10)])
    with server.running() as url:
        ...  # two requests fail, the third one is served
    assert server.requests[2].headers["range"] == "bytes=0-9"

It runs on the loop that it is started on (`async with server`), or on the library's (`with
server.running()`), on a free port of the loopback. Sockets are real, so resets are.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http import HTTPStatus
from socket import SO_LINGER, SOL_SOCKET, create_server, socket
from ssl import SSLContext
from types import TracebackType
from typing import Self

from tensorstore_py._runtime.execution import start

__all__ = [
    "CLOSE",
    "GARBAGE",
    "RESET",
    "STALL",
    "Exchange",
    "Fault",
    "FaultServer",
    "Reply",
    "Request",
    "applied_then",
    "chunked_cut",
    "close_within",
    "flipped",
    "redirect",
    "reset_within",
    "shortened",
    "skewed",
    "slow",
    "stalled_within",
    "status",
    "unframed",
    "with_length",
]


@dataclass(frozen=True)
class Request:
    """What a client sent.

    Attributes:
        method: `"GET"`, ...
        target: path and query, as they came.
        headers: by name, in lower case.
        body: all of it.
        connection: the number of the connection that it came on, from 0.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    connection: int = 0


@dataclass(frozen=True)
class Reply:
    """What the server means to answer.

    Attributes:
        status: the status code.
        body: the bytes.
        headers: as they are sent; `Content-Length` and `Date` are added.
        age_s: how far the server's clock is behind, in its `Date`.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    age_s: float = 0.0

    def head(self, length: int | None = None) -> bytes:
        """Status line and headers; `length` is what `Content-Length` says, -1 for not a word."""
        try:
            reason = HTTPStatus(self.status).phrase
        except ValueError:
            reason = "Odd"
        lines = [f"HTTP/1.1 {self.status} {reason}"]
        size = len(self.body) if length is None else length
        named = {name.lower() for name in self.headers}
        if size >= 0 and self.status not in (204, 304) and "content-length" not in named:
            lines.append(f"Content-Length: {size}")
        if "date" not in named:
            lines.append(f"Date: {formatdate(time.time() - self.age_s, usegmt=True)}")
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


class Exchange:
    """One request and the line to who sent it, as a fault sees them.

    Args:
        request: what came.
        handler: makes the reply to it.
        reader: where the client's bytes come from.
        writer: where ours go to.

    Attributes:
        request: as given.
    """

    def __init__(
        self,
        request: Request,
        handler: Handler,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.request = request
        self._handler = handler
        self._reply: Reply | None = None
        self._reader = reader
        self._writer = writer

    def serve(self) -> Reply:
        """Carry the request out, once, and get the reply."""
        if self._reply is None:
            self._reply = self._handler(self.request)
        return self._reply

    async def answer(self, reply: Reply) -> None:
        """A reply, as it should be."""
        await self.send(reply.head() + (b"" if self.request.method == "HEAD" else reply.body))

    async def send(self, data: bytes) -> None:
        """Bytes to the client."""
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """A proper goodbye, wherever we are."""
        self._writer.close()

    async def reset(self) -> None:
        """No goodbye: the client's next read fails."""
        self._writer.get_extra_info("socket").setsockopt(
            SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0)
        )
        self._writer.transport.abort()

    async def until_gone(self) -> None:
        """Wait until the client has had enough."""
        while await self._reader.read(2**16):
            pass
        self._writer.close()


Handler = Callable[[Request], Reply]
Act = Callable[[Exchange], Awaitable[bool]]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        name: for people, and for the ids of tests.
        act: does it, and returns whether the connection can be used again.
    """

    name: str
    act: Act

    def __repr__(self) -> str:
        return self.name


def _early(name: str, ruin: Callable[[Exchange], Awaitable[None]]) -> Fault:
    """A fault before the request is carried out."""

    async def act(exchange: Exchange) -> bool:
        await ruin(exchange)
        return False

    return Fault(name, act)


def _late(name: str, send: Callable[[Exchange, Reply], Awaitable[bool]]) -> Fault:
    """A fault of the answer: the request is carried out."""

    async def act(exchange: Exchange) -> bool:
        return await send(exchange, exchange.serve())

    return Fault(name, act)


async def _garbage(exchange: Exchange) -> None:
    await exchange.send(b"\x16\x03\x01 not what was asked for\r\n\r\n")
    await exchange.close()


#: The connection is reset before the request is carried out.
RESET = _early("reset", Exchange.reset)
#: The connection is closed before the request is carried out.
CLOSE = _early("close", Exchange.close)
#: Nothing ever comes.
STALL = _early("stall", Exchange.until_gone)
#: What comes is not HTTP.
GARBAGE = _early("garbage", _garbage)


def status(code: int, headers: Mapping[str, str] | None = None, body: bytes = b"no luck") -> Fault:
    """An answer with that status; the request is not carried out."""

    async def act(exchange: Exchange) -> bool:
        await exchange.answer(Reply(code, body, headers or {}))
        return True

    return Fault(f"status {code}", act)


def redirect(code: int, location: str) -> Fault:
    """A redirect."""
    return replace(status(code, {"Location": location}), name=f"redirect {code}")


def skewed(code: int, age_s: float, body: bytes = b"") -> Fault:
    """A refusal by a server whose clock is `age_s` behind."""

    async def act(exchange: Exchange) -> bool:
        await exchange.answer(Reply(code, body, age_s=age_s))
        return True

    return Fault(f"skewed {code}", act)


def applied_then(fault: Fault) -> Fault:
    """Carry the request out, then fail: the answer that got lost."""

    async def act(exchange: Exchange) -> bool:
        exchange.serve()
        return await fault.act(exchange)

    return Fault(f"applied, then {fault.name}", act)


def _within(name: str, count: int, ruin: Callable[[Exchange], Awaitable[None]]) -> Fault:
    async def send(exchange: Exchange, reply: Reply) -> bool:
        await exchange.send(reply.head() + reply.body[:count])
        await ruin(exchange)
        return False

    return _late(f"{name} after {count} bytes", send)


def reset_within(count: int) -> Fault:
    """The connection is reset after that many bytes of the body."""
    return _within("reset", count, Exchange.reset)


def close_within(count: int) -> Fault:
    """The connection is closed after that many bytes of the body."""
    return _within("close", count, Exchange.close)


def stalled_within(count: int) -> Fault:
    """After that many bytes of the body, nothing comes any more."""
    return _within("stall", count, Exchange.until_gone)


def with_length(difference: int) -> Fault:
    """`Content-Length` is wrong by that much; the connection stays open."""

    async def send(exchange: Exchange, reply: Reply) -> bool:
        await exchange.send(reply.head(len(reply.body) + difference) + reply.body)
        if difference > 0:
            await exchange.close()
        return difference <= 0

    return _late(f"length {difference:+}", send)


def shortened(by: int) -> Fault:
    """The body lacks so many bytes at its end, and the length that is said is that of the rest."""

    async def send(exchange: Exchange, reply: Reply) -> bool:
        body = reply.body[: max(0, len(reply.body) - by)]
        await exchange.send(reply.head(len(body)) + body)
        return True

    return _late(f"shortened by {by} bytes", send)


def unframed(count: int | None = None) -> Fault:
    """No length at all: the body ends with the connection, maybe after `count` bytes."""

    async def send(exchange: Exchange, reply: Reply) -> bool:
        await exchange.send(reply.head(-1) + reply.body[:count])
        await exchange.close()
        return False

    return _late("unframed" if count is None else f"unframed after {count} bytes", send)


def chunked_cut(count: int) -> Fault:
    """The body comes in chunks, which end after that many bytes without the last one."""

    async def send(exchange: Exchange, reply: Reply) -> bool:
        part = reply.body[:count]
        head = replace(reply, headers={**reply.headers, "Transfer-Encoding": "chunked"}).head(-1)
        # An empty chunk would be the last one.
        await exchange.send(head + (b"%x\r\n%b\r\n" % (len(part), part) if part else b""))
        await exchange.close()
        return False

    return _late(f"chunks cut after {count} bytes", send)


def flipped(bit: int = 0) -> Fault:
    """One bit of the body is another one."""

    async def send(exchange: Exchange, reply: Reply) -> bool:
        body = bytearray(reply.body)
        body[bit // 8] ^= 1 << (bit % 8)
        await exchange.send(reply.head() + bytes(body))
        return True

    return _late("bit flip", send)


def slow(pieces: int, gap_s: float) -> Fault:
    """The body comes in that many pieces, with pauses in between."""

    async def send(exchange: Exchange, reply: Reply) -> bool:
        await exchange.send(reply.head())
        size = -(-len(reply.body) // pieces)
        for at in range(0, len(reply.body), max(1, size)):
            await asyncio.sleep(gap_s)
            await exchange.send(reply.body[at : at + size])
        return True

    return _late("slow", send)


Plan = Iterable[Fault | None] | Callable[[Request], Fault | None]


class FaultServer:
    """Serves `handler`, with faults.

    Args:
        handler: makes the reply to a request. It must not block for long.
        plan: what goes wrong: one fault for each request that comes, None for a request that is
            served as it should be, and everything is fine after the last one. Or a function that
            decides for each request.
        tls: the server's side of HTTPS; plain HTTP by default.
        port: where to listen; a free one by default.

    Attributes:
        plan: as given; may be replaced at any time.
        requests: what came, in order.
        connections: how many there were.
        url: where it listens, such as `http://127.0.0.1:40001`; empty while it does not.
    """

    def __init__(
        self, handler: Handler, plan: Plan = (), *, tls: SSLContext | None = None, port: int = 0
    ) -> None:
        self._handler = handler
        self._tls = tls
        self._port = port
        self.requests: list[Request] = []
        self.connections = 0
        self.url = ""
        self._busy: dict[asyncio.Task[None], socket] = {}
        self.plan = plan

    @property
    def plan(self) -> Plan:
        """What goes wrong."""
        return self._plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self._plan = plan
        if callable(plan):
            self._next = plan
        else:
            coming = iter(plan)
            self._next = lambda _: next(coming, None)

    async def __aenter__(self) -> Self:
        # Not `loop.create_server`: a connection that such a server has just accepted while it
        # closes, or that has yet to agree on TLS, is known to nobody who could close it.
        self._listening = create_server(("127.0.0.1", self._port))
        self._listening.setblocking(False)
        host, port = self._listening.getsockname()
        self.url = f"http{'s' if self._tls else ''}://{host}:{port}"
        self._accepting = asyncio.create_task(self._accept())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.url = ""
        # One more connection ends the accepting. To cancel it could lose what it just accepted.
        with socket() as last, suppress(ConnectionError):
            last.setblocking(False)
            await asyncio.get_running_loop().sock_connect(last, self._listening.getsockname())
        await self._accepting
        busy = dict(self._busy)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        # Only the loop sees them close: nobody tells of those that did not agree on TLS.
        while any(accepted.fileno() >= 0 for accepted in busy.values()):  # noqa: ASYNC110
            await asyncio.sleep(0)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Run on the library's loop, in its thread; for tests that are no coroutines."""

        async def leave() -> None:
            await self.__aexit__(None, None, None)

        start(False, self.__aenter__).result(timeout=30)
        try:
            yield self.url
        finally:
            start(False, leave).result(timeout=30)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        with self._listening:
            while True:
                accepted, _ = await loop.sock_accept(self._listening)
                if not self.url:
                    accepted.close()
                    return
                task = loop.create_task(self._connected(accepted))
                self._busy[task] = accepted
                task.add_done_callback(self._busy.pop)

    async def _connected(self, accepted: socket) -> None:
        """One connection, until it is closed."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        with suppress(OSError):  # TLS was not agreed on, or the client has gone
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=self._tls
            )
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError):  # the client has gone
                    await self._serve(reader, writer)
                writer.close()
                await writer.wait_closed()
            finally:  # the server is closing, and somebody still has something to read
                transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request after another."""
        number, self.connections = self.connections, self.connections + 1
        while True:
            request = await _received(reader, writer, number)
            if not await self._one(Exchange(request, self._handler, reader, writer)):
                return

    async def _one(self, exchange: Exchange) -> bool:
        """One request and its reply. Returns whether there may be another one."""
        request = exchange.request
        self.requests.append(request)
        fault = self._next(request)
        if fault is None:
            await exchange.answer(exchange.serve())
        elif not await fault.act(exchange):
            return False
        return request.headers.get("connection", "").lower() != "close"


async def _received(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("utf-8", "surrogateescape")
    first, *lines = head.split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = {}
    for text in lines:
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("transfer-encoding", ""):
        body = await _dechunked(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body, number)


async def _dechunked(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readuntil(b"\n")
    return b"".join(parts)
