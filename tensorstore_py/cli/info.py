"""Say what is at a place: an array, a group, or the keys of a store.

What there is to say is collected as JSON (`--json` prints that), and then laid out for people.
Nothing is read of an array but its metadata.
"""

from __future__ import annotations

import argparse
import json
from bisect import insort
from typing import TYPE_CHECKING

from tensorstore_py._api.describe import array_facts
from tensorstore_py._api.describe_group import group_facts
from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place as place_of
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._spec.json_value import freeze, thaw
from tensorstore_py.cli.found import Target, add_target, find, sizes_below
from tensorstore_py.cli.output import add_json, examples, printable, printed
from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._api.attributes import Attributes

__all__ = ["add", "run"]

#: How many keys of a store are printed.
_FEW = 20

#: What Orbax puts in the directory of a checkpoint.
_CHECKPOINT = frozenset({"_CHECKPOINT_METADATA", "_METADATA", "checkpoint"})

Found = dict[str, object]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy info image.zarr\n  tspy info 's3://bucket/run.zarr/|zarr3:'\n"
        "  tspy info 'image.zarr[0, 100:200]' --json\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print what is there."""
    return printed(options, lambda: _found(options.target), _text)


def _found(asked: Target) -> Found:
    """What is at a place; errors as of `find`."""
    found = find(asked)
    if isinstance(found, TensorStore):
        return _array(found)
    return _group(found) if isinstance(found, Group) else _store(found)


def _array(array: TensorStore) -> Found:
    found = array_facts(array)
    try:
        attributes: Attributes | None = array.attrs
    except UnsupportedError:
        attributes = None
    if attributes is not None:
        found["attributes"] = thaw(freeze(attributes.read().result()))
    return found


def _group(group: Group) -> Found:
    return {
        **group_facts(group),
        "members": str(group.tree().result()).splitlines()[1:],
        "attributes": thaw(freeze(group.attrs.read().result())),
    }


def _store(store: KvStore) -> Found:
    """The keys below a place."""
    few: list[str] = []
    count = size = 0

    def take(key: str, bytes_: int) -> None:
        nonlocal count, size
        count += 1
        size += max(0, bytes_)
        insort(few, key[len(store.path) :])
        del few[_FEW:]

    sizes_below(store, take)
    found: Found = {"kind": "store", "place": place_of(store.model), "keys": count}
    if size:
        found["stored_bytes"] = size
    found["first_keys"] = few
    if "manifest.ocdbt" in store:
        found["database"] = "of OCDBT: tspy ocdbt versions tells more"
    elif _CHECKPOINT.intersection(few):
        found["checkpoint"] = "of Orbax: tspy orbax info tells more"
    return found


def _text(found: Found) -> str:
    """One thing in a line; what has several lines is indented below its name."""
    width = max(map(len, found)) + 1
    lines = []
    for name, value in found.items():
        if value in (None, {}, []):
            continue
        if isinstance(value, list) and name in ("members", "first_keys"):
            lines += [f"{name}:", *(f"  {line}" for line in value)]
        elif isinstance(value, dict) and name == "attributes":
            lines += [f"{name}:", *(f"  {key}: {_short(item)}" for key, item in value.items())]
        else:
            lines.append(f"{f'{name}:':<{width}} {_short(value)}")
    return printable("\n".join(lines), lines=True)


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
