"""Walking a tree: level by level, one listing a group and one reading a node, many at a time.

What is consolidated is walked without a request. A step gives a batch of nodes, so that a tree of
any size is never held as a whole; within a level nodes come in the order of their paths.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from tensorstore_py._hierarchy.node import names_in, read_nodes
from tensorstore_py._hierarchy.path import join
from tensorstore_py._runtime.fan_out import fan_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._hierarchy.consolidated import Consolidated
    from tensorstore_py._hierarchy.node import Hierarchy, Node

__all__ = ["Walk", "names_below"]

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
