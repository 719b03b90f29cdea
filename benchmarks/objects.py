"""Values of an object store side by side: us, the tensorstore wheel, and s3fs.

A server that does nothing but answer as S3 would runs in a process of its own, and each library in
another; a round asks one after the other, so that a slow minute of the machine is everybody's. The
table shows medians over the rounds: requests per second, processor time per request (of all threads
of the library's process), and ours in relation to the peer's, above 1 where we are ahead.

    python benchmarks/objects.py              64 KiB, 32 requests at a time, 7 rounds of 2000
    python benchmarks/objects.py --quick      3 rounds of 500: a look, not a result
    python benchmarks/objects.py --md5        a server without checksums: ours are MD5s, of ETags
    python benchmarks/objects.py --latency    2000 chunks from a server that is 20 ms away
"""

import argparse
import asyncio
import hashlib
import json
import os
import statistics
import sys
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import google_crc32c

SIDE = 256  # of a chunk: 64 KiB
VALUE = bytes(range(SIDE)) * SIDE
AT_A_TIME = 32
LATENCY_S = 0.02
LIBRARIES = ("tensorstore_py", "tensorstore", "s3fs")
WORKLOADS = ("read", "write", "array")


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


def answer(body: bytes, checksum: bool) -> tuple[bytes, bytes]:
    """A whole answer with a value, and its head alone."""
    lines = [
        "HTTP/1.1 200 OK",
        f"Content-Length: {len(body)}",
        f'ETag: "{hashlib.md5(body).hexdigest()}"',  # noqa: S324 - what S3 uses it for
        "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT",
    ]
    if checksum:
        crc = google_crc32c.value(body).to_bytes(4, "big")
        lines.append(f"x-amz-checksum-crc32c: {b64encode(crc).decode()}")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return head + body, head


class Server(asyncio.Protocol):
    """Answers as S3: `zarr.json` is metadata, all else a chunk, and every write is fine."""

    def __init__(self, chunks: int, latency_s: float, checksum: bool) -> None:
        self._document, self._document_head = answer(metadata(chunks), checksum)
        self._chunk, self._chunk_head = answer(VALUE, checksum)
        self._stored = answer(b"", False)[0]
        self._latency_s = latency_s
        self._transport: Any = None
        self._received = b""
        self._body_left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._body_left:
            self._body_left -= len(data)
            if not self._body_left:
                self._send(self._stored)
            return
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            if head.startswith(b"PUT"):
                self._begin_body(head)
                continue
            is_document = b"zarr.json" in head[:200]
            if head.startswith(b"HEAD"):
                self._send(self._document_head if is_document else self._chunk_head)
            else:
                self._send(self._document if is_document else self._chunk)

    def _begin_body(self, head: bytes) -> None:
        lower = head.lower()
        if b"100-continue" in lower:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        size = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0])
        self._body_left = size - len(self._received)
        self._received = b""
        if not self._body_left:
            self._send(self._stored)

    def _send(self, reply: bytes) -> None:
        if self._latency_s:
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, reply)
        else:
            self._transport.write(reply)


def serve(pipe: Connection, chunks: int, latency_s: float, checksum: bool) -> None:
    """The server's process: says its port, and ends when it is told to."""

    async def body() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Server(chunks, latency_s, checksum), "127.0.0.1", 0
        )
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        server.close()

    asyncio.run(body())


def like_tensorstore(ts: Any, url: str) -> dict[str, Callable[[int], None]]:
    """The workloads of a library with TensorStore's interface."""
    spec = {"driver": "s3", "bucket": "bucket", "endpoint": url, "aws_region": "us-east-1"}
    store = ts.KvStore.open(spec).result()
    array = ts.open({"driver": "zarr3", "kvstore": spec}).result()

    def read(count: int) -> None:
        # Held until the end, all values together would be more memory than is kept at hand.
        futures = deque([store.read("0") for _ in range(count)])
        while futures:
            assert len(futures.popleft().result().value) == len(VALUE)

    def write(count: int) -> None:
        futures = [store.write("0", VALUE) for _ in range(count)]
        for future in futures:
            future.result()

    def read_array(count: int) -> None:
        array[: count * SIDE].read().result()

    return {"read": read, "write": write, "array": read_array}


