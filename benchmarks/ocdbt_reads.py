"""Reading OCDBT databases side by side: us and the tensorstore wheel, over local files.

Databases are made once, by the wheel, in a temporary directory, and read from the page cache. Both
libraries run in this process, round by round in turn, so that a slow minute of the machine is
everybody's; a restore runs in a process of its own, whose peak of resident memory beyond the
interpreter and its imports is in the last two columns. Every first result is checked. The table
shows medians, and the median of the rounds' ratios wheel / ours: above 1 we are ahead.

    python benchmarks/ocdbt_reads.py                 9 rounds, 2 GiB
    python benchmarks/ocdbt_reads.py --quick         3 rounds of less: a look, not a result
    python benchmarks/ocdbt_reads.py --only opening  rows whose names have this in them
    python benchmarks/ocdbt_reads.py --processor     processor time, for a busy machine

Linux only, where the kernel says what is resident.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

MODULES = ("tensorstore_py", "tensorstore")
VALUE = bytes(range(20))
#: Of the array that is restored, its chunks, and a large value.
MEBIBYTE = 2**20
CHUNK_BYTES = 4 * MEBIBYTE
LARGE_BYTES = 100 * 10**6
MEMORY_LIMIT = 256 * MEBIBYTE


class Sizes(NamedTuple):
    """How much there is of everything."""

    keys: int = 100_000
    reads: int = 1000
    arrays: int = 1000
    restored: int = 32
    array_bytes: int = 64 * MEBIBYTE
    rounds: int = 9


QUICK = Sizes(arrays=200, restored=8, array_bytes=16 * MEBIBYTE, rounds=3)

Run = Callable[[], Any]


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        name: what is done.
        prepare: makes what is timed, from a library's module.
        right: whether its result is.
    """

    name: str
    prepare: Callable[[Any], Run]
    right: Callable[[Any], bool]


# ------------------------------------------------------------------------------------ small keys


def name_of(number: int) -> str:
    """One of the small keys: 26 groups."""
    return f"{chr(97 + number % 26)}/item-{number:07d}"


def open_small(ts: Any, directory: Path, context: Any = None) -> Any:
    """The database of small keys."""
    url = f"file://{directory}/small/|ocdbt:"
    return ts.KvStore.open(url, context=context or ts.Context()).result()


def make_small(directory: Path, sizes: Sizes) -> None:
    """Store the small keys in one transaction."""
    ts = importlib.import_module("tensorstore")
    store = open_small(ts, directory)
    with ts.Transaction() as transaction:
        staged = store.with_transaction(transaction)
        for number in range(sizes.keys):
            staged.write(name_of(number), VALUE)


def small_rows(directory: Path, sizes: Sizes) -> list[Row]:
    """Random reads and listings."""
    chosen = np.random.default_rng(1).integers(sizes.keys, size=sizes.reads).tolist()
    names = [name_of(number) for number in chosen]
    few = names[:20]

    def cold_in_turn(ts: Any) -> Run:
        return lambda: [open_small(ts, directory).read(name).result().value for name in few]

    def cold_together(ts: Any) -> Run:
        def run() -> list[bytes]:
            store = open_small(ts, directory)
            return [future.result().value for future in [store.read(name) for name in names]]

        return run

    def warm(ts: Any) -> Any:
        store = open_small(ts, directory, ts.Context({"cache_pool": {"total_bytes_limit": 10**8}}))
        store.read(names[0]).result()
        return store

    def warm_in_turn(ts: Any) -> Run:
        store = warm(ts)
        return lambda: [store.read(name).result().value for name in names]

    def warm_together(ts: Any) -> Run:
        store = warm(ts)
        return lambda: [each.result().value for each in [store.read(name) for name in names]]

    def values(found: Sequence[bytes]) -> bool:
        return list(found) == [VALUE] * len(found) and len(found) > 0

    def listing(ts: Any) -> Run:
        return lambda: len(open_small(ts, directory).list().result())

    def listing_warm(ts: Any) -> Run:
        store = warm(ts)
        return lambda: len(store.list().result())

    def listing_prefix(ts: Any) -> Run:
        store = warm(ts)
        return lambda: len((store / "m/").list().result())

    group = sum(number % 26 == 12 for number in range(sizes.keys))
    count, reads = sizes.keys, sizes.reads
    return [
        Row(f"{len(few)} reads of small keys, each in a fresh context", cold_in_turn, values),
        Row(f"{reads} reads in flight, in a fresh context", cold_together, values),
        Row(f"{reads} reads one after the other, warm", warm_in_turn, values),
        Row(f"{reads} reads in flight, warm", warm_together, values),
        Row(f"listing {count} keys, in a fresh context", listing, lambda found: found == count),
        Row(f"listing {count} keys, warm", listing_warm, lambda found: found == count),
        Row("listing a prefix of 1/26 of them, warm", listing_prefix, lambda found: found == group),
    ]


