"""Side by side on local files: us, the tensorstore wheel, and what reads zarr besides.

The peers are `tensorstore` (C++), `zarr` (zarr-python as it comes), `zarr_fused` (with its
`FusedCodecPipeline`), `zarrs` (with the pipeline of zarrs, in Rust) and `zarrista` (zarrs without
zarr-python). One worker process a library; a round runs a workload once in each, one after another,
so that a slow minute of the machine is everybody's. A ratio is a peer's time over ours in the same
round, and the table shows the median over the rounds: above 1 we are ahead.

    python benchmarks/local.py                         everything, 512³ voxels, 5 rounds
    python benchmarks/local.py --quick                 128³ voxels, 3 rounds: a look, not a result
    python benchmarks/local.py --workloads 'full'      workloads whose name contains a pattern
    python benchmarks/local.py --layouts '64|shards'   the same for layouts
    python benchmarks/local.py --only-libs tensorstore peers to run
    python benchmarks/local.py --memory                memory and import time instead
    python benchmarks/local.py --baseline ../before    another checkout of ours as a peer, too
    python benchmarks/local.py --json one.json         keeps every round's seconds
    python benchmarks/local.py --merge one.json two.json three.json
                                                       one table of several runs, or of parts

Everything takes about 20 minutes on two cores. What takes long has fewer rounds, and a mark.

What an interpreter has installed decides much, so each may be chosen: `--python` for all, and
`--ours-python` for ours alone. What `pip install tensorstore-py` brings and no more is measured
beside the newest peers so:

    python benchmarks/environment.py build/default
    python benchmarks/environment.py build/fast --extras fast
    python benchmarks/local.py --ours-python build/default/bin/python

Files are read from and written to the page cache; nobody waits for the disk (zarr-python has no
such option, so file_io_sync is false for all; --sync sets it where it exists). Two workloads are of
a disk: reads of what the system does not hold in memory, and writes that wait. They are done below
`--disk`, and left out if that is no disk.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# run as a file, only this folder would be importable
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - after the path

from benchmarks import footprint  # noqa: E402
from benchmarks.layouts import LAYOUTS, Layout  # noqa: E402
from benchmarks.results import BARE, Row, Run, merged, report, show_seconds, table  # noqa: E402
from benchmarks.volume import make_volume  # noqa: E402
from benchmarks.workloads import WORKLOADS, Workload, measured  # noqa: E402

OURS = "tensorstore_py"
PEERS = ("tensorstore", "zarr", "zarr_fused", "zarrs", "zarrista")
BASELINE = "baseline"
# What takes a peer longer than so many seconds, with what it needs before and after, is timed in
# fewer rounds: so a whole table takes minutes and not hours. A row that ends late ends for all; the
# first peer, whose ratios have limits to hold, is given more time.
FEWER = ((4.0, 1), (1.0, 2))
FEWER_OF_FIRST = ((4.0, 2), (2.0, 3))


# Imports the benchmark of this checkout, and leaves what it measures to the folder it runs in.
WORKER = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from benchmarks import worker
sys.path.pop(0)
worker.main()
"""


class WorkerError(Exception):
    """A worker answered with a traceback, or did not answer."""


