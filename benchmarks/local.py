"""Side by side on local files: us, the tensorstore wheel, zarr-python, and zarr-python with zarrs.

One worker process a library; a round runs a workload once in each, one after another, so that a
slow minute of the machine is everybody's. A ratio is a peer's time over ours in the same round, and
the table shows the median over the rounds: above 1 we are ahead.

    python benchmarks/local.py                         everything, 512³ voxels, 5 rounds
    python benchmarks/local.py --quick                 128³ voxels, 3 rounds: a look, not a result
    python benchmarks/local.py --workloads 'full'      workloads whose name contains a pattern
    python benchmarks/local.py --layouts '64|shards'   the same for layouts
    python benchmarks/local.py --only-libs tensorstore peers to run
    python benchmarks/local.py --memory                memory and import time instead
    python benchmarks/local.py --baseline ../before    another checkout of ours as a peer, too

Files are read from and written to the page cache; nobody waits for the disk (zarr-python has no
such option, so file_io_sync is false for all; --sync sets it where it exists).
"""

import argparse
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# run as a file, only this folder would be importable
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - after the path

from benchmarks import footprint  # noqa: E402
from benchmarks.layouts import LAYOUTS, Layout  # noqa: E402
from benchmarks.volume import make_volume  # noqa: E402
from benchmarks.workloads import WORKLOADS, Workload  # noqa: E402

OURS = "tensorstore_py"
PEERS = ("tensorstore", "zarr", "zarrs")
BARE = "bare"
BASELINE = "baseline"

NOTES = """\
"peer ÷": the peer's time over ours, above 1 we are ahead; "÷ bare": our time over the bare
minimum's. zarr-python has no safe way to write parts of a chunk at once: it does a tenth of the
300, one after another, times ten. Its copy passes through an array in memory, having no other."""


class WorkerError(Exception):
    """A worker answered with a traceback, or did not answer."""


class WorkerProcess:
    """A process that serves one library; see `worker.py`.

    Args:
        name: of the library.
        root: where files are.
        sync: whether files are written to the disk.
        baseline: the checkout of this library that is called "baseline".
    """

    def __init__(self, name: str, root: Path, *, sync: bool, baseline: Path | None = None) -> None:
        self.name = name
        tree, module = (baseline or ROOT, OURS) if name == BASELINE else (ROOT, name)
        command = [sys.executable, "-m", "benchmarks.worker", module, str(root)]
        self.process = subprocess.Popen(
            [*command, "sync" if sync else "nosync"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, action: str, **request: Any) -> dict[str, Any] | None:
        """Sends a request; returns the answer, or None if the library has no such thing."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"action": action, **request}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.name}: ended with code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.name}: {action} {request}\n{answer['error']}")
        result: dict[str, Any] | None = answer.get("ok")
        return result

    def close(self) -> None:
        """Ends the process: politely, then not."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@dataclass(slots=True)
class Row:
    """One workload on one layout: the seconds of each library, round by round."""

    layout: str
    workload: str
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, library: str) -> float | None:
        """Median seconds of one library, or None if it does not offer the workload."""
        taken = self.seconds.get(library)
        return statistics.median(taken) if taken else None

    def ratio(self, peer: str, ours: str) -> float | None:
        """Median over the rounds of peer time / our time."""
        pairs = zip(self.seconds.get(peer, ()), self.seconds.get(ours, ()), strict=False)
        ratios = [theirs / mine for theirs, mine in pairs]
        return statistics.median(ratios) if ratios else None


def measure(
    workers: dict[str, WorkerProcess], layout: Layout, workload: Workload, rounds: int
) -> Row:
    """Runs one workload on one layout: a checked warm-up each, then interleaved rounds."""
    row = Row(layout.name, workload.name)
    request = {"workload": workload.name, "layout": layout.name}
    able = []
    for name, worker in workers.items():
        if worker.ask("run", **request, check=True) is not None:
            able.append(name)
    for number in range(rounds):
        # nobody is always the first after another
        for name in able[number % len(able) :] + able[: number % len(able)]:
            answer = workers[name].ask("run", **request, check=False)
            assert answer is not None
            row.seconds.setdefault(name, []).append(answer["seconds"])
    return row


