"""A short benchmark that is kept: one line a run, in a file that is checked in.

Seconds mean nothing on another machine, or on the same one next year. Ratios do: a peer's time
over ours in the same round, above 1 where we are ahead, is what `benchmarks/local.py` measures,
and a run of that with few workloads is added here to `benchmarks/history.jsonl`, with the versions
that it compares. What falls between two lines by more than the peers' own versions explain is
worth a look.

    python benchmarks/history.py                 measures for a minute or two, and adds a line
    python benchmarks/history.py --show          the lines that are there, as a table
    python benchmarks/history.py --file FILE     another file

Run it before a release, with nothing else at work: ratios are of one round, but very short ones are
shaken by what a busy machine does in between.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# run as a file, only this folder would be importable
sys.path.insert(0, str(ROOT))

from benchmarks import local, results  # noqa: E402 - after the path

FILE = ROOT / "benchmarks" / "history.jsonl"
PEERS = ("tensorstore", "zarr")
MEASURED = (
    "--quick", "--rounds", "5",
    "--layouts", "^v2 blosc 64³$|^v3 zstd 64³$|blosc 32³ in 256³ shards$",
    "--workloads", "^(full read|full write|open by spec|300 random.*in turn)$",
    "--only-libs", *PEERS,
)  # fmt: skip


def ratios(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The median ratio to each peer, by "layout, workload", of what local.py saved."""
    found: dict[str, dict[str, float]] = {}
    for each in rows:
        row = results.Row(each["layout"], each["workload"], each["seconds"])
        taken = {peer: row.ratio(peer, local.OURS) for peer in PEERS}
        found[f"{row.layout}, {row.workload}"] = {
            peer: round(ratio, 3) for peer, ratio in taken.items() if ratio is not None
        }
    return found


def commit() -> str:
    """The commit that is measured, with a + if the tree has changes; empty outside of a clone."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=12"],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip()


def entry(saved: dict[str, Any]) -> dict[str, Any]:
    """One line of the history: when, what, beside what, on what, and the ratios."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("tensorstore-py", *PEERS, "numpy", "numcodecs")
        },
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "about": saved["about"],
        "ratios": ratios(saved["rows"]),
    }


def read(file: Path) -> list[dict[str, Any]]:
    """The lines of a history, oldest first."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def append(file: Path, line: dict[str, Any]) -> None:
    """Adds a line at the end."""
    with file.open("a", encoding="utf-8", newline="\n") as opened:
        opened.write(json.dumps(line, ensure_ascii=False) + "\n")


def shown(lines: Sequence[dict[str, Any]]) -> str:
    """A table: a row for each workload and peer, a column for each run."""
    heads = [f"{line['date']} {line['commit']}" for line in lines]
    names = dict.fromkeys(
        (name, peer) for line in lines for name, taken in line["ratios"].items() for peer in taken
    )
    body = [
        [name, peer, *(cell(line["ratios"].get(name, {}).get(peer)) for line in lines)]
        for name, peer in names
    ]
    return results.table(["peer's time ÷ ours", "peer", *heads], body, markdown=False)


def cell(ratio: float | None) -> str:
    """A ratio as the table has it; a dash where a run did not measure it."""
    return "–" if ratio is None else f"{ratio:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and adds a line, or shows what is there; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="print the history, measure nothing")
    parser.add_argument("--file", type=Path, default=FILE, help="the history's file")
    chosen = parser.parse_args(arguments)
    if chosen.show:
        print(shown(read(chosen.file)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "saved.json")
        status = local.main([*MEASURED, "--json", str(saved)])
        if status:
            return status
        append(chosen.file, entry(json.loads(saved.read_text(encoding="utf-8"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
