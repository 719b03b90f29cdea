"""Changes of a tree: groups are created, nodes are moved and deleted, metadata is consolidated.

A group is made by one conditional write, of the document that makes it one: of any number of
processes that create the same group one succeeds and the others find it. Missing groups above it
are made first, so that every node can be found from the outermost one: nothing is implied.

Nodes are moved and deleted with everything below them key by key, so never at once. A move copies
first and deletes then: if it is cut short, everything is still at its old path; in a transaction it
happens at the commit, or not at all.

Consolidated metadata is a copy of what was there while it was gathered; a program that changes the
tree meanwhile has to consolidate it again. The group's own document keeps whatever else is in it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.consolidated import Consolidated
from tensorstore_py._hierarchy.document import ChangeDocument, parse_document, serialize_document
from tensorstore_py._hierarchy.node import Node, read_node
from tensorstore_py._hierarchy.path import parents
from tensorstore_py._hierarchy.walk import Walk
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.store_abilities import copy_value, update
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    MismatchError,
    NotFoundError,
    SpecError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._hierarchy.node import Hierarchy
    from tensorstore_py._interface.hierarchy import JsonObject, NodeDocuments

__all__ = [
    "check_absent",
    "consolidate",
    "create_group",
    "delete_node",
    "make_parents",
    "move_node",
]


async def create_group(
    tree: Hierarchy,
    path: str,
    attributes: JsonObject,
    *,
    may_exist: bool = False,
    delete_existing: bool = False,
) -> Node:
    """Make a group, or find it.

    Raises:
        AlreadyExistsError: there is one, and it may not be.
        MismatchError: there is an array.
    """
    if delete_existing:
        await tree.store.delete_range(KeyRange.prefix(tree.below(path)))
    elif may_exist or len(tree.form.node_keys) > 1:
        found = await _existing(tree, path, may_exist=may_exist)
        if found is not None:
            return found
    documents = tree.form.new_group(attributes)
    if not await _store(tree, path, documents):
        found = await _existing(tree, path, may_exist=may_exist)
        if found is None:
            raise AlreadyExistsError(_exists(tree, path, "group"))
        return found
    return Node(path, "group", documents, {}, None)


async def make_parents(tree: Hierarchy, path: str, above: str | None = None) -> list[str]:
    """Make the groups above a node that are not there yet; `above` is the path of one that is.

    Returns:
        The paths of those that were made.

    Raises:
        FailedPreconditionError: one of them is an array.
    """
    made = []
    for parent in parents(path, above):
        found = await read_node(tree, parent, likely="group")
        if found is not None and found.kind == "array":
            raise FailedPreconditionError(
                f'cannot create "/{path}": "/{parent}" is an array, at {tree.describe(parent)}'
            )
        # If another process is faster, the group is there, which is what is wanted.
        if found is None and await _store(tree, parent, tree.form.new_group({})):
            made.append(parent)
    return made


async def check_absent(trees: Iterable[Hierarchy], path: str) -> None:
    """Refuse a new node where another format has one.

    Raises:
        AlreadyExistsError: one has.
    """
    for tree in trees:
        await _existing(tree, path, may_exist=False)


async def _existing(tree: Hierarchy, path: str, *, may_exist: bool) -> Node | None:
    found = await read_node(tree, path, likely="group")
    if found is None:
        return None
    if found.kind == "array" and may_exist:
        raise MismatchError(
            f'"/{path}" is an array, not a group, at {tree.describe(path)}; '
            "pass delete_existing=True to replace it"
        )
    if not may_exist:
        raise AlreadyExistsError(_exists(tree, path, found.kind))
    return found


def _exists(tree: Hierarchy, path: str, kind: str) -> str:
    return (
        f'"/{path}" exists already, a{"n" * (kind == "array")} {kind} at {tree.describe(path)}; '
        "open it instead, or pass delete_existing=True to replace it"
    )


async def _store(tree: Hierarchy, path: str, documents: NodeDocuments) -> bool:
    """Store a new group's documents; whether it was not there."""
    prefix = tree.below(path)
    for place, (key, document) in enumerate(documents.items()):
        condition = None if place else NO_VALUE
        data = serialize_document(document)
        stamp = await tree.store.write(prefix + key, data, if_equal=condition)
        if stamp.generation == UNKNOWN:
            return False
    return True


