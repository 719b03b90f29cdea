"""When a connection is used again, and when not: raw servers that say every byte themselves."""

import asyncio
import socket
import struct
import time
from contextlib import asynccontextmanager, suppress

import pytest

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.http import HttpClient, HttpRequest, RetriesModel
from tensorstore_py.plugin.kvstore import ByteRange, Semaphore

pytestmark = pytest.mark.usefixtures("fresh_pool")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
OK = HEAD + b"ok"
SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"


class Line:
    """One connection as the server has it.

    Attributes:
        number: of the connection, from 0.
        asked: how many requests came on it.
    """

    def __init__(self, number, reader, writer):
        self.number = number
        self.asked = 0
        self._reader = reader
        self._writer = writer

    async def request(self):
        await self._reader.readuntil(b"\r\n\r\n")
        self.asked += 1

    async def say(self, *pieces):
        for number, piece in enumerate(pieces):
            if number:
                await asyncio.sleep(0.03)  # so that it arrives by itself
            self._writer.write(piece)
            await self._writer.drain()

    async def more(self):
        while await self._reader.read(2**16):
            pass

    def reset(self):
        linger = struct.pack("ii", 1, 0)
        self._writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, linger
        )
        self._writer.transport.abort()


@asynccontextmanager
async def serving(act):
    """The URL of a server that does that on each connection, and its connections."""
    lines: list[Line] = []
    tasks: set[asyncio.Task] = set()

    async def begin(reader, writer):
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        line = Line(len(lines), reader, writer)
        lines.append(line)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await act(line)
        writer.close()

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a", lines
    finally:
        server.close()
        for task in tasks:
            task.cancel()


@pytest.fixture
def get(client):
    """Ask once, without trying again."""
    made = client(max_retries=0)

    async def get(url, expected=(200, 206), method="GET", body=None, **options):
        request = HttpRequest(method, url, {}, body)
        return await made.send(request, set(expected), **options)

    return get


async def answers(line):
    while True:
        await line.request()
        await line.say(OK)


def on_first(*pieces):
    """Say that to the first request of all, and then what is right."""

    async def act(line):
        if not line.number:
            await line.request()
            await line.say(*pieces)
        await answers(line)

    return act


@pytest.mark.parametrize("at", range(len(HEAD) - 4, len(OK)))
@pytest.mark.parametrize("extra", [SMUGGLED, SMUGGLED[:20], b"H", b"?"])
def test_what_follows_a_response_is_not_taken_for_the_next(run, get, at, extra):
    sent = OK + extra

    async def body():
        async with serving(on_first(sent[:at], sent[at:])) as (url, lines):
            with pytest.raises(DataLossError, match="more than it said"):
                await get(url)
            assert bytes((await get(url)).body) == b"ok"
            assert [line.asked for line in lines] == [1, 1]

    run(body)


@pytest.mark.parametrize(
    ("pieces", "method", "expected"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"], "HEAD", 200),
        ([b"HTTP/1.1 204 No\r\n\r\n"], "DELETE", 204),
        ([b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n"], "GET", 304),
        ([b"HTTP/1.1 100 Go\r\n\r\n", b"HTTP/1.1 103 So\r\nLink: a\r\n\r\n" + OK], "PUT", 200),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: 1\r",
          b"\n\r\n"], "GET", 200),
    ],
)  # fmt: skip
def test_a_response_that_ends_where_it_says_leaves_the_connection(
    run, get, pieces, method, expected
):
    async def body():
        async with serving(on_first(*pieces)) as (url, lines):
            assert (await get(url, {expected}, method)).status == expected
            assert bytes((await get(url)).body) == b"ok"
            assert [line.asked for line in lines] == [2]

    run(body)


@pytest.mark.parametrize(
    ("pieces", "method", "expected"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"], "HEAD", 200),
        ([b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\nwrong"], "GET", 304),
        ([b"HTTP/1.1 304 No\r\n\r", b"\n" + SMUGGLED], "GET", 304),
        ([b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno" + SMUGGLED], "GET", 404),
    ],
)
def test_a_response_with_more_than_that_does_not(run, get, pieces, method, expected):
    async def body():
        async with serving(on_first(*pieces)) as (url, lines):
            assert (await get(url, {expected}, method)).status == expected
            assert bytes((await get(url)).body) == b"ok"
            assert [line.asked for line in lines] == [1, 1]

    run(body)


def test_after_a_cancelled_read_the_rest_of_it_is_nobodys(run, get):
    async def act(line):
        await line.request()
        if line.number:
            await line.say(OK)
        else:
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + bytes(100))
            begun.set()
            await line.more()
            gone.set()

    begun, gone = asyncio.Event(), asyncio.Event()

    async def body():
        async with serving(act) as (url, _):
            task = asyncio.create_task(get(url))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(gone.wait(), 5)
            assert bytes((await get(url)).body) == b"ok"

    run(body)


def test_a_half_read_body_is_left_with_its_connection(run, get):
    body_of = b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + b"x" * 500_000

    async def body():
        async with serving(on_first(body_of)) as (url, lines):
            response = await get(url, byte_range=ByteRange(3, 7))
            assert bytes(response.body) == b"xxxx"
            assert bytes((await get(url)).body) == b"ok"
            assert [line.asked for line in lines] == [1, 1]

    run(body)


def test_after_a_silent_restart_one_stale_connection_is_tried_and_not_all(run):
    count = 6
    together = asyncio.Event()

    async def act(line):
        if line.number >= count:
            await answers(line)
        await line.request()
        if line.number == count - 1:
            together.set()
        await together.wait()
        await line.say(OK)
        await line.request()
        line.reset()

    async def body():
        slots, retries = Semaphore(count), RetriesModel(max_retries=1)
        client = HttpClient(slots=slots, retries=retries, describe=str)
        async with serving(act) as (url, lines):
            request = HttpRequest("GET", url, {})
            await asyncio.gather(*[client.send(request, {200}) for _ in range(count)])
            assert len(lines) == count
            began = time.monotonic()
            response = await client.send(request, {200})
            assert (bytes(response.body), response.attempts) == (b"ok", 2)
            assert time.monotonic() - began < 0.9  # at once, since it was none of the server's
            assert [line.asked for line in lines].count(2) == 1

    run(body)


def test_a_request_that_was_refused_unread_is_not_in_the_way_of_the_next(run, get, monkeypatch):
    connect = asyncio.SelectorEventLoop.sock_connect

    async def sock_connect(self, sending, address):
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**12)  # else it takes all
        await connect(self, sending, address)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", sock_connect)

    async def body():
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            listening.setblocking(False)
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/a"
            asking = asyncio.create_task(get(url, {412}, "PUT", bytes(120_000)))
            refused, _ = await loop.sock_accept(listening)
            with refused:
                await loop.sock_recv(refused, 100)
                await loop.sock_sendall(refused, b"HTTP/1.1 412 No\r\nContent-Length: 0\r\n\r\n")
                assert (await asking).status == 412
                asking = asyncio.create_task(get(url))
                other, _ = await asyncio.wait_for(loop.sock_accept(listening), 5)
                with other:
                    await loop.sock_recv(other, 2**16)
                    await loop.sock_sendall(other, OK)
                    assert bytes((await asking).body) == b"ok"

    run(body)
