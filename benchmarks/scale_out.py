"""Rechunking beside cubed, dask and rechunker, and one worker of a plan beside two.

Each contender is a process of its own, with whatever processes it starts. They run in turn, so that
a slow minute of the machine is everybody's. The table shows medians over the rounds of the time and
of the peak memory of all processes together (their proportional share of what they have in common),
and the medians of the ratios of each round to ours: above 1 we are ahead.

    python benchmarks/scale_out.py --peers /path/to/python           2 GiB, 3 rounds
    python benchmarks/scale_out.py --peers PYTHON --mib 128 --rounds 1      a look, not a result
    python benchmarks/scale_out.py --only workers                    without peers

`--peers` names an interpreter that has cubed, dask[array], rechunker and psutil; contenders that it
cannot run are told of and left out. Linux only, where the kernel says what memory is shared.

Workloads:

    rechunk   float32 images, a chunk each, to chunks of all images and few columns and rows
    workers   the same plan by one worker of one thread, and by two
"""

# What a contender needs is imported by its process alone, whose interpreter may lack the others'.
# ruff: noqa: PLC0415

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

MIB = 2**20
SIDE = 1024
TILE = 128
#: What each contender may have in memory, where it can be told.
ALLOWED = "1GB"


# ------------------------------------------------------------------------------------- contenders


def ours(source: str, target: str, images: int) -> None:
    """`ts.rechunk`, in one process."""
    import tensorstore_py as ts

    chunks = (images, TILE, TILE)
    ts.rechunk(Path(source), Path(target), chunks).result()


def ours_in_two(source: str, target: str, images: int) -> None:
    """`ts.rechunk` with a pool of two processes."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    import tensorstore_py as ts

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        ts.rechunk(Path(source), Path(target), (images, TILE, TILE), executor=executor).result()


def cubed(source: str, target: str, images: int) -> None:
    """Cubed with processes."""
    import cubed as peer

    with tempfile.TemporaryDirectory(dir=Path(target).parent) as work:
        spec = peer.Spec(work_dir=work, allowed_mem=ALLOWED, reserved_mem="100MB")
        array = peer.from_zarr(source, spec=spec).rechunk((images, TILE, TILE))
        peer.to_zarr(array, target, executor=peer.runtime.create.create_executor("processes"))


def dask_array(source: str, target: str, images: int) -> None:
    """dask.array with its threads."""
    import dask.array

    da: Any = dask.array
    da.from_zarr(source).rechunk((images, TILE, TILE)).to_zarr(target)


def rechunker(source: str, target: str, images: int) -> None:
    """Rechunker with dask's threads."""
    import rechunker as peer
    import zarr

    with tempfile.TemporaryDirectory(dir=Path(target).parent) as work:
        array = zarr.open_array(source, mode="r")
        plan = peer.rechunk(array, (images, TILE, TILE), ALLOWED, target, temp_store=f"{work}/t")
        plan.execute()


def one_worker(source: str, target: str, images: int) -> None:
    """A plan by one worker on one core."""
    _workers(source, target, images, 1)


def two_workers(source: str, target: str, images: int) -> None:
    """The same plan by two workers, on a core each."""
    _workers(source, target, images, 2)


def _workers(source: str, target: str, images: int, count: int) -> None:
    import tensorstore_py as ts

    plan = ts.plan(ts.rechunk, Path(source), Path(target), (images, TILE, TILE)).result()
    where = Path(f"{target}.json")
    where.write_text(json.dumps(plan.to_json()))
    cores = sorted(os.sched_getaffinity(0))[:count]
    begin = [sys.executable, __file__, "--work", str(where), str(count)]
    workers = [subprocess.Popen([*begin, str(number), str(core)])
               for number, core in enumerate(cores)]  # fmt: skip
    if any(worker.wait() for worker in workers):
        raise SystemExit("a worker failed")


def work(where: str, count: str, number: str, core: str) -> None:
    """Be one of the workers of a plan, on one core."""
    os.sched_setaffinity(0, [int(core)])
    import tensorstore_py as ts
    from tensorstore_py._plan.document import document_place
    from tensorstore_py._plan.recorded import join
    from tensorstore_py._runtime.execution import start

    context = ts.Context()
    place = document_place(Path(where), context)
    share = (int(number), int(count))
    # Without waiting for the other one: it would look now and then whether that has ended.
    body = partial(join, place, context, on_progress=lambda *_: None, share=share, wait=False)
    start(False, body).result()


