"""Copy an array or a group with everything in it: to another store, format, or form of chunks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tensorstore_py._conversion.copy import copy
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
    parser.add_argument("--chunks", type=extents, help="extents: 64, or 1,64,64, or t=1,x=64")
    parser.add_argument("--zarr-format", type=int, choices=(2, 3), help="of what is made")
    parser.add_argument("--dtype", help="data type of what is made")
    add_json(parser)
    examples(
        parser,
        "  tspy copy old.zarr copy.zarr\n"
        "  tspy copy image.zarr s3://bucket/image.n5 --chunks t=1,y=64,x=64 --codec gzip\n"
        "  tspy copy run.zarr packed.zip --include 'raw/*' --dry-run\n",
    )


def run(options: argparse.Namespace) -> int:
    """Copy, and print what was copied."""

    def work() -> CopySummary:
        with drawn(options, "copy") as progress:
            return copy(
                **copy_arguments(options, progress),
                zarr_format=options.zarr_format,
                chunks=options.chunks,
                dtype=options.dtype,
            ).result()

    return printed(options, work, str)
