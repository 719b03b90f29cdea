"""Opening a group: which of several formats it is of, and what it knows of the nodes below it.

One request finds a group whose format is known, and the whole tree below it where that is
consolidated; formats are tried one after the other. Nothing is made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.consolidated import read_consolidated
from tensorstore_py._hierarchy.node import Node, read_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._hierarchy.node import Hierarchy

__all__ = ["find_group", "read_group"]


async def find_group(
    trees: Iterable[Hierarchy], path: str, *, consolidated: bool
) -> tuple[Hierarchy, Node] | None:
    """The first hierarchy that has a node at a path, and that node; None: none has.

    Args:
        trees: the same place as several formats see it.
        path: of the node.
        consolidated: whether to use what is consolidated.

    Raises:
        DataLossError: a document is corrupt; names its key.
    """
    for tree in trees:
        node = await read_group(tree, path, consolidated=consolidated)
        if node is not None:
            return tree, node
    return None


async def read_group(tree: Hierarchy, path: str, *, consolidated: bool) -> Node | None:
    """The node at a path, which is likely a group; None if there is none.

    Args and errors are those of `find_group`.
    """
    if not consolidated:
        node = await read_node(tree, path, likely="group")
        return None if node is None else node._replace(consolidated=None)
    known = await read_consolidated(tree.form, tree.store, tree.below(path), path)
    if known is not None:
        node = await read_node(tree, path, known)
        if node is not None:
            return node
    # A copy that does not tell of its own group is no copy of this tree.
    return await read_node(tree, path, likely="group")
