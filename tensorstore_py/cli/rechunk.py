"""Copy an array or a group into chunks of another shape."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tensorstore_py._conversion.copy import rechunk
from tensorstore_py.cli.output import add_json, examples, printed
from tensorstore_py.cli.places import add_choice, add_trust, copy_arguments, extents
from tensorstore_py.cli.progress import drawn

if TYPE_CHECKING:
    from tensorstore_py._conversion.summary import CopySummary

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_choice(parser)
    add_trust(parser)
    parser.add_argument(
        "--chunks", type=extents, required=True, help="extents: 64, or 1,64,64, or t=1,x=64"
    )
    add_json(parser)
    examples(
        parser,
        "  tspy rechunk image.zarr columns.zarr --chunks t=-1,y=32,x=32\n"
        "  tspy rechunk image.zarr sharded.zarr --chunks 1,32,32 --shards 1,128,128\n",
    )


def run(options: argparse.Namespace) -> int:
    """Copy, and print what was copied."""

    def work() -> CopySummary:
        with drawn(options, "rechunk") as progress:
            return rechunk(**copy_arguments(options, progress), chunks=options.chunks).result()

    return printed(options, work, str)
