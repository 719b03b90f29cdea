"""Say what is at a place: an array, a group, or the keys of a store.

What there is to say is collected as JSON (`--json` prints that), and then laid out for people.
Nothing is read of an array but its metadata.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from tensorstore_py._api.describe import array_facts
from tensorstore_py._api.describe_group import group_facts
from tensorstore_py._api.group import Group
from tensorstore_py._api.group_spec import group_model
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place as place_of
from tensorstore_py._api.open import open as open_array
from tensorstore_py._spec.json_value import freeze, thaw
from tensorstore_py.cli.places import place, tried
from tensorstore_py.errors import MismatchError, NotFoundError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._api.attributes import Attributes
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["add", "run"]

#: How many keys of a store are printed.
_FEW = 20

Found = dict[str, object]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "place", type=place, metavar="SPEC", help="URL, local path, spec file, or JSON"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def run(options: argparse.Namespace) -> int:
    """Print what is there."""

    def work() -> str:
        found = _found(options.place)
        return json.dumps(found, indent=2, ensure_ascii=False) if options.json else _text(found)

    return tried(work)


def _found(where: object) -> Found:
    """What is at a place.

    Raises:
        NotFoundError: nothing.
        SpecError: the place is wrong.
    """
    try:
        return _array(open_array(where, read=True).result())
    except (MismatchError, NotFoundError) as error:
        missing = error
    try:
        return _group(Group.open(where).result())
    except (NotFoundError, SpecError, UnsupportedError):
        pass
    found = _store(where)
    if found is None:
        raise missing
    return found


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


def _store(where: object) -> Found | None:
    """The keys below a place; None if there are none."""
    array = group_model(where)
    model = getattr(array, "kvstore", None)
    if model is None or array.driver != "auto":
        return None
    store = KvStore.open(KvStore.Spec.of(model)).result()
    keys = store.list().result()
    if not keys:
        return None
    return {
        "kind": "store",
        "place": place_of(store.model),
        "keys": len(keys),
        "first_keys": [key.decode(errors="replace") for key in sorted(keys)[:_FEW]],
    }


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
    return "\n".join(lines)


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
