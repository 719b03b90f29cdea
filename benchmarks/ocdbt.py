"""Side by side on OCDBT databases in local files: us and the tensorstore wheel, writing.

A round runs a workload once in each library, one after the other in this process, each in a fresh
database; which is first changes from round to round. A speed is the wheel's time over ours in the
same round, and the table shows the median over the rounds: above 1 we are ahead.

    python benchmarks/ocdbt.py                    everything, 5 rounds
    python benchmarks/ocdbt.py --quick            a tenth of the size, 3 rounds: a look
    python benchmarks/ocdbt.py --rows 'small'     rows whose name contains a pattern
    python benchmarks/ocdbt.py --memory           peak memory of the bulk rows, each in a process

Files are written to the page cache; nobody waits for the disk (file_io_sync is false for both).
"""

import argparse
import importlib
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

OURS = "tensorstore_py"
THEIRS = "tensorstore"
MIB = 1 << 20
NODES_OF_A_DEEP_TREE = 4000
WARMING = 0.001


class Trial:
    """One workload, once, in one library.

    Args:
        library: which.
        place: an empty folder.
        scale: of the workload: 1 is its full size.
    """

    def __init__(self, library: str, place: Path, scale: float) -> None:
        self.ts: Any = importlib.import_module(library)
        self.place = place
        self.scale = scale
        self.seconds: dict[str, float] = {}

    def count(self, full: int) -> int:
        """How many of something, at this scale."""
        return max(1, int(full * self.scale))

    def spec(self, **members: Any) -> dict[str, Any]:
        """A database in the folder."""
        base = {"driver": "file", "path": f"{self.place}/"}
        return {"driver": "ocdbt", "base": base, **members}

    def open(self, **members: Any) -> Any:
        """The database, opened with nothing known of it."""
        context = self.ts.Context({"file_io_sync": False})
        return self.ts.KvStore.open(self.spec(**members), context=context).result()

    def array(self, name: str, shape: Sequence[int], chunks: Sequence[int], codecs: Any) -> Any:
        """A new array of zarr3 in the database."""
        grid = {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}
        metadata = {
            "shape": list(shape),
            "data_type": "uint16",
            "chunk_grid": grid,
            "codecs": codecs,
        }
        spec = {"driver": "zarr3", "kvstore": self.spec(path=name), "metadata": metadata}
        context = self.ts.Context({"file_io_sync": False})
        return self.ts.open(spec, context=context, create=True).result()

    @contextmanager
    def timed(self, measure: str) -> Iterator[None]:
        """Measure what is done in the block."""
        began = time.perf_counter()
        yield
        self.seconds[measure] = self.seconds.get(measure, 0.0) + time.perf_counter() - began


Row = Callable[[Trial], None]


def small_pairs(count: int, seed: int = 0) -> list[tuple[str, bytes]]:
    """Keys in no order and values of 40 bytes."""
    numbers = np.random.default_rng(seed).permutation(count).tolist()
    return [(f"group/{number:08d}/x", b"%040d" % number) for number in numbers]


def fill(trial: Trial, pairs: Iterable[tuple[str, bytes]], **members: Any) -> Any:
    """A database with some keys."""
    kv = trial.open(**members)
    transaction = trial.ts.Transaction()
    staged = kv.with_transaction(transaction)
    for key, value in pairs:
        staged[key] = value
    transaction.commit_sync()
    return kv


# Small values.


def small_keys(trial: Trial, **members: Any) -> None:
    """100,000 small keys in one transaction."""
    pairs = small_pairs(trial.count(100_000))
    kv = trial.open(**members)
    transaction = trial.ts.Transaction()
    staged = kv.with_transaction(transaction)
    with trial.timed("sum"):
        with trial.timed("staging"):
            for key, value in pairs:
                staged[key] = value
        with trial.timed("commit"):
            transaction.commit_sync()


def small_futures(trial: Trial) -> None:
    """100,000 small keys in one transaction, a Future each."""
    pairs = small_pairs(trial.count(100_000))
    transaction = trial.ts.Transaction()
    staged = trial.open().with_transaction(transaction)
    with trial.timed("sum"):
        futures = [staged.write(key, value) for key, value in pairs]
        for future in futures:
            future.result()
        transaction.commit_sync()


def deep_tree(trial: Trial) -> None:
    """100,000 small keys in one transaction, nodes of 4 kB."""
    small_keys(trial, config={"max_decoded_node_bytes": NODES_OF_A_DEEP_TREE})


