"""Draw how the elements of an array are distributed, as bars.

Without `--range` it goes from the least to the greatest element, for which the array is read once
more. NaN, infinities and what is outside the range are in no bin.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._compute.reduce import reduce
from tensorstore_py.cli.found import add_trusted_target, one_array, trusted
from tensorstore_py.cli.output import add_json, can_draw, columns_of_terminal, examples, printed
from tensorstore_py.cli.progress import Meter, add_progress, metered
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["add", "run"]

Facts = dict[str, Any]  # Any: JSON, to be walked through

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser)
    parser.add_argument("-b", "--bins", type=_bins, default=20, metavar="N",
                        help="how many bins (20)")  # fmt: skip
    parser.add_argument("--range", type=float, nargs=2, metavar=("LOW", "HIGH"),
                        help="only elements in between, both included")  # fmt: skip
    add_progress(parser)
    add_json(parser)
    examples(parser, "  tspy hist image.zarr\n  tspy hist 'image.zarr[t=0]' -b 64 --range 0 4096\n")


def run(options: argparse.Namespace) -> int:
    """Print the histogram."""
    return printed(options, lambda: _facts(options), _text)


def _bins(text: str) -> int:
    if text.isdecimal() and 0 < int(text) <= 100_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected 1 to 100000, not {text!r}")


def _facts(options: argparse.Namespace) -> Facts:
    array = one_array(trusted(options.target, options), "tspy hist")
    between = None if options.range is None else (options.range[0], options.range[1])
    size = array.size * array.dtype.numpy_dtype.itemsize
    with metered(options, "hist", [size] if between else [size, size]) as meter:
        bounds = between or _bounds(array, meter)
        found = reduce(
            array, "histogram", bins=options.bins, range=bounds, progress=meter.part(-1)
        ).result()
    counts, edges = found["histogram"]
    inside = int(counts.sum())
    return {
        "elements": array.size,
        "outside": array.size - inside,
        "edges": [float(edge) for edge in edges],
        "counts": [int(count) for count in counts],
    }


def _bounds(array: TensorStore, meter: Meter) -> tuple[float, float]:
    """The least and the greatest element.

    Raises MismatchError: there is none, or one is infinite.
    """
    if not array.size:
        raise MismatchError("there are no elements")
    found = reduce(array, ["min", "max"], skipna=True, progress=meter.part(0)).result()
    low, high = float(found["min"]), float(found["max"])
    if not np.isfinite([low, high]).all():
        raise MismatchError(f"elements go from {low} to {high}; say --range LOW HIGH")
    return low, high


def _text(found: Facts) -> str:
    edges, counts = found["edges"], found["counts"]
    names = [f"{edge:.6g}" for edge in edges]
    labels = [f"[{low}, {high}" for low, high in pairwise(names)]
    labels = [f"{label}{')' if at < len(labels) - 1 else ']'}" for at, label in enumerate(labels)]
    numbers = [f"{count:,}" for count in counts]
    left, right = max(map(len, labels)), max(map(len, numbers))
    room = max(10, columns_of_terminal() - left - right - 4)
    most = max(1, *counts)
    lines = [
        f"{label:<{left}}  {number:>{right}}  {_bar(count / most * room)}".rstrip()
        for label, number, count in zip(labels, numbers, counts, strict=True)
    ]
    if found["outside"]:
        lines.append(f"{found['outside']:,} of {found['elements']:,} elements are in no bin")
    return "\n".join(lines)


def _bar(length: float) -> str:
    if not can_draw(_EIGHTHS):
        return "#" * max(round(length), int(length > 0))
    eighths = max(round(8 * length), int(length > 0))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
