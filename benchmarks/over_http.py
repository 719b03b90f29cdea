"""Side by side over HTTP: us, the tensorstore wheel, aiohttp, and the bare minimum.

The bare minimum is what asyncio itself takes: a protocol of ten lines that sends ready-made bytes
and counts those that come, which nobody could use.

How it is measured is said in benchmarks/requests_by_rounds.py.

    python benchmarks/over_http.py              64 KiB, 32 requests at a time, 7 rounds of 4000
    python benchmarks/over_http.py --quick      3 rounds of 1000: a look, not a result
    python benchmarks/over_http.py --latency    2000 chunks from a server that is 20 ms away
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.requests_by_rounds import (
    AT_A_TIME,
    LARGE_VALUE,
    VALUE,
    Answering,
    Contest,
    Workloads,
    like_tensorstore,
    metadata,
    options_parser,
    run,
)

LIBRARIES = ("tensorstore_py", "tensorstore", "aiohttp", "minimum")
WORKLOADS = ("read", "array")


class Server(Answering):
    """Answers every GET: `zarr.json` with metadata, all else with a chunk."""

    def __init__(self, chunks: int, latency_s: float) -> None:
        super().__init__(latency_s)
        self._document = reply(metadata(chunks))
        self._chunk, self._large = reply(VALUE), reply(LARGE_VALUE)

    def answer(self, head: bytes) -> bytes:
        if b"zarr.json" in head[:200]:
            return self._document
        return self._large if b"large" in head[:200] else self._chunk


@cache  # it is asked for by every connection
def reply(body: bytes) -> bytes:
    """A whole answer."""
    return b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: "1"\r\n\r\n%b' % (len(body), body)


class Minimum(asyncio.BufferedProtocol):
    """Receives one answer after the other, of which only the length is looked at."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._room = memoryview(bytearray(len(VALUE) + 2**12))
        self._left = 0
        self._answered: asyncio.Future[None]
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def ask(self) -> asyncio.Future[None]:
        """Done when the answer is here."""
        self._left = 0
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(self._request)
        return self._answered

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        if not self._left:
            head = bytes(self._room[:200]).partition(b"\r\n\r\n")[0]
            length = head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
            self._left = len(head) + 4 + int(length)
        self._left -= nbytes
        if not self._left:
            self._answered.set_result(None)


def read_minimum(url: str, loop: asyncio.AbstractEventLoop) -> Callable[[int], None]:
    """What asyncio takes to receive the values."""
    host, _, port = url.removeprefix("http://").partition(":")
    request = f"GET /0 HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: */*\r\n\r\n".encode()

    async def fetch(line: Minimum, left: list[None]) -> None:
        while left:
            left.pop()
            await line.ask()

    async def connect() -> Minimum:
        _, line = await loop.create_connection(lambda: Minimum(request), host, int(port))
        return line

    async def connect_all() -> list[Minimum]:
        return [await connect() for _ in range(AT_A_TIME)]

    lines = loop.run_until_complete(connect_all())

    async def all_of(count: int) -> None:
        left: list[None] = [None] * count
        await asyncio.gather(*(fetch(line, left) for line in lines))

    def run(count: int) -> None:
        loop.run_until_complete(all_of(count))

    return run


def read_bare(url: str, loop: asyncio.AbstractEventLoop) -> Callable[[int], None]:
    """The HTTP library by itself, which checks nothing and tries nothing again."""
    import aiohttp  # noqa: PLC0415 - in this library's process only

    async def fetch(session: aiohttp.ClientSession, left: list[None]) -> None:
        while left:
            left.pop()
            async with session.get(f"{url}0") as response:
                assert len(await response.read()) == len(VALUE)

    async def all_of(count: int) -> None:
        left: list[None] = [None] * count
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            await asyncio.gather(*(fetch(session, left) for _ in range(AT_A_TIME)))

    def run(count: int) -> None:
        loop.run_until_complete(all_of(count))

    return run


def workloads(library: str, url: str) -> Workloads:
    """What the library does with that server."""
    if library == "aiohttp":
        return {"read": read_bare(f"{url}/", asyncio.new_event_loop())}
    if library == "minimum":
        return {"read": read_minimum(url, asyncio.new_event_loop())}
    return like_tensorstore(__import__(library), f"{url}/", "http_request_concurrency")


def contest(libraries: Sequence[str] = LIBRARIES, asked: Sequence[str] = WORKLOADS) -> Contest:
    """What is measured."""
    return Contest(partial(partial, Server), workloads, libraries, asked)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = options_parser("HTTP: us, the tensorstore wheel, aiohttp.", LIBRARIES)
    options = parser.parse_args(arguments)
    run(contest(options.only), quick=options.quick, latency=options.latency, requests=4000)


if __name__ == "__main__":
    main()