async def delete_node(tree: Hierarchy, path: str) -> None:
    """Delete a node, and everything below it.

    Raises:
        NotFoundError: there is none.
    """
    if await read_node(tree, path) is None:
        raise NotFoundError(f'cannot delete "/{path}": nothing is there, at {tree.describe(path)}')
    await tree.store.delete_range(KeyRange.prefix(tree.below(path)))


async def move_node(tree: Hierarchy, source: str, target: str, above: str) -> None:
    """Move a node, and everything below it, to another path; `above` is a group above both.

    Raises:
        NotFoundError: nothing is at the source.
        AlreadyExistsError: something is at the target.
        SpecError: the target is the source, or below it.
    """
    store, from_, to = tree.store, tree.below(source), tree.below(target)
    if to.startswith(from_):
        raise SpecError(f'cannot move "/{source}" to "/{target}", which is inside it')
    if await read_node(tree, source) is None:
        raise NotFoundError(
            f'cannot move "/{source}": nothing is there, at {tree.describe(source)}'
        )
    if await read_node(tree, target) is not None:
        raise AlreadyExistsError(
            f'cannot move "/{source}" to "/{target}": something is there, at '
            f"{tree.describe(target)}; delete it first"
        )
    await make_parents(tree, target, above)
    keys = [entry.key async for entry in store.list(KeyRange.prefix(from_))]
    # What makes it a node comes last, so that no reader sees a part of it as the whole.
    nodes = [key for key in keys if key.rpartition("/")[2] in tree.form.node_keys]
    rest = [key for key in keys if key.rpartition("/")[2] not in tree.form.node_keys]

    async def copy(key: str) -> None:
        copied = to + key[len(from_) :]
        if not await copy_value(store, key, store, copied):
            found = await store.read(key)
            if found.state == "value":
                await store.write(copied, found.value)

    for part in (rest, nodes):
        await fan_out(store.inline, part, copy, count=len(part), width=store.width)
    await store.delete_range(KeyRange.prefix(from_))


async def consolidate(tree: Hierarchy, path: str) -> Consolidated:
    """Store the documents of all nodes below a group with it.

    Returns:
        What was stored.

    Raises:
        NotFoundError: the group is not there.
        UnsupportedError: the format has no such thing, or the store cannot list.
    """
    form, store = tree.form, tree.store
    if form.consolidated_key is None:
        raise UnsupportedError(f'format "{form.format_id}" has no consolidated metadata')
    root = await read_node(tree, path, likely="group")
    if root is None:
        raise NotFoundError(f"no group found at {tree.describe(path)}")
    nodes: dict[str, NodeDocuments] = {}

    async def add(node: Node) -> None:
        inner = node.path[len(path) :].lstrip("/") if path else node.path
        nodes[inner] = await _all(tree, node.path, node.documents)

    walk = Walk(tree, path, None, None, fresh=True)
    found: list[Node] | None = [root]
    while found is not None:
        await fan_out(store.inline, found, add, count=len(found), width=store.width)
        found = await walk.step()
    key = tree.below(path) + form.consolidated_key

    def changed(document: JsonObject | None) -> JsonObject:
        if document is None and key.endswith(form.node_keys):
            raise NotFoundError(f"{tree.describe(path)} does not exist any more")
        return form.with_consolidated(document, nodes)

    await update(store, key, ChangeDocument(changed, store.describe_key(key)))
    return Consolidated(nodes, path, time.time(), store.describe_key(key))


async def _all(tree: Hierarchy, path: str, documents: NodeDocuments) -> NodeDocuments:
    """The documents of a node with its attributes, where these have one of their own."""
    key = tree.form.attributes_key
    if key in documents or key in tree.form.node_keys:
        return documents
    found = await tree.store.read(tree.below(path) + key)
    if found.state != "value":
        return documents
    where = tree.store.describe_key(tree.below(path) + key)
    return {**documents, key: parse_document(found.value, where)}
