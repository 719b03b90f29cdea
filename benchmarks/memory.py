"""Resident memory over time while a large array is copied from one layout to another.

From zarr v2 in chunks of 64 a side to zarr v3 in shards of 256 a side, by default 4 GiB of it: far
more than may be in memory at a time. The source takes hardly any room: a few different chunks are
stored, and all others are links to these. A process of its own copies, and prints what it holds
every so often, and its peak, beyond what the interpreter with the library held before.

    python benchmarks/memory.py                 4 GiB, default limits
    python benchmarks/memory.py --gib 2 --limit-mib 64
    python benchmarks/memory.py --small         16 MiB: a look, not a result

Linux only, where the kernel says what is resident.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorstore_py as ts

MIB = 2**20
GIB = 2**30
KINDS = 8  # of chunks of the source
#: What a copy of any size may hold beyond the interpreter.
ALLOWED = GIB


class Sample(NamedTuple):
    """What is resident, and how much is copied, some time after the beginning."""

    seconds: float
    resident: int
    fraction: float


class Sizes(NamedTuple):
    """Extents, in elements of two bytes."""

    shape: tuple[int, int, int]
    chunk: int
    shard: int
    inner: int

    @classmethod
    def of(cls, nbytes: int, *, small: bool) -> "Sizes":
        """As many layers of a fixed width as make up the bytes."""
        chunk, shard, inner, width = (16, 64, 32, 256) if small else (64, 256, 64, 2048)
        layers = nbytes // (2 * width * width * shard)
        return cls((max(1, layers) * shard, width, width), chunk, shard, inner)

    @property
    def nbytes(self) -> int:
        return 2 * int(np.prod(self.shape))


def make_source(place: Path, sizes: Sizes) -> dict[str, Any]:
    """The spec of a zarr v2 array that takes hardly any room on the disk."""
    spec = {"driver": "zarr", "kvstore": f"file://{place}/source/"}
    layout = ts.ChunkLayout(chunk_shape=[sizes.chunk] * 3)
    array = ts.open(
        spec, create=True, dtype="uint16", shape=sizes.shape, chunk_layout=layout
    ).result()
    random = np.random.default_rng(3)
    ramp = np.arange(sizes.chunk, dtype="uint16") * 16
    for kind in range(KINDS):
        noise = random.integers(0, 64, [sizes.chunk] * 3, dtype="uint16")
        array[: sizes.chunk, : sizes.chunk, kind * sizes.chunk : (kind + 1) * sizes.chunk] = (
            ramp + noise + np.uint16(256 * kind)
        )
    folder = place / "source"
    kinds = [folder / f"0.0.{kind}" for kind in range(KINDS)]
    counts = [size // sizes.chunk for size in sizes.shape]
    for number, cell in enumerate(np.ndindex(*counts)):
        path = folder / ".".join(map(str, cell))
        if not path.exists():
            os.link(kinds[number % KINDS], path)
    return spec


def resident() -> int:
    """Bytes of this process in memory now, files that are mapped not counted."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def copy(
    place: Path, spec: dict[str, Any], sizes: Sizes, limit: int | None, every_s: float
) -> list[Sample]:
    """Copy it, and look at the memory of this process meanwhile."""
    context = ts.Context({} if limit is None else {"memory_limit": {"limit_bytes": limit}})
    layout = ts.ChunkLayout(write_chunk_shape=[sizes.shard] * 3, read_chunk_shape=[sizes.inner] * 3)
    # Threads and caches of the library, and what any first use brings with it, are the beginning.
    source = ts.open(spec, context=context).result()
    source[: sizes.chunk].read().result()
    target = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{place}/target/"},
        create=True,
        dtype="uint16",
        shape=sizes.shape,
        chunk_layout=layout,
        context=context,
    ).result()
    before, began = resident(), time.perf_counter()
    seen: list[Sample] = []
    now, over = [0.0], threading.Event()

    def look() -> None:
        while True:
            held = resident() - before
            seen.append(Sample(time.perf_counter() - began, held, now[0]))
            if over.wait(every_s):
                return

    def show(progress: ts.Progress) -> None:
        now[0] = progress.fraction

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        target.write(source, progress=show).result()
    finally:
        over.set()
        watcher.join()
    seen.append(Sample(time.perf_counter() - began, resident() - before, now[0]))
    _check(source, target, sizes)
    return seen


def _check(source: ts.TensorStore, target: ts.TensorStore, sizes: Sizes) -> None:
    """A few places, since all of them would take as long as the copy."""
    for corner in np.random.default_rng(5).integers(0, np.array(sizes.shape) - 40, (5, 3)).tolist():
        part = tuple(slice(each, each + 40) for each in corner)
        np.testing.assert_array_equal(target[part].read().result(), source[part].read().result())


def lines(seen: list[Sample], nbytes: int, rows: int = 20) -> list[str]:
    """A table over time, and the peak."""
    step = max(1, len(seen) // rows)
    shown = sorted({*range(0, len(seen), step), len(seen) - 1})
    found = ["   seconds   resident MiB   copied"]
    found += [
        f"{seen[at].seconds:10.2f}{seen[at].resident / MIB:15.0f}{seen[at].fraction:9.0%}"
        for at in shown
    ]
    peak = max(each.resident for each in seen)
    rate = nbytes / MIB / seen[-1].seconds
    found.append(
        f"peak {peak / MIB:.0f} MiB beyond the interpreter, of {nbytes / MIB:.0f} MiB copied "
        f"at {rate:.0f} MiB/s"
    )
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gib", type=float, default=4.0, help="how much to copy")
    parser.add_argument("--limit-mib", type=int, help="memory_limit; the default's if left out")
    parser.add_argument("--small", action="store_true", help="16 MiB in smaller chunks")
    parser.add_argument("--place", type=Path, help="a folder on the disk to use")
    parser.add_argument("--copy-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    nbytes = 16 * MIB if options.small else int(options.gib * GIB)
    sizes = Sizes.of(nbytes, small=options.small)
    if options.copy_only:
        limit = options.limit_mib * MIB if options.limit_mib else None
        spec = {"driver": "zarr", "kvstore": f"file://{options.place}/source/"}
        seen = copy(options.place, spec, sizes, limit, every_s=0.01 if options.small else 0.1)
        print("\n".join(lines(seen, sizes.nbytes)))
        return int(max(each.resident for each in seen) > ALLOWED)
    with tempfile.TemporaryDirectory(dir=options.place) as folder:
        make_source(Path(folder), sizes)
        # A process that has held nothing yet.
        command = [sys.executable, __file__, *arguments, "--place", folder, "--copy-only"]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
