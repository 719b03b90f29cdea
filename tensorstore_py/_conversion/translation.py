"""Nodes of older versions, and how their arrays are said in version 3, tried out first.

A migration that was cut short leaves nodes with old and new documents, so all of them are looked
for here, and consolidated metadata is not believed. A node is an old one as long as the document
that makes it one is there.

An array is opened both ways, as it is and as it would be, without storing anything; what both tell
and a few chunks must be the same. If so, chunks stay. If not, or if there are no words for it, the
array is made anew under other names of chunks, beside what is there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from tensorstore_py._api.group_spec import NewArray, with_members
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._chunked.spec import ChunkedSpec
from tensorstore_py._conversion.endpoints import SourceArray
from tensorstore_py._conversion.target_metadata import RequestedMetadata, target_metadata
from tensorstore_py._conversion.versions import array_in_version2, array_in_version3
from tensorstore_py._hierarchy.document import parse_document
from tensorstore_py._hierarchy.path import join
from tensorstore_py._index import IndexDomain
from tensorstore_py._interface.store_abilities import list_directory
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import (
    DataLossError,
    MismatchError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStore

__all__ = [
    "OldNode",
    "Translated",
    "as_version2",
    "find_nodes",
    "open_as",
    "same_array",
    "translate",
]


#: What makes a node, by version; version 1 has nothing but an array by itself.
_ARRAYS = {1: "meta", 2: ".zarray"}
_ATTRIBUTES = {1: "attrs", 2: ".zattrs"}
_GROUP, _CONSOLIDATED, _NEW = ".zgroup", ".zmetadata", "zarr.json"


class OldNode(NamedTuple):
    """A node, as its documents tell.

    Attributes:
        version: of its oldest documents.
        document: the one that makes it a node in that version.
        newer: its `zarr.json`; None: it has none.
        keys: of the documents of that version, the one that makes it a node last.
        leftover: keys of documents that are older still.
    """

    path: str
    kind: Literal["array", "group"]
    version: int
    document: JsonObject
    attributes: JsonObject
    newer: JsonObject | None
    keys: tuple[str, ...] = ()
    leftover: tuple[str, ...] = ()

    @property
    def consolidated(self) -> bool:
        """Whether it has a copy of the documents of all nodes below."""
        return _CONSOLIDATED in self.keys


async def find_nodes(store: KvStore, prefix: str) -> list[OldNode]:
    """All nodes at a place and below it, in the order of their paths.

    Raises:
        DataLossError: a document is corrupt; names its key.
        UnsupportedError: the store cannot list its keys.
    """
    found: list[OldNode] = []
    paths = [""]
    while paths:
        level: list[OldNode] = []

        async def look(path: str, into: list[OldNode] = level) -> None:
            node = await _node(store, f"{prefix}{path}/" if path else prefix, path)
            if node is not None:
                into.append(node)

        await fan_out(store.inline, paths, look, count=len(paths), width=store.width)
        found += level
        paths = []
        for node in level:
            if node.kind == "group":
                below = f"{prefix}{node.path}/" if node.path else prefix
                async for name in list_directory(store, below):
                    if name.endswith("/") and name != "/":
                        paths.append(join(node.path, name[:-1]))
    return sorted(found, key=lambda node: node.path)


async def _node(store: KvStore, prefix: str, path: str) -> OldNode | None:
    newer = await _read(store, prefix + _NEW)
    array = await _read(store, prefix + _ARRAYS[2])
    first = None if path else await _read(store, prefix + _ARRAYS[1])
    if first is not None and first.get("zarr_format") != 1:
        first = None  # another format's document
    if array is not None or first is not None:
        version = 1 if array is None else 2
        attributes = await _read(store, prefix + _ATTRIBUTES[version])
        keys = _present(version, attributes)
        leftover: tuple[str, ...] = ()
        if array is not None and first is not None:
            leftover = _present(1, await _read(store, prefix + _ATTRIBUTES[1]))
        document = array if array is not None else first
        assert document is not None
        return OldNode(path, "array", version, document, attributes or {}, newer, keys, leftover)
    group = await _read(store, prefix + _GROUP)
    if group is not None:
        if group.get("zarr_format") != 2:
            raise DataLossError(f"{store.describe_key(prefix + _GROUP)} is not of version 2")
        attributes = await _read(store, prefix + _ATTRIBUTES[2])
        copied = (await store.read(prefix + _CONSOLIDATED)).state == "value"
        keys = (_CONSOLIDATED,) * copied + (_ATTRIBUTES[2],) * (attributes is not None) + (_GROUP,)
        return OldNode(path, "group", 2, group, attributes or {}, newer, keys)
    if newer is None:
        return None
    kind: Literal["array", "group"] = "array" if newer.get("node_type") == "array" else "group"
    return OldNode(path, kind, 3, newer, {}, newer)


def _present(version: int, attributes: JsonObject | None) -> tuple[str, ...]:
    return (_ATTRIBUTES[version],) * (attributes is not None) + (_ARRAYS[version],)


async def _read(store: KvStore, key: str) -> JsonObject | None:
    found = await store.read(key)
    return None if found.state != "value" else parse_document(found.value, store.describe_key(key))


#: What drivers that take text and bytes of a fixed length apart call the parts.
_PARTS = {"char": "S", "byte": "V"}


class Translated(NamedTuple):
    """An array in version 3.

    Attributes:
        document: its `zarr.json`; None: there can be none.
        copies: whether chunks have to be copied.
        why: they have to, or nothing can be done.
    """

    document: JsonObject | None
    copies: bool = False
    why: str = ""


def as_version2(node: OldNode) -> JsonObject:
    """The `.zarray` of a node that is an array.

    Raises SpecError: its document is of version 1, and wrong.
    """
    return array_in_version2(node.document) if node.version == 1 else node.document


async def translate(node: OldNode, old: Place, new: Place) -> Translated:
    """An array of an older version in version 3."""
    try:
        before = as_version2(node)
        present = await open_as(old, node.path, before)
    except (SpecError, UnsupportedError, DataLossError, MismatchError) as error:
        return Translated(None, why=f"it cannot be opened: {error}")
    try:
        document = array_in_version3(before, node.attributes)
        why = await same_array(present, await open_as(new, node.path, document))
        if not why:
            return Translated(document)
    except TensorStoreError as error:
        why = str(error)
    try:
        made = _made_anew(node, present, before, old, new)
        await open_as(new, node.path, made)
    except TensorStoreError as error:
        return Translated(None, why=f"{why}; nor can it be made anew: {error}")
    return Translated(made, copies=True, why=why)


async def open_as(place: Place, path: str, document: JsonObject) -> TensorStore:
    """The array at a path, as if a document were its metadata; elements are whole values.

    Raises:
        SpecError, MismatchError, UnsupportedError: nothing can be opened with that.
    """
    plain = {name: value for name, value in document.items() if name != "attributes"}
    found = await _open(place, path, plain, {})
    letter, shape = _PARTS.get(found.dtype.name), document.get("shape")
    if letter is None or not isinstance(shape, list) or len(shape) == found.rank:
        return found
    return await _open(place, path, plain, {"dtype": f"{letter}{found.shape[-1]}"})


async def same_array(one: TensorStore, other: TensorStore, *, chunks: bool = True) -> str:
    """In which way two arrays differ, as far as a few chunks tell; "" if they are the same."""
    if one.shape != other.shape:
        return f"the shape would be {other.shape}, not {one.shape}"
    if one.dtype != other.dtype:
        return f"the data type would be {other.dtype.name}, not {one.dtype.name}"
    fill = one.fill_value
    if fill is not None and not _equal(fill, other.fill_value):
        return "what is not stored would read as something else"
    size = one.chunk_layout.read_chunk.shape or one.shape
    places = (0, 0.5, 1) if chunks else ()
    for place in dict.fromkeys(_region(one.shape, size, at) for at in places):
        region = IndexDomain(
            inclusive_min=[low for low, _ in place], exclusive_max=[high for _, high in place]
        )
        first = await one._driver.read(one[region]._transform, "C")
        second = await other._driver.read(other[region]._transform, "C")
        if not _equal(first, second):
            return "its chunks would not decode to the same elements"
    return ""


async def _open(
    place: Place, path: str, document: JsonObject, options: dict[str, object]
) -> TensorStore:
    mode = {"open": True, "create": False, "assume_metadata": True}
    spec = updated(with_members(place, path, {"metadata": document}), {**options, **mode})
    return opened(await spec.open(), spec, readable=True, writable=True)


def _made_anew(
    node: OldNode, present: TensorStore, before: JsonObject, old: Place, new: Place
) -> JsonObject:
    """The `zarr.json` that a new array like this one would get, under names of its own.

    Raises:
        SpecError, MismatchError: there can be none.
    """
    source = SourceArray(node.path, present, before, old.form, node.attributes)
    form = target_metadata(source, new.form, RequestedMetadata())
    made = NewArray.of(
        new, node.path, form.attributes, form.options, may_exist=False, deletes=False
    )
    assert isinstance(made.spec, ChunkedSpec)
    document: JsonObject = json.loads(made.spec.new_metadata().serialize())
    return document


def _region(
    shape: tuple[int, ...], chunks: tuple[int | None, ...], at: float
) -> tuple[tuple[int, int], ...]:
    """One chunk, at a fraction of the way through the array."""
    found = []
    for extent, chunk in zip(shape, chunks, strict=True):
        size = chunk or extent or 1
        low = int(max(0, extent - 1) * at) // size * size
        found.append((low, min(low + size, extent)))
    return tuple(found)


def _equal(one: object, other: object) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype.hasobject or left.dtype.names:
        return bool(left.shape == right.shape and left.tolist() == right.tolist())
    # Bit for bit: NaN is NaN, and the arrays may differ in byte order only.
    return bool(left.shape == right.shape and left.tobytes() == right.astype(left.dtype).tobytes())
