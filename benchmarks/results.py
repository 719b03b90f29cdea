"""What was measured, as tables: of one run, or of several that are merged.

A ratio is a peer's time over ours in the same round, and a row has the median over the rounds.
"""

import json
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BARE = "bare"
METADATA = re.compile("create|open|list")
"Workloads that read and write metadata alone; the others are of data."
FLOOR = 0.8
"Rows that are slower than this beside the first peer are listed."

NOTES = """\
"peer ÷": the peer's time over ours, above 1 we are ahead; "÷ bare": our time over the bare
minimum's; "~": fewer rounds, since one takes long. zarr-python and zarrista have no safe way to
write parts of a chunk at once: they do a tenth of the 300, one after another, times ten. Their
copies pass through an array in memory, having no other."""


@dataclass(slots=True)
class Row:
    """One workload on one layout: the seconds of each library, round by round."""

    layout: str
    workload: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    "Why a library has no such row."

    def median(self, library: str) -> float | None:
        """Median seconds of one library, or None if it does not offer the workload."""
        taken = self.seconds.get(library)
        return statistics.median(taken) if taken else None

    def ratio(self, peer: str, ours: str) -> float | None:
        """Median over the rounds of peer time / our time."""
        pairs = zip(self.seconds.get(peer, ()), self.seconds.get(ours, ()), strict=False)
        ratios = [theirs / mine for theirs, mine in pairs]
        return statistics.median(ratios) if ratios else None

    def few(self, peer: str) -> bool:
        """Whether a peer was timed in fewer rounds than others."""
        rounds = max(map(len, self.seconds.values()), default=0)
        return 0 < len(self.seconds.get(peer, ())) < rounds

    def against_bare(self, ours: str) -> float | None:
        """How far above the limit we are: there the question is the other way round."""
        ratio = self.ratio(BARE, ours)
        return 1 / ratio if ratio else None


@dataclass(slots=True)
class Run:
    """What one run of the benchmark saves."""

    about: str
    ours: str
    peers: list[str]
    rows: list[Row]

    def save(self, file: Path) -> None:
        """Writes it as JSON."""
        rows = [
            {name: getattr(row, name) for name in ("layout", "workload", "seconds", "lacks")}
            for row in self.rows
        ]
        saved = {"about": self.about, "ours": self.ours, "peers": self.peers, "rows": rows}
        file.write_text(json.dumps(saved, indent=1), "utf-8")

    @classmethod
    def load(cls, file: Path) -> "Run":
        """Reads what `save` wrote."""
        saved: dict[str, Any] = json.loads(file.read_text("utf-8"))
        rows = [Row(**row) for row in saved.pop("rows")]
        return cls(**saved, rows=rows)


def joined(parts: Sequence[Run]) -> list[Run]:
    """Runs of what was saved in parts: rows that a run has not yet belong to it, if peers agree."""
    runs: list[Run] = []
    for part in parts:
        keys = {(row.layout, row.workload) for row in part.rows}
        for run in runs:
            found = {(row.layout, row.workload) for row in run.rows}
            if (run.ours, run.peers) == (part.ours, part.peers) and not keys & found:
                run.rows = [*run.rows, *part.rows]
                break
        else:
            runs.append(Run(part.about, part.ours, part.peers, list(part.rows)))
    return runs


def show_seconds(seconds: float | None) -> str:
    """Seconds in the unit that reads best."""
    if seconds is None:
        return "–"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def show_ratio(ratio: float | None, *, few: bool = False) -> str:
    """A ratio with two decimals, or a dash."""
    return "–" if ratio is None else f"{'~' * few}{ratio:.2f}"


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


