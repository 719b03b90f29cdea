"""What data files tell of a database whose manifest is lost.

Nodes begin with a magic number and end with a checksum, so they are found wherever they are in a
file. Nodes of the tree of versions tell of versions; a node of a tree of keys that no other one
refers to is a root, of a version that only the manifest told of, or of one that was never
committed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, NamedTuple

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.btree import Interior, Leaf, Node, decode_node
from tensorstore_py.kvstores.ocdbt.database import Database
from tensorstore_py.kvstores.ocdbt.envelope import Record
from tensorstore_py.kvstores.ocdbt.references import DataFile, Reference
from tensorstore_py.kvstores.ocdbt.tree import Branch
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, decode_version_node
from tensorstore_py.ocdbt.check import ValueCheck
from tensorstore_py.ocdbt.files import Files
from tensorstore_py.ocdbt.walk import Place, statistics_of, walk
from tensorstore_py.plugin.kvstore import ByteRange, offload

__all__ = ["Evidence", "Root", "evidence_in"]

_WINDOW: Final = 8 << 20
_HEADER: Final = 12
_MOST: Final = 2**32 - 1
_MAGIC: Final = {
    record.value.to_bytes(4, "big"): record for record in (Record.VERSION_NODE, Record.BTREE_NODE)
}


class Root(NamedTuple):
    """The root of a tree of keys that may have been the latest version.

    Attributes:
        version: what it would be; generation and time are 0.
        files: in which its tree and its values are.
    """

    version: Version
    files: frozenset[bytes]

    def follows(self, other: Root) -> bool:
        """Whether it was written later: files refer to older ones alone."""
        here, there = self.version.root, other.version.root
        if here.file == there.file:
            return here.offset > there.offset
        return there.file.path in self.files


class Evidence(NamedTuple):
    """What was found.

    Attributes:
        versions: that nodes of the tree of versions tell of, by generation.
        arity_log2: of that tree; None if there is no such node.
        roots: whole trees that may have been the latest version: those that nothing follows.
        nodes: how many nodes were found.
    """

    versions: dict[int, Version]
    arity_log2: int | None
    roots: list[Root]
    nodes: int


async def evidence_in(database: Database, files: Files) -> Evidence:
    """What the data files of a database tell."""
    versions: dict[int, Version] = {}
    arity_log2 = None
    nodes: dict[Reference, Place] = {}
    below: set[Reference] = set()
    count = 0
    for path in sorted(files.own):
        async with aclosing(_nodes_in(database, path, files.sizes[path])) as found:
            async for reference, node in found:
                count += 1
                if isinstance(node, VersionNode):
                    arity_log2 = node.arity_log2
                    versions.update({each.generation: each for each in node.versions})
                    continue
                branch = Branch(b"", 0, reference, statistics_of(node, reference.length))
                nodes[reference] = Place(branch, node.height, b"")
                if isinstance(node, Interior):
                    below |= {child.reference for child in node.children}
    known = {version.root for version in versions.values()}
    values = ValueCheck(database, files, reads=False)
    roots = []
    for reference, place in nodes.items():
        if reference not in below and reference not in known:
            root = await _whole(database, place, values)
            if root is not None:
                roots.append(root)
    last = [
        root
        for root in roots
        if not any(other.follows(root) for other in roots if other is not root)
    ]
    return Evidence(versions, arity_log2, last, count)


async def _nodes_in(
    database: Database, path: bytes, size: int
) -> AsyncGenerator[tuple[Reference, Node | VersionNode], None]:
    """The nodes in a data file."""
    file = DataFile(b"", path)
    whole = Reference(file, 0, size)
    position = 0
    while position < size - _HEADER:
        end = min(size, position + _WINDOW)
        window = bytes(await database.bytes_of(whole, ByteRange(position, end)))
        for magic, record in _MAGIC.items():
            place = window.find(magic)
            while place >= 0:
                found = await _node_at(database, record, file, position + place, size)
                if found is not None:
                    yield found
                place = window.find(magic, place + 1)
        if end == size:
            return
        position = end - len(magic) + 1


async def _node_at(
    database: Database, record: Record, file: DataFile, offset: int, size: int
) -> tuple[Reference, Node | VersionNode] | None:
    if size - offset < _HEADER:
        return None
    header = bytes(await database.bytes_of(Reference(file, offset, _HEADER)))
    length = int.from_bytes(header[4:], "little")
    if not _HEADER < length <= min(size - offset, _MOST):
        return None
    reference = Reference(file, offset, length)
    data = bytes(await database.bytes_of(reference))

    def decoded() -> Node | VersionNode:
        if record is Record.BTREE_NODE:
            return decode_node(data, b"", _MOST)
        return decode_version_node(data, b"", _MOST)

    try:
        return reference, await offload(database.data.store.inline, decoded)
    except DataLossError:
        return None  # a value may have anything in it


async def _whole(database: Database, place: Place, values: ValueCheck) -> Root | None:
    """The root, if everything below can be read."""
    files: set[bytes] = set()
    async with aclosing(walk(database, [place], _MOST, set())) as visits:
        async for (branch, _, _), node, error in visits:
            if error is not None:
                return None
            files.add(branch.reference.file.path)
            if isinstance(node, Leaf):
                if await values.faults(node):
                    return None
                files |= {each.file.path for each in node.values if isinstance(each, Reference)}
    reference, statistics = place.branch.reference, place.branch.statistics
    return Root(Version(0, 0, place.height, reference, statistics), frozenset(files))
