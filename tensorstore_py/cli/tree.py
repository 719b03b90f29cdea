"""Draw everything below a place: groups, arrays, and directories that hold some.

Keys that belong to no array are left out unless they are asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.facts import Facts, entry_facts, extents
from tensorstore_py.cli.found import Entry, Found, add_target, entries, find, kind_of
from tensorstore_py.cli.output import add_json, can_draw, examples, printable, printed

__all__ = ["add", "run"]


class _Lines(NamedTuple):
    """What a tree is drawn with."""

    inner: str
    last: str
    through: str
    past: str = "    "


_DRAWN = _Lines("├── ", "└── ", "│   ")
_ASCII = _Lines("|-- ", "`-- ", "|   ")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, selects=False)
    parser.add_argument("-L", "--depth", type=int, metavar="N", help="so many levels at most")
    parser.add_argument("--keys", action="store_true",
                        help="in directories, also keys that belong to no array")  # fmt: skip
    add_json(parser)
    examples(
        parser, "  tspy tree run.zarr\n  tspy tree . --depth 2\n  tspy tree s3://bucket/ --json\n"
    )


def run(options: argparse.Namespace) -> int:
    """Print the tree; 1 if something in it is unreadable."""

    def work() -> Facts:
        found = find(options.target)
        root = Entry(options.target.text, kind_of(found), found)
        return _node(root, options.depth, keys=options.keys)

    def text(node: Facts) -> str:
        lines = _DRAWN if can_draw("├─│└") else _ASCII
        return "\n".join([_label(node), *_drawn(node, lines)])

    return printed(options, work, text, lambda node: FAILED if _unreadable(node) else DONE)


def _node(entry: Entry, left: int | None, *, keys: bool) -> Facts:
    told = entry_facts(entry)
    found: Found | None = entry.found
    if found is None or isinstance(found, TensorStore) or left == 0:
        return told
    below = None if left is None else left - 1
    told["members"] = [
        _node(each, below, keys=keys) for each in entries(found) if keys or each.kind != "key"
    ]
    return told


def _unreadable(node: Facts) -> bool:
    return node["kind"] == "unreadable" or any(map(_unreadable, node.get("members", ())))


def _drawn(node: Facts, lines: _Lines) -> Iterator[str]:
    members = node.get("members", ())
    for number, member in enumerate(members, 1):
        is_last = number == len(members)
        yield (lines.last if is_last else lines.inner) + _label(member)
        indent = lines.past if is_last else lines.through
        yield from (indent + line for line in _drawn(member, lines))


def _label(node: Facts) -> str:
    name = printable(str(node["name"]))
    if node["kind"] == "array":
        return f"{name}  {extents(node['shape'])} {printable(str(node['dtype']))}"
    if node["kind"] == "unreadable":
        return f"{name}  unreadable: {printable(node['problem'])}"
    return name if node["kind"] == "key" else name.rstrip("/") + "/"
