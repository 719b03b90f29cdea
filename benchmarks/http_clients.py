"""HTTP clients side by side: ours, aiohttp's, and ours of another checkout.

`ours` is `HttpClient` as the stores use it. `aiohttp` is the same with one attempt made by
aiohttp's public client: admission, retries, idle timeout and the check of lengths stay, so that
only what receives and sends differs. A server that does nothing but answer runs in a process of its
own, and each client in another; a round asks one after the other. The table shows medians over the
rounds: requests per second, processor time per request, and both in relation to the first client.

    python benchmarks/http_clients.py                      7 rounds
    python benchmarks/http_clients.py --beside ../before   and `HttpClient` of that checkout
    python benchmarks/http_clients.py --quick              2 short rounds: a look, not a result
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

SMALL, LARGE = 2**16, 2**23
#: Method, size, requests at a time, requests in a round.
WORKLOADS = [
    *((method, SMALL, width, 2000) for method in ("GET", "PUT") for width in (1, 32, 128)),
    *((method, LARGE, 16, 64) for method in ("GET", "PUT")),
]
HERE = str(Path(__file__).resolve().parent.parent)


class Result(NamedTuple):
    """One workload, once: per second, and milliseconds of processor time for each."""

    rate: float
    cpu_ms: float


class Server(asyncio.Protocol):
    """Answers a GET of `/<size>` with as many bytes, and a PUT with none."""

    def __init__(self) -> None:
        self._values = {str(size).encode(): _reply(bytes(size)) for size in (SMALL, LARGE)}
        self._stored = _reply(b"")
        self._received = b""
        self._left = 0
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._left -= len(data)
            if not self._left:
                self._transport.write(self._stored)
            return
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        self._received = b""
        if head.startswith(b"GET"):
            self._transport.write(self._values[head.split(b" ", 2)[1].lstrip(b"/")])
            return
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        self._left = int(length) - len(rest)
        if not self._left:
            self._transport.write(self._stored)


def _reply(body: bytes) -> bytes:
    head = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: "1"\r\nServer: one\r\n\r\n'
    return head % len(body) + body


def serve(pipe: Connection) -> None:
    """The server's process: says its port, and ends when it is told to."""

    async def body() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        server.close()

    asyncio.run(body())


class PublicTransport:
    """One attempt by aiohttp's public client."""

    def __init__(self, session: Any) -> None:
        from tensorstore_py._net.byte_ranges import body_window  # noqa: PLC0415 - of a checkout
        from tensorstore_py._net.idle_timeout import IdleTimeouts  # noqa: PLC0415 - as above
        from tensorstore_py._net.message import HttpResponse  # noqa: PLC0415 - as above

        self._session = session
        self._window = body_window
        self._timeouts = IdleTimeouts(60.0, 100.0)
        self._response = HttpResponse

    async def attempt(self, request: Any, byte_range: Any) -> Any:
        """Send a request and receive the response."""
        began = time.time()
        with self._timeouts.watch() as idle:
            async with self._session.request(
                request.method,
                request.url,
                headers=request.headers,
                data=request.body,
                allow_redirects=False,
            ) as answer:
                idle.received(0)
                window = self._window(byte_range, answer.status, answer.headers)
                pieces = []
                while piece := await answer.content.readany():
                    idle.progress(len(piece))
                    pieces.append(piece)
                body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                assert window is not None
                assert len(body) == window.take
        return self._response(
            answer.status, answer.headers, body, reason=answer.reason, size=window.size, time=began
        )


