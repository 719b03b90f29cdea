"""Copy an array or a group into chunks of another shape."""

from __future__ import annotations

import argparse

from tensorstore_py._conversion.copy import rechunk
from tensorstore_py.cli.places import add_choice, add_trust, copy_arguments, extents, tried

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
    return tried(lambda: rechunk(**copy_arguments(options), chunks=options.chunks).result())
