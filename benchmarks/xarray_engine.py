"""Datasets opened and read by xarray's engines side by side: ours, zarr's, and xarray-tensorstore.

Each library has its turn in a round, so that a slow minute of the machine is everybody's; the table
shows medians over the rounds, and of the ratios of their time to ours: above 1 we are ahead. What a
library cannot do is left out. The server with latency runs in a process of its own.

    python benchmarks/xarray_engine.py                 all, 7 rounds
    python benchmarks/xarray_engine.py --quick         3 rounds of smaller data: a look, no result
    python benchmarks/xarray_engine.py --only tree     some of them, see --help
"""

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import xarray as xr
from obstore.store import HTTPStore
from zarr.storage import ObjectStore

import tensorstore_py as ts
from tensorstore_py.integrations import xarray as ours

try:
    wheel: Any = import_module("xarray_tensorstore")
except ImportError:
    wheel = None

OURS, ZARR, WHEEL = "tensorstore_py", "zarr", "xarray-tensorstore"
LATENCY_S = 0.05
Work = Callable[[], object]
Case = dict[str, Work]


def make_wide(folder: Path, variables: int) -> Path:
    """A store with many variables, consolidated."""
    path = folder / "wide.zarr"
    values = np.zeros((4, 10, 10), "f4")
    data = {
        f"v{number}": (("time", "y", "x"), values, {"units": "K", "long_name": f"no. {number}"})
        for number in range(variables)
    }
    coords = {"time": np.arange(4), "y": np.arange(10.0), "x": np.arange(10.0)}
    xr.Dataset(data, coords=coords).to_zarr(path, zarr_format=3, consolidated=True)
    return path


def make_tree(folder: Path, nodes: int) -> Path:
    """A tree of groups, in tens, each with a coordinate of its own and a variable; consolidated."""
    path = folder / "tree.zarr"
    each = xr.Dataset({"v": ("x", np.arange(5.0))}, coords={"x": np.arange(5)})
    groups = {f"/g{number // 10}/h{number % 10}": each for number in range(nodes)}
    xr.DataTree.from_dict(groups).to_zarr(path, zarr_format=3)
    return path


def make_many(folder: Path, count: int) -> list[str]:
    """Stores to be concatenated."""
    first = folder / "first.zarr"
    data = {"v": (("time", "x"), np.ones((1, 50), "f4"))}
    xr.Dataset(data, coords={"time": [1], "x": np.arange(50)}).to_zarr(first, zarr_format=3)
    paths = []
    for number in range(count):
        path = folder / f"{number}.zarr"
        shutil.copytree(first, path)
        ts.open(path / "time").result()[...] = number
        paths.append(str(path))
    return paths


def make_bulk(folder: Path, side: int) -> Path:
    """Two variables of many chunks."""
    path = folder / "bulk.zarr"
    random = np.random.default_rng(0)
    values = random.integers(0, 1000, (side, side, side), "u2")
    data = xr.Dataset(dict.fromkeys(("a", "b"), (("z", "y", "x"), values)))
    chunks = {key: {"chunks": (64, 64, 64)} for key in data}
    data.to_zarr(path, zarr_format=3, encoding=chunks)
    return path


def serve(pipe: Connection, folder: str) -> None:
    """Serve files, each answer being late."""
    from tensorstore_py.testing import FaultServer  # noqa: PLC0415 - of this process alone
    from tensorstore_py.testing.fault_server import Exchange, Fault  # noqa: PLC0415
    from tensorstore_py.testing.web_values import WebValues  # noqa: PLC0415

    root = Path(folder)
    values = {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }

    async def late(exchange: Exchange) -> bool:
        await asyncio.sleep(LATENCY_S)
        await exchange.answer(exchange.serve())
        return True

    fault = Fault("late", late)

    async def run() -> None:
        async with FaultServer(WebValues(values).handle, lambda _: fault) as server:
            pipe.send(server.url)
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)

    asyncio.run(run())


@contextmanager
def far_away(folder: Path) -> Iterator[str]:
    """The URL of a folder on a server with latency."""
    mine, its = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(its, str(folder)))
    process.start()
    try:
        yield mine.recv()
    finally:
        mine.send(None)
        process.join()


def opening(path: Path) -> Case:
    """200 variables."""
    case: Case = {
        OURS: lambda: xr.open_dataset(path, engine="tensorstore"),
        ZARR: lambda: xr.open_dataset(path, engine="zarr", chunks=None),
    }
    if wheel is not None:
        case[WHEEL] = lambda: wheel.open_zarr(str(path))
    return case


def tree(url: str) -> Case:
    """A tree, from far away. xarray-tensorstore has no trees."""
    context = {"http_request_concurrency": {"limit": 128}}
    return {
        OURS: lambda: xr.open_datatree(url, engine="tensorstore"),
        "ours, 128 requests at a time": lambda: xr.open_datatree(
            url, engine="tensorstore", context=context
        ),
        ZARR: lambda: xr.open_datatree(url, engine="zarr", chunks=None),
    }


