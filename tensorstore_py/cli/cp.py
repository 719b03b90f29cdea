"""Copy a key or a tree of keys to another place or store, encoded as they are.

Arrays and groups are copied with all they have, chunks as they are stored. What is to be converted,
to another format, chunking or codec, is for `tspy copy`.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tensorstore_py._display.info import human_size
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.keys import counted_keys, tell_consolidated, tried
from tensorstore_py.cli.output import examples, printable, to_json
from tensorstore_py.cli.transfer import Transfer, add_transfer, prepared

__all__ = ["add", "done_text", "run", "would"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = (
        "Copy a key or a tree of keys (an array, a group, any directory), encoded as they are.\n"
        "tspy copy is for arrays in another format, chunking or codec."
    )
    add_transfer(parser)
    examples(
        parser,
        "  tspy cp run.zarr s3://bucket/run.zarr\n  tspy cp run.zarr run.zip\n"
        "  tspy cp s3://bucket/run.zarr/zarr.json ./\n"
        "  tspy cp 'file:///ckpt/|ocdbt:params/' params\n"
        "  tspy cp run.zarr s3://bucket/run.zarr --if-exists skip   # go on\n",
    )


def run(options: argparse.Namespace) -> int:
    """Copy, and print what was copied."""

    def work() -> int:
        transfer = prepared(options)
        if options.dry_run:
            return would(options, transfer, "copy")
        code = transfer.refusal(options)
        if code != DONE:
            return code
        done = transfer.copy(options)
        facts = {"source": transfer.source.name, "target": transfer.target.name, "keys": done.keys,
                 "bytes": done.size, "skipped": done.skipped}  # fmt: skip
        told = to_json(facts) if options.json else done_text("copied", facts)
        sys.stdout.write(f"{told}\n")
        tell_consolidated([transfer.target.store])
        if done.other_size:
            sys.stderr.write(
                f"{counted_keys(done.other_size)} at {transfer.target.name} had values of another "
                "size, and were left; --if-exists replace replaces them\n"
            )
        return DONE

    return tried(work)


def would(options: argparse.Namespace, transfer: Transfer, verb: str) -> int:
    """Say what a dry run would do."""
    facts = transfer.to_json() | {"dry_run": True, "replaced_keys": transfer.there.keys}
    if options.json:
        sys.stdout.write(f"{to_json(facts)}\n")
        return DONE
    lost = f", and replace what is there: {transfer.there}" * bool(transfer.there.keys)
    sys.stdout.write(
        printable(
            f"would {verb} {transfer.tally} ({transfer.tally.kind}): "
            f"{transfer.source.name} -> {transfer.target.name}{lost}"
        )
        + "\n"
    )
    return DONE


def done_text(did: str, facts: dict[str, Any]) -> str:
    """What was done, in a line."""
    size = f", {human_size(facts['bytes'])}" if facts["bytes"] else ""
    skipped = f"; {facts['skipped']:,} were there" if facts.get("skipped") else ""
    return printable(
        f"{did} {counted_keys(facts['keys'])}{size}: "
        f"{facts['source']} -> {facts['target']}{skipped}"
    )
