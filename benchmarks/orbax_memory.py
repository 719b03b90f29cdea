"""Peak resident memory of turning an Orbax checkpoint into safetensors and back.

By default a checkpoint of 1 GiB under a `memory_limit` of 256 MiB. Each step is a process of its
own, which prints its peak beyond what the interpreter with the library held before, and the time
it took.

    python benchmarks/orbax_memory.py                      1 GiB, 256 MiB
    python benchmarks/orbax_memory.py --gib 4 --limit-mib 64
    python benchmarks/orbax_memory.py --checkpoint DIR     of a checkpoint that is there
    python benchmarks/orbax_memory.py --small              16 MiB: a look, not a result

Linux and macOS, where the system says what a process held at most.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorstore_py as ts

MIB = 2**20
#: Bytes of a large array of the checkpoint; as many small ones as large ones are beside.
LARGE = 64 * MIB


def peak() -> int:
    """What this process held at most, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def make(where: Path, nbytes: int) -> None:
    """Save a checkpoint of random numbers, which hardly compress."""
    large = np.random.default_rng(7).normal(size=(min(LARGE, nbytes) // 4096, 1024))
    weights = large.astype("float32")
    count = max(1, nbytes // weights.nbytes)
    tree = {"layers": [{"kernel": weights, "bias": np.ones(1024, "float32")} for _ in range(count)]}
    ts.orbax.save(tree, where).result()


def work(step: str, source: Path, dest: Path, limit: int) -> None:
    """Do one step, and print what it took."""
    if step == "make":
        make(dest, limit)
        return
    context = ts.Context({"memory_limit": {"limit_bytes": limit}})
    _ = ts.orbax.open  # what is imported late belongs to what was held before
    before, started = peak(), time.perf_counter()
    if step == "to-safetensors":
        ts.orbax.to_safetensors(source, dest, context=context).result()
    else:
        ts.orbax.from_safetensors(source, dest, context=context).result()
    seconds = time.perf_counter() - started
    print(
        f"{step:16}  {(peak() - before) / MIB:6.0f} MiB beyond {before / MIB:.0f} MiB, "
        f"{seconds:.1f} s",
        flush=True,
    )


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--limit-mib", type=int, default=256)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    limit = options.limit_mib * MIB
    if options.step:
        step, source, dest = options.step
        work(step, Path(source), Path(dest), limit)
        return
    nbytes = 16 * MIB if options.small else int(options.gib * 1024 * MIB)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        checkpoint = options.checkpoint or root / "checkpoint"
        file = root / "model.safetensors"
        again = [sys.executable, __file__, "--limit-mib", str(options.limit_mib), "--step"]
        if options.checkpoint is None:
            # The peak of a process begins with that of the one that started it.
            size = [sys.executable, __file__, "--limit-mib", str(nbytes // MIB), "--step"]
            subprocess.run([*size, "make", "-", str(checkpoint)], check=True)
        for step, source, dest in (
            ("to-safetensors", checkpoint, file),
            ("from-safetensors", file, root / "again"),
        ):
            subprocess.run([*again, step, str(source), str(dest)], check=True)
        print(f"{'file':16}  {file.stat().st_size / MIB:6.0f} MiB, memory_limit {limit / MIB:.0f}")


if __name__ == "__main__":
    main()
