"""Writing Datasets and trees: our `to_zarr` and xarray's with its zarr engine, side by side.

Each workload is run by both in turn, so that a slow minute of the machine is both's. The table
shows medians over the rounds, and the median of the ratios of each round: above 1 we are ahead.

    python benchmarks/xarray_writing.py             7 rounds
    python benchmarks/xarray_writing.py --quick     2 rounds: a look, not a result
    python benchmarks/xarray_writing.py --only tree --nodes 20 --latency 50
    python benchmarks/xarray_writing.py --only tree --alone

A tree of 100 groups takes the peer minutes at a latency of 50 ms.

Workloads:

    bulk     a Dataset of 4 arrays of 32 MiB, in chunks of 1 MiB, to files
    many     a Dataset of 200 small arrays, to files
    append   30 appends of one day to a Dataset of 4 arrays, to files
    tree     a tree of as many groups, with one array each, to an object store that answers late
    far      an append to a Dataset of 4 arrays in that store
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import xarray as xr
import zarr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import to_zarr
from tensorstore_py.testing import Exchange, Fault, FaultServer
from tests.kvstores.s3.fake_s3 import FakeS3

OURS, THEIRS = "tensorstore_py", "xarray's zarr engine"
Writer = Callable[..., object]


def serve(pipe: Connection, latency_s: float) -> None:
    """An object store in memory whose answers take a while, until the pipe is closed."""

    async def late(exchange: Exchange) -> bool:
        reply = exchange.serve()
        await asyncio.sleep(latency_s)
        await exchange.answer(reply)
        return True

    async def run() -> None:
        async with FaultServer(FakeS3().handle, lambda _: Fault("late", late)) as server:
            pipe.send(server.url)
            await asyncio.get_running_loop().run_in_executor(None, pipe.poll, None)

    asyncio.run(run())


@contextmanager
def far_store(latency_s: float) -> Iterator[str]:
    """The URL of such a store, in a process of its own."""
    ours, its = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(its, latency_s), daemon=True)
    process.start()
    yield ours.recv()
    ours.send(None)
    process.join()


class Far:
    """Places in the store that answers late, as either library names them."""

    def __init__(self, url: str) -> None:
        self._url = url

    def target(self, writer: str, path: str) -> Any:
        if writer == OURS:
            return ts.KvStore.open(
                {
                    "driver": "s3",
                    "bucket": "bucket",
                    "path": f"{path}/",
                    "endpoint": self._url,
                    "aws_region": "us-east-1",
                    "aws_credentials": {"type": "anonymous"},
                }
            ).result()
        options = {"anon": True, "client_kwargs": {"endpoint_url": self._url, "region_name": "x"}}
        return zarr.storage.FsspecStore.from_url(f"s3://bucket/{path}", storage_options=options)


def theirs(obj: Any, target: Any, **options: Any) -> object:
    return obj.to_zarr(target, **options)


def days(count: int, start: int, side: int = 64) -> xr.Dataset:
    """So many days of four quantities."""
    rng = np.random.default_rng(start)
    values = rng.normal(size=(count, side, side)).astype("f4")
    names = ("t2m", "u10", "v10", "sp")
    time_ = np.datetime64("2024-01-01", "ns") + np.arange(start, start + count) * np.timedelta64(
        1, "D"
    )
    return xr.Dataset(dict.fromkeys(names, (("time", "y", "x"), values)), coords={"time": time_})


def bulk() -> xr.Dataset:
    values = np.random.default_rng(0).normal(size=(32, 512, 512)).astype("f4")
    found = xr.Dataset({f"v{each}": (("t", "y", "x"), values) for each in range(4)})
    for each in found.variables.values():
        each.encoding["chunks"] = (1, 512, 512)
    return found


def many() -> xr.Dataset:
    values = np.random.default_rng(0).normal(size=(10, 20))
    return xr.Dataset({f"v{each}": (("y", "x"), values, {"n": each}) for each in range(200)})


def tree(nodes: int) -> xr.DataTree:
    values = np.arange(100.0)
    groups = {f"/site{each}": xr.Dataset({"v": ("x", values + each)}) for each in range(nodes - 1)}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"title": "sites"}), **groups})


def seconds(step: Callable[[], object]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def in_files(writer: str, where: str) -> Any:
    """A directory. Ours are told not to wait for the disk, as the peer never does."""
    path = os.path.join(where, "a.zarr")
    return {"driver": "file", "path": f"{path}/", "file_io_sync": False} if writer == OURS else path


def to_files(obj: Any) -> Callable[[str, Writer], float]:
    def run(writer: str, write: Writer) -> float:
        where = tempfile.mkdtemp(prefix="writing-")
        try:
            return seconds(lambda: write(obj, in_files(writer, where)))
        finally:
            shutil.rmtree(where)

    return run


def appends(writer: str, write: Writer) -> float:
    where = tempfile.mkdtemp(prefix="writing-")
    target = in_files(writer, where)
    parts = [days(1, start) for start in range(31)]
    first = {name: {"chunks": (8, 64, 64)} for name in parts[0].data_vars}

    def step() -> None:
        for part in parts[1:]:
            write(part, target, append_dim="time")

    try:
        write(parts[0], target, encoding=first)
        return seconds(step)
    finally:
        shutil.rmtree(where)


def to_far(far: Far, obj: Any) -> Callable[[str, Writer], float]:
    def run(writer: str, write: Writer) -> float:
        target = far.target(writer, uuid.uuid4().hex)
        return seconds(lambda: write(obj, target))

    return run


def append_far(far: Far) -> Callable[[str, Writer], float]:
    def run(writer: str, write: Writer) -> float:
        target = far.target(writer, uuid.uuid4().hex)
        write(days(8, 0), target)
        return seconds(lambda: write(days(8, 8), target, append_dim="time"))

    return run


def compare(
    name: str, run: Callable[[str, Writer], float], rounds: int, writers: Sequence[str]
) -> None:
    """One workload, in turn; the first round of ours only warms up."""
    writes: dict[str, Writer] = {OURS: to_zarr, THEIRS: theirs}
    found: dict[str, list[float]] = {OURS: [], THEIRS: []}
    run(OURS, to_zarr)
    for number in range(rounds):
        for writer in writers if number % 2 else writers[::-1]:
            found[writer].append(run(writer, writes[writer]))
    cells = [f"{statistics.median(found[OURS]):.3f}", "", ""]
    if THEIRS in writers:
        ratios = [b / a for a, b in zip(found[OURS], found[THEIRS], strict=True)]
        cells[1:] = f"{statistics.median(found[THEIRS]):.3f}", f"{statistics.median(ratios):.1f}"
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="2 rounds")
    parser.add_argument("--rounds", type=int, default=7)
    names = ("bulk", "many", "append", "tree", "far")
    parser.add_argument("--only", choices=names, nargs="*", default=names)
    parser.add_argument("--nodes", type=int, default=100, help="groups of the tree")
    parser.add_argument("--latency", type=float, default=50.0, help="of the object store, in ms")
    parser.add_argument("--alone", action="store_true", help="without xarray's zarr engine")
    options = parser.parse_args(arguments)
    rounds = 2 if options.quick else options.rounds
    writers = (OURS,) if options.alone else (OURS, THEIRS)
    warnings.simplefilter("ignore")
    print(f"xarray {xr.__version__}, zarr {version('zarr')}, Python {sys.version.split()[0]}\n")
    print(f"| workload | {OURS}, s | {THEIRS}, s | times as fast |\n|---|---:|---:|---:|")
    local: dict[str, tuple[str, Callable[[str, Writer], float]]] = {
        "bulk": ("4 × 32 MiB to files", to_files(bulk())),
        "many": ("200 small arrays to files", to_files(many())),
        "append": ("30 appends to files", appends),
    }
    for name in options.only:
        if name in local:
            compare(*local[name], rounds, writers)
    if {"tree", "far"} & {*options.only}:
        with far_store(options.latency / 1000) as url:
            far, late = Far(url), f"{options.latency:.0f} ms away"
            if "tree" in options.only:
                label = f"a tree of {options.nodes} groups, {late}"
                compare(label, to_far(far, tree(options.nodes)), rounds, writers)
            if "far" in options.only:
                compare(f"an append, {late}", append_far(far), rounds, writers)


if __name__ == "__main__":
    main()
