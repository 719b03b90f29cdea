"""How many requests a second `ts.serve` answers, and how many bytes.

One process serves an array of files, another one asks for all of its chunks, several at a time. The
first rows have chunks as they are stored, the others are made: decoded, cut and encoded. The
server's processor time is that of its process. Rates are those of the best round, processor times
are medians.

    python benchmarks/serving.py               all rows
    python benchmarks/serving.py --repeat 5    more rounds
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import aiohttp
import numpy as np

import tensorstore_py as ts

SERVER = """
import os, resource, sys
import tensorstore_py as ts
server = ts.serve({"array": ts.open(sys.argv[1]).result()}).result()
print(server.url, flush=True)
for _ in sys.stdin:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss, flush=True)
"""


class Row(NamedTuple):
    """What is measured: chunks of an extent, in a format, as another one."""

    title: str
    driver: str
    extent: int
    form: str


ROWS = (
    Row("zarr3, 32 KiB, as stored", "zarr3", 128, "zarr3"),
    Row("zarr3, 512 KiB, as stored", "zarr3", 512, "zarr3"),
    Row("n5, 32 KiB, as zarr3", "n5", 128, "zarr3"),
    Row("n5, 512 KiB, as zarr3", "n5", 512, "zarr3"),
    Row("n5, 512 KiB, as precomputed", "n5", 512, "precomputed"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096, help="of the array, along each dimension")
    parser.add_argument("--together", type=int, default=16, help="requests at a time")
    parser.add_argument("--repeat", type=int, default=3, help="rounds")
    options = parser.parse_args()
    print(f"{'what':<30} {'requests/s':>10} {'MB/s':>7} {'CPU us/request':>15} {'peak MiB':>9}")
    for row in ROWS:
        with tempfile.TemporaryDirectory() as folder:
            measure(row, folder, options)


def measure(row: Row, folder: str, options: argparse.Namespace) -> None:
    url = f"{Path(folder).as_uri()}/a/|{row.driver}:"
    shape = [options.size, options.size]
    layout = ts.ChunkLayout(chunk_shape=[row.extent, row.extent])
    array = ts.open(url, create=True, dtype="uint16", shape=shape, chunk_layout=layout).result()
    rng = np.random.default_rng(1)
    array.write(rng.integers(0, 999, shape, "uint16")).result()
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ},
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stdin is not None
        base = server.stdout.readline().strip()
        paths = [f"{base}{each}" for each in names(row, options.size)]
        rounds = []
        for _ in range(options.repeat + 1):
            before = used(server)
            start = time.perf_counter()
            size = asyncio.run(get_all(paths, options.together))
            wall = time.perf_counter() - start
            after = used(server)
            rounds.append(
                (len(paths) / wall, size / wall / 1e6, (after[0] - before[0]) / len(paths))
            )
        rounds.pop(0)  # which also loads codecs
        rates, bandwidths, processors = zip(*rounds, strict=True)
        # Others slow a round down and nobody speeds it up; processor time is hardly theirs.
        rate, bandwidth, processor = max(rates), max(bandwidths), median(processors)
        print(f"{row.title:<30} {rate:>10,.0f} {bandwidth:>7,.0f} {processor * 1e6:>15,.0f} "
              f"{used(server)[1] / 1024:>9,.0f}")  # fmt: skip
        server.stdin.close()


def used(server: subprocess.Popen[str]) -> tuple[float, float]:
    """The processor time of the server in seconds, and the memory that it had at most in KiB."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("\n")
    server.stdin.flush()
    processor, memory = server.stdout.readline().split()
    return float(processor), float(memory)


def names(row: Row, size: int) -> list[str]:
    """The keys of all chunks."""
    cells = [(y, x) for y in range(size // row.extent) for x in range(size // row.extent)]
    if row.form == "zarr3":
        return [f"zarr3/array/c/{y}/{x}" for y, x in cells]
    step = row.extent
    return [
        f"precomputed/array/full/{x * step}-{x * step + step}_{y * step}-{y * step + step}_0-1"
        for y, x in cells
    ]


async def get_all(urls: list[str], together: int) -> int:
    """Ask for all, so many at a time; how many bytes came."""
    left = iter(urls)
    size = 0

    async def ask(session: aiohttp.ClientSession) -> None:
        nonlocal size
        for url in left:
            async with session.get(url) as answer:
                answer.raise_for_status()
                body = await answer.read()
                size += len(body)

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(ask(session) for _ in range(together)))
    return size


if __name__ == "__main__":
    main()
