"""Copy an array or a group into chunks of another shape."""

from __future__ import annotations

import argparse
import sys

from tensorstore_py._conversion.copy import rechunk
from tensorstore_py.cli.places import (
    add_choice,
    add_trust,
    array_or_group,
    document,
    extents,
    tried,
    trust,
)

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_choice(parser)
    add_trust(parser)
    parser.add_argument(
        "--chunks", type=extents, required=True, help="extents: 64, or 1,64,64, or t=1,x=64"
    )


def run(options: argparse.Namespace) -> int:
    """Copy, and print what was copied."""
    return tried(
        lambda: rechunk(
            array_or_group(options.source, trust(options)),
            array_or_group(options.dest, trust(options, write=True)),
            options.chunks,
            shards=options.shards,
            codec=options.codec,
            includes=options.include,
            excludes=options.exclude,
            if_exists=options.if_exists,
            manifest=document(options.manifest, trust(options)),
            dry_run=options.dry_run,
            progress=sys.stderr.isatty(),
        ).result()
    )
