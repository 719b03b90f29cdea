"""Print a hash of what arrays and trees hold, which is the same however they are stored."""

from __future__ import annotations

import argparse
import sys

from tensorstore_py._compute.digest import digest
from tensorstore_py.cli.found import Target, add_target, find
from tensorstore_py.cli.output import add_json, examples, printable, printed

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, several=True)
    add_json(parser)
    examples(parser, "  tspy digest old.zarr s3://bucket/new.zarr\n  tspy digest 'a.zarr[0, :]'\n")


def run(options: argparse.Namespace) -> int:
    """Print a line for each."""

    def work() -> list[dict[str, str]]:
        return [{"place": each.text, "digest": _digest(each)} for each in options.targets]

    return printed(
        options,
        work,
        lambda found: "\n".join(f"{each['digest']}  {printable(each['place'])}" for each in found),
    )


def _digest(asked: Target) -> str:
    source = asked.where if asked.selection is None else find(asked)
    return str(digest(source, progress=sys.stderr.isatty()).result())
