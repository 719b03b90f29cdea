"""Say what is at a place: an array, a group, an image, a checkpoint, a database, a store's keys.

What is found is collected as JSON (`--json` prints that), and then laid out for people: `info_text`
has the words. Nothing is read of an array but its metadata.
"""

from __future__ import annotations

import argparse
from bisect import insort
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py._api.describe import array_axes, array_facts, array_sizes
from tensorstore_py._api.describe_group import group_facts
from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place as place_of
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._spec.json_value import freeze, thaw
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.facts import entry_facts
from tensorstore_py.cli.found import Entry, add_trusted_target, find, sizes_below, trusted
from tensorstore_py.cli.info_text import info_text
from tensorstore_py.cli.output import add_json, examples, printed
from tensorstore_py.cli.places import MANIFEST
from tensorstore_py.cli.tree import tree_facts
from tensorstore_py.errors import NotFoundError, TensorStoreError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._api.attributes import Attributes

__all__ = ["add", "run"]

Facts = dict[str, Any]  # Any: JSON, to be walked through

#: How many keys of a store, and versions of a database, are told.
_FEW: Final = 20
#: So many levels below a group are told.
_LEVELS: Final = 3

#: What Orbax puts in the directory of a checkpoint.
_CHECKPOINT: Final = frozenset({"_CHECKPOINT_METADATA", "_METADATA", "checkpoint"})


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy info image.zarr\n  tspy info 's3://bucket/run.zarr/|zarr3:'\n"
        "  tspy info 'image.zarr[0, 100:200]' --json\n  tspy info model.safetensors\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print what is there; 1 if it is damaged."""
    drawn: list[TensorStore] = []

    def work() -> Facts:
        found = find(trusted(options.target, options))
        if isinstance(found, TensorStore):
            drawn.append(found)
            return _array(found)
        return _group(found) if isinstance(found, Group) else _store(found)

    def text(facts: Facts) -> str:
        axes = [axis for array in drawn for axis in array_axes(array, facts)]
        sizes = [size for array in drawn for size in array_sizes(array, facts)]
        return info_text(facts, axes, sizes)

    return printed(options, work, text, lambda facts: FAILED if "problem" in facts else DONE)


def _array(array: TensorStore) -> Facts:
    found = array_facts(array)
    for name, _, count in array_sizes(array, found)[1:]:
        if count is not None:
            found[f"{name.lower()}_count"] = count
    try:
        attributes: Attributes | None = array.attrs
    except UnsupportedError:
        attributes = None
    if attributes is not None:
        found["attributes"] = thaw(freeze(attributes.read().result()))
    return found


def _group(group: Group) -> Facts:
    found: Facts = group_facts(group)
    attributes: Facts = group.attrs.read().result()
    if "multiscales" in attributes or "ome" in attributes:
        found |= _image(group)
    try:
        found["members"] = tree_facts(group, "", _LEVELS)["members"]
    except UnsupportedError:
        found["members"] = None  # the store cannot list
    found["attributes"] = thaw(freeze(attributes))
    return found


def _image(group: Group) -> Facts:
    """What OME-Zarr says of a group; nothing if it says of no image."""
    multiscale = import_module("tensorstore_py.multiscale")
    try:
        image = multiscale.open(group).result()
        levels = list(image.levels)
    except NotFoundError:
        return {}
    except TensorStoreError as error:
        return {"image": {"problem": str(error)}}
    return {
        "image": {
            "version": image.version,
            "name": image.name,
            "axes": [
                {"name": axis.name, "type": axis.type, "unit": axis.unit} for axis in image.axes
            ],
            "levels": [
                {
                    "path": dataset.path,
                    **_level(array),
                    "scale": list(dataset.scale),
                    "translation": list(dataset.translation),
                }
                for dataset, array in zip(image.metadata.datasets, levels, strict=True)
            ],
        }
    }


def _level(array: TensorStore) -> Facts:
    facts = entry_facts(Entry("", "array", array))
    return {name: facts[name] for name in ("shape", "dtype", "chunks", "shards") if name in facts}


def _store(store: KvStore) -> Facts:
    """The keys below a place, or what they are of."""
    few: list[str] = []
    count = size = 0
    marks: set[str] = set()

    def take(key: str, bytes_: int) -> None:
        nonlocal count, size
        count += 1
        size += max(0, bytes_)
        below = key[len(store.path) :]
        directory, _, name = below.rpartition("/")
        if name in _CHECKPOINT and (not directory or directory[-1:].isdecimal()):
            marks.add(directory)  # of a step, or of the checkpoint itself
        insort(few, below)
        del few[_FEW:]

    sizes_below(store, take).result()
    found: Facts = {"kind": "store", "place": place_of(store.model), "keys": count}
    if size:
        found["stored_bytes"] = size
    if marks:
        found |= _checkpoint(store)
    if found["kind"] == "store" and MANIFEST in store:
        found |= _database(store)
    if found["kind"] == "store":
        found["first_keys"] = few
    return found


def _checkpoint(store: KvStore) -> Facts:
    """What a checkpoint of Orbax is; nothing if it is none."""
    orbax = import_module("tensorstore_py.orbax")
    try:
        checkpoint = orbax.open(store).result()
        arrays = checkpoint.arrays().result()
    except NotFoundError:
        return {}
    except TensorStoreError as error:
        return {"kind": "checkpoint", "format": "Orbax", "problem": str(error)}
    found: Facts = {"kind": "checkpoint", "format": "Orbax", "layout": list(checkpoint.layout)}
    if checkpoint.step is not None:
        steps = orbax.steps(store).result()
        found["step"] = checkpoint.step
        found["steps"] = [each.number for each in steps if each.complete]
        found["incomplete_steps"] = [each.name for each in steps if not each.complete]
    told = [entry_facts(Entry(name, "array", array)) for name, array in arrays.items()]
    return found | {"elements_bytes": sum(each.get("bytes", 0) for each in told), "arrays": told}


def _database(store: KvStore) -> Facts:
    """What a database of OCDBT is."""
    ocdbt = import_module("tensorstore_py.ocdbt")
    inside = f"{store.url}|ocdbt:"
    try:
        found = list(islice(ocdbt.versions(store), _FEW + 1))
    except TensorStoreError as error:
        return {"kind": "database", "format": "OCDBT", "problem": str(error)}
    versions = [each.to_json() for each in found[:_FEW]]
    return {"kind": "database", "format": "OCDBT", "inside": inside, "latest_versions": versions,
            "more_versions": len(found) > _FEW}  # fmt: skip
