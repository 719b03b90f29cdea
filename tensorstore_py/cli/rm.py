"""Delete keys and trees of keys, after saying what goes.

Without `--yes` a terminal is asked, and without one nothing is deleted. All of a store
(a bucket, an archive) goes only with `--whole-store`. Documents that make a directory an array or a
group go first, so that no reader takes what is left for the whole.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tensorstore_py._api.keys import PAGE
from tensorstore_py._display.info import human_size
from tensorstore_py._interface.overlay import write_group
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.context import Context
from tensorstore_py.cli.confirm import add_confirmation, refusal
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.key_copy import delete_keys, delete_span
from tensorstore_py.cli.keys import (
    Keys,
    Tally,
    check_spares,
    counted_keys,
    find_keys,
    local_path,
    tell_consolidated,
    tried,
    whole_store,
)
from tensorstore_py.cli.output import add_json, examples, table, to_json
from tensorstore_py.errors import SpecError, UnsupportedError

__all__ = ["add", "delete", "run"]

_COLUMNS = ("keys", "size", "kind", "place")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = (
        "Delete keys and trees of keys (arrays, groups, any directories), after saying what goes."
    )
    parser.add_argument("places", nargs="+", metavar="PLACE",
                        help="URL, local path or JSON; what ends with / is a tree")  # fmt: skip
    parser.add_argument("--whole-store", action="store_true",
                        help="also all of a bucket, an archive or a database")  # fmt: skip
    parser.add_argument("-n", "--dry-run", action="store_true",
                        help="only say what would go")  # fmt: skip
    add_confirmation(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy rm s3://bucket/run.zarr --dry-run\n  tspy rm s3://bucket/run.zarr --yes\n"
        "  tspy rm run.zarr/raw scans.zip/old/\n",
    )


def run(options: argparse.Namespace) -> int:
    """Say what goes, ask, and delete it."""
    return tried(lambda: _run(options, [_checked(text, options) for text in options.places]))


def _checked(text: str, options: argparse.Namespace) -> Keys:
    """The keys that an argument names, if they may go."""
    found = find_keys(text, Context())
    check_spares(found, "deleted")
    if whole_store(found) and not options.whole_store:
        raise SpecError(
            f"{found.name} is all of a store; name something in it, or say --whole-store"
        )
    if not found.store.store.writable:
        raise UnsupportedError(f"{found.name}: this store is read-only")
    return found


def _run(options: argparse.Namespace, asked: list[Keys]) -> int:
    tallies = [Tally.of(each) for each in asked]
    keys = sum(each.keys for each in tallies)
    sizes = [each.size for each in tallies]
    size = None if None in sizes else sum(each or 0 for each in sizes)
    facts: dict[str, Any] = {
        "places": [
            {"place": found.name, **tally.to_json()}
            for found, tally in zip(asked, tallies, strict=True)
        ],
        "keys": keys,
        "bytes": size,
        "deleted": False,
    }
    if not options.json:
        sys.stdout.write(f"{_text(facts)}\n")
        sys.stdout.flush()
    code = DONE
    if not options.dry_run:
        loss = counted_keys(keys) + ("" if size is None else f", {human_size(size)}")
        code = refusal(options, f"delete {loss}")
        if code == DONE:
            for at, found in enumerate(asked):
                _delete_one(found, tallies[at], asked[at + 1 :])
            facts["deleted"] = True
            tell_consolidated(each.store for each in asked)
    if options.json:
        sys.stdout.write(f"{to_json(facts)}\n")
    elif facts["deleted"]:
        sys.stdout.write(f"deleted {counted_keys(keys)}\n")
    return code


def _text(facts: dict[str, Any]) -> str:
    def row(each: dict[str, Any]) -> list[str]:
        size = "" if each["bytes"] is None else human_size(each["bytes"])
        return [f"{each['keys']:,}", size, each.get("kind", ""), each.get("place", "in all")]

    rows = [row(each) for each in facts["places"]]
    if len(rows) > 1:
        rows.append(row(facts))
    return table(_COLUMNS, rows, ("keys", "size"))


def _delete_one(found: Keys, tally: Tally, rest: list[Keys]) -> None:
    try:
        delete(found, tally)
    except BaseException:
        sys.stderr.write(_left(found, tally, rest))
        raise


def _left(found: Keys, before: Tally, rest: list[Keys]) -> str:
    """What remains after a failure or an interruption."""
    left = f"a part of {counted_keys(before.keys)}"
    with suppress(Exception):  # the store may be why it failed
        left = f"{Tally.of(found).keys:,} of {counted_keys(before.keys)}"
    others = "".join(f", and all of {each.name}" for each in rest)
    return f"{left} may be left at {found.name}{others}; the same command goes on\n"


def delete(found: Keys, tally: Tally) -> None:
    """Delete keys; of a tree the documents first, and local directories that are empty then.

    Args:
        found: what to delete.
        tally: of it. How far it is, is drawn on a terminal if it is more than a page.

    Errors are those of the store.
    """
    store = found.store
    if not found.tree:
        store.write("", None).result()
        return
    if write_group(store.store) is not None:
        store.delete_range(store.KeyRange()).result()  # at once, as any change costs as much
    else:
        _delete_pages(found, tally)
    folder = local_path(store)
    if folder is not None:
        store.delete_range(store.KeyRange()).result()  # what killed writers left is no key
        _remove_empty(folder)


def _delete_pages(found: Keys, tally: Tally) -> None:
    store = found.store.store
    reporter = Reporter(sys.stderr.isatty() and tally.keys > PAGE, "delete")
    reporter.begin(tally.size or 0, tally.keys)
    try:
        delete_keys(store, tally.documents)
        for page in found.pages():
            delete_span(store, [each.key for each in page])
            reporter.advance(sum(max(0, each.size) for each in page), len(page))
    finally:
        reporter.close()


def _remove_empty(folder: Path) -> None:
    for inner, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # something is in it: a link, or what was written meanwhile
            Path(inner).rmdir()
