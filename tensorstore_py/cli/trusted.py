"""What the command line trusts specs, URLs and paths with: `--untrusted`, `--store`, `--plugin`."""

from __future__ import annotations

import argparse
from pathlib import Path

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.spec import Spec
from tensorstore_py._jobs.job import Allowed
from tensorstore_py._spec.jsontext import parse_json_text
from tensorstore_py._spec.trust import Trust
from tensorstore_py.cli.places import place
from tensorstore_py.errors import SpecError

__all__ = ["add_trust", "allowed", "array_or_group", "document", "trust"]


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = parser.add_argument_group("places that somebody else named")
    group.add_argument("--untrusted", action="store_true",
                       help="refuse whatever is not data in the stores of --store")  # fmt: skip
    group.add_argument("--store", action="append", type=place, metavar="PREFIX", default=[],
                       help="a store that may be used with all below: a URL, JSON or local path; "
                       "directories end with /")  # fmt: skip
    group.add_argument("--plugin", action="append", metavar="NAME", default=[],
                       help="a class of another package that may be used")  # fmt: skip


def trust(options: argparse.Namespace, *, write: bool = False) -> Trust | None:
    """What the arguments say; None: anything goes.

    Args:
        options: the parsed arguments.
        write: whether specs may say that arrays are created or deleted.

    Raises:
        SpecError: a store is wrong, or nothing says that it matters.
    """
    if not options.untrusted:
        for name in ("store", "plugin"):
            if getattr(options, name):
                raise SpecError(f"--{name} restricts nothing without --untrusted; add that")
        return None
    stores = []
    for each in options.store:
        is_json = isinstance(each, str) and each.lstrip()[:1] == "{"
        stores.append(parse_json_text(each) if is_json else each)
    return Trust(stores, plugins=options.plugin, write=write)


def allowed(options: argparse.Namespace) -> Allowed | None:
    """What the arguments let job files do; None: anything. Errors as for `trust`."""
    read, write = trust(options), trust(options, write=True)
    return None if read is None or write is None else Allowed(read, write)


def array_or_group(given: object, trusted: Trust | None) -> object:
    """What is to be copied, made or changed, if it may be used.

    Args:
        given: as `place` gives it.
        trusted: what it may do; None: anything.

    Raises:
        SpecError: it may not be used; has the JSON path.
    """
    if trusted is None or given is None:
        return given
    if isinstance(given, Path):
        KvStore.Spec(given, trust=trusted)
        return given
    is_json = isinstance(given, str) and given.lstrip()[:1] == "{"
    json = parse_json_text(given) if isinstance(given, str) and is_json else given
    return Spec(json, trust=trusted)


def document(given: object, trusted: Trust | None) -> object:
    """The place of a single document such as a manifest, if it may be used; as above."""
    if trusted is not None and given is not None:
        # As what opens it does: a file, though there may be none yet.
        KvStore.Spec(given.absolute().as_uri() if isinstance(given, Path) else given, trust=trusted)
    return given