def overwritten(trial: Trial, **members: Any) -> None:
    """10,000 of 200,000 keys overwritten in one transaction."""
    pairs = small_pairs(trial.count(200_000))
    fill(trial, pairs, **members)
    kv = trial.open(**members)
    with trial.timed("all"):
        transaction = trial.ts.Transaction()
        staged = kv.with_transaction(transaction)
        for key, value in pairs[: trial.count(10_000)]:
            staged[key] = value[::-1]
        transaction.commit_sync()


def overwritten_deep(trial: Trial) -> None:
    """The same, nodes of 4 kB."""
    overwritten(trial, config={"max_decoded_node_bytes": NODES_OF_A_DEEP_TREE})


def one_by_one(trial: Trial) -> None:
    """1,000 small writes, one after the other."""
    pairs = small_pairs(trial.count(1000))
    kv = trial.open()
    with trial.timed("all"):
        for key, value in pairs:
            kv[key] = value


def in_flight(trial: Trial) -> None:
    """1,000 small writes in flight together."""
    pairs = small_pairs(trial.count(1000))
    kv = trial.open()
    with trial.timed("all"):
        futures = [kv.write(key, value) for key, value in pairs]
        for future in futures:
            future.result()


# Large values.


def large_values(trial: Trial, *, together: bool) -> None:
    count = trial.count(64)
    value = np.random.default_rng(0).bytes(16 * MIB)
    kv = trial.open()
    with trial.timed("all"):
        transaction = trial.ts.Transaction() if together else None
        target = kv.with_transaction(transaction)
        futures = [target.write(f"c/{number}", value) for number in range(count)]
        for future in futures:
            future.result()
        if transaction is not None:
            transaction.commit_sync()


def large_values_in_one(trial: Trial) -> None:
    """1 GiB of values of 16 MiB in one transaction."""
    large_values(trial, together=True)


def large_values_apart(trial: Trial) -> None:
    """1 GiB of values of 16 MiB, in flight together."""
    large_values(trial, together=False)


