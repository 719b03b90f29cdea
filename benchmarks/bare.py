"""The bare minimum: what reading costs with no library around the codec.

A thread per core takes chunks off a list: open, pread, decode into a buffer of its own, copy into
the result. No metadata, no checks, no caches. It is the limit that a full read is measured against.
"""

import functools
import importlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.layouts import Layout
from benchmarks.volume import Volume
from benchmarks.workloads import Trial

Corner = tuple[int, int, int]
Decode = Callable[[bytes | memoryview, npt.NDArray[np.uint16]], None]


def decoder(layout: Layout) -> Decode:
    """Returns the fastest decoder at hand for the layout's compressor."""
    compressor = layout.compressor or {}
    kind = compressor.get("id", compressor.get("name"))
    if kind is None:
        return lambda data, out: np.copyto(
            out, np.frombuffer(data, dtype=out.dtype).reshape(out.shape)
        )
    if kind == "gzip":
        return _gunzip()
    numcodecs: Any = importlib.import_module(f"numcodecs.{kind}")
    if kind == "blosc":
        numcodecs.use_threads = False
    codec = numcodecs.Blosc() if kind == "blosc" else numcodecs.Zstd()
    return lambda data, out: codec.decode(data, out=out)


def _gunzip() -> Decode:
    try:
        library: Any = importlib.import_module("isal.igzip")
    except ImportError:
        library = importlib.import_module("gzip")

    def decode(data: bytes | memoryview, out: npt.NDArray[np.uint16]) -> None:
        plain = library.decompress(data)
        np.copyto(out, np.frombuffer(plain, dtype=out.dtype).reshape(out.shape))

    return decode


def read_file(path: Path) -> bytes:
    """Reads a whole file with the fewest system calls."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    finally:
        os.close(descriptor)


def corners(edge: int, step: int) -> Iterator[Corner]:
    """The corners of the cubes of a grid, in C order."""
    starts = range(0, edge, step)
    return itertools.product(starts, starts, starts)


def shard_parts(data: bytes, edge: int, chunk: int) -> Iterator[tuple[Corner, memoryview]]:
    """The stored chunks of a shard whose index is at its end, with a checksum after it."""
    count = (edge // chunk) ** 3
    index = np.frombuffer(data[-16 * count - 4 : -4], dtype="<u8").reshape(count, 2).tolist()
    view = memoryview(data)
    for corner, (offset, size) in zip(corners(edge, chunk), index, strict=True):
        yield corner, view[offset : offset + size]


def file_edge(layout: Layout, edge: int) -> int:
    """The edge of the cube that one file holds."""
    return min(layout.shard or layout.chunk, edge)


def read_job(layout: Layout, place: Path, out: Volume, decode: Decode, corner: Corner) -> None:
    """Reads one file and puts its chunk, or the chunks of its shard, where they belong."""
    step = file_edge(layout, out.shape[0])
    cell = [str(start // step) for start in corner]
    key = ".".join(cell) if layout.zarr_format == 2 else "/".join(["c", *cell])
    data = read_file(place / key)
    chunk = min(layout.chunk, out.shape[0])
    buffer = np.empty((chunk,) * 3, dtype=out.dtype)
    parts: Iterator[tuple[Corner, bytes | memoryview]]
    parts = iter([((0, 0, 0), data)]) if layout.shard is None else shard_parts(data, step, chunk)
    for inner, part in parts:
        decode(part, buffer)
        z, y, x = (start + more for start, more in zip(corner, inner, strict=True))
        out[z : z + chunk, y : y + chunk, x : x + chunk] = buffer


def read_all(layout: Layout, place: Path, out: Volume) -> Volume:
    """Reads the whole array into `out`."""
    edge = out.shape[0]
    jobs = deque(corners(edge, file_edge(layout, edge)))
    job = functools.partial(read_job, layout, place, out, decoder(layout))

    def drain() -> None:
        while True:
            try:
                corner = jobs.popleft()
            except IndexError:
                return
            job(corner)

    threads = [threading.Thread(target=drain) for _ in range((os.cpu_count() or 1) - 1)]
    for thread in threads:
        thread.start()
    drain()
    for thread in threads:
        thread.join()
    return out


def trial(layout: Layout, place: Path, volume: Volume) -> Trial:
    """A full read; allocating the result is part of it, as it is for the libraries."""
    return Trial(
        run=lambda: read_all(layout, place, np.empty_like(volume)),
        check=lambda result: np.array_equal(result, volume),
    )
