"""The fault server itself, seen through plain sockets: nothing that the library knows of HTTP."""

import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime

import pytest

from tensorstore_py.testing import Exchange, Fault, FaultServer, Reply, Request
from tensorstore_py.testing.fault_server import (
    CLOSE,
    GARBAGE,
    RESET,
    STALL,
    applied_then,
    chunked_cut,
    close_within,
    flipped,
    redirect,
    reset_within,
    skewed,
    slow,
    stalled_within,
    status,
    unframed,
    with_length,
)

BODY = b"0123456789"
GET = b"GET /a?b=1 HTTP/1.1\r\nHost: h\r\nX-Odd:  1 \r\n\r\n"
LAST = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


class Counter:
    """A handler that counts what it carries out."""

    def __init__(self, reply: Reply | None = None) -> None:
        self.reply = Reply(200, BODY) if reply is None else reply
        self.served: list[Request] = []

    def __call__(self, request: Request) -> Reply:
        self.served.append(request)
        return self.reply


async def ask(server: FaultServer, sent: bytes) -> bytes:
    """Send some bytes, and receive until the server has finished or given up."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    got = bytearray()
    try:
        while piece := await asyncio.wait_for(reader.read(2**16), 30):
            got += piece
    except ConnectionResetError:
        got += b"<reset>"
    finally:
        writer.close()
    return bytes(got)


def seconds_of(text: str) -> float:
    return parsedate_to_datetime(text).timestamp()


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


async def test_serves_what_the_handler_says() -> None:
    handler = Counter()
    async with FaultServer(handler) as server:
        answer = await ask(server, LAST)

    assert answer.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nDate: ")
    assert body_of(answer) == BODY
    (request,) = server.requests
    assert (request.method, request.target, request.connection) == ("GET", "/a?b=1", 0)
    assert request.headers == {"host": "h", "x-odd": "1", "connection": "close"}
    assert handler.served == [request]


async def test_a_connection_serves_many_requests() -> None:
    async with FaultServer(Counter()) as server:
        answer = await ask(server, GET * 2 + LAST)

    assert answer.count(BODY) == 3
    assert [request.connection for request in server.requests] == [0, 0, 0]
    assert server.connections == 1


async def test_a_head_has_no_body() -> None:
    async with FaultServer(Counter()) as server:
        answer = await ask(server, LAST.replace(b"GET", b"HEAD"))

    assert b"Content-Length: 10" in answer
    assert body_of(answer) == b""


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        (b"Content-Length: 5\r\n", b"hello"),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nhe\r\n3;x=1\r\nllo\r\n0\r\n\r\n"),
    ],
)
async def test_receives_a_body(headers: bytes, sent: bytes) -> None:
    head = b"PUT /a HTTP/1.1\r\n" + headers + b"Connection: close\r\n\r\n"
    async with FaultServer(Counter()) as server:
        await ask(server, head + sent)

    assert server.requests[0].body == b"hello"


async def test_tells_a_careful_client_to_go_on() -> None:
    head = b"PUT /a HTTP/1.1\r\nContent-Length: 0\r\nExpect: 100-continue\r\nConnection: close\r\n"
    async with FaultServer(Counter()) as server:
        assert (await ask(server, head + b"\r\n")).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")


async def test_an_odd_status_has_a_reason_all_the_same() -> None:
    async with FaultServer(Counter(Reply(299, BODY))) as server:
        assert (await ask(server, LAST)).startswith(b"HTTP/1.1 299 Odd\r\n")


@pytest.mark.parametrize(
    ("fault", "served", "expected"),
    [
        (RESET, 0, b"<reset>"),
        (CLOSE, 0, b""),
        (GARBAGE, 0, b"\x16\x03\x01 not what was asked for\r\n\r\n"),
        (applied_then(RESET), 1, b"<reset>"),
        (applied_then(CLOSE), 1, b""),
    ],
    ids=repr,
)
async def test_faults_instead_of_an_answer(fault: Fault, served: int, expected: bytes) -> None:
    handler = Counter()
    async with FaultServer(handler, [fault]) as server:
        assert await ask(server, GET) == expected
        assert len(handler.served) == served
        assert body_of(await ask(server, LAST)) == BODY, "only once"


@pytest.mark.parametrize(
    ("fault", "head", "body"),
    [
        (reset_within(4), b"Content-Length: 10", b"0123<reset>"),
        (close_within(4), b"Content-Length: 10", b"0123"),
        (with_length(3), b"Content-Length: 13", BODY),
        (unframed(), b"", BODY),
        (unframed(4), b"", b"0123"),
        (chunked_cut(4), b"Transfer-Encoding: chunked", b"4\r\n0123\r\n"),
    ],
    ids=repr,
)
async def test_answers_that_end_with_the_connection(fault: Fault, head: bytes, body: bytes) -> None:
    handler = Counter()
    async with FaultServer(handler, [fault]) as server:
        answer = await ask(server, GET)

    # A reset may overtake what was sent before it.
    assert body_of(answer) == body or (answer.endswith(b"<reset>") and fault.name[:5] == "reset")
    assert head in answer
    assert (b"Content-Length" in answer) == head.startswith(b"Content-Length")
    assert len(handler.served) == 1


@pytest.mark.parametrize(
    ("fault", "length", "body"),
    [
        (with_length(-3), 7, BODY),
        (flipped(8), 10, b"0023456789"),
        (slow(3, 0.0), 10, BODY),
    ],
    ids=repr,
)
async def test_answers_after_which_the_connection_goes_on(
    fault: Fault, length: int, body: bytes
) -> None:
    async with FaultServer(Counter(), [fault]) as server:
        answer = await ask(server, GET + LAST)

    assert b"Content-Length: %d\r\n" % length in answer
    assert body_of(answer).startswith(body + b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n" + BODY)


@pytest.mark.parametrize("fault", [STALL, stalled_within(4)], ids=repr)
async def test_a_stall_lasts_until_the_client_goes(fault: Fault) -> None:
    async with FaultServer(Counter(), [fault]) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(GET)
        if fault is not STALL:
            assert (await reader.readuntil(b"0123")).endswith(b"\r\n\r\n0123")
        writer.write_eof()  # the client's last word; the server's comes only now
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (status(503, {"Retry-After": "7"}), [b"503 Service Unavailable", b"Retry-After: 7"]),
        (redirect(307, "/there"), [b"307 Temporary Redirect", b"Location: /there"]),
        (status(400, body=b"<Code>ExpiredToken</Code>"), [b"400 Bad", b"<Code>ExpiredToken"]),
    ],
    ids=repr,
)
async def test_answers_that_are_refusals(fault: Fault, expected: list[bytes]) -> None:
    handler = Counter()
    async with FaultServer(handler, [fault]) as server:
        answer = await ask(server, GET + LAST)

    assert all(text in answer for text in expected)
    assert len(handler.served) == 1, "the refused one was not carried out"


async def test_the_clock_of_a_server_may_be_off() -> None:
    async with FaultServer(Counter(), [skewed(403, 1e9)]) as server:
        answer = await ask(server, GET + LAST)

    first, second = (part.partition(b"\r\n")[0].decode() for part in answer.split(b"Date: ")[1:])
    assert answer.startswith(b"HTTP/1.1 403")
    assert seconds_of(second) - seconds_of(first) == pytest.approx(1e9, abs=60)


async def test_a_plan_may_be_a_function_and_may_change() -> None:
    server = FaultServer(
        Counter(), lambda request: status(500) if "b=1" in request.target else None
    )
    async with server:
        assert (await ask(server, LAST)).startswith(b"HTTP/1.1 500")
        assert (await ask(server, LAST.replace(b"b=1", b""))).startswith(b"HTTP/1.1 200")
        server.plan = [None, CLOSE]
        assert body_of(await ask(server, LAST)) == BODY
        assert await ask(server, LAST) == b""
        assert body_of(await ask(server, LAST)) == BODY


async def test_faults_may_be_made_by_hand() -> None:
    async def twice(exchange: Exchange) -> bool:
        reply = exchange.serve()
        await exchange.answer(replace(reply, body=reply.body + exchange.serve().body))
        return False

    handler = Counter()
    async with FaultServer(handler, [Fault("twice", twice)]) as server:
        assert body_of(await ask(server, GET)) == BODY * 2

    assert len(handler.served) == 1, "a request is carried out once at most"
    assert repr(Fault("twice", twice)) == "twice"


def test_runs_beside_what_is_no_coroutine() -> None:
    server = FaultServer(Counter(), [None, STALL])

    with server.running() as url, socket.socket() as left_alone:
        assert server.url == url
        assert body_of(asyncio.run(ask(server, LAST))) == BODY
        host, _, port = url.removeprefix("http://").partition(":")
        left_alone.connect((host, int(port)))
        left_alone.sendall(GET)
    assert server.url == ""


HALF_A_BODY = b"PUT / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n" + bytes(2**20)


@pytest.mark.parametrize("sent", [b"", HALF_A_BODY])
async def test_the_end_closes_every_connection(sent: bytes) -> None:
    async with FaultServer(lambda _: Reply(200)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        # one more that was not accepted yet
        late = socket.create_connection((host, int(port)))

    with suppress(ConnectionError):
        assert await reader.read() == b""
    with late, suppress(ConnectionError):
        assert late.recv(1) == b""
    writer.close()


async def test_the_end_closes_connections_that_did_not_agree_on_tls() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    async with FaultServer(lambda _: Reply(200), tls=tls) as server:
        host, port = server.url.removeprefix("https://").split(":")
        client = socket.create_connection((host, int(port)))
        for _ in range(4):  # it is accepted
            await asyncio.sleep(0)
        sockets = list(server._busy.values())

    assert [accepted.fileno() for accepted in sockets] == [-1]
    with client, suppress(ConnectionError):
        assert client.recv(1) == b""
