"""Many writers in several processes that count up in one OCDBT database: none may be lost.

Each reads a number, and stores the next one on the condition that nobody did so meanwhile; if
somebody did, it does so again. With `--keys one` all count in one key, so that each increment needs
a version of its own; with `--keys each` every writer has its own, and those of a process share
commits. Prints, a row for each library: increments per second, how many were lost (has to be 0),
versions made, how often an increment was refused, and of fairness the longest that any one took,
and which part the slowest process had done when the first was ready.

    python benchmarks/ocdbt_writers.py                          16 x 1,000 in 2 processes, on files
    python benchmarks/ocdbt_writers.py --libraries tensorstore_py,tensorstore   one process of each
    python benchmarks/ocdbt_writers.py --base '{"driver": "s3", ...}'   keys in the environment
"""

import argparse
import importlib
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorstore_py as ts


class Shape(NamedTuple):
    """What is done: so many writers and increments of each, in so many processes."""

    writers: int
    increments: int
    processes: int
    keys: str

    def key_of(self, writer: int) -> str:
        """What a writer counts in."""
        return "n" if self.keys == "one" else f"n{writer}"


class Count(NamedTuple):
    """What the writers of a process met."""

    refused: int
    longest_s: float
    done_at: list[float]


class Result(NamedTuple):
    """What became of all increments."""

    libraries: str
    increments: int
    seconds: float
    lost: int
    versions: int
    refused: int
    longest_s: float
    behind: float

    def __str__(self) -> str:
        rate = self.increments / self.seconds
        return (
            f"{self.libraries:28}{self.increments:8}{rate:9.0f}/s{self.lost:6} lost"
            f"{self.versions:8} versions{self.refused:8} refused"
            f"{self.longest_s:8.2f} s longest{self.behind:7.0%} done by the slowest process"
        )


def count_up(kv: Any, key: str, times: int) -> Count:
    """One writer; how often another came first, and when each increment was stored."""
    refused, longest, done_at = 0, 0.0, []
    before = time.time()
    for _ in range(times):
        while True:
            found = kv.read(key).result()
            following = b"%d" % (int(bytes(found.value) or b"0") + 1)
            like = found.stamp.generation
            if kv.write(key, following, if_equal=like).result().generation:
                break
            refused += 1
        now = time.time()
        longest, before = max(longest, now - before), now
        done_at.append(now)
    return Count(refused, longest, done_at)


def run_writers(
    library: str, spec: dict[str, Any], shape: Shape, process: int, begin: Barrier, results: Any
) -> None:
    """The writers of one process, a thread each."""
    kv = importlib.import_module(library).KvStore.open(spec).result()
    mine = range(process, shape.writers, shape.processes)
    begin.wait()
    with ThreadPoolExecutor(len(mine)) as pool:
        found = list(
            pool.map(lambda writer: count_up(kv, shape.key_of(writer), shape.increments), mine)
        )
    results.put(
        Count(
            sum(each.refused for each in found),
            max(each.longest_s for each in found),
            sorted(moment for each in found for moment in each.done_at),
        )
    )


def compete(base: Any, shape: Shape, libraries: list[str], config: dict[str, Any]) -> Result:
    """Let all of them write, and count what is there."""
    spec = {"driver": "ocdbt", "base": base}
    keys = sorted({shape.key_of(writer) for writer in range(shape.writers)})
    kv = ts.KvStore.open({**spec, "config": config}).result()
    for key in keys:
        kv[key] = b"0"
    context = get_context("spawn")
    begin, results = context.Barrier(shape.processes + 1), context.SimpleQueue()
    workers = [
        context.Process(
            target=run_writers,
            args=(libraries[number % len(libraries)], spec, shape, number, begin, results),
        )
        for number in range(shape.processes)
    ]
    for worker in workers:
        worker.start()
    begin.wait()
    began = time.perf_counter()
    counts = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - began
    increments = shape.writers * shape.increments
    first = min(count.done_at[-1] for count in counts)
    behind = min(
        sum(moment <= first for moment in count.done_at) / len(count.done_at) for count in counts
    )
    found = sum(int(bytes(kv[key])) for key in keys)
    return Result(
        " + ".join(libraries), increments, seconds, increments - found,
        generation_of(base) - 1 - len(keys), sum(count.refused for count in counts),
        max(count.longest_s for count in counts), behind,
    )  # fmt: skip


def generation_of(base: Any) -> int:
    """The latest version of a database, found by asking for one after the other."""
    low, high = 1, 2
    while _is_there(base, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_there(base, middle) else (low, middle)
    return low


def _is_there(base: Any, generation: int) -> bool:
    spec = {"driver": "ocdbt", "base": base, "version": generation}
    try:
        ts.KvStore.open(spec).result().read("n").result()
    except ts.NotFoundError:
        return False
    return True


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--increments", type=int, default=1000, help="of each writer")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keys", choices=("one", "each"), default="one")
    parser.add_argument("--libraries", action="append", help="of the processes, by commas")
    parser.add_argument("--base", type=json.loads, help="JSON of a store; default: a new folder")
    parser.add_argument("--config", type=json.loads, default={}, help="of the database, as JSON")
    options = parser.parse_args(arguments)
    shape = Shape(options.writers, options.increments, options.processes, options.keys)
    lost = 0
    for number, libraries in enumerate(options.libraries or ["tensorstore_py", "tensorstore"]):
        with tempfile.TemporaryDirectory() as folder:
            base = options.base or {"driver": "file", "path": f"{folder}/"}
            base = {**base, "path": f"{base.get('path', '')}{number}/"}
            result = compete(base, shape, libraries.split(","), options.config)
        print(result, flush=True)
        lost += result.lost
    return int(lost != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