OURS = {"tensorstore_py": ours, "tensorstore_py, 2 processes": ours_in_two}
THEIRS = {"cubed": cubed, "dask.array": dask_array, "rechunker": rechunker}
WORKERS = {"one worker": one_worker, "two workers": two_workers}


# ---------------------------------------------------------------------------------------- running


def make_source(place: Path, mib: int) -> int:
    """Images that compress somewhat; returns how many."""
    import numpy as np

    import tensorstore_py as ts

    images = max(2, mib * MIB // (4 * SIDE * SIDE))
    store = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{place}/"}, create=True, dtype="float32",
        shape=[images, SIDE, SIDE], chunk_layout=ts.ChunkLayout(chunk_shape=[1, SIDE, SIDE]),
        codec="zstd",
    ).result()  # fmt: skip
    chance = np.random.default_rng(1)
    for number in range(images):
        noise = chance.integers(0, 255, (SIDE, SIDE), "uint8")
        store[number] = noise.astype("float32") + number
    return images


def resident(pid: int) -> int:
    """Bytes of a process and of all that it started, what they share counted once."""
    total, left = 0, [pid]
    while left:
        each = left.pop()
        try:
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text("ascii")
            total += next(int(line.split()[1]) * 1024 for line in rollup.splitlines()
                          if line.startswith("Pss:"))  # fmt: skip
            for task in Path(f"/proc/{each}/task").iterdir():
                left += [int(child) for child in (task / "children").read_text("ascii").split()]
        except (OSError, StopIteration):
            continue
    return total


def run(python: str, name: str, source: Path, target: Path, images: int) -> tuple[float, int]:
    """How long a contender takes, and how much memory; no time if it fails."""
    command = [python, __file__, "--contender", name, str(source), str(target), str(images)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.05)
    took = time.perf_counter() - began
    if process.returncode:
        assert process.stderr is not None
        last = process.stderr.read().strip().splitlines()[-1:]
        print(f"{name} fails: {' '.join(last)[:300]}", file=sys.stderr)
        return float("nan"), 0
    return took, peak


def check(source: Path, target: Path) -> None:
    """See that a target is what the source is, in a few places."""
    import tensorstore_py as ts

    old, new = ts.open(source).result(), ts.open(target).result()
    for at in ((0, 0, 0), (1, SIDE // 2, 7)):
        row = (at[0], at[1], slice(None))
        assert (old[row].read().result() == new[row].read().result()).all(), target


def table(names: list[str], found: dict[str, list[tuple[float, int]]], first: str) -> None:
    """Medians, and medians of the ratios to the first."""
    print("| | seconds | peak MiB | time ratio | memory ratio |")
    print("|---|---|---|---|---|")
    for name in names:
        times = [each for each, _ in found[name]]
        if any(map(math.isnan, times)):
            print(f"| {name} | fails | | | |")
            continue
        memory = [each / MIB for _, each in found[name]]
        slower = [each / ours for each, (ours, _) in zip(times, found[first], strict=True)]
        more = [each / (ours / MIB) for each, (_, ours) in zip(memory, found[first], strict=True)]
        print(
            f"| {name} | {statistics.median(times):.1f} | {statistics.median(memory):.0f} | "
            f"{statistics.median(slower):.2f} | {statistics.median(more):.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--peers", help="the interpreter that has the peers")
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("rechunk", "workers"))
    parser.add_argument("--contender", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        name, source, target, images = options.contender
        {**OURS, **THEIRS, **WORKERS}[name](source, target, int(images))
        return
    if options.work:
        work(*options.work)
        return
    with tempfile.TemporaryDirectory(prefix="scale-out-") as folder:
        source = Path(folder) / "source"
        images = make_source(source, options.mib)
        print(f"{images} images of {SIDE} x {SIDE} float32, {options.rounds} rounds\n")
        groups = {
            "rechunk": [*OURS, *(THEIRS if options.peers else ())],
            "workers": list(WORKERS),
        }
        for group, names in groups.items():
            if options.only not in (None, group):
                continue
            found: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
            for _ in range(options.rounds):
                for name in names:
                    target = Path(folder) / "target"
                    python = options.peers if name in THEIRS else sys.executable
                    found[name].append(run(python, name, source, target, images))
                    if found[name][-1][1]:
                        check(source, target)
                    shutil.rmtree(target, ignore_errors=True)
                    for each in Path(folder).glob("target.*"):
                        shutil.rmtree(each) if each.is_dir() else each.unlink()
            print(f"{group}:\n")
            table(names, found, names[0])
            print()


if __name__ == "__main__":
    main()
