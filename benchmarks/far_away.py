"""Arrays and shards far away: how near to what the distance alone takes, beside tensorstore.

A server in a process of its own answers each request so many milliseconds after it came, on time:
its loop waits by `select`, which is exact to some microseconds, where `epoll` counts milliseconds.
It says how many requests there were. The ideal is what these take if as many as allowed are always
on their way, and if an index has to be there before what it tells of is asked for:

    latency x max(requests / in flight, 2 for shards, else 1)

    python benchmarks/far_away.py                    all stores, 20 and 80 ms, 32 in flight
    python benchmarks/far_away.py --in-flight 128
    python benchmarks/far_away.py --quick            3 rounds: a look, not a result
    python benchmarks/far_away.py --beside ../before also of another checkout, in the same rounds
"""

import argparse
import asyncio
import json
import math
import os
import re
import selectors
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import google_crc32c
import numpy as np

from benchmarks.requests_by_rounds import VALUE, metadata

LIBRARIES = ("tensorstore_py", "tensorstore")
STORES = ("http", "s3", "gcs")
CHUNKS = 2000
#: Extents of the array of shards, of shards of 16 MiB and 1 MiB, of inner chunks of 64 KiB.
EXTENT, SHARD, SMALL_SHARD, INNER = 512, (256, 256, 256), (128, 128, 64), (32, 32, 64)
BOXES, BOX = 128, 24

LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
HOST = re.compile(rb"\r\nhost: *([^\r]*)", re.IGNORECASE)
RANGE = re.compile(rb"\r\nrange: *bytes=([0-9]*)-([0-9]*)", re.IGNORECASE)


class Stored(NamedTuple):
    """What a server has: a document for `zarr.json`, and one value for every other key."""

    document: bytes
    value: bytes


def chunks() -> Stored:
    """An array of 2,000 chunks in a row."""
    return Stored(metadata(CHUNKS), VALUE)


def shards(shape: Sequence[int]) -> Stored:
    """An array of shards that are the same."""
    index_codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    sharding = {"chunk_shape": INNER, "codecs": [{"name": "bytes"}], "index_codecs": index_codecs}
    document = json.loads(metadata(1)) | {
        "shape": [EXTENT] * 3,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
    }
    count = math.prod(shape) // len(VALUE)
    starts = np.arange(count, dtype="<u8") * len(VALUE)
    index = np.stack([starts, np.full(count, len(VALUE), "<u8")], axis=1).tobytes()
    checksum = google_crc32c.value(index).to_bytes(4, "little")
    return Stored(json.dumps(document).encode(), VALUE * count + index + checksum)


LAYOUTS: dict[str, Callable[[], Stored]] = {
    "chunks": chunks,
    "shards": partial(shards, SHARD),
    "small shards": partial(shards, SMALL_SHARD),
}


class FarAway(asyncio.BufferedProtocol):
    """Answers as all three services would, each request after the same time."""

    def __init__(self, stored: Stored, latency_s: float, counted: list[int]) -> None:
        self._stored = stored
        self._latency_s = latency_s
        self._counted = counted
        self._room = memoryview(bytearray(2**20))
        self._received = b""
        self._body_left = 0
        self._to = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        if self._body_left:
            self._body_left -= nbytes
            if not self._body_left:
                self._answer_write()
            return
        self._received += self._room[:nbytes]
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            if head.startswith((b"GET", b"HEAD")):
                self._answer_read(head)
                continue
            if b"100-continue" in head.lower():
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            found = LENGTH.search(head)
            self._body_left = (int(found[1]) if found else 0) - len(self._received)
            self._to, self._received = head, b""
            if not self._body_left:
                self._answer_write()

    def _answer_read(self, head: bytes) -> None:
        body = memoryview(
            self._stored.document if b"zarr.json" in head[:200] else self._stored.value
        )
        status, more = b"200 OK", b""
        if (found := RANGE.search(head)) is not None:
            size = len(body)
            first = int(found[1]) if found[1] else size - int(found[2])
            last = int(found[2]) if found[1] and found[2] else size - 1
            status, more = b"206 Partial Content", b"Content-Range: bytes %d-%d/%d\r\n"
            more %= (first, min(last, size - 1), size)
            body = body[first : last + 1]
        self._send(status, more, b"" if head.startswith(b"HEAD") else body, len(body))

    def _answer_write(self) -> None:
        body, more = b"", b""
        if b"uploadType=resumable" in self._to[:200] and b"upload_id" not in self._to[:300]:
            host = HOST.search(self._to)
            place = self._to.split(b" ", 2)[1] + b"&upload_id=1"
            more = b"Location: http://%b%b\r\n" % (host[1] if host else b"", place)
        elif b"/upload/" in self._to[:200]:
            described = {"kind": "storage#object", "name": "0", "bucket": "b", "generation": "5"}
            body = json.dumps(described | {"size": str(len(VALUE)), "metageneration": "1"}).encode()
        self._send(b"200 OK", more, body, len(body))

    def _send(self, status: bytes, more: bytes, body: "bytes | memoryview", length: int) -> None:
        self._counted[0] += 1
        head = (
            b'HTTP/1.1 %b\r\nContent-Length: %d\r\nETag: "1"\r\nx-goog-generation: 5\r\n'
            b"Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n%b\r\n" % (status, length, more)
        )

        def arrived() -> None:
            self._transport.writelines([head, body])

        asyncio.get_running_loop().call_later(self._latency_s, arrived)