class WorkerProcess:
    """A process that serves one library; see `worker.py`.

    Args:
        name: of the library.
        root: where files are.
        chosen: the command line: interpreters, the checkout called "baseline", waiting for disks.
        disk: where files are that are on a disk, if there is one.
    """

    def __init__(
        self, name: str, root: Path, chosen: argparse.Namespace, disk: Path | None = None
    ) -> None:
        self.name = name
        of_ours = name in {chosen.ours, BASELINE}
        tree, module = (chosen.baseline, OURS) if name == BASELINE else (ROOT, name)
        python = (of_ours and chosen.ours_python) or chosen.python
        command = [str(python), "-c", WORKER, str(ROOT), module, str(root)]
        try:
            self.process = subprocess.Popen(
                [*command, "sync" if chosen.sync else "nosync", str(disk or "")],
                cwd=tree,
                env={**os.environ, "PYTHONPATH": str(tree)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise WorkerError(f"{name}: {error}") from error

    def ask(self, action: str, **request: Any) -> dict[str, Any]:
        """Sends a request; returns the answer: "ok", or why the library "lacks" such a thing."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        # one that has ended says nothing, which is told below
        with suppress(BrokenPipeError):
            print(json.dumps({"action": action, **request}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.name}: ended with code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.name}: {action} {request}\n{answer['error']}")
        return answer

    def close(self) -> None:
        """Ends the process: politely, then not."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def allowed(rounds: int, took: float, limits: Sequence[tuple[float, int]]) -> int:
    """In how many of the rounds one takes part whose first run took so many seconds."""
    return min(rounds, next((few for seconds, few in limits if took > seconds), rounds))


def measure(
    workers: dict[str, WorkerProcess],
    layout: Layout,
    workload: Workload,
    rounds: int,
    first: Sequence[str] = (),
) -> Row:
    """Runs one workload on one layout: a checked warm-up each, then interleaved rounds."""
    row = Row(layout.name, workload.name)
    request = {"workload": workload.name, "layout": layout.name}
    able: dict[str, int] = {}
    for name, worker in workers.items():
        began = time.perf_counter()
        answer = worker.ask("run", **request, check=True)
        if "ok" in answer:
            limits = FEWER_OF_FIRST if name in first else FEWER
            able[name] = allowed(rounds, time.perf_counter() - began, limits)
        else:
            row.lacks[name] = answer["lacks"]
    for number in range(rounds):
        turn = [name for name, most in able.items() if number < most]
        # nobody is always the first after another
        for name in turn[number % len(turn) :] + turn[: number % len(turn)] if turn else ():
            answer = workers[name].ask("run", **request, check=False)
            row.seconds.setdefault(name, []).append(answer["ok"]["seconds"])
    return row


@contextmanager
def working_directory(parent: Path | None) -> Iterator[Path]:
    """A directory of our own, removed at the end whatever happens."""
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="tensorstore-bench-", dir=parent))
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line; --quick only changes defaults."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--rounds", type=int, help="timed rounds (5, or 3 with --quick)")
    add("--quick", action="store_true", help="128³ instead of 512³")
    add("--edge", type=int, help="the volume's edge in voxels")
    add("--workloads", default="", metavar="REGEX", help="only these workloads")
    add("--layouts", default="", metavar="REGEX", help="only these layouts")
    add("--only-libs", nargs="*", metavar="LIB", default=list(PEERS), help="peers")
    add("--baseline", type=Path, help="another checkout, to be compared with too")
    add("--ours", default=OURS, help="the module that is compared")
    add("--python", type=Path, default=Path(sys.executable), help="the interpreter of all")
    add("--ours-python", type=Path, metavar="PYTHON", help="another interpreter for ours")
    add("--sync", action="store_true", help="file_io_sync where it exists")
    add("--dir", type=Path, help="where to write (default: the temporary folder)")
    add("--disk", type=Path, default=Path("/var/tmp"), help="a folder on a disk")  # noqa: S108
    add("--markdown", action="store_true", help="print a Markdown table")
    add("--json", type=Path, metavar="FILE", help="also save every round's seconds")
    add("--merge", type=Path, nargs="+", metavar="FILE", help="a table of runs that were saved")
    add("--memory", action="store_true", help="memory and import time instead")
    chosen = parser.parse_args(arguments)
    chosen.rounds = chosen.rounds or (3 if chosen.quick else 5)
    chosen.edge = chosen.edge or (128 if chosen.quick else 512)
    chosen.peers = [peer for peer in chosen.only_libs if peer != chosen.ours]
    if chosen.baseline is not None:
        chosen.peers.append(BASELINE)
    return chosen


def selected(chosen: argparse.Namespace) -> Iterator[tuple[Layout, Workload]]:
    """The pairs that the filters leave."""
    for layout in LAYOUTS:
        for workload in WORKLOADS:
            named = re.search(chosen.workloads, workload.name)
            if measured(layout, workload) and named and re.search(chosen.layouts, layout.name):
                yield layout, workload


