"""A manifest that has one version more: how the tree of versions grows.

The manifest has the versions of the latest group of arity^1 generations itself. When the next group
begins, these become a leaf of the tree. The manifest refers to at most one subtree of each height
from 1 on, the oldest versions in the highest one: a new leaf becomes a child of the subtree of
height 1, unless that one's group of arity^2 generations is complete, too; then it is the first
child of a new one, and the complete one becomes a child of the subtree of height 2, and so on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from operator import attrgetter

from tensorstore_py.kvstores.ocdbt.manifest import Manifest
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, VersionSubtree

__all__ = ["with_version"]


async def with_version(
    manifest: Manifest,
    version: Version,
    load: Callable[[VersionSubtree], Awaitable[VersionNode]],
    add: Callable[[VersionNode], Reference],
) -> Manifest:
    """The manifest after one more commit.

    Args:
        manifest: before it.
        version: what was committed; its generation is one above the latest.
        load: gives the node of a subtree.
        add: stores a node, and says where.
    """
    arity = manifest.config.version_tree_arity_log2
    older = manifest.versions
    if not older or _same_group(older[-1].generation, version.generation, arity, 0):
        return manifest._replace(versions=[*older, version])
    present = {subtree.height: subtree for subtree in manifest.subtrees}
    carried: VersionSubtree | None = VersionSubtree(
        older[-1].generation,
        older[0].time_ns,
        len(older),
        0,
        add(VersionNode(arity, 0, older, [])),
    )
    height = 0
    while carried is not None:
        height += 1
        # Its group at this height: that of the parent which the carried one goes below.
        parent = present.pop(height, None)
        children: list[VersionSubtree] = []
        following = None
        if parent is not None:
            if _same_group(parent.generation, carried.generation, arity, height):
                children = (await load(parent)).subtrees
            else:
                following = parent
        children = [*children, carried]
        present[height] = VersionSubtree(
            carried.generation,
            children[0].time_ns,
            sum(child.versions for child in children),
            height,
            add(VersionNode(arity, height, [], children)),
        )
        carried = following
    subtrees = sorted(present.values(), key=attrgetter("height"), reverse=True)
    return manifest._replace(versions=[version], subtrees=subtrees)


def _same_group(generation: int, other: int, arity_log2: int, height: int) -> bool:
    """Whether two versions are in one node of that height."""
    bits = arity_log2 * (height + 1)
    return (generation - 1) >> bits == (other - 1) >> bits
