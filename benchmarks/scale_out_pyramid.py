"""A pyramid of one image by this package, ngff-zarr and ome-zarr-py: time, and memory of all.

    benchmarks/scale_out_pyramid.py [--shape 30 3000 3000] [--rounds 5] [--libraries ours,...]
                                    [--peers PYTHON]

The source is a zarr array in files; every library makes four levels of means, each half as large
along z, y and x, in the same chunks, in a process of its own, one after the other in each round.
Memory is the most that a process and all its children had at a time (proportional share, Linux).
PYTHON has ngff-zarr and ome-zarr installed; by default that of the tests' own environment.
"""

# ruff: noqa: PLC0415 - each library is imported only in the process that measures it
from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

CHUNKS = (10, 500, 500)
LEVELS = 4
LIBRARIES = ("ours", "ngff_bin_shrink", "ngff_itkwasm", "ome_local_mean")


def make_source(path: Path, shape: tuple[int, ...]) -> None:
    """An image that compresses as such do: smooth, with noise in the low bits."""
    import numpy as np

    import tensorstore_py as ts

    store = ts.open(
        f"{path.as_uri()}/|zarr3:",
        create=True,
        dtype="uint16",
        shape=shape,
        chunk_layout=ts.ChunkLayout(chunk_shape=CHUNKS),
        codec={"driver": "zarr3", "codecs": ["blosc"]},
    ).result()
    rng = np.random.default_rng(0)
    y, x = np.ogrid[: shape[1], : shape[2]]
    for start in range(0, shape[0], CHUNKS[0]):
        stop = min(start + CHUNKS[0], shape[0])
        z = np.arange(start, stop)[:, None, None]
        part = 2000 + 900 * np.sin(y / 90 + z) * np.cos(x / 70)
        part += rng.normal(0, 12, part.shape)
        store[start:stop].write(part.astype("uint16")).result()


def ours(source: Path, target: Path) -> None:
    import tensorstore_py as ts

    ts.pyramid(source, target, axes="zyx", levels=LEVELS, chunks=CHUNKS).result()


def ngff(source: Path, target: Path, method: str) -> None:
    import dask.array as da
    import ngff_zarr

    array = da.from_zarr(str(source))  # type: ignore[no-untyped-call]
    image = ngff_zarr.to_ngff_image(array, dims="zyx")
    levels = ngff_zarr.to_multiscales(
        image,
        scale_factors=[dict.fromkeys("zyx", 2**n) for n in range(1, LEVELS)],
        method=ngff_zarr.Methods[method],
        chunks=dict(zip("zyx", CHUNKS, strict=True)),
    )
    ngff_zarr.to_ngff_zarr(str(target), levels, version="0.5")


def ome(source: Path, target: Path) -> None:
    import dask.array as da
    from ome_zarr.scale import Methods
    from ome_zarr.writer import write_image

    image = da.from_zarr(str(source)).rechunk(CHUNKS)  # type: ignore[no-untyped-call]
    write_image(
        image,
        str(target),
        scale_factors=[dict.fromkeys("zyx", 2**n) for n in range(1, LEVELS)],
        method=Methods.LOCAL_MEAN,
        axes="zyx",
        storage_options={"chunks": CHUNKS},
    )


def work(library: str, source: Path, target: Path) -> None:
    """One pyramid; prints how long it took, without imports."""
    small = source.with_name("small")
    runs: dict[str, Callable[[Path, Path], None]] = {
        "ours": ours,
        "ngff_bin_shrink": partial(ngff, method="DASK_BIN_SHRINK"),
        "ngff_itkwasm": partial(ngff, method="ITKWASM_BIN_SHRINK"),
        "ome_local_mean": ome,
    }
    runs[library](small, target.with_name("warm"))
    began = time.perf_counter()
    runs[library](source, target)
    taken = time.perf_counter() - began
    print(json.dumps({"seconds": taken}))


def shapes_of(source: Path, target: Path) -> list[tuple[int, ...]]:
    """Shapes of all levels, of which the first is like the source."""
    import numpy as np

    import tensorstore_py as ts

    levels = list(ts.multiscale.open(target).result().levels)
    first, whole = levels[0], ts.open(source).result()
    for at in (0, whole.shape[0] - 1):
        assert np.array_equal(first[at].read().result(), whole[at].read().result())
    return [level.shape for level in levels]


def memory_of(pid: int) -> int:
    """Bytes of a process and all below it, shared ones in proportion."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total = int(line.split()[1]) * 1024
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, ValueError):
        return total
    return total + sum(memory_of(int(child)) for child in below)


def measured(python: str, library: str, source: Path, target: Path) -> dict[str, Any]:
    command = [python, "-W", "ignore", __file__, "--work", library, str(source), str(target)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, env=environment)
        most = 0
        while process.poll() is None:
            most = max(most, memory_of(process.pid))
            time.sleep(0.02)
        out.seek(0)
        text = out.read().splitlines()
    shapes = [] if process.returncode else shapes_of(source, target)
    for left in (target, target.with_name("warm")):
        shutil.rmtree(left, ignore_errors=True)
    if process.returncode:
        raise SystemExit(f"{library} failed")
    whole = time.perf_counter() - began
    return {**json.loads(text[-1]), "whole": whole, "memory": most, "shapes": shapes}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", nargs=3, type=int, default=[30, 3000, 3000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument("--peers")
    parser.add_argument("--work", nargs=3)
    asked = parser.parse_args(arguments)
    if asked.work:
        library, source, target = asked.work
        work(library, Path(source), Path(target))
        return
    libraries = asked.libraries.split(",")
    peers = asked.peers
    if peers is None and libraries != ["ours"]:
        from tests.multiscale.published import environment

        made = environment()
        made.install()
        peers = made.program("python")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in libraries}
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        make_source(where / "source", tuple(asked.shape))
        make_source(where / "small", (16, 64, 64))
        for round_ in range(asked.rounds):
            for name in libraries if round_ % 2 == 0 else reversed(libraries):
                python = sys.executable if name == "ours" else peers
                one = measured(python, name, where / "source", where / "target")
                found[name].append(one)
                print(f"{name:16} {one['seconds']:7.2f} s  {one['memory'] / 2**20:7.0f} MiB  "
                      f"{one['shapes']}", flush=True)  # fmt: skip
    print(f"{'':16} {'median s':>9} {'MiB':>7} {'time / ours':>12} {'memory / ours':>14}")
    for name, runs in found.items():
        ratios = [
            statistics.median(
                one[what] / base[what] for one, base in zip(runs, found[libraries[0]], strict=True)
            )
            for what in ("seconds", "memory")
        ]
        seconds = statistics.median(one["seconds"] for one in runs)
        memory = statistics.median(one["memory"] for one in runs)
        print(f"{name:16} {seconds:9.2f} {memory / 2**20:7.0f} {ratios[0]:12.2f} {ratios[1]:14.2f}")


if __name__ == "__main__":
    main()
