"""Reading through dask, beside `dask.array.from_zarr` on the same files.

Both compute the same sum over a whole array, and read it whole, with dask's chunks at the stored
chunks, with dask's threads. Rounds are interleaved, after one that warms both up. What is printed
is the median time of each, and the median of the rounds' ratios, since a machine's speed may
change from one moment to the next.

    python benchmarks/dask_reads.py                 256 MiB, compressed by zstd
    python benchmarks/dask_reads.py --mib 64 --rounds 5 --threads 1
    python benchmarks/dask_reads.py --small         1 MiB: a look, not a result
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import zarr

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorstore_py as ts
from tensorstore_py.integrations.dask import to_dask

MIB = 2**20
WIDTH = 1024

CODECS: dict[str, list[Any]] = {
    "chunks": [{"name": "zstd", "configuration": {"level": 1}}],
    "shards": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [64, 64],
                "codecs": ["bytes", {"name": "zstd", "configuration": {"level": 1}}],
            },
        }
    ],
}


def create(folder: str, mib: int, layout: str) -> None:
    """An array of so many MiB, in chunks or shards of half a MiB."""
    store: Any = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{folder}/"},
        create=True,
        dtype="uint16",
        shape=[mib * MIB // 2 // WIDTH, WIDTH],
        codec=ts.CodecSpec({"driver": "zarr3", "codecs": CODECS[layout]}),
        chunk_layout=ts.ChunkLayout(write_chunk_shape=[512, 512]),
    ).result()
    rng = np.random.default_rng(0)
    for low in range(0, store.shape[0], 512):
        high = min(low + 512, store.shape[0])
        store[low:high] = rng.integers(0, 1000, (high - low, WIDTH), dtype="uint16")


def ours(folder: str) -> Any:
    """As this package reads it."""
    return to_dask(f"file://{folder}/|zarr3:", None, name=False)


def theirs(folder: str) -> Any:
    """As zarr-python reads it."""
    array: Any = zarr.open_array(folder, mode="r")
    from_zarr: Any = da.from_zarr
    return from_zarr(array, chunks=array.shards or array.chunks, name=False)


PROGRAMS: dict[str, Callable[[Any], object]] = {
    "sum": lambda x: int(x.sum().compute()),
    "read whole": lambda x: x.compute().shape,
}


def timed(program: Callable[[Any], object], opened: Callable[[str], Any], folder: str) -> float:
    """Seconds that a program takes, opening included."""
    begin = time.perf_counter()
    program(opened(folder))
    return time.perf_counter() - begin


def compare(program: Callable[[Any], object], folder: str, rounds: int) -> tuple[float, ...]:
    """Median seconds of ours and of theirs, and the median of theirs by ours."""
    assert program(ours(folder)) == program(theirs(folder))
    pairs = []
    for number in range(rounds):
        first, second = (ours, theirs) if number % 2 else (theirs, ours)
        seconds = {each: timed(program, each, folder) for each in (first, second)}
        pairs.append((seconds[ours], seconds[theirs]))
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    return mine, other, statistics.median(b / a for a, b in pairs)


def main(argv: list[str] | None = None) -> int:
    """Run what the arguments say, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=256, help="size of the array")
    parser.add_argument("--rounds", type=int, default=7, help="of each library")
    parser.add_argument("--threads", type=int, default=None, help="of dask; by default all")
    parser.add_argument("--small", action="store_true", help="1 MiB and one round")
    options = parser.parse_args(argv)
    mib, rounds = (1, 1) if options.small else (options.mib, options.rounds)

    print(f"{mib} MiB, tensorstore_py {ts.__version__}, zarr {version('zarr')}, ", end="")
    print(f"dask {version('dask')}")
    print(f"{'':<22}{'tensorstore_py':>16}{'from_zarr':>12}{'ratio':>8}")
    with dask.config.set(scheduler="threads", num_workers=options.threads):
        for layout in CODECS:
            with tempfile.TemporaryDirectory() as folder:
                create(folder, mib, layout)
                for name, program in PROGRAMS.items():
                    mine, other, ratio = compare(program, folder, rounds)
                    label = f"{layout}, {name}"
                    print(f"{label:<22}{mine:>14.3f} s{other:>10.3f} s{ratio:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