def of_s3fs(url: str) -> dict[str, Callable[[int], None]]:
    """The workloads of s3fs, on an event loop of its own."""
    import s3fs  # noqa: PLC0415 - only in the process that measures it

    loop = asyncio.new_event_loop()

    async def make() -> Any:
        files = s3fs.S3FileSystem(
            asynchronous=True,
            skip_instance_cache=True,
            client_kwargs={"endpoint_url": url, "region_name": "us-east-1"},
            config_kwargs={"max_pool_connections": AT_A_TIME},
        )
        await files.set_session()
        return files

    files = loop.run_until_complete(make())

    async def together(count: int, one: Callable[[], Any]) -> None:
        left: list[None] = [None] * count

        async def pump() -> None:
            while left:
                left.pop()
                await one()

        await asyncio.gather(*(pump() for _ in range(AT_A_TIME)))

    def read(count: int) -> None:
        # Its own `cat_file` asks for the size first, which is a request more.
        def one() -> Any:
            return files._cat_file("bucket/0", start=0, end=len(VALUE))

        loop.run_until_complete(together(count, one))

    def write(count: int) -> None:
        loop.run_until_complete(together(count, lambda: files._pipe_file("bucket/0", VALUE)))

    return {"read": read, "write": write}


def work(pipe: Connection, library: str, url: str) -> None:
    """A library's process: runs what it is asked for until it is asked for nothing."""
    os.environ.update(
        AWS_ACCESS_KEY_ID="AKIA",
        AWS_SECRET_ACCESS_KEY="secret",  # noqa: S106 - of a server of our own
        AWS_EC2_METADATA_DISABLED="true",
    )
    runs = of_s3fs(url) if library == "s3fs" else like_tensorstore(__import__(library), url)
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
    options: argparse.Namespace, rounds: int, count: int, latency_s: float
) -> dict[tuple[str, str], list[Result]]:
    """Results by workload and library; the first round only warms up."""
    context = get_context("spawn")
    server, server_end = context.Pipe()
    given = (server_end, count, latency_s, not options.md5)
    processes = [context.Process(target=serve, args=given, daemon=True)]
    processes[0].start()
    url = f"http://127.0.0.1:{server.recv()}"
    workers: dict[str, Connection] = {}
    for library in options.only:
        workers[library], worker_end = context.Pipe()
        processes.append(context.Process(target=work, args=(worker_end, library, url), daemon=True))
        processes[-1].start()
    found: dict[tuple[str, str], list[Result]] = {}
    for number in range(rounds + 1):
        for workload in ("array",) if options.latency else WORKLOADS:
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


def table(found: dict[tuple[str, str], list[Result]], first: str, ideal_s: float) -> list[str]:
    """The lines to print."""
    lines = [f"{'':8} {'':16} {'requests/s':>10} {'CPU ms':>8} {'ours ÷ peer':>12}"]
    for (workload, library), results in found.items():
        rate = statistics.median(result.rate for result in results)
        cpu = statistics.median(result.cpu_ms for result in results)
        pairs = zip(found[workload, first], results, strict=True)
        ratio = statistics.median(mine.rate / peer.rate for mine, peer in pairs)
        line = f"{workload:8} {library:16} {rate:10.0f} {cpu:8.3f} {ratio:12.2f}"
        if ideal_s:
            seconds = statistics.median(result.seconds for result in results)
            line += f"   {seconds:.3f} s, {seconds / ideal_s:.2f} of the ideal"
        lines.append(line)
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(description="Object stores: us, the tensorstore wheel, s3fs.")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--md5", action="store_true", help="a server that sends no checksums")
    parser.add_argument("--latency", action="store_true", help="a server that is 20 ms away")
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=LIBRARIES)
    options = parser.parse_args(arguments)
    rounds, count = (3, 500) if options.quick else (7, 2000)
    latency_s = ideal_s = 0.0
    if options.latency:
        count, latency_s = 2000, LATENCY_S
        ideal_s = latency_s * count / AT_A_TIME
    found = measure(options, rounds, count, latency_s)
    for line in table(found, options.only[0], ideal_s):
        print(line, flush=True)


if __name__ == "__main__":
    main()
