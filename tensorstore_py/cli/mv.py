"""Move a key or a tree of keys to another place or store, encoded as they are.

It is copied, then names and sizes at both places are compared, and only then it is deleted at the
source: if anything goes wrong, all of it is still there. Local files are renamed where they can be.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from tensorstore_py.cli.cp import done_text, would
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.keys import check_spares, local_path, tell_consolidated, tried, whole_store
from tensorstore_py.cli.output import examples, to_json
from tensorstore_py.cli.rm import delete
from tensorstore_py.cli.transfer import Transfer, add_transfer, prepared
from tensorstore_py.errors import AbortedError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py.cli.key_copy import KeyCopy

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = (
        "Move a key or a tree of keys, encoded as they are. It is deleted at the source when all\n"
        "of it is found at the target; nothing else may write to it meanwhile."
    )
    add_transfer(parser)
    examples(
        parser,
        "  tspy mv run.zarr/raw run.zarr/old/raw\n  tspy mv run.zarr s3://bucket/run.zarr\n"
        "  tspy mv s3://bucket/a.zarr s3://bucket/b.zarr --verify\n",
    )


def run(options: argparse.Namespace) -> int:
    """Move, and print what was moved."""

    def work() -> int:
        transfer = prepared(options)
        _check(transfer)
        if options.dry_run:
            return would(options, transfer, "move")
        code = transfer.refusal(options)
        if code != DONE:
            return code
        skipped = 0
        if not _renamed(transfer):
            skipped = transfer.copy(options, lambda copying: _checked(copying, transfer)).skipped
            _delete(transfer)
        facts = transfer.to_json() | {"skipped": skipped}
        told = to_json(facts) if options.json else done_text("moved", facts)
        sys.stdout.write(f"{told}\n")
        tell_consolidated([transfer.source.store, transfer.target.store])
        return DONE

    return tried(work)


def _check(transfer: Transfer) -> None:
    """Refuse what cannot or should not be taken away.

    Raises:
        SpecError: it is all of a store, or holds the working directory.
        UnsupportedError: the source is read-only.
    """
    source = transfer.source
    check_spares(source, "moved")
    if whole_store(source):
        raise SpecError(
            f"{source.name} is all of a store; copy it with tspy cp, and remove it with tspy rm"
        )
    if not source.store.store.writable:
        raise UnsupportedError(f"{source.name}: this store is read-only; copy it with tspy cp")


def _renamed(transfer: Transfer) -> bool:
    """Rename what is local on both sides, where nothing is at the target yet."""
    one, other = local_path(transfer.source.store), local_path(transfer.target.store)
    if one is None or other is None or one.is_symlink() or other.is_symlink() or other.exists():
        return False
    with suppress(OSError):  # another file system, or not allowed: copying says why not
        other.parent.mkdir(parents=True, exist_ok=True)
        one.rename(other)
        return True
    return False


def _checked(copying: KeyCopy, transfer: Transfer) -> None:
    try:
        copying.check()
    except AbortedError as error:
        raise AbortedError(
            f"{error}; {transfer.source.name} was changed meanwhile, so nothing of it was deleted"
        ) from None


def _delete(transfer: Transfer) -> None:
    try:
        delete(transfer.source, transfer.tally)
    except BaseException:
        sys.stderr.write(
            f"all of it is at {transfer.target.name}, and a part may be left at "
            f"{transfer.source.name}; tspy rm removes that\n"
        )
        raise
