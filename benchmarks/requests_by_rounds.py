"""Requests per second of several libraries, in rounds: what the benchmarks of the network share.

A server that does nothing but answer runs in a process of its own, and each library in another; a
round asks one after the other, so that a slow minute of the machine is everybody's. The table shows
medians over the rounds: requests per second, processor time per request (of all threads of the
library's process), and ours in relation to the peer's, above 1 where we are ahead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeAlias

SIDE = 256  # of a chunk: 64 KiB
VALUE = bytes(range(SIDE)) * SIDE
AT_A_TIME = 32
LATENCY_S = 0.02
#: Connections that wait to be accepted; of more the kernel drops what begins them, for a second.
_BACKLOG = 1024
#: The key of a value of 8 MiB; all others have 64 KiB.
LARGE_KEY = "large"
LARGE_VALUE = VALUE * 128
#: Chunks of the array that is read from a server that is far away.
CHUNKS_FAR_AWAY = 2000


class Cell(NamedTuple):
    """A workload that says how many requests are in flight.

    Attributes:
        method: `"GET"` or `"PUT"`.
        size: of the value, in bytes.
        at_a_time: how many are in flight; one is waited for by the thread that asks.
        per_round: how many there are in a round, of a thousand.
    """

    method: str
    size: int
    at_a_time: int
    per_round: int

    @property
    def key(self) -> str:
        """Of the value."""
        return "0" if self.size == len(VALUE) else LARGE_KEY


#: By name: what a service has to answer fast.
IN_FLIGHT = {
    f"{method} {size}, {at_a_time}": Cell(method, len(value), at_a_time, per_round)
    for method in ("GET", "PUT")
    for size, value, at_a_time, per_round in (
        ("64 KiB", VALUE, 1, 500),
        ("64 KiB", VALUE, 32, 1000),
        ("64 KiB", VALUE, 128, 1000),
        ("8 MiB", LARGE_VALUE, 8, 32),
    )
}

#: By the name of a workload: does it, with as many requests.
Workloads: TypeAlias = "dict[str, Callable[[int], None]]"


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


Found: TypeAlias = dict[tuple[str, str], list[Result]]


@cache
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


_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
_CONTINUE = re.compile(rb"\r\nexpect: *100-continue\r\n", re.IGNORECASE)


class Answering(asyncio.BufferedProtocol):
    """Sends ready-made answers, each after a time; what is sent to it is counted and dropped.

    It has to cost as little as can be: on few cores the clients compete with it.

    Args:
        latency_s: how long an answer is on its way.
    """

    #: All that arrives is looked at before anything else does.
    _room = memoryview(bytearray(2**20))

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._transport: Any = None
        self._received = b""
        self._body_left = 0
        self._owed = b""

    @abstractmethod
    def answer(self, head: bytes) -> bytes:
        """What to send to a request, given its head."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        if self._body_left >= nbytes:
            self._body_left -= nbytes
            if not self._body_left:
                self._send(self._owed)
            return
        self._received += self._room[:nbytes]
        while b"\r\n\r\n" in self._received:
            head, _, rest = self._received.partition(b"\r\n\r\n")
            if _CONTINUE.search(head + b"\r\n"):
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            found = _LENGTH.search(head + b"\r\n")
            size = int(found[1]) if found else 0
            self._received = rest[size:]
            self._body_left = max(0, size - len(rest))
            self._owed = self.answer(head)
            if not self._body_left:
                self._send(self._owed)

    def _send(self, answer: bytes) -> None:
        """Now, or when it has come from afar."""
        if self._latency_s:
            loop = asyncio.get_running_loop()
            loop.call_later(self._latency_s, self._transport.write, answer)
        else:
            self._transport.write(answer)