def run_client(contender: str, url: str, loop: asyncio.AbstractEventLoop) -> Callable[..., None]:
    """What sends `count` requests of a workload through a client."""
    from tensorstore_py._runtime.limiters import Semaphore  # noqa: PLC0415 - as above
    from tensorstore_py._spec.limits import RetriesModel  # noqa: PLC0415 - as above
    from tensorstore_py.plugin.http import HttpClient, HttpRequest  # noqa: PLC0415 - of a checkout

    opened = AsyncExitStack()

    async def make() -> Any:
        retries, slots = RetriesModel(), Semaphore(128)
        client = HttpClient(slots=slots, retries=retries, describe=str)
        if contender == "aiohttp":
            import aiohttp  # noqa: PLC0415 - in this client's process only

            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
            )
            await opened.enter_async_context(session)
            vars(client)["_transport"] = PublicTransport(session)
        return client

    client = loop.run_until_complete(make())
    values = {size: bytes(size) for size in (SMALL, LARGE)}

    async def pump(method: str, size: int, left: list[None]) -> None:
        body = values[size] if method == "PUT" else None
        while left:
            left.pop()
            request = HttpRequest(method, f"{url}/{size}", {}, body)
            response = await client.send(request, {200})
            assert len(response.body) == (size if method == "GET" else 0)

    async def together(method: str, size: int, width: int, count: int) -> None:
        left: list[None] = [None] * count
        await asyncio.gather(*(pump(method, size, left) for _ in range(width)))

    def run(method: str, size: int, width: int, count: int) -> None:
        if not count:
            loop.run_until_complete(opened.aclose())
        loop.run_until_complete(together(method, size, width, count))

    return run


def work(pipe: Connection, contender: str, url: str) -> None:
    """A client's process: runs what it is asked for until it is asked for nothing."""
    sys.path.insert(0, contender if Path(contender).is_dir() else HERE)
    run = run_client(contender, url, asyncio.new_event_loop())
    while (asked := pipe.recv()) is not None:
        began, cpu_began = time.perf_counter(), time.process_time()
        run(*asked)
        cpu, count = time.process_time() - cpu_began, asked[-1]
        pipe.send(Result(count / (time.perf_counter() - began), cpu / count * 1e3))
    run("", 0, 0, 0)


def measure(contenders: Sequence[str], rounds: int, part: float) -> dict[Any, list[Result]]:
    """Results by workload and client; the first round only warms up."""
    context = get_context("spawn")
    server, server_end = context.Pipe()
    processes = [context.Process(target=serve, args=(server_end,), daemon=True)]
    processes[0].start()
    url = f"http://127.0.0.1:{server.recv()}"
    workers: dict[str, Connection] = {}
    for contender in contenders:
        workers[contender], end = context.Pipe()
        processes.append(context.Process(target=work, args=(end, contender, url), daemon=True))
        processes[-1].start()
    found: dict[Any, list[Result]] = {}
    for number in range(rounds + 1):
        for method, size, width, count in WORKLOADS:
            for contender, pipe in workers.items():
                pipe.send((method, size, width, max(width, int(count * part))))
                result = pipe.recv()
                if number:
                    found.setdefault(((method, size, width), contender), []).append(result)
    for pipe in (*workers.values(), server):
        pipe.send(None)
    for process in processes:
        process.join()
    return found


def table(found: dict[Any, list[Result]], first: str) -> list[str]:
    """The lines to print, in Markdown."""
    lines = [
        "| request | at a time | client | requests/s | CPU ms | ours ÷ it: requests/s | CPU |",
        "|---|---|---|---|---|---|---|",
    ]
    for (workload, contender), results in found.items():
        method, size, width = workload
        pairs = list(zip(found[workload, first], results, strict=True))
        what = f"{method} {size >> 20} MiB" if size >= 2**20 else f"{method} {size >> 10} KiB"
        rate, cpu = (statistics.median(column) for column in zip(*results, strict=True))
        by_rate = statistics.median(ours.rate / other.rate for ours, other in pairs)
        by_cpu = statistics.median(ours.cpu_ms / other.cpu_ms for ours, other in pairs)
        name = "before" if Path(contender).is_dir() else contender
        ratios = f"{by_rate:.2f} | {by_cpu:.2f}"
        lines.append(f"| {what} | {width} | {name} | {rate:,.0f} | {cpu:.3f} | {ratios} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(description="HTTP clients side by side.")
    parser.add_argument("--beside", metavar="DIRECTORY", help="another checkout")
    parser.add_argument("--quick", action="store_true", help="2 short rounds")
    options = parser.parse_args(arguments)
    contenders = ["ours", "aiohttp", *([options.beside] if options.beside else [])]
    rounds, part = (2, 0.2) if options.quick else (7, 1.0)
    for line in table(measure(contenders, rounds, part), contenders[0]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