def on_disk(folder: Path) -> bool:
    """Whether files of a folder are on a disk, and not kept in memory."""
    if not hasattr(os, "posix_fadvise") or not folder.is_dir():
        return False
    mounts = [line.split() for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    above = {str(folder.resolve()), *map(str, folder.resolve().parents)}
    _, kind = max((len(place), kind) for _, place, kind, *_ in mounts if place in above)
    return kind not in {"tmpfs", "ramfs"}


def prepare(workers: dict[str, WorkerProcess], layout: Layout, first: Sequence[str]) -> None:
    """Writes the data of a layout that all read: by one hand, preferably not ours."""
    for name in first:
        answer = workers[name].ask("prepare", layout=layout.name)
        if "ok" in answer:
            made = answer["ok"]
            ratio = f"ratio {made['bytes'] / made['stored_bytes']:.2f}"
            print(f"{layout.name}: {made['files']} files, {ratio}, by {name}", file=sys.stderr)
            return
    raise WorkerError(f"nobody can write {layout.name}")


def run_workloads(
    chosen: argparse.Namespace, root: Path, disk: Path | None
) -> tuple[str, list[Row]]:
    """Measures everything that is selected, telling on stderr how far it is."""
    rows = []
    pairs = list(selected(chosen))
    with ExitStack() as stack:
        workers: dict[str, WorkerProcess] = {}
        for name in [chosen.ours, *chosen.peers, BARE]:
            workers[name] = WorkerProcess(name, root, chosen, disk)
            stack.callback(workers[name].close)
        said = about(chosen, workers)
        first = [chosen.ours, *chosen.peers[:1], BASELINE]
        prepared = None
        for number, (layout, workload) in enumerate(pairs, start=1):
            if layout != prepared:
                prepare(workers, layout, [*chosen.peers, chosen.ours])
                prepared = layout
            began = time.perf_counter()
            rows.append(measure(workers, layout, workload, chosen.rounds, first))
            taken = show_seconds(rows[-1].median(chosen.ours))
            spent = f"{time.perf_counter() - began:.1f} s for the row"
            progress = f"[{number}/{len(pairs)}] {layout.name}, {workload.name}: {taken}, {spent}"
            print(progress, file=sys.stderr, flush=True)
    return said, rows


def run_footprint(chosen: argparse.Namespace, root: Path) -> str:
    """Measures memory and import time of us and the peers."""
    libraries = {chosen.ours: chosen.ours_python or chosen.python}
    libraries |= dict.fromkeys(chosen.peers, chosen.python)
    layouts = [layout for layout in LAYOUTS if re.search(chosen.layouts, layout.name)]
    layouts = [layout for layout in layouts if layout.only is None]
    name = chosen.peers[0] if chosen.peers else chosen.ours
    worker = WorkerProcess(name, root, chosen)
    try:
        for layout in layouts:
            prepare({name: worker}, layout, [name])
    finally:
        worker.close()
    body = []
    for layout in layouts:
        place = root / "shared" / layout.name
        used = [
            footprint.memory_beyond_output(name, layout, place, python)
            for name, python in libraries.items()
        ]
        body.append([layout.name, "full read", *(f"{size / 2**20:.0f} MiB" for size in used)])
    taken = footprint.import_seconds(libraries)
    body.append(["import", "beyond numpy", *(show_seconds(taken[name]) for name in libraries)])
    return table(["", "memory beyond the result", *libraries], body, markdown=chosen.markdown)


def about(chosen: argparse.Namespace, workers: dict[str, WorkerProcess]) -> str:
    """What a reader must know to judge the figures: sizes, interpreters, versions."""
    sync = str(chosen.sync).lower()
    what = f"{chosen.edge}³ uint16, {chosen.rounds} rounds"
    lines = [f"{what}, {os.cpu_count()} cores, file_io_sync {sync}"]
    for name, worker in workers.items():
        if name != BARE:
            answer = worker.ask("about")
            if "ok" not in answer:
                lines.append(f"{name}: {answer['lacks']}")
                continue
            found = answer["ok"]
            versions = ", ".join(f"{each} {number}" for each, number in found["versions"].items())
            lines.append(f"{name}: Python {found['python']}, {versions}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit code."""
    chosen = options(arguments)
    if chosen.merge:
        print(merged([Run.load(file) for file in chosen.merge]))
        return 0
    with ExitStack() as stack:
        root = stack.enter_context(working_directory(chosen.dir))
        disk = None
        if on_disk(chosen.disk):
            disk = stack.enter_context(working_directory(chosen.disk))
        np.save(root / "volume.npy", make_volume(chosen.edge))
        try:
            if chosen.memory:
                print(run_footprint(chosen, root))
                return 0
            said, rows = run_workloads(chosen, root, disk)
        except WorkerError as error:
            print(error, file=sys.stderr)
            return 1
    print(said)
    print(report(rows, chosen.ours, chosen.peers, markdown=chosen.markdown))
    if chosen.json is not None:
        Run(said, chosen.ours, chosen.peers, rows).save(chosen.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
