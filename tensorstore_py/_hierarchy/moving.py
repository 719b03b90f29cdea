"""Moving and deleting nodes with everything below them: key after key, so never at once.

A move copies first and deletes then. So if it is cut short, everything is still at its old path; in
a transaction it happens at the commit, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.creating import make_parents
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import AlreadyExistsError, NotFoundError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._hierarchy.node import Hierarchy

__all__ = ["delete_node", "move_node"]


async def delete_node(tree: Hierarchy, path: str) -> None:
    """Delete a node, and everything below it.

    Raises:
        NotFoundError: there is none.
    """
    if await read_node(tree, path) is None:
        raise NotFoundError(f'cannot delete "/{path}": nothing is there, at {tree.describe(path)}')
    await tree.store.delete_range(KeyRange.prefix(tree.below(path)))


async def move_node(tree: Hierarchy, source: str, target: str, above: str) -> None:
    """Move a node, and everything below it, to another path.

    Args:
        tree: the hierarchy.
        source: its path.
        target: where nothing is; groups above it that are not there are made.
        above: the path of a group above both that is there.

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
    # What makes it a node comes last, so that nobody sees a part of it as the whole.
    nodes = [key for key in keys if key.rpartition("/")[2] in tree.form.node_keys]
    rest = [key for key in keys if key.rpartition("/")[2] not in tree.form.node_keys]

    async def copy(key: str) -> None:
        copied = to + key[len(from_) :]
        if not await store.copy_to(key, store, copied):
            found = await store.read(key)
            if found.state == "value":
                await store.write(copied, found.value)

    for part in (rest, nodes):
        await fan_out(store.inline, part, copy, count=len(part), width=store.width)
    await store.delete_range(KeyRange.prefix(from_))
