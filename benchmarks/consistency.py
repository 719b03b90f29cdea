"""What is lost when an array is shared: the same honest programs on several libraries.

Threads, processes, forked children, killed writers and bad answers: each program writes only what
is its own, and each library is used as its documentation says. Prints, for each program and
library, the share of elements that are wrong afterwards, and how many processes hung, crashed or
ended with an error. Every program runs in a fresh process.

    python benchmarks/consistency.py                        everything, three rounds
    python benchmarks/consistency.py --only torn,kills --libs tensorstore_py,zarr --rounds 1
    python benchmarks/consistency.py --markdown

The exit status is 1 if anything is wrong with the first library.
"""

import argparse
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.faces import LIBRARIES, face_of
from benchmarks.losses import WORKLOADS, Outcome

ROOT = Path(__file__).resolve().parent.parent
#: Seconds after which a whole program is taken for hung; it takes a few.
PATIENCE = 80


@dataclass
class Cell:
    """All rounds of one program on one library."""

    outcome: Outcome
    lacks: str = ""

    def add(self, outcome: Outcome) -> None:
        for field in fields(Outcome):
            total = getattr(self.outcome, field.name) + getattr(outcome, field.name)
            setattr(self.outcome, field.name, total)

    def __str__(self) -> str:
        if self.lacks:
            return "n/a"
        found = self.outcome
        words = []
        if found.wrong or not (found.hangs or found.crashes or found.errors):
            share = 100 * found.wrong / max(1, found.total)
            words.append(
                "0" if not found.wrong else f"{share:.1f} %" if share >= 0.1 else "< 0.1 %"
            )
        for count, word in (
            (found.hangs, "hang"),
            (found.crashes, "crash"),
            (found.errors, "error"),
        ):
            if count:
                plural = "es" if word == "crash" else "s"
                words.append(f"{count} {word}{plural if count > 1 else ''}")
        return ", ".join(words)

    @property
    def clean(self) -> bool:
        found = self.outcome
        return not (self.lacks or found.wrong or found.hangs or found.crashes or found.errors)


def run(library: str, workload: str, seed: int, *, verbose: bool) -> Cell:
    """Run one program once."""
    # children that compile what they import would take longer than what they are measured at
    environment = {
        name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.losses", library, workload,
             str(seed), folder],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return Cell(Outcome(hangs=1))
        finally:
            # children that hang, too
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    if verbose and err:
        print(f"-- {library}, {workload}\n{err}", file=sys.stderr, flush=True)
    if process.returncode < 0:
        return Cell(Outcome(crashes=1))
    if process.returncode > 0 or not out.strip():
        return Cell(Outcome(errors=1))
    answer = json.loads(out.splitlines()[-1])
    if "lacks" in answer:
        return Cell(Outcome(), answer["lacks"])
    return Cell(Outcome(**answer))


def table(rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """Rows as text, the first one their head."""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    padded = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(padded)


def versions(libraries: Sequence[str]) -> str:
    """What was compared, in a line."""
    names = {"tensorstore_py": "tensorstore-py", "zarr-fused": "zarr"}
    found = {}
    for library in libraries:
        name = names.get(library, library)
        found[name] = importlib.metadata.version(name)
    python = ".".join(map(str, sys.version_info[:3]))
    said = ", ".join(f"{name} {version}" for name, version in found.items())
    return f"Python {python}, {said}; {os.cpu_count()} cores"


def installed(libraries: Sequence[str]) -> list[str]:
    found = []
    for library in libraries:
        try:
            face_of(library)
            found.append(library)
        except ImportError as error:
            print(f"without {library}: {error}", file=sys.stderr)
    return found


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = ", ".join(WORKLOADS)
    parser.add_argument("--only", help=f"programs, separated by commas: {names}")
    parser.add_argument("--libs", default=",".join(LIBRARIES), help="separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="show what goes wrong, on stderr")
    chosen = parser.parse_args(arguments)
    chosen.only = chosen.only.split(",") if chosen.only else list(WORKLOADS)
    chosen.libs = chosen.libs.split(",")
    for given, known, what in (
        (chosen.only, WORKLOADS, "program"),
        (chosen.libs, LIBRARIES, "library"),
    ):
        for name in given:
            if name not in known:
                parser.error(f"no {what} {name!r}; there are {', '.join(known)}")
    return chosen


def main(arguments: Sequence[str]) -> int:
    chosen = options(arguments)
    libraries = installed(chosen.libs)
    rows = [["", *libraries]]
    good = True
    for workload in chosen.only:
        row = [WORKLOADS[workload][0]]
        for library in libraries:
            cell = Cell(Outcome())
            for turn in range(chosen.rounds):
                found = run(library, workload, chosen.seed + turn, verbose=chosen.verbose)
                cell.add(found.outcome)
                cell.lacks = cell.lacks or found.lacks
            row.append(str(cell))
            good = good and (cell.clean or library != libraries[0])
            print(f"{workload}, {library}: {cell}", file=sys.stderr, flush=True)
        rows.append(row)
    print(versions(libraries))
    print()
    print(table(rows, markdown=chosen.markdown))
    return int(not good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