def show_seconds(seconds: float | None) -> str:
    """Seconds in the unit that reads best."""
    if seconds is None:
        return "–"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def show_ratio(ratio: float | None) -> str:
    """A ratio with two decimals, or a dash."""
    return "–" if ratio is None else f"{ratio:.2f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """Lays rows out under a header, for a terminal or for a Markdown page."""
    if markdown:
        lines = [header, ["---"] * 2 + ["---:"] * (len(header) - 2), *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
    widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [header, *rows]
    )


def report(rows: Sequence[Row], ours: str, peers: Sequence[str], *, markdown: bool) -> str:
    """The table of ratios, and the geometric mean against each peer."""
    versus = [*peers, BARE]
    header = ["layout", "workload", ours, *(f"{peer} ÷" for peer in peers), "÷ bare"]
    body = []
    for row in rows:
        ratios: list[float | None] = [row.ratio(peer, ours) for peer in versus]
        # against the limit the question is the other way round: how far above it are we
        ratios[-1] = 1 / ratios[-1] if ratios[-1] else None
        cells = [show_seconds(row.median(ours)), *map(show_ratio, ratios)]
        body.append([row.layout, row.workload, *cells])
    lines = [table(header, body, markdown=markdown), ""]
    for peer in peers:
        ratios = [ratio for row in rows if (ratio := row.ratio(peer, ours))]
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            mean = math.exp(statistics.fmean(map(math.log, known)))
            slower = sum(ratio < 1 for ratio in known)
            lines.append(
                f"{peer}: geometric mean {mean:.2f} over {len(known)} rows, ahead of us in {slower}"
            )
    return "\n".join([*lines, NOTES])


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
    parser.add_argument("--rounds", type=int, help="timed rounds (5, or 3 with --quick)")
    parser.add_argument("--quick", action="store_true", help="128³ instead of 512³")
    parser.add_argument("--edge", type=int, help="the volume's edge in voxels")
    parser.add_argument("--workloads", default="", metavar="REGEX", help="only these workloads")
    parser.add_argument("--layouts", default="", metavar="REGEX", help="only these layouts")
    parser.add_argument("--only-libs", nargs="*", metavar="LIB", default=list(PEERS), help="peers")
    parser.add_argument("--baseline", type=Path, help="another checkout, to be compared with too")
    parser.add_argument("--ours", default=OURS, help="the module that is compared")
    parser.add_argument("--sync", action="store_true", help="file_io_sync where it exists")
    parser.add_argument("--dir", type=Path, help="where to write (default: the temporary folder)")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also save every round's seconds")
    parser.add_argument("--memory", action="store_true", help="memory and import time instead")
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
            if workload.only is not None and layout.name not in workload.only:
                continue
            if re.search(chosen.workloads, workload.name) and re.search(
                chosen.layouts, layout.name
            ):
                yield layout, workload


def run_workloads(chosen: argparse.Namespace, root: Path) -> list[Row]:
    """Measures everything that is selected, telling on stderr how far it is."""
    rows = []
    pairs = list(selected(chosen))
    with ExitStack() as stack:
        workers: dict[str, WorkerProcess] = {}
        for name in [chosen.ours, *chosen.peers, BARE]:
            workers[name] = WorkerProcess(name, root, sync=chosen.sync, baseline=chosen.baseline)
            stack.callback(workers[name].close)
        # the data that all read come from one hand, preferably not ours
        writer = workers[chosen.peers[0] if chosen.peers else chosen.ours]
        for layout in dict.fromkeys(layout for layout, _ in pairs):
            about = writer.ask("prepare", layout=layout.name)
            assert about is not None
            ratio = chosen.edge**3 * 2 / about["stored_bytes"]
            print(f"{layout.name}: {about['files']} files, ratio {ratio:.2f}", file=sys.stderr)
        for number, (layout, workload) in enumerate(pairs, start=1):
            rows.append(measure(workers, layout, workload, chosen.rounds))
            taken = show_seconds(rows[-1].median(chosen.ours))
            progress = f"[{number}/{len(pairs)}] {layout.name}, {workload.name}: {taken}"
            print(progress, file=sys.stderr, flush=True)
    return rows


def run_footprint(chosen: argparse.Namespace, root: Path) -> str:
    """Measures memory and import time of us and the peers."""
    libraries = [chosen.ours, *chosen.peers]
    layouts = [layout for layout in LAYOUTS if re.search(chosen.layouts, layout.name)]
    worker = WorkerProcess(chosen.peers[0] if chosen.peers else chosen.ours, root, sync=False)
    try:
        for layout in layouts:
            worker.ask("prepare", layout=layout.name)
    finally:
        worker.close()
    body = []
    for layout in layouts:
        place = root / "shared" / layout.name
        used = [footprint.memory_beyond_output(name, layout, place) for name in libraries]
        body.append([layout.name, "full read", *(f"{size / 2**20:.0f} MiB" for size in used)])
    taken = footprint.import_seconds(libraries)
    body.append(["import", "beyond numpy", *(show_seconds(taken[name]) for name in libraries)])
    return table(["", "memory beyond the result", *libraries], body, markdown=chosen.markdown)


def about(chosen: argparse.Namespace) -> str:
    """What a reader must know to judge the figures."""
    return (
        f"{chosen.edge}³ uint16, {chosen.rounds} rounds, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, file_io_sync {str(chosen.sync).lower()}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit code."""
    chosen = options(arguments)
    with working_directory(chosen.dir) as root:
        np.save(root / "volume.npy", make_volume(chosen.edge))
        try:
            if chosen.memory:
                print(run_footprint(chosen, root))
                return 0
            rows = run_workloads(chosen, root)
        except WorkerError as error:
            print(error, file=sys.stderr)
            return 1
    print(about(chosen))
    print(report(rows, chosen.ours, chosen.peers, markdown=chosen.markdown))
    if chosen.json is not None:
        saved = [
            {"layout": row.layout, "workload": row.workload, "seconds": row.seconds} for row in rows
        ]
        chosen.json.write_text(json.dumps({"about": about(chosen), "rows": saved}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
