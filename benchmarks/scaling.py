"""How time grows: per chunk from 10² to 10⁵ chunks, and with one worker thread or two.

    python benchmarks/scaling.py            both
    python benchmarks/scaling.py --quick    up to 10⁴ chunks

Chunks are files of 8³ uint16 without a codec, so that what the library does for each is nearly all
that there is; the bare minimum is `open`, `pread`, and a copy. Threads are measured where they pay:
on a volume of 64³ chunks that zstd has to decode, with as many places for threads as are asked for.
"""

import argparse
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# run as a file, only this folder would be importable
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - after the path

from benchmarks import bare  # noqa: E402
from benchmarks.layouts import LAYOUTS, Json, Layout  # noqa: E402
from benchmarks.libraries import TensorStoreLike  # noqa: E402
from benchmarks.volume import Volume, make_volume  # noqa: E402

ROUNDS = 5
SIDE = 8
ZSTD = next(layout for layout in LAYOUTS if layout.name == "v3 zstd 64³")


def median_seconds(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median time of a call."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def grid_shape(chunks: int) -> tuple[int, int, int]:
    """A grid of about so many cells, no folder of which is much larger than the others."""
    low = round(chunks ** (1 / 3))
    return low, low, chunks // low**2


def row(library: TensorStoreLike, chunks: int, place: Path) -> list[float]:
    """Microseconds a chunk of a full write, a full read, and a read with nothing around it."""
    grid = grid_shape(chunks)
    count = grid[0] * grid[1] * grid[2]
    layout = Layout("", 3, SIDE)
    metadata = layout.declared(SIDE).metadata() | {"shape": [cells * SIDE for cells in grid]}
    spec: Json = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{place}/"},
        "context": library.context,
        "metadata": metadata,
    }
    handle = library.ts.open(spec, create=True).result()
    data = np.arange(1, count * SIDE**3 + 1, dtype=np.uint16).reshape(metadata["shape"])
    write = median_seconds(lambda: handle.write(data).result(), 1)
    read = median_seconds(lambda: handle.read().result())
    least = median_seconds(lambda: read_bare(grid, place, np.empty_like(data)))
    if not np.array_equal(handle.read().result(), data):
        raise ValueError("what was read is not what was written")
    return [seconds / count * 1e6 for seconds in (write, read, least)]


def read_bare(grid: Sequence[int], place: Path, out: Volume) -> None:
    """One thread; a second one only fights for the interpreter over files that small."""
    for z, y, x in itertools.product(*map(range, grid)):
        data = bare.read_file(place / f"c/{z}/{y}/{x}")
        chunk = np.frombuffer(data, np.uint16).reshape(SIDE, SIDE, SIDE)
        low = [SIDE * cell for cell in (z, y, x)]
        out[tuple(slice(start, start + SIDE) for start in low)] = chunk


def by_chunks(root: Path, largest: int) -> list[str]:
    """The table of time per chunk."""
    lines = [
        "| chunks | tensorstore_py write | read | bare read | tensorstore write | read |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    count = 100
    while count <= largest:
        found = []
        for name in ("tensorstore_py", "tensorstore"):
            place = root / name
            found.append(row(TensorStoreLike(name, sync=False), count, place))
            shutil.rmtree(place)
        (write, read, least), (their_write, their_read, _) = found
        cells = (write, read, least, their_write, their_read)
        lines.append(f"| {count:,} | " + " | ".join(f"{cell:.0f} µs" for cell in cells) + " |")
        print(lines[-1], file=sys.stderr)
        count *= 10
    return lines


def of_threads(name: str, threads: int, place: Path, edge: int) -> float:
    """Seconds of a full read with so many threads, in this process."""
    if name == "bare":
        source = bare.Source(ZSTD, place, edge)
        return median_seconds(
            lambda: bare.read_boxes(
                source, [(bare.whole(edge), np.empty((edge,) * 3, np.uint16))], threads
            )
        )
    library = TensorStoreLike(name, sync=False)
    library.context |= {
        "data_copy_concurrency": {"limit": threads},
        "file_io_concurrency": {"limit": threads},
    }
    handle = library.open(ZSTD, place)
    return median_seconds(lambda: library.read(handle))


def by_threads(root: Path, edge: int) -> list[str]:
    """The table of one thread and two, each in a process of its own."""
    place = root / "threads"
    library = TensorStoreLike("tensorstore_py", sync=False)
    library.write(library.create(ZSTD, place, edge), make_volume(edge))
    lines = [
        "| full read, zstd 64³ | 1 thread | 2 threads | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in ("tensorstore_py", "tensorstore", "bare"):
        seconds: list[float] = []
        for threads in (1, 2):
            asked = json.dumps([name, threads, str(place), edge])
            command = [sys.executable, __file__, "--one", asked]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            seconds.append(float(done.stdout))
        one, two = seconds
        lines.append(f"| {name} | {one * 1e3:.0f} ms | {two * 1e3:.0f} ms | {one / two:.2f} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="10⁴ chunks at most, 128³ voxels")
    parser.add_argument("--largest", type=int, help="the largest number of chunks")
    parser.add_argument("--dir", type=Path, help="where to write (default: the temporary folder)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one is not None:
        name, threads, place, edge = json.loads(chosen.one)
        print(of_threads(name, threads, Path(place), edge))
        return 0
    root = Path(tempfile.mkdtemp(prefix="tensorstore-bench-", dir=chosen.dir))
    try:
        largest: Any = chosen.largest or (10**4 if chosen.quick else 10**5)
        print("\n".join(by_chunks(root, largest)))
        print()
        print("\n".join(by_threads(root, 128 if chosen.quick else 512)))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
