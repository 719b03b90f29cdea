"""Side by side over HTTP: us, the tensorstore wheel, aiohttp, and the bare minimum.

The bare minimum is what asyncio itself takes: a protocol of ten lines that sends ready-made bytes
and counts those that come, which nobody could use.

A server that does nothing but answer runs in a process of its own, and each library in another; a
round asks one after the other, so that a slow minute of the machine is everybody's. The table shows
medians over the rounds: requests per second, processor time per request (of all threads of the
library's process), and ours in relation to the peer's, above 1 where we are ahead.

    python benchmarks/over_http.py              64 KiB, 32 requests at a time, 7 rounds of 4000
    python benchmarks/over_http.py --quick      3 rounds of 1000: a look, not a result
    python benchmarks/over_http.py --latency    2000 chunks from a server that is 20 ms away
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SIDE = 256  # of a chunk: 64 KiB
AT_A_TIME = 32
LATENCY_S = 0.02
LIBRARIES = ("tensorstore_py", "tensorstore", "aiohttp", "minimum")
WORKLOADS = ("values", "array")


class Result(NamedTuple):
    """One workload, once: seconds, processor seconds, requests."""

    seconds: float
    cpu_seconds: float
    requests: int

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Processor time per request."""
        return self.cpu_seconds / self.requests * 1e3


def metadata(chunks: int) -> bytes:
    """The document of a zarr v3 array of as many chunks in a row."""
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [chunks * SIDE, SIDE],
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SIDE, SIDE]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "bytes"}],
        }
    ).encode()


class Server(asyncio.Protocol):
    """Answers every GET: `zarr.json` with metadata, all else with a chunk."""

    def __init__(self, chunks: int, latency_s: float) -> None:
        self._document = reply(metadata(chunks))
        self._chunk = reply(bytes(range(SIDE)) * SIDE)
        self._latency_s = latency_s
        self._transport: Any = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            answer = self._document if b"zarr.json" in head[:200] else self._chunk
            if self._latency_s:
                loop = asyncio.get_running_loop()
                loop.call_later(self._latency_s, self._transport.write, answer)
            else:
                self._transport.write(answer)


def reply(body: bytes) -> bytes:
    """A whole answer."""
    return b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: "1"\r\n\r\n%b' % (len(body), body)


def serve(pipe: Connection, chunks: int, latency_s: float) -> None:
    """The server's process: says its port, and ends when it is told to."""

    async def body() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Server(chunks, latency_s), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        server.close()

    asyncio.run(body())


def read_values(ts: Any, url: str) -> Callable[[int], None]:
    """Single values, as many at a time as the library's limit lets out."""
    store = ts.KvStore.open(url).result()
    key = "0"

    def run(count: int) -> None:
        # Held until the end, all values together would be more memory than is kept at hand.
        futures = deque([store.read(key) for _ in range(count)])
        while futures:
            assert len(futures.popleft().result().value) == SIDE * SIDE

    return run


def read_array(ts: Any, url: str) -> Callable[[int], None]:
    """A part of an array, chunk by chunk, nothing decoded."""
    array = ts.open({"driver": "zarr3", "kvstore": url}).result()

    def run(count: int) -> None:
        array[: count * SIDE].read().result()

    return run


class Minimum(asyncio.BufferedProtocol):
    """Receives one answer after the other, of which only the length is looked at."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._room = memoryview(bytearray(SIDE * SIDE + 2**12))
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
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
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
                assert len(await response.read()) == SIDE * SIDE

    async def all_of(count: int) -> None:
        left: list[None] = [None] * count
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            await asyncio.gather(*(fetch(session, left) for _ in range(AT_A_TIME)))

    def run(count: int) -> None:
        loop.run_until_complete(all_of(count))

    return run


def work(pipe: Connection, library: str, url: str) -> None:
    """A library's process: runs what it is asked for until it is asked for nothing."""
    runs: dict[str, Callable[[int], None]] = {}
    if library == "aiohttp":
        runs["values"] = read_bare(url, asyncio.new_event_loop())
    elif library == "minimum":
        runs["values"] = read_minimum(url, asyncio.new_event_loop())
    else:
        ts = __import__(library)
        runs = {"values": read_values(ts, url), "array": read_array(ts, url)}
    while (asked := pipe.recv()) is not None:
        workload, count = asked
        if workload not in runs:
            pipe.send(None)
            continue
        began, cpu_began = time.perf_counter(), time.process_time()
        runs[workload](count)
        cpu = time.process_time() - cpu_began
        pipe.send(Result(time.perf_counter() - began, cpu, count))


def measure(
    libraries: Sequence[str], rounds: int, count: int, latency_s: float = 0.0
) -> dict[tuple[str, str], list[Result]]:
    """Results by workload and library; the first round only warms up."""
    context = get_context("spawn")
    server, server_end = context.Pipe()
    processes = [context.Process(target=serve, args=(server_end, count, latency_s), daemon=True)]
    processes[0].start()
    url = f"http://127.0.0.1:{server.recv()}/"
    workers: dict[str, Connection] = {}
    for library in libraries:
        workers[library], worker_end = context.Pipe()
        processes.append(context.Process(target=work, args=(worker_end, library, url), daemon=True))
        processes[-1].start()
    found: dict[tuple[str, str], list[Result]] = {}
    for number in range(rounds + 1):
        for workload in WORKLOADS:
            for library, pipe in workers.items():
                pipe.send((workload, count))
                result = pipe.recv()
                if number and result is not None:
                    found.setdefault((workload, library), []).append(result)
    for pipe in (*workers.values(), server):
        pipe.send(None)
    for process in processes:
        process.join()
    return found


def table(found: dict[tuple[str, str], list[Result]], ideal_s: float = 0.0) -> list[str]:
    """The lines to print."""
    lines = [f"{'':8} {'':16} {'requests/s':>10} {'CPU ms':>8} {'ours ÷ peer':>12}"]
    for (workload, library), results in found.items():
        ours = found[workload, LIBRARIES[0]]
        rate = statistics.median(result.rate for result in results)
        cpu = statistics.median(result.cpu_ms for result in results)
        pairs = zip(ours, results, strict=True)
        ratio = statistics.median(mine.rate / peer.rate for mine, peer in pairs)
        line = f"{workload:8} {library:16} {rate:10.0f} {cpu:8.3f} {ratio:12.2f}"
        if ideal_s:
            seconds = statistics.median(result.seconds for result in results)
            line += f"   {seconds:.3f} s, {seconds / ideal_s:.2f} of the ideal"
        lines.append(line)
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(description="HTTP: us, the tensorstore wheel, aiohttp.")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--latency", action="store_true", help="a server that is 20 ms away")
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=LIBRARIES)
    options = parser.parse_args(arguments)
    rounds, count = (3, 1000) if options.quick else (7, 4000)
    latency_s = ideal_s = 0.0
    if options.latency:
        count, latency_s = 2000, LATENCY_S
        ideal_s = latency_s * count / AT_A_TIME
    for line in table(measure(options.only, rounds, count, latency_s), ideal_s):
        print(line, flush=True)


if __name__ == "__main__":
    main()
