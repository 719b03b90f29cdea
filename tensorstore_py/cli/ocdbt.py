"""Look after OCDBT databases: versions, ls, check, diff, compact, repair, name, dump.

Each subcommand calls the function of `ts.ocdbt` of the same name and prints what that gives, as a
table or, with `--json`, for other programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tensorstore_py import ocdbt
from tensorstore_py._display.info import human_size
from tensorstore_py.cli.output import examples
from tensorstore_py.cli.places import store_place
from tensorstore_py.errors import NotFoundError, SpecError, TensorStoreError
from tensorstore_py.ocdbt.history import text_time
from tensorstore_py.ocdbt.report import counted

if TYPE_CHECKING:
    from tensorstore_py._api.kvstore import KvStore

__all__ = ["add", "run"]

_ENDS = """\
DB is a URL or local path of a database, or of the directory of its manifest:
  ckpt/    s3://bucket/ckpt/    'file:///ckpt/|ocdbt:@v12/'    'file:///ckpt/|ocdbt:a/b/'

exit codes:
  0    done; of check: nothing is wrong; of diff: nothing differs
  1    failed; of check: there are problems; of diff: something differs
"""
_EXAMPLES = {
    "versions": "  tspy ocdbt versions ckpt/ -n 10\n"
    "  tspy ocdbt versions ckpt/ --since 2026-01-31T12:00:00Z --json\n",
    "ls": "  tspy ocdbt ls ckpt/\n  tspy ocdbt ls ckpt/ params. -r --version v1\n",
    "check": "  tspy ocdbt check ckpt/\n  tspy ocdbt check s3://bucket/ckpt/ --all --values\n",
    "diff": "  tspy ocdbt diff ckpt/ v1\n  tspy ocdbt diff ckpt/ copy/\n",
    "compact": "  tspy ocdbt compact ckpt/ --keep-last 3 --dry-run\n"
    "  tspy ocdbt compact ckpt/ --keep-since 2026-01-31T00:00:00Z --grace 12h\n",
    "repair": "  tspy ocdbt repair ckpt/ --dry-run\n  tspy ocdbt repair ckpt/ --version v1\n",
    "name": "  tspy ocdbt name ckpt/ released\n  tspy ocdbt name ckpt/\n"
    "  tspy ocdbt name ckpt/ released --delete\n",
    "dump": "  tspy ocdbt dump ckpt/\n  tspy ocdbt dump ckpt/ --json\n",
}
_Work: TypeAlias = Callable[[argparse.Namespace], int]
_GENERATION = re.compile(r"v?(\d+)", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ENDS
    commands = parser.add_subparsers(dest="ocdbt", required=True, metavar="SUBCOMMAND")

    def sub(name: str, work: _Work, about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        examples(added, _EXAMPLES[name])
        added.set_defaults(work=work)
        added.add_argument("place", type=store_place, metavar="DB", help="URL, JSON or local path")
        added.add_argument("--json", action="store_true", help="print JSON, for other programs")
        return added

    one = sub("versions", _versions, "list versions, the newest first")
    one.add_argument("-n", "--limit", type=_count, metavar="N", help="so many at most")
    one.add_argument("--oldest-first", action="store_true", help="the oldest first")
    one.add_argument("--first", type=_generation, metavar="V", help="from this generation")
    one.add_argument("--last", type=_generation, metavar="V", help="up to this generation")
    one.add_argument(
        "--since", metavar="TIME", help="committed then or later: 2026-01-31T12:00:00Z"
    )
    one.add_argument("--until", metavar="TIME", help="committed then or before")

    one = sub("ls", _ls, "list keys of a version with their sizes")
    one.add_argument("prefix", nargs="?", default="", help="only what begins with this")
    _add_version(one)
    one.add_argument("-r", "--recursive", action="store_true", help="what is in directories, too")

    one = sub("check", _check, "check nodes and values; tell what nothing needs")
    one.add_argument("--all", action="store_true", help="of all versions, not just the latest")
    one.add_argument("--values", action="store_true", help="read values from end to end")

    one = sub("diff", _diff, "compare two versions, or two databases")
    one.add_argument("other", help="the version of DB to begin with, or another database")
    _add_version(one, "begin with this version of DB, and end with the other")
    one.add_argument("--by-place", action="store_true",
                     help="equal values that were stored anew differ, too")  # fmt: skip

    one = sub("compact", _compact, "remove old versions, and files that nothing needs")
    _add_retention(one)
    one.add_argument("--dry-run", action="store_true", help="only say what would be done")

    one = sub("repair", _repair, "make the newest whole version the latest one again")
    _add_version(one, "go back to this one")
    one.add_argument("--root", help="if the manifest is lost: the tree of the latest version")
    one.add_argument("--dry-run", action="store_true", help="only say what would be done")

    one = sub("name", _name, "give a version a name, take one away, or list names")
    one.add_argument("name", nargs="?", help="letters, digits, _, - and .")
    _add_version(one, "the latest by default")
    one.add_argument("--delete", action="store_true", help="take the name away")

    one = sub("dump", _dump, "print the manifest, a node or a value as it is stored")
    one.add_argument("node", nargs="?", help="a location that was printed before")


def _add_retention(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep-last", type=int, metavar="N", help="so many of the latest versions")
    parser.add_argument("--keep-since", metavar="TIME", help="versions committed then or later")
    parser.add_argument(
        "--live-below",
        type=float,
        default=0.5,
        metavar="PART",
        help="empty files of which less than this part is needed (0.5)",
    )
    parser.add_argument(
        "--grace",
        type=_duration,
        default=86400.0,
        metavar="TIME",
        help="how long files must have been unneeded: 12h, 1d (1d)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the subcommand."""
    try:
        code: int = options.work(options)
    except (TensorStoreError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return code


def _add_version(parser: argparse.ArgumentParser, about: str = "which version") -> None:
    parser.add_argument("--version", type=_version, metavar="V",
                        help=f"{about}: 12, v12, a name or a time")  # fmt: skip


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number such as 10")
    return int(text)


def _generation(text: str) -> int:
    found = _GENERATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a generation such as 12 or v12")
    return int(found[1])


def _version(text: str) -> int | str:
    """A generation, or the name or time of a version.

    Example:
        >>> _version("v12"), _version("12"), _version("released")
        (12, 12, 'released')
    """
    found = _GENERATION.fullmatch(text)
    return text if found is None else int(found[1])


def _duration(text: str) -> float:
    """Seconds, also in minutes, hours, days and weeks.

    Raises ArgumentTypeError: it is something else.

    Example:
        >>> _duration("90"), _duration("1.5h"), _duration("1d")
        (90.0, 5400.0, 86400.0)
    """
    try:
        number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = nan
    if not isfinite(seconds):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a time such as 3600 or 1d")
    return seconds


def _print(options: argparse.Namespace, found: object, as_json: Callable[[], object]) -> None:
    text = json.dumps(as_json(), indent=1, ensure_ascii=False) if options.json else str(found)
    sys.stdout.write(f"{text}\n")


def _progress() -> bool:
    return sys.stderr.isatty()


def _versions(options: argparse.Namespace) -> int:
    listing = ocdbt.versions(
        options.place,
        first=options.first,
        last=options.last,
        since=options.since,
        until=options.until,
        newest_first=not options.oldest_first,
    )
    found = islice(listing, options.limit)
    if options.json:
        _print(options, None, lambda: [each.to_json() for each in found])
        return 0
    head = (
        f"{'version':>8}  {'committed':<24}  {'keys':>12}  {'values':>10}  {'nodes':>10}  names\n"
    )
    for each in found:
        sys.stdout.write(head)  # not before it is known that there is a database
        head = ""
        line = (
            f"{f'v{each.generation}':>8}  {text_time(each.time_ns)[:-7]}Z  {each.keys:>12,}  "
            f"{human_size(each.value_bytes):>10}  {human_size(each.node_bytes):>10}  "
            f"{', '.join(each.names)}"
        )
        sys.stdout.write(f"{line.rstrip()}\n")
    return 0


def _ls(options: argparse.Namespace) -> int:
    store = ocdbt.open(options.place, options.version).result()
    found = asyncio.run(_listed(store, options.prefix, recursive=options.recursive))
    if options.json:
        _print(
            options,
            None,
            lambda: [
                {"name": name, "keys": keys, "bytes": size} for name, (keys, size) in found.items()
            ],
        )
        return 0
    for name, (keys, size) in found.items():
        count = counted(keys, "key") if name.endswith("/") else ""
        sys.stdout.write(f"{human_size(size):>10}  {count:>14}  {name}\n")
    keys, size = (sum(column) for column in zip(*found.values(), strict=True)) if found else (0, 0)
    sys.stdout.write(f"{human_size(size):>10}  {counted(keys, 'key'):>14}  in all\n")
    return 0


async def _listed(store: KvStore, prefix: str, *, recursive: bool) -> dict[str, tuple[int, int]]:
    """Keys, or directories with all in them: how many keys and bytes."""
    found: dict[str, tuple[int, int]] = {}
    below = len(store.path)
    async for entry in (store + prefix).keys().entries():
        name = entry.key[below:]
        if not recursive:
            end = name.find("/", len(prefix))
            name = name if end < 0 else name[: end + 1]
        shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        keys, size = found.get(shown, (0, 0))
        found[shown] = keys + 1, size + max(0, entry.size)
    return found


def _check(options: argparse.Namespace) -> int:
    report = ocdbt.check(
        options.place,
        all_versions=options.all,
        read_values=options.values,
        progress=_progress(),
    ).result()
    _print(options, report, report.to_json)
    return 0 if report.ok else 1


def _diff(options: argparse.Namespace) -> int:
    one = options.place
    if options.version is not None:
        one = ocdbt.open(one, options.version).result()
    other = _other(options.other)
    if (
        options.version is None
        and isinstance(other, int | str)
        and other == _version(options.other)
    ):
        one, other = other, one  # what came after that version
    found = ocdbt.diff(one, other, values=not options.by_place).result()
    _print(options, found, found.to_json)
    return 1 if found else 0


def _other(text: str) -> object:
    """A version, or a database."""
    if "://" in text or text.lstrip()[:1] == "{" or "/" in text or Path(text).is_dir():
        return store_place(text)
    return _version(text)


def _compact(options: argparse.Namespace) -> int:
    report = ocdbt.compact(
        options.place,
        keep_last=options.keep_last,
        keep_since=options.keep_since,
        live_below=options.live_below,
        grace=options.grace,
        dry_run=options.dry_run,
        progress=_progress(),
    ).result()
    _print(options, report, report.to_json)
    return 0


def _repair(options: argparse.Namespace) -> int:
    report = ocdbt.repair(
        options.place, version=options.version, root=options.root, dry_run=options.dry_run
    ).result()
    _print(options, report, report.to_json)
    return 0


def _name(options: argparse.Namespace) -> int:
    if options.name is None:
        if options.delete or options.version is not None:
            raise SpecError("which name? Give it after the database")
        names = ocdbt.names(options.place).result()
    elif options.delete:
        if options.name not in ocdbt.names(options.place).result():
            raise NotFoundError(f'no version has the name "{options.name}"')
        names = ocdbt.unname(options.place, options.name).result()
    else:
        names = ocdbt.name(options.place, options.name, options.version).result()
    lines = [f"{f'v{generation}':>8}  {name}" for name, generation in sorted(names.items())]
    _print(options, "\n".join(lines) or "no version has a name", lambda: names)
    return 0


def _dump(options: argparse.Namespace) -> int:
    found = ocdbt.dump(options.place, options.node).result()
    if isinstance(found, bytes) and not options.json:
        sys.stdout.buffer.write(found)
        sys.stdout.flush()
        return 0
    text = json.dumps(found, indent=1, ensure_ascii=False, default=_text)
    sys.stdout.write(f"{text}\n")
    return 0


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
