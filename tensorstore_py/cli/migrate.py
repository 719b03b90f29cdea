"""Make a hierarchy of an older version of Zarr one of a newer version, where it is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tensorstore_py._conversion.migrate import migrate
from tensorstore_py.cli.output import add_json, examples, printed
from tensorstore_py.cli.places import add_trust, array_or_group, lasting_place, place, trust
from tensorstore_py.cli.progress import add_progress, drawn

if TYPE_CHECKING:
    from tensorstore_py._conversion.summary import Migration

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
    add_json(parser)
    examples(
        parser,
        "  tspy migrate old.zarr --dry-run\n  tspy migrate old.zarr --dest s3://bucket/new.zarr\n"
        "  tspy migrate old.zarr\n",
    )


def run(options: argparse.Namespace) -> int:
    """Migrate, and print what was done."""

    def work() -> Migration:
        with drawn(options, "migrate") as progress:
            return migrate(
                array_or_group(options.where, trust(options)),
                options.to,
                dry_run=options.dry_run,
                dest=array_or_group(options.dest, trust(options, write=True)),
                keep=options.keep,
                progress=progress,
            ).result()

    return printed(options, work, str)
