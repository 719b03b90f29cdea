"""Parsing, binding and opening specs side by side: us and the tensorstore wheel.

The spec is that of an array which this process has seen already, as in a program that opens the
same few arrays again and again. Nothing but metadata is read, from memory. Both libraries run in
this process, rounds interleaved; the table shows medians in microseconds, and the median ratio
ours / wheel.

    python benchmarks/specs.py            9 rounds
    python benchmarks/specs.py --quick    3 short rounds: a look, not a result
"""

import argparse
import statistics
import sys
import timeit
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorstore

import tensorstore_py

SPECS: dict[str, Any] = {
    "zarr3": {
        "driver": "zarr3",
        "kvstore": {"driver": "memory", "path": "a/"},
        "metadata": {
            "shape": [1000, 2000],
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [100, 100]}},
            "codecs": ["bytes", {"name": "gzip", "configuration": {"level": 5}}],
        },
        "recheck_cached_data": "open",
    },
    "zarr": {
        "driver": "zarr",
        "kvstore": {"driver": "memory", "path": "b/"},
        "metadata": {
            "shape": [1000, 2000],
            "dtype": "<u2",
            "chunks": [100, 100],
            "compressor": {"id": "zlib", "level": 5},
        },
        "schema": {"domain": {"shape": [[1000], [2000]]}},
    },
}
STEPS = {
    "parse": "ts.Spec(json)",
    "parse and bind": "ts.Spec(json).update(context=context)",
    "parse, bind and open": "ts.open(json, context=context).result()",
}


def scene(ts: Any, name: str) -> dict[str, object]:
    """What the statements use, made with one library; the array exists."""
    context = ts.Context()
    json = SPECS[name]
    ts.open(json, create=True, context=context).result()
    return {"ts": ts, "json": json, "context": context}


def measure(name: str, step: str, rounds: int, loops: int) -> tuple[float, float, float]:
    """Median microseconds of us and of the wheel, and the median ratio of the rounds."""
    scenes = [scene(ts, name) for ts in (tensorstore_py, tensorstore)]
    for names in scenes:
        timeit.timeit(STEPS[step], globals=names, number=loops)
    pairs = [
        [timeit.timeit(STEPS[step], globals=names, number=loops) / loops * 1e6 for names in scenes]
        for _ in range(rounds)
    ]
    ours, wheel = (statistics.median(column) for column in zip(*pairs, strict=True))
    return ours, wheel, statistics.median(mine / theirs for mine, theirs in pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    options = parser.parse_args(arguments)
    rounds, loops = (3, 50) if options.quick else (9, 500)
    print(f"{'':32}{'ours/µs':>10}{'wheel/µs':>10}{'ratio':>8}")
    for name in SPECS:
        for step in STEPS:
            ours, wheel, ratio = measure(name, step, rounds, loops)
            print(f"{name + ': ' + step:32}{ours:10.1f}{wheel:10.1f}{ratio:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
