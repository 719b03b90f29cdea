"""Say where two arrays or trees differ: members, attributes and elements.

Chunks, codecs, stores and formats make no difference. The exit code is 1 if something differs.
"""

from __future__ import annotations

import argparse
import sys

from tensorstore_py._compute.diff import diff
from tensorstore_py._compute.difference import Difference
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.found import Target, find, target, trusted
from tensorstore_py.cli.output import add_json, examples, printable, to_json, tried
from tensorstore_py.cli.places import add_trust
from tensorstore_py.cli.progress import add_progress, drawn

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    for name in ("one", "other"):
        parser.add_argument(name, type=target, metavar=name.upper(),
                            help="an array or a group, as for tspy ls")  # fmt: skip
    parser.add_argument("--rtol", type=float, default=0.0, metavar="PART",
                        help="numbers may be apart in proportion")  # fmt: skip
    parser.add_argument("--atol", type=float, default=0.0, metavar="NUMBER",
                        help="numbers may be apart by this")  # fmt: skip
    parser.add_argument("--nan-differs", action="store_true", help="NaN does not equal NaN")
    parser.add_argument("--most", type=int, default=100, metavar="N",
                        help="of how many blocks of an array to tell (100)")  # fmt: skip
    add_trust(parser)
    add_progress(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy diff old.zarr new.zarr\n  tspy diff a.zarr b.n5 --rtol 1e-6\n"
        "  tspy diff 'a.zarr[0]' 'a.zarr[1]'\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print the differences; 1 if there are any."""

    def work() -> int:
        with drawn(options, "diff") as progress:
            found = diff(
                _side(trusted(options.one, options)),
                _side(trusted(options.other, options)),
                equal_nan=not options.nan_differs,
                rtol=options.rtol,
                atol=options.atol,
                max_blocks=options.most,
                progress=progress,
            ).result()
        text = to_json(_facts(found)) if options.json else printable(str(found), lines=True)
        sys.stdout.write(f"{text}\n")
        return FAILED if found else DONE

    return tried(work)


def _side(asked: Target) -> object:
    return asked.where if asked.selection is None else find(asked)


def _facts(found: Difference) -> dict[str, object]:
    return {
        "differs": bool(found),
        "elements": found.elements,
        "differing_elements": found.differing_elements,
        "differing_blocks": found.differing_blocks,
        "arrays": found.arrays,
        "members": [
            {
                "path": each.path,
                "what": each.what,
                "one": _plain(each.one),
                "other": _plain(each.other),
            }
            for each in found.members
        ],
        "blocks": [
            {
                "path": each.path,
                "bounds": [list(pair) for pair in each.bounds],
                "box": [list(pair) for pair in each.box],
                "elements": each.elements,
                "first": list(each.first),
                "values": [_plain(value) for value in each.values],
                "largest": _plain(each.largest),
            }
            for each in found.blocks
        ],
    }


def _plain(value: object) -> object:
    """A value as JSON, or else as text."""
    item = getattr(value, "item", None)
    plain = item() if callable(item) else value
    if isinstance(plain, tuple):
        return list(plain)
    return plain if isinstance(plain, bool | int | float | str | dict | None) else str(plain)
