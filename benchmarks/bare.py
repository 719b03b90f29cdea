"""The bare minimum: what reading costs with no library around the codec.

A thread per core takes files off a list: open, pread, decode into a buffer of its own, copy what is
wanted into the result. Chunks of which nothing is wanted are left out, and of many boxes that are
read together each chunk is decoded once. No metadata, no checks, no caches. It is the limit that
every read is measured against.
"""

import functools
import importlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.layouts import STRING, Layout
from benchmarks.volume import Box, Volume, random_boxes
from benchmarks.workloads import COLD, Trial

Corner = tuple[int, int, int]
Decode = Callable[[bytes | memoryview, npt.NDArray[Any]], None]


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
        decompress: Any = importlib.import_module("deflate").gzip_decompress
    except ImportError:
        decompress = importlib.import_module("gzip").decompress

    def decode(data: bytes | memoryview, out: npt.NDArray[Any]) -> None:
        plain = decompress(data)
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


Part = Callable[[], bytes | memoryview]


def shard_parts(
    size: int, read: Callable[[int, int], bytes | memoryview], edge: int, chunk: int
) -> Callable[[Corner], Part]:
    """What reads a chunk of a shard whose index is at its end, with a checksum after it."""
    along = edge // chunk
    index = np.frombuffer(read(size - 16 * along**3 - 4, 16 * along**3), "<u8").tolist()

    def part(inner: Corner) -> Part:
        z, y, x = (start // chunk for start in inner)
        number = 2 * ((z * along + y) * along + x)
        return functools.partial(read, index[number], index[number + 1])

    return part


def file_edge(layout: Layout, edge: int) -> int:
    """The edge of the cube that one file holds."""
    return min(layout.shard or layout.chunk, edge)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the encoded files are: in a folder, or in memory already."""

    layout: Layout
    place: Path
    edge: int
    files: dict[str, bytes] | None = None

    def key(self, corner: Corner) -> str:
        """The name of the file whose cube begins at `corner`."""
        step = file_edge(self.layout, self.edge)
        cell = [str(start // step) for start in corner]
        return ".".join(cell) if self.layout.zarr_format == 2 else "/".join(["c", *cell])

    def read(self, corner: Corner) -> bytes:
        """The bytes of that file."""
        key = self.key(corner)
        return read_file(self.place / key) if self.files is None else self.files[key]

    @contextmanager
    def parts(self, corner: Corner, *, all_of_it: bool) -> Iterator[Callable[[Corner], Part]]:
        """The chunks of that file, which is a shard: read at once, or each when it is asked for."""
        step, chunk = file_edge(self.layout, self.edge), min(self.layout.chunk, self.edge)
        if all_of_it or self.files is not None:
            data = memoryview(self.read(corner))
            yield shard_parts(
                len(data), lambda start, size: data[start : start + size], step, chunk
            )
            return
        descriptor = os.open(self.place / self.key(corner), os.O_RDONLY)
        try:
            yield shard_parts(
                os.fstat(descriptor).st_size,
                lambda start, size: os.pread(descriptor, size, start),
                step,
                chunk,
            )
        finally:
            os.close(descriptor)

    def in_memory(self) -> "Source":
        """The same with all files read."""
        paths = [path for path in self.place.rglob("*") if path.is_file()]
        files = {path.relative_to(self.place).as_posix(): path.read_bytes() for path in paths}
        return replace(self, files=files)


Wanted = Sequence[tuple[Box, Volume]]


def overlap(box: Box, corner: Corner, step: int) -> tuple[Box, Box] | None:
    """What a box has of a cube: where in the cube, and where in the box."""
    inside, outside = [], []
    for part, start in zip(box, corner, strict=True):
        low, high = max(part.start, start), min(part.stop, start + step)
        if low >= high:
            return None
        inside.append(slice(low - start, high - start))
        outside.append(slice(low - part.start, high - part.start))
    return (inside[0], inside[1], inside[2]), (outside[0], outside[1], outside[2])


def by_cube(wanted: Wanted, edge: int, step: int) -> dict[Corner, list[tuple[Box, Volume]]]:
    """The boxes by the cubes of a grid that they touch."""
    found: dict[Corner, list[tuple[Box, Volume]]] = {}
    for box, out in wanted:
        ranges = [range(part.start // step * step, min(part.stop, edge), step) for part in box]
        for z, y, x in itertools.product(*ranges):
            found.setdefault((z, y, x), []).append((box, out))
    return found


def read_job(source: Source, decode: Decode, corner: Corner, wanted: Wanted) -> None:
    """Reads one file and puts what is wanted of its chunk, or its chunks, where it belongs."""
    layout, edge = source.layout, source.edge
    chunk = min(layout.chunk, edge)
    buffer = np.empty((chunk,) * 3, dtype=layout.dtype)
    plain = buffer.T if layout.order == "F" else buffer

    def put(inner: Corner, read: Part) -> None:
        z, y, x = (start + more for start, more in zip(corner, inner, strict=True))
        met = [(overlap(box, (z, y, x), chunk), out) for box, out in wanted]
        pieces = [(each, out) for each, out in met if each is not None]
        if pieces:
            decode(read(), buffer)
        for (inside, outside), out in pieces:
            out[outside] = plain[inside]

    if layout.shard is None:
        put((0, 0, 0), functools.partial(source.read, corner))
        return
    step = file_edge(layout, edge)
    cut = [(clipped(box, corner, step), out) for box, out in wanted]
    with source.parts(corner, all_of_it=any(box == whole(edge) for box, _ in wanted)) as part:
        for z, y, x in by_cube(cut, edge, chunk):
            inner = (z - corner[0], y - corner[1], x - corner[2])
            put(inner, part(inner))


def clipped(box: Box, corner: Corner, step: int) -> Box:
    """What a box has in common with a cube."""
    z, y, x = (
        slice(max(part.start, start), min(part.stop, start + step))
        for part, start in zip(box, corner, strict=True)
    )
    return z, y, x


def read_boxes(source: Source, wanted: Wanted, threads: int | None = None) -> None:
    """Reads boxes into their arrays, each file once."""
    jobs = deque(by_cube(wanted, source.edge, file_edge(source.layout, source.edge)).items())
    job = functools.partial(read_job, source, decoder(source.layout))

    def drain() -> None:
        while True:
            try:
                corner, mine = jobs.popleft()
            except IndexError:
                return
            job(corner, mine)

    count = (os.cpu_count() or 1) if threads is None else threads
    helpers = [threading.Thread(target=drain) for _ in range(count - 1)]
    for helper in helpers:
        helper.start()
    drain()
    for helper in helpers:
        helper.join()


def whole(edge: int) -> Box:
    """All of the volume."""
    return (slice(0, edge),) * 3


def _read_one(source: Source, box: Box) -> Volume:
    out = np.empty([part.stop - part.start for part in box], dtype=source.layout.dtype)
    read_boxes(source, [(box, out)])
    return out


def _read_many(source: Source, boxes: Sequence[Box], *, together: bool) -> list[Volume]:
    dtype = source.layout.dtype
    outs = [np.empty([part.stop - part.start for part in box], dtype) for box in boxes]
    wanted = list(zip(boxes, outs, strict=True))
    if together:
        read_boxes(source, wanted)
    else:
        for each in wanted:
            read_boxes(source, [each], threads=1)
    return outs


def _copied(volume: Volume) -> Volume:
    """What a cache of decoded chunks costs at least: each thread copies its part."""
    out = np.empty_like(volume)
    count = os.cpu_count() or 1
    cuts = [volume.shape[0] * number // count for number in range(count + 1)]

    def copy(low: int, high: int) -> None:
        out[low:high] = volume[low:high]

    threads = [
        threading.Thread(target=copy, args=(low, high)) for low, high in itertools.pairwise(cuts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def trial(workload: str, layout: Layout, place: Path, volume: Volume) -> Trial | None:
    """The bare minimum of a workload; None for those that do not read.

    Allocating the result is part of it, as it is for the libraries.
    """
    edge = volume.shape[0]
    source = Source(layout, place, edge)
    if layout.dtype == STRING:
        return None
    if workload in {"full read", COLD, "full read, memory store"}:
        if workload.endswith("memory store"):
            source = source.in_memory()
        return Trial(
            run=lambda: _read_one(source, whole(edge)),
            check=lambda result: np.array_equal(result, volume),
        )
    if workload == "re-read from a warm cache":
        decoded = np.array(volume)
        return Trial(
            run=lambda: _copied(decoded), check=lambda result: np.array_equal(result, volume)
        )
    if workload == "one-plane slice":
        index = edge // 2 + 1
        box = (slice(index, index + 1), slice(0, edge), slice(0, edge))
        return Trial(
            run=lambda: _read_one(source, box)[0],
            check=lambda result: np.array_equal(result, volume[index]),
        )
    if "reads" not in workload:
        return None
    together = "together" in workload
    boxes = random_boxes(edge, 1000, seed=12) if together else random_boxes(edge, 300)
    return Trial(
        run=lambda: _read_many(source, boxes, together=together),
        check=lambda results: all(
            np.array_equal(result, volume[box]) for result, box in zip(results, boxes, strict=True)
        ),
    )
