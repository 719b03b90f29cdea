"""The real Orbax, saving many small arrays with this package and with the wheel, side by side.

Each save is a process of its own, in which `tensorstore` is one or the other; they take turns. It
prints for each number of arrays both medians, in seconds of the clock and of the processors, and
how many files the checkpoint has.

    python benchmarks/orbax_saves.py                       400 and 2,000 arrays, three times
    python benchmarks/orbax_saves.py --arrays 100 --runs 1

Needs `orbax-checkpoint`, JAX and the wheel `tensorstore`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
ALIAS = "import sys\n\nimport tensorstore_py\n\nsys.modules[__name__] = tensorstore_py\n"
LIBRARIES = ("tensorstore_py", "tensorstore")


def save(count: int, where: Path) -> None:
    """Save so many arrays, and print what that took."""
    import jax  # noqa: PLC0415 - the parent can do without
    import numpy as np  # noqa: PLC0415
    import orbax.checkpoint as ocp  # noqa: PLC0415

    rng = np.random.default_rng(7)
    tree = {
        f"layer {number}": {"w": jax.device_put(rng.standard_normal((16, 16), "float32"))}
        for number in range(count)
    }
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        began, busy = time.perf_counter(), time.process_time()
        checkpointer.save(where, ocp.args.PyTreeSave(tree))
        took, busy = time.perf_counter() - began, time.process_time() - busy
    files = sum(1 for each in where.rglob("*") if each.is_file())
    print(took, busy, files)


def measured(library: str, count: int, scratch: Path) -> tuple[float, ...]:
    """What one save took, in a new process."""
    path = [str(ROOT)]
    if library == "tensorstore_py":
        (scratch / "alias").mkdir(exist_ok=True)
        (scratch / "alias/tensorstore.py").write_text(ALIAS, "utf-8")
        path.insert(0, str(scratch / "alias"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory(dir=scratch) as where:
        done = subprocess.run(
            [sys.executable, __file__, "--save", str(count), f"{where}/checkpoint"],
            env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
    return tuple(map(float, done.stdout.splitlines()[-1].split()))


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arrays", type=int, nargs="+", default=[400, 2000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--save", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.save:
        save(int(options.save[0]), Path(options.save[1]))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        for count in options.arrays:
            runs: dict[str, list[tuple[float, ...]]] = {library: [] for library in LIBRARIES}
            for _ in range(options.runs):
                for library, found in runs.items():
                    found.append(measured(library, count, Path(scratch)))
            print(f"{count} arrays")
            for library, found in runs.items():
                took, busy, files = map(median, zip(*found, strict=True))
                print(f"  {library:15} {took:7.2f} s {busy:7.2f} s busy {files:6.0f} files")
            ratios = [b[0] / a[0] for a, b in zip(*runs.values(), strict=True)]
            print(f"  speed beside the wheel's: {median(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
