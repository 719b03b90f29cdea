"""Make a hierarchy of an older version of Zarr one of a newer version, where it is."""

from __future__ import annotations

import argparse

from tensorstore_py._conversion.migrate import migrate
from tensorstore_py.cli.places import add_trust, array_or_group, lasting_place, place, tried, trust
from tensorstore_py.cli.progress import add_progress, bar

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("where", type=place, help="URL or local path of an array or a group")
    parser.add_argument("--to", type=int, choices=(2, 3), default=3, help="the version; 3 if not")
    parser.add_argument("--dest", type=lasting_place, help="make a copy there instead")
    parser.add_argument("--keep", action="store_true", help="keep the old documents")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_trust(parser)
    add_progress(parser)


def run(options: argparse.Namespace) -> int:
    """Migrate, and print what was done."""
    return tried(
        lambda: migrate(
            array_or_group(options.where, trust(options)),
            options.to,
            dry_run=options.dry_run,
            dest=array_or_group(options.dest, trust(options, write=True)),
            keep=options.keep,
            progress=bar(options, "migrate"),
        ).result()
    )
