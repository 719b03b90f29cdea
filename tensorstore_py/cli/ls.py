"""List what is at a place, one level deep: names, kinds, shapes and data types.

Groups are listed by their format, directories and archives by their keys.
"""

from __future__ import annotations

import argparse

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.facts import Facts, entry_facts, entry_table
from tensorstore_py.cli.found import Entry, add_trusted_target, entries, find, trusted
from tensorstore_py.cli.output import add_json, examples, printed

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser)
    parser.add_argument("-l", "--long", action="store_true",
                        help="chunks, drivers and bytes, too")  # fmt: skip
    add_json(parser)
    examples(parser, "  tspy ls .\n  tspy ls -l s3://bucket/run.zarr/\n  tspy ls scans.zip\n")


def run(options: argparse.Namespace) -> int:
    """Print the listing; 1 if something in it is unreadable."""

    def work() -> list[Facts]:
        found = find(trusted(options.target, options))
        if isinstance(found, TensorStore):
            return [entry_facts(Entry(options.target.text, "array", found))]
        return [entry_facts(each) for each in entries(found, sizes=options.long)]

    return printed(options, work, lambda rows: entry_table(rows, long=options.long), code)


def code(rows: list[Facts]) -> int:
    """1 if something is unreadable."""
    return FAILED if any(row["kind"] == "unreadable" for row in rows) else DONE
