"""Print the first elements of an array: some rows, and of each as many as a screen takes."""

from __future__ import annotations

import argparse
import sys

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.cli.cat import print_elements
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.facts import by_label
from tensorstore_py.cli.found import add_trusted_target, one_array, trusted
from tensorstore_py.cli.output import add_json, examples, printable, tried

__all__ = ["add", "run"]

#: So many positions are printed of the last dimension, of the one before it, and of others; in
#: arrays of two dimensions, or of one, so many rows.
_ACROSS, _DOWN, _DEEP, _ROWS = 10, 5, 1, 10


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser)
    parser.add_argument("-n", "--rows", type=_count, metavar="N",
                        help="so many along the first dimension; a screenful if not")  # fmt: skip
    add_json(parser)
    examples(parser, "  tspy head table.zarr\n  tspy head -n 3 'image.zarr[t=0]'\n")


def run(options: argparse.Namespace) -> int:
    """Print them."""

    def work() -> int:
        array = one_array(trusted(options.target, options), "tspy head")
        part = _first(array, options.rows)
        print_elements(part, "json" if options.json else "text")
        if part.shape != array.shape and not options.json:
            sys.stderr.write(printable(f"{by_label(part)} of {by_label(array)}") + "\n")
        return DONE

    return tried(work)


def _first(array: TensorStore, rows: int | None) -> TensorStore:
    ends = [_DEEP] * (array.rank - 2) + [_DOWN, _ACROSS]
    if array.rank <= 2:
        ends = [_ROWS, _ACROSS]
    if rows is not None:
        ends[0] = rows
    found = array
    if array.rank:
        found = array[
            tuple(
                slice(dim.inclusive_min, min(dim.inclusive_min + end, dim.exclusive_max))
                for dim, end in zip(array.domain, ends, strict=False)
            )
        ]
    return found


def _count(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"expected 0 or more, not {text!r}")
