"""What the command line says of stores, and what it trusts: places, extents, codecs, trust.

`--untrusted`, `--store` and `--plugin` say what specs, URLs and paths of others may name.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.spec import Spec
from tensorstore_py._jobs.documents import in_memory
from tensorstore_py._jobs.job import Allowed
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py._spec.trust import Trust
from tensorstore_py.cli.progress import add_progress
from tensorstore_py.errors import SpecError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._runtime.progress import Bar

__all__ = [
    "ARCHIVES",
    "MANIFEST",
    "add_choice",
    "add_trust",
    "allowed",
    "array_or_group",
    "codec",
    "copy_arguments",
    "document",
    "extents",
    "lasting_place",
    "place",
    "store_place",
    "tried",
    "trust",
]

#: Files of the local file system that are stores of keys themselves, by suffix, which is their
#: driver's name.
ARCHIVES: Final = ("zip", "safetensors")
#: The key that makes a directory a database of OCDBT.
MANIFEST: Final = "manifest.ocdbt"


def place(text: str) -> object:
    """A URL or JSON as it is; anything else is a local path.

    Example:
        >>> place("memory://a/"), place("a/b").name
        ('memory://a/', 'b')
    """
    return text if "://" in text or text.lstrip()[:1] == "{" else Path(text)


def store_place(text: str) -> object:
    """A place whose JSON is parsed, for what takes stores, which no text but a URL names.

    Raises ArgumentTypeError: it looks like JSON, and is none.

    Example:
        >>> store_place('{"driver": "memory"}'), store_place("memory://a/")
        ({'driver': 'memory'}, 'memory://a/')
    """
    found = codec(text)
    return place(text) if found is text else found


def lasting_place(text: str) -> object:
    """A place that is still there when the command has ended.

    Raises ArgumentTypeError: it is in memory.
    """
    found = place(text)
    if not in_memory(found):
        return found
    raise argparse.ArgumentTypeError(
        f"{text}: what is in memory is gone when the command ends; "
        "name a file, or a store elsewhere"
    )


def extents(text: str) -> object:
    """Extents of chunks: `64`, `1,64,64`, or `time=1,x=64`; -1 is all of a dimension.

    Raises ArgumentTypeError: it is something else.

    Example:
        >>> extents("64"), extents("1,-1"), extents("t=1,x=64")
        (64, (1, -1), {'t': 1, 'x': 64})
    """
    try:
        parts = text.split(",")
        if "=" in text:
            named = [part.split("=") for part in parts]
            return {name.strip(): int(size) for name, size in named}
        sizes = tuple(int(part) for part in parts)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected extents such as 64, 1,64,64 or t=1,x=64"
        ) from None
    return sizes if "," in text else sizes[0]


def codec(text: str) -> object:
    """The name of a codec, or its JSON.

    Raises ArgumentTypeError: it looks like JSON, and is none.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is no JSON: {error}") from None


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of what copies."""
    parser.add_argument("source", type=place, help="URL or local path of an array or a group")
    parser.add_argument("dest", type=lasting_place, help="URL or local path of what is made")
    parser.add_argument("--include", action="append", metavar="PATTERN",
                        help="only members whose path matches: 'a/*', '**/mask'")  # fmt: skip
    parser.add_argument("--exclude", action="append", metavar="PATTERN", help="not these")
    parser.add_argument("--if-exists", choices=("raise", "skip", "replace"), default="raise",
                        help="what to do about arrays that are there")  # fmt: skip
    parser.add_argument("--shards", type=extents, help="extents of shards, as --chunks")
    parser.add_argument("--codec", type=codec, help="name of a codec, or its JSON")
    parser.add_argument("--manifest", type=lasting_place, metavar="FILE",
                        help="keeps what is done: the same command goes on from there")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_progress(parser)


def copy_arguments(options: argparse.Namespace, progress: Bar | None) -> dict[str, Any]:
    """The arguments of `ts.copy` and `ts.rechunk` that `add_choice` declared."""
    return {
        "source": array_or_group(options.source, trust(options)),
        "dest": array_or_group(options.dest, trust(options, write=True)),
        "includes": options.include,
        "excludes": options.exclude,
        "if_exists": options.if_exists,
        "shards": options.shards,
        "codec": options.codec,
        "manifest": document(options.manifest, trust(options)),
        "dry_run": options.dry_run,
        "progress": progress,
    }


def tried(work: Callable[[], object]) -> int:
    """Print what some work gives, or why it failed; the exit code."""
    try:
        found = work()
    except (TensorStoreError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{found}\n")
    return 0


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
    """What the arguments say; None: anything goes. `write`: specs may create and delete arrays.

    Raises SpecError: a store is wrong, or nothing says that it matters.
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

    Raises SpecError: it may not be used; has the JSON path.
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