# ----------------------------------------------------------------------------------- checkpoints


def array_spec(directory: Path, driver: str, path: str) -> dict[str, Any]:
    """An array of a checkpoint, as Orbax opens it."""
    return {
        "driver": driver,
        "kvstore": {"driver": "ocdbt", "base": f"file://{directory}/", "path": path},
        "recheck_cached_data": False,
        "recheck_cached_metadata": False,
    }


def make_checkpoint(directory: Path, sizes: Sizes) -> None:
    """Many small arrays of both formats in one database."""
    ts = importlib.import_module("tensorstore")
    context = ts.Context()
    with ts.Transaction() as transaction:
        for number in range(sizes.arrays):
            for driver in ("zarr3", "zarr"):
                spec = array_spec(directory / "many", driver, f"{driver}/params.{number}/")
                array = ts.open(
                    spec, create=True, dtype="float32", shape=[16, 16],
                    context=context, transaction=transaction,
                ).result()  # fmt: skip
                array.write(np.full([16, 16], number, "float32")).result()


def checkpoint_rows(directory: Path, sizes: Sizes) -> list[Row]:
    """Opening many arrays in one context, all in flight; and opening and reading them."""

    def opened(ts: Any, driver: str) -> list[Any]:
        context = ts.Context()
        futures = [
            ts.open(
                array_spec(directory / "many", driver, f"{driver}/params.{number}/"),
                open=True, context=context,
            )
            for number in range(sizes.arrays)
        ]  # fmt: skip
        return [future.result() for future in futures]

    def right(arrays: Sequence[Any]) -> bool:
        return len(arrays) == sizes.arrays and all(tuple(each.shape) == (16, 16) for each in arrays)

    def contents(ts: Any) -> list[Any]:
        futures = [array.read() for array in opened(ts, "zarr3")]
        return [future.result() for future in futures]

    def right_contents(found: Sequence[Any]) -> bool:
        return all((np.asarray(each) == number).all() for number, each in enumerate(found))

    rows = [
        Row(
            f"opening {sizes.arrays} {driver} arrays, one context",
            lambda ts, driver=driver: lambda: opened(ts, driver),  # type: ignore[misc]
            right,
        )
        for driver in ("zarr3", "zarr")
    ]
    name = f"opening and reading {sizes.arrays} small zarr3 arrays"
    return [*rows, Row(name, lambda ts: lambda: contents(ts), right_contents)]


# ---------------------------------------------------------------------------------- large values


def make_large(directory: Path, sizes: Sizes) -> None:  # noqa: ARG001 - as the others
    """One value of 100 MB, and one array in shards."""
    ts = importlib.import_module("tensorstore")
    store = ts.KvStore.open(f"file://{directory}/large/|ocdbt:").result()
    store["value"] = np.random.default_rng(1).bytes(LARGE_BYTES)
    spec = array_spec(directory / "large", "zarr3", "shards/")
    shards = ts.open(
        spec, create=True, dtype="uint16", shape=[512, 512, 64],
        chunk_layout=ts.ChunkLayout(
            read_chunk_shape=[32, 32, 32], write_chunk_shape=[256, 256, 64]
        ),
    ).result()  # fmt: skip
    shards.write(np.arange(512 * 512 * 64, dtype="uint16").reshape(512, 512, 64)).result()