def concatenation(paths: list[str]) -> Case:
    """Many stores, concatenated lazily; zarr's engine by dask."""
    case: Case = {
        OURS: lambda: ours.open_concatenated_zarrs(paths, "time"),
        ZARR: lambda: many(paths, "zarr"),
    }
    if wheel is not None:
        case[WHEEL] = lambda: wheel.open_concatenated_zarrs(paths, "time")
    return case


def many_files(paths: list[str]) -> Case:
    """The same by `xr.open_mfdataset`."""
    return {OURS: lambda: many(paths, "tensorstore"), ZARR: lambda: many(paths, "zarr")}


def many(paths: list[str], engine: str) -> xr.Dataset:
    return xr.open_mfdataset(
        paths,
        engine=engine,
        combine="nested",
        concat_dim="time",
        data_vars="minimal",
        coords="minimal",
        compat="override",
        join="override",
    )


def bulk(path: Path) -> Case:
    """Two variables read whole; also by `ts.open` alone."""
    group = ts.Group.open(path).result()
    arrays = [group["a"], group["b"]]
    case: Case = {
        OURS: lambda: ours.read(ours.open_zarr(path)).compute(),
        "ts.open": lambda: [each.result() for each in [array.read() for array in arrays]],
        "ours, load()": lambda: xr.open_dataset(path, engine="tensorstore").load(),
        ZARR: lambda: xr.open_dataset(path, engine="zarr", chunks=None).load(),
    }
    if wheel is not None:
        case[WHEEL] = lambda: wheel.read(wheel.open_zarr(str(path))).compute()
    return case


def load_async(url: str) -> Case:
    """Ten variables of one chunk each, loaded in an event loop from far away."""

    def load(given: Any, engine: str) -> Work:
        dataset = xr.open_dataset(given, engine=engine, chunks=None, cache=False)
        names = list(dataset.data_vars)[:10]
        # A copy, or all but the first would find it loaded.
        return lambda: asyncio.run(dataset[names].copy().load_async())

    # Of zarr-python's stores that speak HTTP, this is the one that is used in any event loop.
    store = ObjectStore(HTTPStore.from_url(url, client_options={"allow_http": True}))
    return {OURS: load(url, "tensorstore"), ZARR: load(store, "zarr")}


def timed(work: Work) -> float:
    """The seconds that it took."""
    began = time.perf_counter()
    found = work()
    took = time.perf_counter() - began
    del found
    return took


def compare(title: str, case: Case, rounds: int) -> None:
    """Run each in turn, and print a row for each."""
    for work in case.values():
        work()  # imports, caches of code and files
    seconds: dict[str, list[float]] = {name: [] for name in case}
    for _ in range(rounds):
        for name, work in case.items():
            seconds[name].append(timed(work))
    for name, found in seconds.items():
        ratios = [their / mine for their, mine in zip(found, seconds[OURS], strict=True)]
        took, ratio = statistics.median(found), statistics.median(ratios)
        print(f"| {title} | {name} | {took * 1e3:,.0f} | {ratio:.2f} |", flush=True)


def cases(folder: Path, wanted: set[str], small: bool) -> Iterator[tuple[str, Case]]:
    """The cases that are wanted, their data made."""
    if "opening" in wanted:
        count = 50 if small else 200
        yield f"{count} variables opened", opening(make_wide(folder, count))
    if "tree" in wanted or "load_async" in wanted:
        remote = folder / "remote"
        make_tree(remote, 100)
        make_wide(remote, 10)
        with far_away(remote) as url:
            if "tree" in wanted:
                yield "tree of 100 groups, 50 ms away", tree(f"{url}/tree.zarr")
            if "load_async" in wanted:
                yield "load_async of 10, 50 ms away", load_async(f"{url}/wide.zarr")
    if {"concatenation", "many_files"} & wanted:
        count = 100 if small else 1000
        paths = make_many(folder, count)
        if "concatenation" in wanted:
            yield f"{count} stores, concatenated", concatenation(paths)
        if "many_files" in wanted:
            yield f"{count} stores, open_mfdataset", many_files(paths)
    if "bulk" in wanted:
        side = 256 if small else 384
        yield f"2 × {side}³ uint16 opened, read", bulk(make_bulk(folder, side))


NAMES = ("opening", "tree", "load_async", "concatenation", "many_files", "bulk")


def main() -> None:
    """Parse the command, and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds of smaller data")
    parser.add_argument("--rounds", type=int, help="how many rounds")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    rounds = options.rounds or (3 if options.quick else 7)
    warnings.simplefilter("ignore")
    print("| | engine | ms | its time ÷ ours |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for title, case in cases(Path(folder), set(options.only), options.quick):
            compare(title, case, rounds)


if __name__ == "__main__":
    main()
