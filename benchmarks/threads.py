"""What a second thread gives full reads and writes of small chunks, with and without the lock.

    python -m benchmarks.threads                256³ voxels in chunks of 32³
    python -m benchmarks.threads --edge 512     more of them

One thread and two take turns in one process, so that a slow minute of the machine is both's; the
ratio is the median of those of the rounds. Needs nothing but the package, so it runs on an
interpreter without a lock as well (`scripts/free_threaded` makes an environment of one).
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tensorstore_py as ts

SIDE = 32
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}
CODECS: dict[str, list[Any]] = {
    "blosc": [{"name": "blosc", "configuration": BLOSC}],
    "zstd": [{"name": "zstd", "configuration": {"level": 1}}],
    "raw": [],
}


def has_lock() -> bool:
    """Whether this interpreter's threads take turns."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())


def opened(place: Path, codecs: list[Any], edge: int, threads: int) -> Any:
    """A handle that works in so many threads."""
    return ts.open(
        {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": f"{place}/"},
            "metadata": {
                "shape": [edge] * 3,
                "data_type": "uint16",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SIDE] * 3}},
                "codecs": [{"name": "bytes"}, *codecs],
            },
            "context": {
                "data_copy_concurrency": {"limit": threads},
                "file_io_concurrency": {"limit": threads},
                "file_io_sync": False,
            },
        },
        open=True,
        create=True,
    ).result()


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call, and of the processors."""
    began, computed = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - computed


def row(name: str, runs: Sequence[Callable[[], object]], rounds: int) -> str:
    """One thread and two in turns, as a line of the table."""
    for run in runs:
        run()
    found = [[timed(run) for run in runs] for _ in range(rounds)]
    one, two = ([taken[number] for taken in found] for number in (0, 1))
    ratio = statistics.median(a[0] / b[0] for a, b in zip(one, two, strict=True))
    cells = [statistics.median(taken[part] for taken in each) * 1e3
             for part in (0, 1) for each in (one, two)]  # fmt: skip
    return f"| {name} | " + " | ".join(f"{cell:.1f} ms" for cell in cells) + f" | {ratio:.2f} |"


def table(place: Path, edge: int, rounds: int) -> list[str]:
    """All rows."""
    noise = np.random.default_rng(0).normal(0, 30, (edge,) * 3)
    data = (np.linspace(0, 2000, edge) + noise + 10000).astype(np.uint16)
    lines = [
        f"Python {sys.version.split()[0]}, {'with' if has_lock() else 'without'} the lock",
        "",
        "| 32³ | 1 thread | 2 threads | processor, 1 | processor, 2 | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, codecs in CODECS.items():
        handles = [opened(place / name, codecs, edge, threads) for threads in (1, 2)]
        writes = [lambda handle=each: handle.write(data).result() for each in handles]
        reads = [lambda handle=each: handle.read().result() for each in handles]
        lines.append(row(f"{name}, full write", writes, rounds))
        lines.append(row(f"{name}, full read", reads, rounds))
        if not np.array_equal(handles[0].read().result(), data):
            raise ValueError("what was read is not what was written")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edge", type=int, default=256, help="voxels along each axis")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", type=Path, help="where to write (default: the temporary folder)")
    chosen = parser.parse_args(arguments)
    place = Path(tempfile.mkdtemp(dir=chosen.dir))
    try:
        print("\n".join(table(place, chosen.edge, chosen.rounds)))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
