"""Which formats have groups, and which of them a group is of.

Formats come with the drivers that are registered, built-in or not; each is made once. The newest
version comes first, so that it is tried first and is what is created by default. One request finds
a group whose format is known, and the whole tree below it where that is consolidated; formats are
tried one after the other.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.consolidated import read_consolidated
from tensorstore_py._hierarchy.node import Node, read_node
from tensorstore_py._spec.registry import hierarchy_formats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._hierarchy.node import Hierarchy
    from tensorstore_py._interface.hierarchy import HierarchyFormat

__all__ = ["find_group", "format_of", "formats", "read_group"]


def formats() -> list[HierarchyFormat]:
    """All formats that have groups, the newest first.

    Example:
        >>> [form.format_id for form in formats() if form.zarr_format]
        ['zarr3', 'zarr2']
    """
    return [_made(name) for name in reversed(hierarchy_formats.names())]


def format_of(driver: str) -> HierarchyFormat | None:
    """The format of a driver's arrays; None if it has no groups.

    Example:
        >>> format_of("zarr").zarr_format, format_of("array")
        (2, None)
    """
    return next((form for form in formats() if form.driver == driver), None)


@cache
def _made(name: str) -> HierarchyFormat:
    form: HierarchyFormat = hierarchy_formats.get(name)()  # type: ignore[assignment]
    return form


async def find_group(
    trees: Iterable[Hierarchy], path: str, *, consolidated: bool
) -> tuple[Hierarchy, Node] | None:
    """The first hierarchy that has a node at a path, and that node; None: none has.

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
