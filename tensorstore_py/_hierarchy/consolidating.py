"""Writing consolidated metadata: the documents of all nodes below a group, gathered and stored.

It is a copy of what was there while it was gathered; a program that changes the tree meanwhile
has to consolidate it again. The group's own document keeps whatever else is in it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.consolidated import Consolidated
from tensorstore_py._hierarchy.document import ChangeDocument, parse_document
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._hierarchy.walk import Walk
from tensorstore_py._interface.store_abilities import update
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._hierarchy.node import Hierarchy, Node
    from tensorstore_py._interface.hierarchy import JsonObject, NodeDocuments

__all__ = ["consolidate"]


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
