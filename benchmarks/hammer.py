"""Processes that write different parts of one chunk at the same time: none of it may be lost.

Each write changes one element, and so reads the chunk, changes it, and stores it on the condition
that nobody stored it meanwhile. All processes begin at the same moment; afterwards every element
must be what its writer wrote. Prints writes per second and how many were lost, which has to be 0.

    python benchmarks/hammer.py                 10,000 writes by 4 processes, on each layout
    python benchmarks/hammer.py --writes 1000 --layout shard
"""

import argparse
import sys
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorstore_py as ts

LAYOUTS = ("plain", "compressed", "shard")


class Result(NamedTuple):
    """What became of the writes to one layout."""

    layout: str
    writes: int
    seconds: float
    lost: int

    def __str__(self) -> str:
        rate = self.writes / self.seconds
        return f"{self.layout:12}{self.writes:8}{rate:12.0f} writes/s{self.lost:8} lost"


def spec_of(place: Path, layout: str, count: int) -> dict[str, Any]:
    """One chunk, or one shard of 16 chunks, of as many elements."""
    grid = {"name": "regular", "configuration": {"chunk_shape": [count]}}
    codecs: list[Any] = {"plain": ["bytes"], "compressed": ["bytes", "gzip"]}.get(layout, [])
    if layout == "shard":
        inner = {"chunk_shape": [count // 16], "codecs": ["bytes", "gzip"]}
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    metadata = {"data_type": "uint32", "shape": [count], "chunk_grid": grid, "codecs": codecs}
    return {"driver": "zarr3", "kvstore": f"file://{place}/{layout}/", "metadata": metadata}


def write_each(spec: dict[str, Any], first: int, step: int, begin: Barrier) -> None:
    """Write every `step`th element by itself, one after the other."""
    store = ts.open(spec).result()
    begin.wait()
    for position in range(first, store.shape[0], step):
        store[position] = position + 1


def hammer(place: Path, layout: str, writes: int, processes: int) -> Result:
    """Let all of them write, and count what is missing."""
    spec = spec_of(place, layout, writes)
    store = ts.open(spec, create=True).result()
    context = get_context("spawn")
    begin = context.Barrier(processes + 1)
    workers = [
        context.Process(target=write_each, args=(spec, first, processes, begin))
        for first in range(processes)
    ]
    for worker in workers:
        worker.start()
    begin.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - began
    lost = int((store.read().result() != np.arange(1, writes + 1)).sum())
    return Result(layout, writes, seconds, lost)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--writes", type=int, default=10_000, help="a multiple of 16")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--layout", choices=LAYOUTS, action="append")
    parser.add_argument("--place", type=Path, help="a folder on the disk to use")
    options = parser.parse_args(arguments)
    lost = 0
    with tempfile.TemporaryDirectory(dir=options.place) as folder:
        for layout in options.layout or LAYOUTS:
            result = hammer(Path(folder), layout, options.writes, options.processes)
            print(result, flush=True)
            lost += result.lost
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
