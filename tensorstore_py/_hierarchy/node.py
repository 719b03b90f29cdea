"""Nodes of an open hierarchy: what is at a path, in as few requests as the format needs.

A format with one document a node answers with one request; one that keeps arrays, groups and
attributes apart is asked for the array first. Consolidated metadata answers with none. Nothing is
remembered: what is found was there when it was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._hierarchy.consolidated import Consolidated, consolidated_in
from tensorstore_py._hierarchy.document import parse_document, read_document, serialize_document
from tensorstore_py._interface.generation import UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._interface.store_abilities import list_directory
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import DataLossError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorstore_py._interface.hierarchy import (
        HierarchyFormat,
        JsonObject,
        NodeDocuments,
        NodeKind,
    )
    from tensorstore_py._interface.kvstore import KvStore

__all__ = ["Hierarchy", "Node", "kind_of", "known_node", "names_in", "read_node", "read_nodes"]


class Node(NamedTuple):
    """What is at a path.

    Attributes:
        path: in the hierarchy.
        kind: `"array"` or `"group"`.
        documents: its documents, by key.
        results: what was read, by key; empty if it was known before.
        consolidated: what knows the nodes below, if something does.
    """

    path: str
    kind: NodeKind
    documents: NodeDocuments
    results: Mapping[str, ReadResult]
    consolidated: Consolidated | None

    def read(self) -> Mapping[str, ReadResult]:
        """The documents as if they had been read from the store, for opening an array."""
        if self.results or self.consolidated is None:
            return self.results
        stamp = TimestampedStorageGeneration(UNKNOWN, self.consolidated.time)
        return {
            key: ReadResult("value", serialize_document(document), stamp)
            for key, document in self.documents.items()
        }


class Hierarchy(NamedTuple):
    """Where the nodes of a hierarchy are.

    Attributes:
        store: the store, as a transaction sees it if there is one.
        prefix: of all keys, ending in `/` unless empty.
        form: the format.
    """

    store: KvStore
    prefix: str
    form: HierarchyFormat

    def below(self, path: str) -> str:
        """What the keys of a node begin with."""
        return f"{self.prefix}{path}/" if path else self.prefix

    def describe(self, path: str) -> str:
        """How to name a node to a person, by the key that makes it one."""
        return self.store.describe_key(self.below(path) + self.form.group_key)


def known_node(tree: Hierarchy, path: str, known: Consolidated) -> Node | None:
    """The node at a path as consolidated metadata tells it; None if there is none.

    Raises:
        DataLossError: its document is corrupt; names it.
    """
    documents = known.documents(path)
    if documents is None:
        return None
    form = tree.form
    key = next((key for key in form.node_keys if key in documents), form.group_key)
    where = f"consolidated metadata of {tree.describe(path)}"
    kind = kind_of(form, key, documents.get(key, {}), where)
    return Node(path, kind, documents, {}, known)


async def read_node(
    tree: Hierarchy,
    path: str,
    known: Consolidated | None = None,
    *,
    likely: NodeKind = "array",
) -> Node | None:
    """The node at a path; None if there is none. `likely` is looked for first.

    Raises:
        DataLossError: a document is corrupt; names its key.
    """
    if known is not None and not known.stale:
        return known_node(tree, path, known)
    form = tree.form
    prefix = tree.below(path)
    for key in form.node_keys if likely == "array" else reversed(form.node_keys):
        found = await tree.store.read(prefix + key)
        if found.state != "value":
            continue
        where = tree.store.describe_key(prefix + key)
        document = await read_document(tree.store, found.value, where)
        kind = kind_of(form, key, document, where)
        documents, results = {key: document}, {key: found}
        inner = None
        if kind == "group" and key == form.consolidated_key:
            inner = consolidated_in(form, document, path, found.stamp.time, where)
        elif kind == "array" and form.attributes_key != key:
            await _add(tree.store, prefix, form.attributes_key, documents, results)
        return Node(path, kind, documents, results, inner)
    return None


async def read_nodes(
    tree: Hierarchy, paths: Sequence[str], known: Consolidated | None
) -> list[Node]:
    """The nodes at some paths, in this order; what is none is left out.

    Args and errors are those of `read_node`.
    """
    found: dict[str, Node] = {}

    async def read(path: str) -> None:
        node = await read_node(tree, path, known)
        if node is not None:
            found[path] = node

    if known is not None and not known.stale:
        for path in paths:
            await read(path)
    else:
        store = tree.store
        await fan_out(store.inline, paths, read, count=len(paths), width=store.width)
    return [found[path] for path in paths if path in found]


async def names_in(
    tree: Hierarchy,
    path: str,
    known: Consolidated | None = None,
    *,
    wanted: Callable[[], bool] | None = None,
) -> list[str]:
    """The names right below a group, sorted: of its nodes, as far as one listing can tell.

    A directory that holds no node is among them where nothing but asking would tell. The listing
    ends when `wanted`, which is asked while names come, says no.

    Raises:
        UnsupportedError: the store cannot list its keys.
    """
    if known is not None and not known.stale:
        return known.names(path)
    names = []
    async for name in list_directory(tree.store, tree.below(path)):
        if wanted is not None and not wanted():
            return []
        if name.endswith("/") and name != "/" and tree.form.may_be_node(name[:-1]):
            names.append(name[:-1])
    return sorted(names)


async def _add(
    store: KvStore,
    prefix: str,
    key: str,
    documents: dict[str, JsonObject],
    results: dict[str, ReadResult],
) -> None:
    found = await store.read(prefix + key)
    if found.state == "value":
        documents[key] = parse_document(found.value, store.describe_key(prefix + key))
        results[key] = found


def kind_of(form: HierarchyFormat, key: str, document: JsonObject, where: str) -> NodeKind:
    """What a document says that its node is.

    Raises:
        DataLossError: it says neither; names `where`.
    """
    try:
        return form.kind(key, document)
    except SpecError as error:
        raise DataLossError(f"Error reading {where}: {error}") from error
