"""Walking a tree: level by level, one listing a group and one reading a node, many at a time.

What is consolidated is walked without a request. A step gives a batch of nodes, so that a tree of
any size is never held as a whole; within a level nodes come in the order of their paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.node import names_in, read_nodes
from tensorstore_py._hierarchy.path import join
from tensorstore_py._runtime.fan_out import fan_out

if TYPE_CHECKING:
    from tensorstore_py._hierarchy.consolidated import Consolidated
    from tensorstore_py._hierarchy.node import Hierarchy, Node

__all__ = ["Walk"]

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
        self._groups: list[tuple[str, Consolidated | None]] = [(path, known)]
        self._waiting: list[tuple[str, Consolidated | None]] = []

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
        names: dict[str, list[str]] = {}

        async def learn(group: tuple[str, Consolidated | None]) -> None:
            names[group[0]] = await names_in(self._tree, *group)

        store = self._tree.store
        await fan_out(store.inline, groups, learn, count=len(groups), width=store.width)
        for path, known in groups:
            self._waiting += [(join(path, name), known) for name in names[path]]