def like_tensorstore(ts: Any, store_spec: Any, concurrency: str = "") -> Workloads:
    """The workloads of a library with TensorStore's interface.

    Args:
        ts: the library.
        store_spec: of the store.
        concurrency: the context resource that limits requests, for workloads that say how many are
            in flight; by default there are none of these.
    """
    store = ts.KvStore.open(store_spec).result()
    array = ts.open({"driver": "zarr3", "kvstore": store_spec}).result()

    def read_array(count: int) -> None:
        array[: count * SIDE].read().result()

    runs: Workloads = {"read": partial(_read, store, "0"), "array": read_array}
    if "gs:" in str(store_spec) or "s3" in str(store_spec):
        runs["write"] = partial(_write, store, "0", VALUE)
    for name, cell in IN_FLIGHT.items() if concurrency else ():
        context = ts.Context({concurrency: {"limit": cell.at_a_time}})
        bound = ts.KvStore.open(store_spec, context=context).result()
        if cell.method == "GET":
            runs[name] = partial(_read, bound, cell.key, size=cell.size, wait=cell.at_a_time == 1)
        elif "write" in runs:
            value = VALUE * (cell.size // len(VALUE))
            runs[name] = partial(_write, bound, cell.key, value, wait=cell.at_a_time == 1)
    return runs


def _read(store: Any, key: str, count: int, *, size: int = len(VALUE), wait: bool = False) -> None:
    """Read a value so often; each is waited for before the next one is asked for if `wait`."""
    if wait:
        for _ in range(count):
            assert len(store.read(key).result().value) == size
        return
    # Held until the end, all values together would be more memory than is kept at hand.
    futures = deque([store.read(key) for _ in range(count)])
    while futures:
        assert len(futures.popleft().result().value) == size


def _write(store: Any, key: str, value: bytes, count: int, *, wait: bool = False) -> None:
    """Write a value so often; each is waited for before the next one begins if `wait`."""
    if wait:
        for _ in range(count):
            store.write(key, value).result()
        return
    futures = [store.write(key, value) for _ in range(count)]
    for future in futures:
        future.result()


@dataclass(frozen=True)
class Contest:
    """What is measured.

    Attributes:
        server: a function of the number of chunks and the latency that makes a function, which is
            sent to the server's process, and makes a protocol for each connection there.
        workloads: of a library, given its name and the URL of the server.
        libraries: their names, ours first.
        asked: names of workloads; a library may not have all.
    """

    server: Callable[[int, float], Callable[[], asyncio.BaseProtocol]]
    workloads: Callable[[str, str], Workloads]
    libraries: Sequence[str]
    asked: Sequence[str]

    def measure(self, rounds: int, count: int, latency_s: float = 0.0) -> Found:
        """Results by workload and library; the first round only warms up."""
        context = get_context("spawn")
        server, server_end = context.Pipe()
        given = (server_end, self.server(count, latency_s))
        processes = [context.Process(target=_serve, args=given, daemon=True)]
        processes[0].start()
        url = f"http://127.0.0.1:{server.recv()}"
        workers: dict[str, Connection] = {}
        for library in self.libraries:
            workers[library], end = context.Pipe()
            of_worker = (end, self.workloads, library, url)
            processes.append(context.Process(target=_work, args=of_worker, daemon=True))
            processes[-1].start()
        found: Found = {}
        for number in range(rounds + 1):
            for workload in self.asked:
                cell = IN_FLIGHT.get(workload)
                asked = count if cell is None else max(1, count * cell.per_round // 1000)
                for library, pipe in workers.items():
                    pipe.send((workload, asked))
                    result = pipe.recv()
                    if number and result is not None:
                        found.setdefault((workload, library), []).append(result)
        for pipe in (*workers.values(), server):
            pipe.send(None)
        for process in processes:
            process.join()
        return found


def _serve(pipe: Connection, make_protocol: Callable[[], asyncio.BaseProtocol]) -> None:
    """The server's process: says its port, and ends when it is told to."""

    async def body() -> None:
        loop = asyncio.get_running_loop()
        # A client may connect as often as it has requests in flight, at once.
        server = await loop.create_server(make_protocol, "127.0.0.1", 0, backlog=_BACKLOG)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        server.close()

    asyncio.run(body())


def _work(
    pipe: Connection, workloads: Callable[[str, str], Workloads], library: str, url: str
) -> None:
    """A library's process: runs what it is asked for until it is asked for nothing."""
    runs = workloads(library, url)
    while (asked := pipe.recv()) is not None:
        workload, count = asked
        if workload not in runs:
            pipe.send(None)
            continue
        began, cpu_began = time.perf_counter(), time.process_time()
        runs[workload](count)
        cpu = time.process_time() - cpu_began
        pipe.send(Result(time.perf_counter() - began, cpu, count))


def table(found: Found, first: str, ideal_s: float = 0.0) -> list[str]:
    """The lines to print: ratios are to the library `first`, and seconds to `ideal_s` if given."""
    lines = [f"{'':8} {'':20} {'requests/s':>10} {'CPU ms':>8} {'ours ÷ peer':>12}"]
    for (workload, library), results in found.items():
        rate = statistics.median(result.rate for result in results)
        cpu = statistics.median(result.cpu_ms for result in results)
        pairs = zip(found[workload, first], results, strict=True)
        ratio = statistics.median(mine.rate / peer.rate for mine, peer in pairs)
        line = f"{workload:8} {library:20} {rate:10.0f} {cpu:8.3f} {ratio:12.2f}"
        if ideal_s:
            seconds = statistics.median(result.seconds for result in results)
            line += f"   {seconds:.3f} s, {seconds / ideal_s:.2f} of the ideal"
        lines.append(line)
    return lines


def options_parser(description: str, libraries: Sequence[str]) -> argparse.ArgumentParser:
    """The options that all of these benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--latency", action="store_true", help="a server that is 20 ms away")
    parser.add_argument("--only", nargs="+", choices=libraries, default=libraries)
    return parser


def run(contest: Contest, *, quick: bool, latency: bool, requests: int) -> None:
    """Measure, and print the table.

    Args:
        contest: what is measured.
        quick: a look, not a result: 3 rounds of a quarter of the requests in place of 7.
        latency: from a server that is 20 ms away.
        requests: of a round.
    """
    rounds, count = (3, requests // 4) if quick else (7, requests)
    latency_s = ideal_s = 0.0
    if latency:
        count, latency_s = CHUNKS_FAR_AWAY, LATENCY_S
        ideal_s = latency_s * count / AT_A_TIME
    for line in table(contest.measure(rounds, count, latency_s), contest.libraries[0], ideal_s):
        print(line, flush=True)
