"""Print a hash of what arrays and trees hold, which is the same however they are stored."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tensorstore_py._compute.digest import digest
from tensorstore_py.cli.found import Target, add_trusted_target, find, trusted
from tensorstore_py.cli.output import add_json, examples, printable, printed
from tensorstore_py.cli.progress import add_progress, metered

if TYPE_CHECKING:
    from tensorstore_py._runtime.progress import ProgressLike

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser, several=True)
    add_progress(parser)
    add_json(parser)
    examples(parser, "  tspy digest old.zarr s3://bucket/new.zarr\n  tspy digest 'a.zarr[0, :]'\n")


def run(options: argparse.Namespace) -> int:
    """Print a line for each."""

    def work() -> list[dict[str, str]]:
        asked = [trusted(each, options) for each in options.targets]
        found = []
        with metered(options, "digest", [0] * len(asked)) as meter:
            for number, each in enumerate(asked):
                found.append({"place": each.text, "digest": _digest(each, meter.part(number))})
                meter.finish(number)
        return found

    return printed(
        options,
        work,
        lambda found: "\n".join(f"{each['digest']}  {printable(each['place'])}" for each in found),
    )


def _digest(asked: Target, progress: ProgressLike) -> str:
    source = asked.where if asked.selection is None else find(asked)
    return str(digest(source, progress=progress).result())