def summary(rows: Sequence[Row], ours: str, peer: str) -> str | None:
    """The geometric means against a peer, and in how many rows it is ahead; None without rows."""
    known = [ratio for row in rows if (ratio := row.ratio(peer, ours)) is not None]
    if not known:
        return None
    slower = sum(ratio < 1 for ratio in known)
    line = f"{peer}: geometric mean {geometric_mean(known):.2f} over {len(known)} rows"
    of_metadata = [row for row in rows if METADATA.match(row.workload)]
    if 0 < len(of_metadata) < len(rows):
        of_data = [row for row in rows if row not in of_metadata]
        for name, some in (("data", of_data), ("metadata", of_metadata)):
            part = [ratio for row in some if (ratio := row.ratio(peer, ours)) is not None]
            line += f", {geometric_mean(part):.2f} of {name}" if part else ""
    return f"{line}, ahead of us in {slower}"


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean of what is multiplied, not added."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def below(rows: Sequence[Row], ours: str, peer: str, floor: float = FLOOR) -> list[str]:
    """A line for each row in which a peer's time is less than `floor` of ours, worst first."""
    found = [
        (ratio, f"{ratio:.2f}  {row.layout}, {row.workload}")
        for row in rows
        if (ratio := row.ratio(peer, ours)) is not None and ratio < floor
    ]
    return [line for _, line in sorted(found)]


def lacking(rows: Sequence[Row]) -> list[str]:
    """A line for each reason why a library has no row, with the number of such rows."""
    counts: dict[str, int] = {}
    for row in rows:
        for peer, reason in row.lacks.items():
            if peer != BARE:
                counts[f"{peer}: {reason}"] = counts.get(f"{peer}: {reason}", 0) + 1
    return [f"{line} ({count} rows)" for line, count in counts.items()]


def report(rows: Sequence[Row], ours: str, peers: Sequence[str], *, markdown: bool) -> str:
    """The table of ratios, the geometric mean against each peer, and where we are far behind."""
    header = ["layout", "workload", ours, *(f"{peer} ÷" for peer in peers), "÷ bare"]
    body = []
    for row in rows:
        ratios = [show_ratio(row.ratio(peer, ours), few=row.few(peer)) for peer in peers]
        last = show_ratio(row.against_bare(ours))
        body.append([row.layout, row.workload, show_seconds(row.median(ours)), *ratios, last])
    lines = [table(header, body, markdown=markdown), ""]
    lines += [line for peer in peers if (line := summary(rows, ours, peer))]
    if peers and (slow := below(rows, ours, peers[0])):
        lines += [f"\nbelow {FLOOR} beside {peers[0]}:", *slow]
    if missing := lacking(rows):
        lines += ["\nnot to be had:", *missing]
    return "\n".join([*lines, "", NOTES])


def median_of(values: Sequence[float | None]) -> float | None:
    """The median of those that are known."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def merged(runs: Sequence[Run]) -> str:
    """One Markdown table of several runs: each run's ratio to the first peer, medians to others.

    A row that a run does not have is a dash; runs may have been of different peers.
    """
    runs = joined(runs)
    ours = runs[0].ours
    peers = list(dict.fromkeys(peer for run in runs for peer in run.peers))
    first, *others = peers
    found = [{(row.layout, row.workload): row for row in run.rows} for run in runs]
    having = [each for each, run in zip(found, runs, strict=True) if first in run.peers]
    header = ["layout", "workload", ours, f"{first} ÷, {len(having)} runs"]
    body = []
    for key in dict.fromkeys(key for rows in found for key in rows):
        rows = [each[key] for each in found if key in each]
        beside = " / ".join(
            show_ratio(each[key].ratio(first, ours) if key in each else None) for each in having
        )
        cells = [show_seconds(median_of([row.median(ours) for row in rows])), beside]
        for peer in others:
            few = any(row.few(peer) for row in rows)
            cells.append(show_ratio(median_of([row.ratio(peer, ours) for row in rows]), few=few))
        cells.append(show_ratio(median_of([row.against_bare(ours) for row in rows])))
        body.append([*key, *cells])
    lines = list(dict.fromkeys(run.about for run in runs))
    header += [*(f"{peer} ÷" for peer in others), "÷ bare"]
    lines += ["", table(header, body, markdown=True), ""]
    for number, run in enumerate(runs, start=1):
        said = [line for peer in run.peers if (line := summary(run.rows, ours, peer))]
        lines += [f"run {number}: {line}" for line in said]
    for number, run in enumerate(runs, start=1):
        if slow := below(run.rows, ours, first):
            lines += [f"\nrun {number}, below {FLOOR} beside {first}:", ""]
            lines += [f"- {line}" for line in slow]
    return "\n".join([*lines, "", NOTES])