def large_rows(directory: Path, sizes: Sizes) -> list[Row]:  # noqa: ARG001 - as the others
    """Byte ranges of a large value, all of it, and shards."""
    starts = np.random.default_rng(2).integers(LARGE_BYTES - MEBIBYTE, size=200).tolist()

    def store(ts: Any) -> Any:
        return ts.KvStore.open(f"file://{directory}/large/|ocdbt:").result()

    def ranges(ts: Any) -> Run:
        open_store = store(ts)
        return lambda: [
            len(future.result().value)
            for future in [
                open_store.read("value", byte_range=slice(start, start + 65536)) for start in starts
            ]
        ]

    def whole(ts: Any) -> Run:
        open_store = store(ts)
        return lambda: len(open_store.read("value").result().value)

    def shards(ts: Any) -> Any:
        spec = array_spec(directory / "large", "zarr3", "shards/")
        return ts.open(spec, open=True, context=ts.Context()).result()

    def boxes(ts: Any) -> Run:
        array = shards(ts)
        corners = [(start % 480, start // 480 % 480) for start in starts]
        return lambda: [
            future.result().shape
            for future in [array[x : x + 32, y : y + 32, 8:40].read() for x, y in corners]
        ]

    def all_shards(ts: Any) -> Run:
        array = shards(ts)
        return lambda: int(np.asarray(array.read().result())[511, 511, 63])

    last = (512 * 512 * 64 - 1) % 2**16
    return [
        Row("200 ranges of 64 KiB of a value of 100 MB, in flight", ranges,
            lambda found: found == [65536] * 200),
        Row("a value of 100 MB", whole, lambda found: found == LARGE_BYTES),
        Row("200 boxes of 32³ of an array in shards, in flight", boxes,
            lambda found: set(map(tuple, found)) == {(32, 32, 32)}),
        Row("all of an array of 32 MiB in shards", all_shards, lambda found: found == last),
    ]  # fmt: skip


# -------------------------------------------------------------------------------------- restoring


RESTORED = {
    "float32, uncompressed": ("float32", "plain"),
    "bfloat16, uncompressed": ("bfloat16", "plain"),
    "float32, zstd": ("float32", "zstd"),
}


def restored_paths(kind: str, sizes: Sizes) -> list[str]:
    """Of the arrays of one kind."""
    return [f"{kind}/layer.{number}/" for number in range(sizes.restored)]


def make_restored(directory: Path, sizes: Sizes, kind: str) -> None:
    """Store the arrays that are restored: chunks of 4 MiB, 64 MiB an array."""
    ts = importlib.import_module("tensorstore")
    data_type, codec = RESTORED[kind]
    dtype = np.dtype(ml_dtypes.bfloat16 if data_type == "bfloat16" else data_type)
    side = 2048
    rows = sizes.array_bytes // (side * dtype.itemsize)
    chunk = [CHUNK_BYTES // (side * dtype.itemsize), side]
    codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if codec == "zstd":
        codecs.append({"name": "zstd", "configuration": {"level": 1}})
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    metadata = {"shape": [rows, side], "data_type": data_type, "codecs": codecs, "chunk_grid": grid}
    generator = np.random.default_rng(3)
    values = generator.standard_normal((rows, side), "float32")
    if codec == "zstd":
        values = np.round(values, 2)
    values = values.astype(dtype)
    place = directory / "restored" / data_type / codec
    for path in restored_paths(kind, sizes):
        spec = array_spec(place, "zarr3", path) | {"metadata": metadata}
        ts.open(spec, create=True).result().write(values).result()


RESTORE = """
import sys, time, importlib, json
module, directory, paths, limit = json.loads(sys.argv[1])
import numpy, ml_dtypes
ts = importlib.import_module(module)
limits = {"memory_limit": {"limit_bytes": limit}} if module == "tensorstore_py" else {}
context = ts.Context(limits)
def peak():
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields["VmHWM"].split()[0]) * 1024
# What any first use brings with it is the beginning.
first = ts.open(
    {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="int8", shape=[4]
).result()
first.read().result()
before, began = peak(), time.perf_counter()
kvstore = {"driver": "ocdbt", "base": f"file://{directory}/"}
futures = [
    ts.open(
        {"driver": "zarr3", "kvstore": {**kvstore, "path": path}, "recheck_cached_data": False},
        open=True, context=context,
    )
    for path in paths
]
arrays = [future.result() for future in futures]
reads = [array.read() for array in arrays]
size = 0
for number in range(len(reads)):
    size += reads[number].result().nbytes
print(json.dumps([time.perf_counter() - began, peak() - before, size]))
"""


class Restored(NamedTuple):
    """One restore: seconds, and bytes beyond what the process had before."""

    seconds: float
    peak: float


def restore(module: str, directory: Path, kind: str, sizes: Sizes) -> Restored:
    """Open all arrays and read them, in a process of its own."""
    data_type, codec = RESTORED[kind]
    place = str(directory / "restored" / data_type / codec)
    said = json.dumps([module, place, restored_paths(kind, sizes), MEMORY_LIMIT])
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-c", RESTORE, said], cwd=root, capture_output=True, check=True
    )
    seconds, peak, size = json.loads(done.stdout)
    if size != sizes.restored * sizes.array_bytes:
        raise AssertionError(f"{module} restored {size} bytes")
    return Restored(seconds, peak)


# ------------------------------------------------------------------------------------- the table


Clock = Callable[[], float]


def seconds_of(run: Run, clock: Clock) -> float:
    """How long one call takes."""
    began = clock()
    run()
    return clock() - began


def measure(row: Row, rounds: int, clock: Clock) -> tuple[float, float, float]:
    """Median seconds of us and of the wheel, and the median of wheel / ours."""
    runs = [row.prepare(importlib.import_module(module)) for module in MODULES]
    for module, run in zip(MODULES, runs, strict=True):
        if not row.right(run()):
            raise AssertionError(f"{module}: {row.name}: a wrong result")
    pairs = []
    for number in range(rounds):
        order = (0, 1) if number % 2 else (1, 0)
        took = {which: seconds_of(runs[which], clock) for which in order}
        pairs.append((took[0], took[1]))
    ours, wheel = (statistics.median(column) for column in zip(*pairs, strict=True))
    return ours, wheel, statistics.median(theirs / mine for mine, theirs in pairs)


def print_restores(directory: Path, sizes: Sizes, only: str) -> None:
    """The lines of restores; each kind is on the disk only while it is measured."""
    size = sizes.restored * sizes.array_bytes
    for kind in RESTORED:
        name = f"restoring {sizes.restored} arrays, {size // MEBIBYTE} MiB, {kind}"
        if only not in name:
            continue
        make_restored(directory, sizes, kind)
        os.sync()  # or the first one would be read while all that was made is still being written
        pairs = []
        for number in range(1 + max(2, sizes.rounds // 3)):
            order = MODULES if number % 2 else MODULES[::-1]
            found = {module: restore(module, directory, kind, sizes) for module in order}
            if number:  # the first brings the files into the page cache
                pairs.append([found[module] for module in MODULES])
        ours, wheel = ([pair[which] for pair in pairs] for which in (0, 1))
        ratio = statistics.median(theirs.seconds / mine.seconds for mine, theirs in pairs)
        beyond = [
            (statistics.median(each.peak for each in column) - size) / MEBIBYTE
            for column in (ours, wheel)
        ]
        seconds = [statistics.median(each.seconds for each in column) for column in (ours, wheel)]
        print(
            f"| {name} | {seconds[0] * 1e3:.0f} | {seconds[1] * 1e3:.0f} | {ratio:.2f} "
            f"| {beyond[0]:.0f} | {beyond[1]:.0f} |",
            flush=True,
        )
        for path in sorted((directory / "restored").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 rounds of less")
    parser.add_argument("--only", default="", help="rows whose names have this in them")
    parser.add_argument(
        "--processor", action="store_true", help="processor time, of all but restores"
    )
    options = parser.parse_args(arguments)
    clock = time.process_time if options.processor else time.perf_counter
    sizes = QUICK if options.quick else Sizes()
    print("| | ours, ms | wheel, ms | wheel / ours | ours, MiB beyond the arrays | wheel, MiB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        groups = (
            (make_small, small_rows), (make_checkpoint, checkpoint_rows), (make_large, large_rows)
        )  # fmt: skip
        for make, rows in groups:
            wanted = [row for row in rows(directory, sizes) if options.only in row.name]
            if wanted:
                make(directory, sizes)
            for row in wanted:
                ours, wheel, ratio = measure(row, sizes.rounds, clock)
                print(
                    f"| {row.name} | {ours * 1e3:.2f} | {wheel * 1e3:.2f} | {ratio:.2f} | | |",
                    flush=True,
                )
        print_restores(directory, sizes, options.only)
    print(f"\nA restore of ours has a memory_limit of {MEMORY_LIMIT // MEBIBYTE} MiB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