def array_written(trial: Trial, codecs: Any, *, together: bool) -> None:
    edge = max(512, trial.count(11_584) // 64 * 64)  # 256 MiB of uint16
    array = trial.array("a/", (edge, edge), (1024, 1024), codecs)
    data = (np.arange(edge * edge, dtype=np.uint32) >> 7).astype(np.uint16).reshape(edge, edge)
    with trial.timed("all"):
        if together:
            transaction = trial.ts.Transaction()
            array.with_transaction(transaction)[...] = data
            transaction.commit_sync()
        else:
            array.write(data).result()


PLAIN: Any = ["bytes"]
ZSTD: Any = ["bytes", {"name": "zstd", "configuration": {"level": 1}}]


def plain_array(trial: Trial) -> None:
    """256 MiB zarr3 array, not compressed."""
    array_written(trial, PLAIN, together=False)


def plain_array_in_one(trial: Trial) -> None:
    """256 MiB zarr3 array, not compressed, in one transaction."""
    array_written(trial, PLAIN, together=True)


def zstd_array(trial: Trial) -> None:
    """256 MiB zarr3 array, zstd."""
    array_written(trial, ZSTD, together=False)


def zstd_array_in_one(trial: Trial) -> None:
    """256 MiB zarr3 array, zstd, in one transaction."""
    array_written(trial, ZSTD, together=True)


# Copies.


def copied(trial: Trial) -> None:
    """50,000 keys and 100 values of 1 MiB copied within the database."""
    kv = trial.open()
    transaction = trial.ts.Transaction()
    staged = kv.with_transaction(transaction)
    for key, value in small_pairs(trial.count(50_000)):
        staged["from/" + key] = value
    for number in range(trial.count(100)):
        staged[f"from/large/{number:04d}"] = bytes(MIB)
    transaction.commit_sync()
    with trial.timed("all"):
        (kv / "from/").experimental_copy_range_to(kv / "to/").result()


SMALL: Sequence[Row] = (
    small_keys, small_futures, deep_tree, overwritten, overwritten_deep, one_by_one, in_flight,
)  # fmt: skip
BULK: Sequence[Row] = (
    large_values_in_one, large_values_apart,
    plain_array, plain_array_in_one, zstd_array, zstd_array_in_one,
)  # fmt: skip
ROWS: Sequence[Row] = (*SMALL, *BULK, copied)


# Measuring.


class Measured(NamedTuple):
    """What one measure of a row took, round by round."""

    ours: list[float]
    theirs: list[float]

    @property
    def speed(self) -> float:
        """Of ours, relative to theirs."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return statistics.median(theirs / ours for ours, theirs in pairs)


def measure(row: Row, rounds: int, scale: float, folder: Path | None) -> dict[str, Measured]:
    """Run a row in both libraries, by turns."""
    for library in (OURS, THEIRS):  # what is imported at first use is no part of the work
        with tempfile.TemporaryDirectory(dir=folder) as place:
            row(Trial(library, Path(place), WARMING))
    found: dict[str, Measured] = {}
    for number in range(rounds):
        seconds: dict[str, Mapping[str, float]] = {}
        for library in (OURS, THEIRS)[:: 1 if number % 2 else -1]:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                trial = Trial(library, Path(place), scale)
                row(trial)
                seconds[library] = trial.seconds
        for name, ours in seconds[OURS].items():
            pair = found.setdefault(name, Measured([], []))
            pair.ours.append(ours)
            pair.theirs.append(seconds[THEIRS][name])
    return found


def title_of(row: Row) -> str:
    """What it is called in the table."""
    return (row.__doc__ or row.__name__).strip().rstrip(".")


def print_table(rows: Iterable[Row], rounds: int, scale: float, folder: Path | None) -> None:
    """Measure rows, and print a table in Markdown while that goes on."""
    print("| | | ours, s | wheel, s | our speed ÷ the wheel's |\n|---|---|---|---|---|")
    for row in rows:
        for name, found in measure(row, rounds, scale, folder).items():
            ours, theirs = statistics.median(found.ours), statistics.median(found.theirs)
            print(
                f"| {title_of(row)} | {name} | {ours:.3f} | {theirs:.3f} | **{found.speed:.2f}** |",
                flush=True,
            )


def peak_mib(row: Row, library: str, scale: float, folder: Path | None) -> float:
    """What a process has in memory at most while it runs a row, above what it begins with."""
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from benchmarks import ocdbt;"
        "print(json.dumps(ocdbt.peak_here(*json.loads(sys.argv[2]))))"
    )
    with tempfile.TemporaryDirectory(dir=folder) as place:
        arguments = json.dumps([row.__name__, library, place, scale])
        root = str(Path(__file__).resolve().parent.parent)
        done = subprocess.run(
            [sys.executable, "-c", program, root, arguments],
            capture_output=True,
            check=True,
            text=True,
        )
    return float(json.loads(done.stdout))


def peak_here(name: str, library: str, place: str, scale: float) -> float:
    """As `peak_mib`, of this process."""
    row = next(row for row in ROWS if row.__name__ == name)
    trial = Trial(library, Path(place), scale)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row(trial)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def print_memory(rows: Iterable[Row], scale: float, folder: Path | None) -> None:
    """Print a table of peak memory in Markdown."""
    print("| | ours, MiB | wheel, MiB |\n|---|---|---|")
    for row in rows:
        peaks = [peak_mib(row, library, scale, folder) for library in (OURS, THEIRS)]
        print(f"| {title_of(row)} | {peaks[0]:.0f} | {peaks[1]:.0f} |", flush=True)


def run(rows: Sequence[Row], bulk: Sequence[Row], arguments: Sequence[str] | None = None) -> None:
    """Parse a command line, measure what it asks for, and print it."""
    parser = argparse.ArgumentParser(description="OCDBT databases: us and the wheel.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, 3 rounds")
    parser.add_argument("--rows", default="", help="a pattern in the names of rows")
    parser.add_argument("--rounds", type=int, help="5 by default")
    parser.add_argument("--scale", type=float, help="of the workloads; 1 by default")
    parser.add_argument("--place", type=Path, help="a folder on the disk to use")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of time")
    options = parser.parse_args(arguments)
    rounds = options.rounds or (3 if options.quick else 5)
    scale = options.scale or (0.1 if options.quick else 1.0)
    wanted = re.compile(options.rows)
    chosen = [
        row
        for row in (bulk if options.memory else rows)
        if wanted.search(row.__name__) or wanted.search(title_of(row))
    ]
    if options.memory:
        print_memory(chosen, scale, options.place)
    else:
        print_table(chosen, rounds, scale, options.place)


if __name__ == "__main__":
    run(ROWS, BULK)
