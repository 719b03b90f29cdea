"""The table of docs/network.md: what is read and written through a network, beside others.

Runs benchmarks/over_http.py, benchmarks/objects.py and benchmarks/objects_gcs.py, with and without
latency, and prints one table in Markdown: ours, and how we stand to each of the others, as medians
over rounds in which each library has its turn.

    python benchmarks/network.py             about five minutes
    python benchmarks/network.py --write     and puts the tables into docs/network.md
    python benchmarks/network.py --quick     a look, not a result
    python benchmarks/network.py --in-flight
        the other table: 1, 32 and 128 requests in flight beside the tensorstore wheel, two minutes
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import objects, objects_gcs, over_http
from benchmarks.requests_by_rounds import (
    AT_A_TIME,
    CHUNKS_FAR_AWAY,
    IN_FLIGHT,
    LATENCY_S,
    Found,
)

OURS = "tensorstore_py"
PEER = "tensorstore"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "network.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
IN_FLIGHT_BEGIN = "<!-- in flight: begin -->"


HEADER = (
    "| store | workload | requests/s | CPU ms | beside | their requests/s | their CPU ms "
    "| ours ÷ theirs: requests/s | CPU |\n|---|---|---|---|---|---|---|---|---|"
)
IN_FLIGHT_HEADER = (
    "| store | requests, in flight | ours a second | tensorstore's | our CPU ms | its "
    "| ours ÷ its: requests/s | CPU |\n|---|---|---|---|---|---|---|---|"
)
LATENCY_HEADER = "| store | library | seconds | of the ideal | CPU ms |\n|---|---|---|---|---|"


def median(numbers: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(numbers)


def rows(store: str, found: Found) -> list[str]:
    """A row for each workload and library beside us."""
    lines = []
    for (workload, library), theirs in found.items():
        if library == OURS:
            continue
        ours = found[workload, OURS]
        pairs = list(zip(ours, theirs, strict=True))
        cells = [
            store,
            workload,
            f"{median([mine.rate for mine in ours]):,.0f}",
            f"{median([mine.cpu_ms for mine in ours]):.3f}",
            library,
            f"{median([their.rate for their in theirs]):,.0f}",
            f"{median([their.cpu_ms for their in theirs]):.3f}",
            f"**{median([mine.rate / their.rate for mine, their in pairs]):.2f}**",
            f"{median([mine.cpu_ms / their.cpu_ms for mine, their in pairs]):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def latency_rows(store: str, found: Found) -> list[str]:
    """A row for each library, of the arrays only."""
    ideal_s = LATENCY_S * CHUNKS_FAR_AWAY / AT_A_TIME
    lines = []
    for (workload, library), results in found.items():
        if workload == "array" or library == "minimum":
            seconds = median([result.seconds for result in results])
            cpu_ms = median([result.cpu_ms for result in results])
            lines.append(
                f"| {store} | {library} | {seconds:.3f} | {seconds / ideal_s:.2f} | {cpu_ms:.3f} |"
            )
    return lines


def in_flight_rows(store: str, found: Found) -> list[str]:
    """A row for each number of requests in flight."""
    lines = []
    for workload, library in found:
        if library != OURS:
            continue
        ours, theirs = found[workload, OURS], found[workload, PEER]
        rates = [mine.rate / their.rate for mine, their in zip(ours, theirs, strict=True)]
        cpus = [mine.cpu_ms / their.cpu_ms for mine, their in zip(ours, theirs, strict=True)]
        low, *_, high = sorted(rates)
        cells = [
            store,
            workload,
            f"{median([mine.rate for mine in ours]):,.0f}",
            f"{median([their.rate for their in theirs]):,.0f}",
            f"{median([mine.cpu_ms for mine in ours]):.3f}",
            f"{median([their.cpu_ms for their in theirs]):.3f}",
            f"**{median(rates):.2f}** ({low:.2f} to {high:.2f})",
            f"{median(cpus):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def in_flight(rounds: int, count: int) -> Iterator[str]:
    """The lines of the table of requests in flight, as they are measured."""
    yield IN_FLIGHT_HEADER
    beside = (OURS, PEER)
    for store, contest in (
        ("http", over_http.contest(beside, tuple(name for name in IN_FLIGHT if "GET" in name))),
        ("s3", objects.contest(beside, tuple(IN_FLIGHT))),
        ("gcs", objects_gcs.contest(beside, tuple(IN_FLIGHT))),
    ):
        yield from in_flight_rows(store, contest.measure(rounds, count))


def tables(rounds: int, count: int) -> Iterator[str]:
    """The lines of both tables, as they are measured."""
    yield HEADER
    for store, contest in (
        ("http", over_http.contest()),
        ("s3", objects.contest()),
        ("gcs", objects_gcs.contest()),
    ):
        yield from rows(store, contest.measure(rounds, count))
    yield "\n2,000 chunks from a server that is 20 ms away:\n"
    yield LATENCY_HEADER
    for store, contest in (
        ("http", over_http.contest()),
        ("s3", objects.contest(asked=("array",))),
        ("gcs", objects_gcs.contest(asked=("array",))),
    ):
        yield from latency_rows(store, contest.measure(rounds, CHUNKS_FAR_AWAY, LATENCY_S))


def put_into(page: str, table: str, begin: str = BEGIN) -> str:
    """The page with the table between its marks."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}\n{table}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the tables."""
    parser = argparse.ArgumentParser(description="Through a network: us and others.")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/network.md")
    parser.add_argument("--in-flight", action="store_true", help="1, 32, 128 requests in flight")
    options = parser.parse_args(arguments)
    measure, begin = (in_flight, IN_FLIGHT_BEGIN) if options.in_flight else (tables, BEGIN)
    rounds, count = (3, 500) if options.quick else (7, 600 if options.in_flight else 2000)
    lines = []
    for line in measure(rounds, count):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        PAGE.write_text(put_into(PAGE.read_text("utf-8"), "\n".join(lines), begin), "utf-8")


if __name__ == "__main__":
    main()
