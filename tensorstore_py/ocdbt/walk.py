"""Going through all nodes of a tree of keys, several at a time, in bounded memory.

Nodes are read from their files, not from what is kept of them: a tool looks at what is stored. The
order is roughly that of the keys; at any time a few nodes are held, and the places of those that
are known to come.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

from tensorstore_py.errors import DataLossError, TensorStoreError
from tensorstore_py.kvstores.ocdbt.btree import Interior, Leaf, Node, Statistics, decode_node
from tensorstore_py.kvstores.ocdbt.database import Database, tree_of
from tensorstore_py.kvstores.ocdbt.references import MISSING, Reference
from tensorstore_py.kvstores.ocdbt.tree import Branch, TreeReader
from tensorstore_py.kvstores.ocdbt.versions import Version
from tensorstore_py.plugin.kvstore import fan_out, offload

__all__ = ["Place", "Visit", "below", "read_node", "statistics_of", "trunk", "walk"]

#: How many nodes are read at a time, and of how many bytes together.
_NODES: Final = 32
_BYTES: Final = 16 << 20
#: A node may be larger than the configuration says by one entry.
_SLACK: Final = 1 << 21


class Place(NamedTuple):
    """Where a node is expected.

    Attributes:
        branch: of its parent.
        height: that it must have.
        end: no key of it is there or above; empty: there is no end.
    """

    branch: Branch
    height: int
    end: bytes


class Visit(NamedTuple):
    """A node that was read.

    Attributes:
        place: where it was expected.
        node: what it has; None if it cannot be read.
        error: what is wrong with it.
    """

    place: Place
    node: Node | None
    error: TensorStoreError | None


def trunk(version: Version) -> Place | None:
    """Where the root of a version is expected; None if it has no keys."""
    tree = tree_of(version)
    if tree.root is MISSING:
        return None
    return Place(Branch(b"", 0, tree.root, tree.statistics), tree.height, b"")


async def read_node(database: Database, reference: Reference, most: int) -> Node:
    """A node as it is stored now.

    Args:
        database: which.
        reference: where.
        most: the largest size of nodes that the configuration allows.

    Raises:
        DataLossError: damaged or gone; names the file and the bytes.
    """
    data = await database.bytes_of(reference)
    base = reference.file.base
    try:
        return await offload(
            database.data.store.inline, lambda: decode_node(bytes(data), base, most + _SLACK)
        )
    except DataLossError as error:
        raise DataLossError(f"{database.place_of(reference)}: {error}") from error


def below(place: Place, node: Interior) -> list[Place]:
    """Where the children of a node are expected."""
    branches = TreeReader(_no_load).branches(place.branch, node)
    ends = [*(each.key for each in branches[1:]), place.end]
    return [Place(each, place.height - 1, end) for each, end in zip(branches, ends, strict=True)]


async def _no_load(reference: Reference) -> Node:
    raise DataLossError(f"{reference} is not read here")


def fault(place: Place, node: Node) -> str | None:
    """What of a node contradicts what refers to it; None if nothing does."""
    branch, height, end = place
    if node.height != height:
        return f"its height is {node.height}, its parent says {height}"
    prefix = branch.prefix
    if prefix + node.keys[0] < branch.key:
        return f"it begins with {prefix + node.keys[0]!r}, before {branch.key!r} of its parent"
    if end and prefix + node.keys[-1] >= end:
        return f"it ends with {prefix + node.keys[-1]!r}, but {end!r} begins the next one"
    found = statistics_of(node, branch.reference.length)
    if found != branch.statistics:
        said = branch.statistics
        names = [name for name in Statistics._fields if getattr(found, name) != getattr(said, name)]
        each = ", ".join(f"{name} {getattr(said, name)}" for name in names)
        really = ", ".join(f"{name} {getattr(found, name)}" for name in names)
        return f"its parent says that it has {each}; it has {really}"
    return None


def statistics_of(node: Node, length: int) -> Statistics:
    """What a node and all below it amount to, as what refers to it says."""
    if isinstance(node, Leaf):
        indirect = sum(value.length for value in node.values if isinstance(value, Reference))
        return Statistics(len(node.keys), length, indirect)
    total = Statistics.total([child.statistics for child in node.children])
    return total._replace(tree_bytes=total.tree_bytes + length)


async def walk(
    database: Database,
    roots: list[Place],
    most: int,
    seen: set[Reference],
) -> AsyncGenerator[Visit, None]:
    """Go through all nodes below some, each once.

    Args:
        database: which.
        roots: where to begin.
        most: the largest size of nodes that the configuration allows.
        seen: nodes that are left out with all below; those that are read are added.
    """
    waiting = roots[::-1]
    while waiting:
        batch: list[Place] = []
        size = 0
        while waiting and len(batch) < _NODES and (not batch or size < _BYTES):
            place = waiting.pop()
            reference = place.branch.reference
            if reference not in seen:
                seen.add(reference)
                batch.append(place)
                size += reference.length
        found: dict[int, Visit] = {}

        async def visit(
            number: int, batch: list[Place] = batch, found: dict[int, Visit] = found
        ) -> None:
            place = batch[number]
            try:
                node = await read_node(database, place.branch.reference, most)
            except (DataLossError, UnicodeError) as error:
                known = error if isinstance(error, TensorStoreError) else DataLossError(str(error))
                found[number] = Visit(place, None, known)
                return
            wrong = fault(place, node)
            if wrong is None:
                found[number] = Visit(place, node, None)
            else:
                where = database.place_of(place.branch.reference)
                kept = node if node.height == place.height else None
                found[number] = Visit(place, kept, DataLossError(f"{where}: {wrong}"))

        await fan_out(database.inline, range(len(batch)), visit, count=len(batch), width=_NODES)
        children: list[Place] = []
        for number in range(len(batch)):
            visited = found[number]
            yield visited
            if isinstance(visited.node, Interior):
                children += below(visited.place, visited.node)
        waiting += reversed(children)
