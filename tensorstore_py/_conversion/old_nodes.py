"""The nodes of a hierarchy by their documents, of whichever versions these are.

A migration that was cut short leaves nodes with old and new documents, so that all of them are
looked for here, and consolidated metadata is not believed. The one invariant: a node is an old one
as long as the document that makes it one is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from tensorstore_py._hierarchy.document import parse_document
from tensorstore_py._hierarchy.path import join
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStore

__all__ = ["OldNode", "find_nodes"]

#: What makes a node, by version; version 1 has nothing but an array by itself.
_ARRAYS = {1: "meta", 2: ".zarray"}
_ATTRIBUTES = {1: "attrs", 2: ".zattrs"}
_GROUP, _CONSOLIDATED, _NEW = ".zgroup", ".zmetadata", "zarr.json"


class OldNode(NamedTuple):
    """A node, as its documents tell.

    Attributes:
        path: below what is migrated.
        kind: `"array"` or `"group"`.
        version: of its oldest documents.
        document: the one that makes it a node in that version.
        attributes: in that version.
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
                async for name in store.list_directory(below):
                    if name.endswith("/") and name != "/":
                        paths.append(join(node.path, name[:-1]))
    return sorted(found, key=lambda node: node.path)


async def _node(store: KvStore, prefix: str, path: str) -> OldNode | None:
    newer = await _read(store, prefix + _NEW)
    array = await _read(store, prefix + _ARRAYS[2])
    first = None if path else await _read(store, prefix + _ARRAYS[1])
    if first is not None and first.get("zarr_format") != 1:
        first = None  # somebody else's document
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
