"""Values of Google Cloud Storage side by side: us, the tensorstore wheel, and Google's client.

As benchmarks/objects.py, with a server that answers as the JSON API would. Google's client has no
asynchronous form of that API, and runs in as many threads as there are requests at a time.

    python benchmarks/objects_gcs.py              64 KiB, 32 requests at a time, 7 rounds of 2000
    python benchmarks/objects_gcs.py --quick      3 rounds of 500: a look, not a result
    python benchmarks/objects_gcs.py --latency    2000 chunks from a server that is 20 ms away
"""

import json
import os
import sys
from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib import import_module
from pathlib import Path

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import google_crc32c

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

LIBRARIES = ("tensorstore_py", "tensorstore", "google-cloud-storage")
WORKLOADS = ("read", "write", "array")


@cache  # it is asked for by every connection
def media(body: bytes) -> bytes:
    """An answer that is a value."""
    crc = b64encode(google_crc32c.value(body).to_bytes(4, "big")).decode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nx-goog-generation: 5\r\n"
        f"x-goog-hash: crc32c={crc}\r\nContent-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + body


@cache
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


class Service(Answering):
    """`zarr.json` is metadata, all else a chunk, and every write is fine."""

    def __init__(self, chunks: int, latency_s: float) -> None:
        super().__init__(latency_s)
        self._document, self._chunk = media(metadata(chunks)), media(VALUE)
        self._large, self._stored = media(LARGE_VALUE), said()

    def answer(self, head: bytes) -> bytes:
        if not head.startswith(b"GET"):
            return self._stored
        if b"zarr.json" in head[:200]:
            return self._document
        return self._large if b"large" in head[:200] else self._chunk


def of_google(url: str) -> Workloads:
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


def workloads(library: str, url: str) -> Workloads:
    """What the library does with that server."""
    settings = ("GOOGLE_AUTH_TOKEN_FOR_TESTING", "of nobody"), ("TENSORSTORE_GCS_HTTP_URL", url)
    os.environ.update(settings)
    if library == "google-cloud-storage":
        return of_google(url)
    return like_tensorstore(__import__(library), "gs://bucket/", "gcs_request_concurrency")


def contest(libraries: Sequence[str] = LIBRARIES, asked: Sequence[str] = WORKLOADS) -> Contest:
    """What is measured."""
    return Contest(partial(partial, Service), workloads, libraries, asked)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    description = "GCS: us, the tensorstore wheel, Google's client."
    options = options_parser(description, LIBRARIES).parse_args(arguments)
    measured = contest(options.only, ("array",) if options.latency else WORKLOADS)
    run(measured, quick=options.quick, latency=options.latency, requests=2000)


if __name__ == "__main__":
    main()
