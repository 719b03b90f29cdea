"""Consolidated metadata: the documents of a whole tree in one, so that one request tells them all.

It is a copy, true when it was written. A change of the tree through a group that was opened from it
makes it stale: that is said once, and from then on the nodes themselves are asked. The one
invariant: it is never trusted again after a change that went through here.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.document import read_document
from tensorstore_py._hierarchy.path import join, parents
from tensorstore_py._interface.hierarchy import KnownNode
from tensorstore_py.errors import DataLossError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject, NodeDocuments
    from tensorstore_py._interface.kvstore import KvStore, ReadResult

__all__ = ["Consolidated", "consolidated_in", "read_consolidated"]


class Consolidated:
    """The documents of a tree.

    Args:
        nodes: by path below the tree's root, which is `""`.
        base: the path of that root in the hierarchy.
        time: when they were read, in seconds since the epoch.
        where: how to name the document to a person.
    """

    __slots__ = ("_base", "_children", "_nodes", "_where", "stale", "time")

    def __init__(
        self, nodes: Mapping[str, NodeDocuments], base: str, time: float, where: str
    ) -> None:
        self._nodes = nodes
        self._base = base
        self._where = where
        self._children: dict[str, list[str]] | None = None
        self.time = time
        self.stale = False

    def documents(self, path: str) -> NodeDocuments | None:
        """The documents of a node; None if it is not there."""
        return self._nodes.get(self._inner(path))

    def names(self, path: str) -> list[str]:
        """The names of the nodes in a group, sorted."""
        children = self._children
        if children is None:
            children = {}
            for inner in sorted(self._nodes):
                parent, _, name = inner.rpartition("/")
                if inner and all(above in self._nodes for above in parents(inner)):
                    children.setdefault(parent, []).append(name)
            self._children = children  # whole at once: others may be looking
        return children.get(self._inner(path), [])

    def spoil(self, path: str) -> None:
        """Say that a node was changed, and be stale."""
        if not self.stale:
            self.stale = True
            warnings.warn(
                f"the consolidated metadata in {self._where} is out of date, since "
                f'"/{path}" was changed; it is not used by this group any more, but still by '
                "whoever opens it: call consolidate() when all changes are made",
                UserWarning,
                stacklevel=5,
            )

    def at(self, path: str) -> KnownNode:
        """What this tells of one node, for the open node to keep."""
        return _Known(self, path)

    def _inner(self, path: str) -> str:
        return path[len(self._base) :].lstrip("/") if self._base else path

    def __repr__(self) -> str:
        paths = [join(self._base, inner) for inner in self._nodes]
        return f"Consolidated({paths}, stale={self.stale})"


class _Known(KnownNode):
    __slots__ = ("_path", "_tree")

    def __init__(self, tree: Consolidated, path: str) -> None:
        self._tree = tree
        self._path = path

    def documents(self) -> NodeDocuments | None:
        return None if self._tree.stale else self._tree.documents(self._path)

    def spoil(self) -> None:
        self._tree.spoil(self._path)


def consolidated_in(
    form: HierarchyFormat, document: JsonObject, base: str, time: float, where: str
) -> Consolidated | None:
    """What a group's document holds of the tree below it; None if nothing.

    Raises:
        DataLossError: it is corrupt; names `where`.
    """
    try:
        nodes = form.consolidated(document)
    except SpecError as error:
        raise DataLossError(f"Error reading {where}: {error}") from error
    return None if nodes is None else Consolidated(nodes, base, time, where)


async def read_consolidated(
    form: HierarchyFormat, store: KvStore, prefix: str, base: str
) -> Consolidated | None:
    """What is stored of it in a document of its own; None if nothing is, or there is none.

    Raises:
        DataLossError: it is corrupt; names its key.
    """
    key = form.consolidated_key
    if key is None or key in form.node_keys:
        return None
    found: ReadResult = await store.read(prefix + key)
    if found.state != "value":
        return None
    where = store.describe_key(prefix + key)
    document = await read_document(store, found.value, where)
    return consolidated_in(form, document, base, found.stamp.time, where)
