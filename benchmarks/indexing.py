"""Indexing side by side: us and the tensorstore wheel, microseconds per expression.

Nothing is read or written; this is the price of `view = array[...]` before any I/O. Both libraries
run in this process, rounds interleaved; the table shows medians and the median ratio ours / wheel.

    python benchmarks/indexing.py            7 rounds
    python benchmarks/indexing.py --quick    3 short rounds: a look, not a result
"""

import argparse
import statistics
import sys
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorstore

import tensorstore_py

# An expression in x (rank 3, labeled, finite), ts, and what was made beforehand.
EXPRESSIONS = {
    "three slices": "x[1:50, 2:60, 3:70]",
    "slice, int, slice": "x[1:50, 7, 3:70]",
    "strided slices": "x[1:50:2, :, ::3]",
    "ellipsis and newaxis": "x[..., None, 5]",
    "slice of a view": "view[1:5]",
    "ts.d['x'].translate_to[0]": "x[ts.d['x'].translate_to[0]]",
    "expression made before": "x[expression]",
    "translate_to[0]": "x.translate_to[0]",
    "label": "x.label['a', 'b', 'c']",
    "transpose": "x.T",
    "index domain": "x[domain]",
    "compose": "x[x]",
    "vindex, 3 points": "x.vindex[[1, 2, 3], [4, 5, 6]]",
    "oindex, 1000 rows": "x.oindex[rows]",
    "to_json": "x.to_json()",
}


def scene(ts: Any) -> dict[str, object]:
    """The names that the expressions use, made with one library."""
    x = ts.IndexTransform(input_shape=[100, 2000, 300], input_labels=["x", "y", "z"])
    return {
        "ts": ts,
        "x": x,
        "view": x[1:9, 3, 4],
        "expression": ts.d["x", "z"].translate_to[0][2:50, 7],
        "domain": ts.IndexDomain([ts.Dim(1, 50, label="x"), ts.Dim(2, 60, label="y")]),
        "rows": list(range(100)) * 10,
    }


def microseconds(ts: Any, expression: str, loops: int) -> float:
    """The time of one evaluation, the mean over `loops`."""
    run: Callable[..., float] = timeit.timeit
    return run(expression, globals=scene(ts), number=loops) / loops * 1e6


def measure(expression: str, rounds: int, loops: int) -> tuple[float, float, float]:
    """Medians of ours and of the wheel, and the median ratio of the rounds."""
    pairs = [
        (
            microseconds(tensorstore_py, expression, loops),
            microseconds(tensorstore, expression, loops),
        )
        for _ in range(rounds)
    ]
    ours, wheel = (statistics.median(column) for column in zip(*pairs, strict=True))
    return ours, wheel, statistics.median(a / b for a, b in pairs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(description="Indexing: us and the tensorstore wheel.")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    options = parser.parse_args(arguments)
    rounds, loops = (3, 200) if options.quick else (7, 3000)
    print(f"{'us per expression':28} {'ours':>8} {'wheel':>8} {'ratio':>7}")
    for name, expression in EXPRESSIONS.items():
        ours, wheel, ratio = measure(expression, rounds, loops)
        print(f"{name:28} {ours:8.1f} {wheel:8.1f} {ratio:7.2f}", flush=True)


if __name__ == "__main__":
    main()
