"""Values of an object store side by side: us, the tensorstore wheel, and s3fs.

The server answers as S3 would. How it is measured is said in benchmarks/requests_by_rounds.py.

    python benchmarks/objects.py              64 KiB, 32 requests at a time, 7 rounds of 2000
    python benchmarks/objects.py --quick      3 rounds of 500: a look, not a result
    python benchmarks/objects.py --md5        a server without checksums: ours are MD5s, of ETags
    python benchmarks/objects.py --latency    2000 chunks from a server that is 20 ms away
"""

import asyncio
import hashlib
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

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

LIBRARIES = ("tensorstore_py", "tensorstore", "s3fs")
WORKLOADS = ("read", "write", "array")


@cache  # it is asked for by every connection
def reply(body: bytes, checksum: bool) -> tuple[bytes, bytes]:
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


class Server(Answering):
    """Answers as S3: `zarr.json` is metadata, all else a chunk, and every write is fine."""

    def __init__(self, checksum: bool, chunks: int, latency_s: float) -> None:
        super().__init__(latency_s)
        self._document, self._document_head = reply(metadata(chunks), checksum)
        self._chunk, self._chunk_head = reply(VALUE, checksum)
        self._large, _ = reply(LARGE_VALUE, checksum)
        self._stored = reply(b"", False)[0]

    def answer(self, head: bytes) -> bytes:
        if head.startswith(b"PUT"):
            return self._stored
        is_document = b"zarr.json" in head[:200]
        if head.startswith(b"HEAD"):
            return self._document_head if is_document else self._chunk_head
        if is_document:
            return self._document
        return self._large if b"large" in head[:200] else self._chunk


def of_s3fs(url: str) -> Workloads:
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


def workloads(library: str, url: str) -> Workloads:
    """What the library does with that server."""
    os.environ.update(
        AWS_ACCESS_KEY_ID="AKIA",
        AWS_SECRET_ACCESS_KEY="secret",  # noqa: S106 - of a server of our own
        AWS_EC2_METADATA_DISABLED="true",
    )
    if library == "s3fs":
        return of_s3fs(url)
    spec = {
        "driver": "s3",
        "bucket": "bucket",
        "endpoint": url,
        "aws_region": "us-east-1",
        # Else one looks elsewhere, too, and says so.
        "aws_credentials": {"type": "environment"},
    }
    return like_tensorstore(__import__(library), spec, "s3_request_concurrency")


def contest(
    libraries: Sequence[str] = LIBRARIES,
    asked: Sequence[str] = WORKLOADS,
    *,
    checksums: bool = True,
) -> Contest:
    """What is measured."""
    return Contest(partial(partial, Server, checksums), workloads, libraries, asked)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = options_parser("Object stores: us, the tensorstore wheel, s3fs.", LIBRARIES)
    parser.add_argument("--md5", action="store_true", help="a server that sends no checksums")
    options = parser.parse_args(arguments)
    asked = ("array",) if options.latency else WORKLOADS
    measured = contest(options.only, asked, checksums=not options.md5)
    run(measured, quick=options.quick, latency=options.latency, requests=2000)


if __name__ == "__main__":
    main()
