"""Walking a tree level by level (`Walk`), and surveying all of its documents (`survey`).

A walk makes one request to list a group and one to read a node, many at a time. What is
consolidated is walked without a request. A step gives a batch of nodes, so that a tree of any size
is never held as a whole; within a level nodes come in the order of their paths.

A survey costs one round trip a level over a network: nodes are listed while their documents are
read, before it is known which of them are groups, and all documents of a node are asked for at
once. Locally, where each request costs time, no request is made in vain.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from tensorstore_py._hierarchy.consolidated import consolidated_in
from tensorstore_py._hierarchy.document import read_document
from tensorstore_py._hierarchy.node import Node, kind_of, names_in, read_node, read_nodes
from tensorstore_py._hierarchy.path import join
from tensorstore_py._runtime.fan_out import fan_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._hierarchy.consolidated import Consolidated
    from tensorstore_py._hierarchy.node import Hierarchy
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import ReadResult

__all__ = ["Walk", "names_below", "survey"]


#: A path, and what may know of it already.
_Place: TypeAlias = "tuple[str, Consolidated | None]"

#: How many nodes a step reads, and how many groups it lists.
_NODES = 256
_GROUPS = 64


class Walk:
    """The nodes below a group.

    Args:
        tree: the hierarchy.
        path: of the group.
        known: what may know them already.
        max_depth: how many groups deep: 0 for the group's own nodes; None: all.
        fresh: trust no consolidated metadata that is met on the way.
    """

    def __init__(
        self,
        tree: Hierarchy,
        path: str,
        known: Consolidated | None,
        max_depth: int | None,
        *,
        fresh: bool = False,
    ) -> None:
        self._tree = tree
        self._fresh = fresh
        self._depth = len(path.split("/")) if path else 0
        self._max_depth = max_depth
        self._groups: list[_Place] = [(path, known)]
        self._waiting: list[_Place] = []

    async def step(self) -> list[Node] | None:
        """The next nodes, maybe none; None at the end."""
        if not self._waiting:
            if not self._groups:
                return None
            await self._list()
        known = self._waiting[0][1] if self._waiting else None
        paths = []
        for path, knows in self._waiting[:_NODES]:
            if knows is not known:
                break
            paths.append(path)
        del self._waiting[: len(paths)]
        found = await read_nodes(self._tree, paths, known)
        for node in found:
            depth = node.path.count("/") - self._depth
            if node.kind == "group" and (self._max_depth is None or depth < self._max_depth):
                knows = None if self._fresh else node.consolidated
                self._groups.append((node.path, knows))
        return found

    async def _list(self) -> None:
        """Learn what is in the next groups, by one listing each."""
        groups = self._groups[:_GROUPS]
        del self._groups[: len(groups)]
        self._waiting += await _list(self._tree, groups)


async def names_below(
    tree: Hierarchy, path: str, known: Consolidated | None, max_depth: int | None
) -> list[str]:
    """The paths of what is below a group, level by level, sorted in each.

    Only what may hold more of what is asked for is looked at: by one listing a group, and one
    reading of each node above the deepest level. So a name there may be of a directory that holds
    no node.

    Args are those of `Walk`.
    """
    found: list[str] = []
    level: list[_Place] = [(path, known)]
    depth = 0
    while level:
        places = await _list(tree, level)
        if max_depth is not None and depth >= max_depth:
            return found + [place for place, _ in places]
        nodes: list[Node] = []
        for knows, group in groupby(places, lambda place: place[1]):
            nodes += await read_nodes(tree, [place for place, _ in group], knows)
        found += [node.path for node in nodes]
        level = [(node.path, node.consolidated) for node in nodes if node.kind == "group"]
        depth += 1
    return found


async def _list(tree: Hierarchy, groups: Sequence[_Place]) -> list[_Place]:
    """What is in some groups, by one listing each, and what may know of it."""
    names: dict[str, list[str]] = {}

    async def learn(group: _Place) -> None:
        names[group[0]] = await names_in(tree, *group)

    store = tree.store
    await fan_out(store.inline, groups, learn, count=len(groups), width=store.width)
    return [(join(path, name), known) for path, known in groups for name in names[path]]


#: Of levels of more nodes only groups are listed: there the requests cost more than the latency.
_LISTED_AHEAD = 256


async def survey(
    tree: Hierarchy, path: str, known: Consolidated | None, max_depth: int | None
) -> list[Node]:
    """A group and all nodes below it, level by level, sorted in each; args are those of `Walk`.

    Raises:
        DataLossError: a document is corrupt; names its key.
        UnsupportedError: the store cannot list its keys.
    """
    found: list[Node] = []
    level = [path]
    depth = 0
    if known is not None and not known.stale:
        return await _known_nodes(tree, path, known, max_depth)
    while level:
        deeper = max_depth is None or depth <= max_depth
        nodes, names = await _Level(tree, level, path, deeper).read()
        below: list[str] = []
        for node in nodes:
            found.append(node)
            inner = node.consolidated
            if inner is not None and deeper:
                left = None if max_depth is None else max_depth - depth
                found += (await _known_nodes(tree, node.path, inner, left))[1:]
            else:
                below += [join(node.path, name) for name in names.get(node.path, ())]
        level = below
        depth += 1
    return found


async def _known_nodes(
    tree: Hierarchy, path: str, known: Consolidated, max_depth: int | None
) -> list[Node]:
    """The same, without a request."""
    found: list[Node] = []
    level = [path]
    depth = 0
    while level:
        nodes = [await read_node(tree, each, known) for each in level]
        present = [node for node in nodes if node is not None]
        found += present
        if max_depth is not None and depth > max_depth:
            break
        level = [
            join(node.path, name)
            for node in present
            if node.kind == "group"
            for name in known.names(node.path)
        ]
        depth += 1
    return found


class _Level:
    """The nodes at some paths, and the names of what is in those that are groups."""

    def __init__(self, tree: Hierarchy, paths: Sequence[str], first: str, deeper: bool) -> None:
        self._tree = tree
        self._first = first
        self._paths = paths
        self._deeper = deeper
        self._nodes: dict[str, Node] = {}
        self._names: dict[str, list[str]] = {}

    async def read(self) -> tuple[list[Node], dict[str, list[str]]]:
        """Ask for all of it."""
        inline, width = self._tree.store.inline, self._tree.store.width
        paths, count = self._paths, len(self._paths)
        if not inline and self._deeper and count <= _LISTED_AHEAD:
            steps = [(what, path) for path in paths for what in (self._list, self._look)]
            await fan_out(
                inline, steps, lambda step: step[0](step[1]), count=2 * count, width=width
            )
        else:
            await fan_out(inline, paths, self._look, count=count, width=width)
            groups = [path for path, node in self._nodes.items() if self._deeper and _lists(node)]
            await fan_out(inline, groups, self._list, count=len(groups), width=width)
        nodes = [self._nodes[path] for path in paths if path in self._nodes]
        return nodes, {node.path: self._names.get(node.path, []) for node in nodes if _lists(node)}

    async def _list(self, path: str) -> None:
        self._names[path] = await names_in(
            self._tree, path, wanted=lambda: path not in self._nodes or _lists(self._nodes[path])
        )

    async def _look(self, path: str) -> None:
        node = await _whole_node(self._tree, path)
        if node is not None:
            # Only the caller that asked for it, as `known`, trusts what the first group knows.
            first = path == self._first
            self._nodes[path] = node._replace(consolidated=None) if first else node


def _lists(node: Node) -> bool:
    return node.kind == "group" and node.consolidated is None


async def _whole_node(tree: Hierarchy, path: str) -> Node | None:
    """The node at a path with all its documents; None if there is none."""
    form, store, prefix = tree.form, tree.store, tree.below(path)
    documents: dict[str, JsonObject] = {}
    results: dict[str, ReadResult] = {}

    async def read(key: str) -> None:
        found = await store.read(prefix + key)
        if found.state == "value":
            where = store.describe_key(prefix + key)
            documents[key] = await read_document(store, found.value, where)
            results[key] = found

    async def read_all(keys: Sequence[str]) -> None:
        await fan_out(store.inline, keys, read, count=len(keys), width=len(keys))

    apart = () if form.attributes_key in form.node_keys else (form.attributes_key,)
    if store.inline:
        for key in form.node_keys:
            await read(key)
            if key in documents:
                await read_all(apart)
                break
    else:
        await read_all((*form.node_keys, *apart))
    for key in form.node_keys:
        if key in documents:
            where = store.describe_key(prefix + key)
            kind = kind_of(form, key, documents[key], where)
            inner = None
            if kind == "group" and key == form.consolidated_key:
                inner = consolidated_in(form, documents[key], path, results[key].stamp.time, where)
            return Node(path, kind, documents, results, inner)
    return None