def serve(pipe: Connection, layout: str, latency_s: float) -> None:
    """The server's process: says its port, then how many requests there were since it was asked."""
    counted = [0]
    stored = LAYOUTS[layout]()

    async def body() -> None:
        loop = asyncio.get_running_loop()
        make = partial(FarAway, stored, latency_s, counted)
        server = await loop.create_server(make, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        while await asyncio.to_thread(pipe.recv):
            pipe.send(counted[0])
            counted[0] = 0
        server.close()

    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(body())


def spec_of(store: str, url: str, in_flight: int) -> tuple[Any, dict[str, Any]]:
    """How to say the store, and a context in which so many requests are on their way."""
    name = {"http": "http", "s3": "s3", "gcs": "gcs"}[store]
    limits: dict[str, Any] = {f"{name}_request_concurrency": {"limit": in_flight}}
    if store == "http":
        return f"{url}/", limits
    if store == "s3":
        return (
            {"driver": "s3", "bucket": "bucket", "endpoint": url, "aws_region": "us-east-1"},
            limits | {"aws_credentials": {"type": "environment"}},
        )
    return "gs://bucket/", limits


class Opened(NamedTuple):
    """An array, and what is done with it by the name of a workload."""

    ts: Any
    array: Any

    def read(self) -> None:
        self.array.read().result()

    def plane(self) -> None:
        self.array[EXTENT // 2 - 1].read().result()

    def boxes(self) -> None:
        """Places that are the same for everybody, asked for together."""
        random = np.random.default_rng(3)
        corners = random.integers(0, EXTENT - BOX, (BOXES, 3)).tolist()
        boxes = [tuple(slice(at, at + BOX) for at in corner) for corner in corners]
        for future in [self.array[box].read() for box in boxes]:
            future.result()

    def write(self) -> None:
        self.array.write(values_of(tuple(self.array.shape))).result()

    @classmethod
    def of(cls, library: str, store: str, url: str, in_flight: int) -> "Opened":
        ts = __import__(library)
        spec, limits = spec_of(store, url, in_flight)
        context = ts.Context(limits)
        return cls(ts, ts.open({"driver": "zarr3", "kvstore": spec}, context=context).result())


_VALUES: dict[tuple[int, ...], Any] = {}


def values_of(shape: tuple[int, ...]) -> Any:
    """What is written: made once."""
    if shape not in _VALUES:
        _VALUES[shape] = np.full(shape, 7, "uint8")
    return _VALUES[shape]


class Workload(NamedTuple):
    """What is measured: of which layout, and how many rounds depend on each other."""

    layout: str
    name: str
    depth: int


WORKLOADS = (
    Workload("chunks", "read", 1),
    Workload("chunks", "write", 1),
    Workload("shards", "read", 2),
    Workload("shards", "plane", 2),
    Workload("shards", "boxes", 2),
    Workload("shards", "write", 1),
    Workload("small shards", "read", 1),
    Workload("small shards", "plane", 2),
    Workload("small shards", "boxes", 2),
    Workload("small shards", "write", 1),
)


def work(pipe: Connection, place: str, library: str, store: str, url: str, in_flight: int) -> None:
    """A library's process: does what it is asked for until it is asked for nothing."""
    if place:
        sys.path.insert(0, place)
    os.environ.update(
        AWS_ACCESS_KEY_ID="AKIA",
        AWS_SECRET_ACCESS_KEY="secret",  # noqa: S106 - of a server of our own
        AWS_EC2_METADATA_DISABLED="true",
        GOOGLE_AUTH_TOKEN_FOR_TESTING="of nobody",  # noqa: S106 - of a server of our own
        TENSORSTORE_GCS_HTTP_URL=url,
    )
    opened = Opened.of(library, store, url, in_flight)
    pipe.send(None)
    while (asked := pipe.recv()) is not None:
        began, cpu_began = time.perf_counter(), time.process_time()
        getattr(opened, asked)()
        cpu_s = time.process_time() - cpu_began
        pipe.send((time.perf_counter() - began, cpu_s))


class Result(NamedTuple):
    """One workload, once: seconds, processor seconds, requests."""

    seconds: float
    cpu_s: float
    requests: int


def measure(
    store: str,
    layout: str,
    asked: Sequence[Workload],
    latency_s: float,
    in_flight: int,
    rounds: int,
    places: Sequence[tuple[str, str, str]],
) -> Iterator[tuple[Workload, dict[str, list[Result]]]]:
    """Results by the name of a library; the first round only warms up."""
    context = get_context("spawn")
    server, server_end = context.Pipe()
    processes = [context.Process(target=serve, args=(server_end, layout, latency_s), daemon=True)]
    processes[0].start()
    url = f"http://127.0.0.1:{server.recv()}"
    workers: dict[str, Connection] = {}
    for label, place, library in places:
        workers[label], end = context.Pipe()
        given = (end, place, library, store, url, in_flight)
        processes.append(context.Process(target=work, args=given, daemon=True))
        processes[-1].start()
        workers[label].recv()
    for workload in asked:
        found: dict[str, list[Result]] = {}
        for number in range(rounds + 1):
            for label, pipe in workers.items():
                server.send(True)
                server.recv()
                pipe.send(workload.name)
                seconds, cpu_s = pipe.recv()
                server.send(True)
                if number:
                    found.setdefault(label, []).append(Result(seconds, cpu_s, server.recv()))
                else:
                    server.recv()
        yield workload, found
    for pipe in workers.values():
        pipe.send(None)
    server.send(False)
    for process in processes:
        process.join()


HEADER = (
    "| away | store | layout | workload | library | requests | seconds | of the ideal | CPU ms |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def ideal_s(latency_s: float, in_flight: int, depth: int, requests: int) -> float:
    """What the distance alone takes."""
    return latency_s * max(depth, requests / in_flight)


def rows(
    store: str,
    latency_s: float,
    in_flight: int,
    workload: Workload,
    found: dict[str, list[Result]],
) -> Iterator[str]:
    """A row for each library; the ideal is that of the fewest requests."""
    requests = min(result.requests for results in found.values() for result in results)
    ideal = ideal_s(latency_s, in_flight, workload.depth, requests)
    for library, results in found.items():
        seconds = statistics.median(result.seconds for result in results)
        cells = [
            f"{latency_s * 1e3:.0f} ms",
            store,
            workload.layout,
            workload.name,
            library,
            f"{statistics.median(result.requests for result in results):.0f}",
            f"{seconds:.3f}",
            f"**{seconds / ideal:.2f}**",
            f"{statistics.median(result.cpu_s for result in results) * 1e3:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(description="Arrays and shards that are far away.")
    parser.add_argument("--quick", action="store_true", help="3 rounds in place of 7")
    parser.add_argument("--in-flight", type=int, default=32, help="requests at a time")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--layouts", nargs="+", choices=tuple(LAYOUTS), default=tuple(LAYOUTS))
    parser.add_argument("--workloads", nargs="+", help="names of them")
    parser.add_argument("--ms", nargs="+", type=float, default=[20.0, 80.0], help="how far away")
    parser.add_argument("--beside", nargs="+", default=[], help="other checkouts to measure, too")
    options = parser.parse_args(arguments)
    places = [(library, "", library) for library in LIBRARIES]
    places += [(place, place, LIBRARIES[0]) for place in options.beside]
    print(HEADER)
    for latency_s in [each / 1e3 for each in options.ms]:
        for store in options.stores:
            for layout in options.layouts:
                asked = [
                    each
                    for each in WORKLOADS
                    if each.layout == layout
                    and not (store == "http" and each.name == "write")
                    and each.name in (options.workloads or [each.name])
                ]
                measured = measure(
                    store,
                    layout,
                    asked,
                    latency_s,
                    options.in_flight,
                    3 if options.quick else 7,
                    places,
                )
                for workload, found in measured:
                    for row in rows(store, latency_s, options.in_flight, workload, found):
                        print(row, flush=True)


if __name__ == "__main__":
    main()
