"""Draw everything below a place: groups, arrays, and directories that hold some.

Keys that belong to no array are left out unless they are asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.facts import Facts, entry_facts, extents
from tensorstore_py.cli.found import (
    Entry,
    Found,
    add_trusted_target,
    find,
    kind_of,
    levels,
    trusted,
)
from tensorstore_py.cli.output import add_json, can_draw, examples, painted, printable, printed

__all__ = ["add", "run", "tree_facts", "tree_lines"]


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
    add_trusted_target(parser, selects=False)
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
        found = find(trusted(options.target, options))
        return tree_facts(found, options.target.text, options.depth, keys=options.keys)

    def text(node: Facts) -> str:
        return "\n".join([_label(node), *tree_lines(node)])

    return printed(options, work, text, lambda node: FAILED if _unreadable(node) else DONE)


def tree_facts(found: Found, name: str, depth: int | None = None, *, keys: bool = False) -> Facts:
    """Something with all below it as JSON: what an entry is, and its `members`.

    Args:
        found: it.
        name: what it is called.
        depth: so many levels below it at most.
        keys: also keys that belong to no array.

    Raises UnsupportedError: the store cannot list its keys.
    """
    inside = {} if isinstance(found, TensorStore) else levels(found, depth)
    return _node(Entry(name, kind_of(found), found), "", inside, keys=keys)


def tree_lines(node: Facts) -> list[str]:
    """What is below a node of `tree_facts`, drawn."""
    return [*_drawn(node, _DRAWN if can_draw("├─│└") else _ASCII)]


def _node(entry: Entry, path: str, inside: Mapping[str, list[Entry]], *, keys: bool) -> Facts:
    told = entry_facts(entry)
    if path not in inside or entry.found is None or isinstance(entry.found, TensorStore):
        return told
    told["members"] = [
        _node(each, f"{path}/{each.name}" if path else each.name, inside, keys=keys)
        for each in inside[path]
        if keys or each.kind != "key"
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
    name, kind = str(node["name"]), node["kind"]
    if kind == "array":
        shown = painted(name, "array", sent=True)
        dtype = painted(str(node["dtype"]), "dtype", sent=True)
        return f"{shown}  {extents(node['shape'])} {dtype}"
    if kind == "unreadable":
        return f"{painted(name, 'damage', sent=True)}  unreadable: {printable(node['problem'])}"
    return printable(name) if kind == "key" else painted(name.rstrip("/") + "/", kind, sent=True)
