"""Say whether a store is healthy and fast, and what to do if not.

Checks run in order; each is told with what was found, and a remedy where there is one. Nothing is
written unless `--write` is said: then under keys of its own beside the place, which are removed.
What a failure makes pointless is left out. Keys are listed, metadata and a few values are read.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._spec.context import Context
from tensorstore_py.cli.check_contents import check_chunks, check_leftovers, check_metadata
from tensorstore_py.cli.check_store import (
    CheckedStore,
    Result,
    check_service,
    check_speed,
    check_writes,
    look_inside,
)
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.found import find, target
from tensorstore_py.cli.keys import named, store_at
from tensorstore_py.cli.output import add_json, examples, printable, printed
from tensorstore_py.cli.selection import split_selection
from tensorstore_py.errors import NotFoundError, SpecError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorstore_py.cli.found import Target

__all__ = ["add", "run"]

_COLORS: Final = {"ok": "32", "warn": "33", "fail": "31"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = (
        "Say whether a store is healthy and fast, and what to do if not: credentials, clock,\n"
        "latency, throughput, leftovers, metadata, chunking."
    )
    parser.add_argument("place", metavar="PLACE", help="URL, local path, spec file or JSON")
    parser.add_argument("--write", action="store_true",
                        help="test writes, too, of a key that is removed")  # fmt: skip
    add_json(parser)
    examples(
        parser,
        "  tspy doctor s3://bucket/run.zarr\n  tspy doctor s3://bucket/scratch/ --write\n"
        "  tspy doctor run.zarr --json\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print what is found; 1 if something failed."""

    def work() -> dict[str, Any]:
        found = []
        for each in _results(options):
            found.append(each)
            if not options.json:
                sys.stdout.write(f"{_line(each)}\n")
                sys.stdout.flush()
        counts = {status: sum(each.status == status for each in found) for status in _COLORS}
        return {"place": options.place, **counts, "checks": [each._asdict() for each in found]}

    return printed(options, work, _summary, lambda found: FAILED if found["fail"] else DONE)


def _results(options: argparse.Namespace) -> Iterator[Result]:
    try:
        asked = target(options.place)
        store = _store(options.place, asked)
    except (TensorStoreError, argparse.ArgumentTypeError) as error:
        yield Result("spec", "fail", str(error))
        return
    name = named(options.place, store)
    yield Result("spec", "ok", f"{name}, a store of the driver {store.spec().model.driver}")
    at = store if not store.path or store.path.endswith("/") else store + "/"
    checked = CheckedStore(name, at, writes=options.write)
    checks: list[Callable[[CheckedStore], Iterator[Result]]] = [check_service, check_speed]
    if options.write:
        checks.append(check_writes)
    for check in checks:
        yield from check(checked)
        if checked.lost:
            return
        if check is check_service:
            yield from look_inside(checked)
    if not checked.keys:
        return
    try:
        found = find(asked._replace(selection=None))
    except NotFoundError:
        found = checked.store
    except TensorStoreError as error:
        yield Result("metadata", "fail", str(error))
        found = checked.store
    for inspect in (check_metadata, check_leftovers, check_chunks):
        yield from inspect(checked, found)


def _store(text: str, asked: Target) -> KvStore:
    """The store of what a place, or the spec file there, names."""
    path = None if "://" in text or text.lstrip()[:1] == "{" else Path(text)
    if path is None or not path.is_file():
        return store_at(split_selection(text)[0] if asked.selection else text, Context())
    if path.suffix.lower() == ".zip":
        return store_at(f"{text}/", Context())
    found = find(asked)
    store = found if isinstance(found, KvStore) else found.kvstore
    if store is None:
        raise SpecError(f"{text} names what is not in a store")
    return store


def _line(result: Result) -> str:
    status = result.status.ljust(4)
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb":
        status = f"\x1b[{_COLORS[result.status]}m{status}\x1b[0m"
    remedy = f"\n{'':<18}-> {printable(result.remedy)}" if result.remedy else ""
    return f"{status}  {result.check:<10}  {printable(result.found)}{remedy}"


def _summary(found: dict[str, Any]) -> str:
    words = (("fail", "failed"), ("warn", "warned"))
    problems = [f"{found[status]} {word}" for status, word in words if found[status]]
    count = len(found["checks"])
    checks = f"{count} check{'s' * (count != 1)}"
    return f"{checks}: {', '.join(problems)}" if problems else f"{checks}, all is well"
