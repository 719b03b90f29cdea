"""Values of Google Cloud Storage side by side: us, the tensorstore wheel, and Google's client.

As benchmarks/objects.py, with a server that answers as the JSON API would. Google's client has no
asynchronous form of that API, and runs in as many threads as there are requests at a time.

    python benchmarks/objects_gcs.py              64 KiB, 32 requests at a time, 7 rounds of 2000
    python benchmarks/objects_gcs.py --quick      3 rounds of 500: a look, not a result
    python benchmarks/objects_gcs.py --latency    2000 chunks from a server that is 20 ms away
"""

import argparse
import asyncio
import json
import os
import re
import sys
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import google_crc32c

from benchmarks.objects import AT_A_TIME, LATENCY_S, SIDE, VALUE, Result, metadata, table

LIBRARIES = ("tensorstore_py", "tensorstore", "google-cloud-storage")
WORKLOADS = ("read", "write", "array")
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)


def media(body: bytes) -> bytes:
    """An answer that is a value."""
    crc = b64encode(google_crc32c.value(body).to_bytes(4, "big")).decode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nx-goog-generation: 5\r\n"
        f"x-goog-hash: crc32c={crc}\r\nContent-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + body


def said() -> bytes:
    """An answer that describes an object."""
    crc = b64encode(google_crc32c.value(VALUE).to_bytes(4, "big")).decode()
    described = {"kind": "storage#object", "name": "0", "bucket": "bucket", "generation": "5"}
    times = dict.fromkeys(("timeCreated", "updated"), "2015-10-21T07:28:00.000Z")
    sizes = {"size": str(len(VALUE)), "metageneration": "1", "crc32c": crc}
    body = json.dumps(described | times | sizes).encode()
    kind = "application/json; charset=UTF-8"
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Type: {kind}\r\n\r\n"
    return head.encode() + body


class Service(asyncio.Protocol):
    """`zarr.json` is metadata, all else a chunk, and every write is fine."""

    def __init__(self, chunks: int, latency_s: float) -> None:
        self._document, self._chunk, self._stored = media(metadata(chunks)), media(VALUE), said()
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
            if head.startswith(b"GET"):
                self._send(self._document if b"zarr.json" in head[:200] else self._chunk)
                continue
            found = LENGTH.search(head + b"\r\n")
            self._body_left = (int(found[1]) if found else 0) - len(self._received)
            self._received = b""
            if not self._body_left:
                self._send(self._stored)

    def _send(self, reply: bytes) -> None:
        if self._latency_s:
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, reply)
        else:
            self._transport.write(reply)


def serve(pipe: Connection, chunks: int, latency_s: float) -> None:
    """The server's process: says its port, and ends when it is told to."""

    async def body() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Service(chunks, latency_s), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        server.close()

    asyncio.run(body())


def like_tensorstore(ts: Any) -> dict[str, Callable[[int], None]]:
    """The workloads of a library with TensorStore's interface."""
    store = ts.KvStore.open("gs://bucket/").result()
    array = ts.open({"driver": "zarr3", "kvstore": "gs://bucket/"}).result()

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


def of_google(url: str) -> dict[str, Callable[[int], None]]:
    """The workloads of Google's client, in threads."""
    credentials = import_module("google.auth.credentials").AnonymousCredentials()
    client = import_module("google.cloud.storage").Client(
        project="p", credentials=credentials, client_options={"api_endpoint": url}
    )
    # Its own pool holds ten connections, and closes the others after each request.
    adapter = import_module("requests.adapters").HTTPAdapter(pool_maxsize=AT_A_TIME)
    client._http.mount("http://", adapter)
    bucket = client.bucket("bucket")
    threads = ThreadPoolExecutor(AT_A_TIME)

    def read(count: int) -> None:
        def one(_: int) -> None:
            assert len(bucket.blob("0").download_as_bytes()) == len(VALUE)

        list(threads.map(one, range(count)))

    def write(count: int) -> None:
        list(threads.map(lambda _: bucket.blob("0").upload_from_string(VALUE), range(count)))

    return {"read": read, "write": write}


def work(pipe: Connection, library: str, url: str) -> None:
    """A library's process: runs what it is asked for until it is asked for nothing."""
    said = ("GOOGLE_AUTH_TOKEN_FOR_TESTING", "of nobody"), ("TENSORSTORE_GCS_HTTP_URL", url)
    os.environ.update(said)
    is_google = library == "google-cloud-storage"
    runs = of_google(url) if is_google else like_tensorstore(__import__(library))
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
    given = (server_end, count, latency_s)
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(description="GCS: us, the tensorstore wheel, Google's client.")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
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
