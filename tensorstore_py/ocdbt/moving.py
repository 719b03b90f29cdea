"""Trees of keys that leave some data files: what they need of these is written to new ones.

A node that changes is written anew with all above it; what versions share stays shared, since each
node and each value is moved once. Nodes are read many at a time, those below several together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tensorstore_py.kvstores.ocdbt.btree import (
    Child,
    Interior,
    Leaf,
    Node,
    Statistics,
    encode_node,
    references_in,
)
from tensorstore_py.kvstores.ocdbt.data_files import DataFilePrefixes, NewDataFiles
from tensorstore_py.kvstores.ocdbt.database import Database
from tensorstore_py.kvstores.ocdbt.manifest import Config
from tensorstore_py.kvstores.ocdbt.references import MISSING, Reference
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, encode_version_node
from tensorstore_py.ocdbt.walk import read_node
from tensorstore_py.plugin.kvstore import WHOLE, Buffer, fan_out

__all__ = ["Mover"]

#: So many bytes are gathered before a new data file is written; larger values go alone.
_FILE_BYTES: Final = 64 << 20
#: So many nodes are read at a time, of so many bytes together.
_READS: Final = 32
_HELD_BYTES: Final = 16 << 20
#: So many values are, of the bytes of a file; and which of them are copied.
_VALUES: Final = 4096
_SMALL_BYTES: Final = 1 << 16

_Moved = tuple[Reference, Statistics]


class Mover:
    """See the head of this file.

    Args:
        database: which.
        config: of it.
        prefixes: of new data files.
        leaving: the paths of files that nothing is to need any more.

    Attributes:
        moved_bytes: of values and nodes that were written.
    """

    def __init__(
        self,
        database: Database,
        config: Config,
        prefixes: DataFilePrefixes,
        leaving: frozenset[bytes],
    ) -> None:
        self._database = database
        self._config = config
        self._prefixes = prefixes
        self._leaving = leaving
        self._files = NewDataFiles(database.data.store, database.data.root, 0)
        self._pending = 0
        self._nodes: dict[Reference, _Moved] = {}
        self._values: dict[Reference, Reference] = {}
        self.moved_bytes = 0

    async def versions(self, versions: Sequence[Version]) -> list[Version]:
        """The same versions, which need nothing of the files to be left."""
        if not self._leaving:
            return [*versions]
        there = [each for each in versions if each.root is not MISSING]
        moved = await self._moved([(each.root, each.statistics) for each in there])
        after = {
            each.generation: each._replace(root=root, statistics=statistics)
            for each, (root, statistics) in zip(there, moved, strict=True)
        }
        return [after.get(each.generation, each) for each in versions]

    def add_version_node(self, node: VersionNode) -> Reference:
        """Where a node of the tree of versions is going to be."""
        data = encode_version_node(node, self._config.zstd_level)
        return self._append(self._prefixes.version_nodes, data)

    async def store(self) -> None:
        """Write what was gathered."""
        self._pending = 0
        await self._files.store()

    def _append(self, prefix: bytes, data: Buffer) -> Reference:
        self._pending += len(data)
        self.moved_bytes += len(data)
        return self._files.append(prefix, data)

    async def _moved(self, wanted: Sequence[_Moved]) -> list[_Moved]:
        """Where nodes are, and what they amount to, after they moved with all below.

        What is below some is moved together. So at each height a few nodes are held.
        """
        for group in _groups([each for each in dict(wanted).items() if each[0] not in self._nodes]):
            nodes = await self._read([reference for reference, _ in group])
            await self._move([value for node in nodes for value in self._values_of(node)])
            children = [
                (child.reference, child.statistics)
                for node in nodes
                if isinstance(node, Interior)
                for child in node.children
            ]
            below = iter(await self._moved(children) if children else ())
            for (reference, statistics), node in zip(group, nodes, strict=True):
                changed = self._changed(node, below)
                if changed is None and reference.file.path not in self._leaving:
                    self._nodes[reference] = reference, statistics
                else:
                    self._nodes[reference] = self._written(node if changed is None else changed)
            if self._pending >= _FILE_BYTES:
                await self.store()
        return [self._nodes[reference] for reference, _ in wanted]

    async def _read(self, references: Sequence[Reference]) -> list[Node]:
        """Nodes as they are stored."""
        most = self._config.max_decoded_node_bytes
        found: dict[Reference, Node] = {}

        async def read(reference: Reference) -> None:
            found[reference] = await read_node(self._database, reference, most)

        inline = self._database.inline
        await fan_out(inline, references, read, count=len(references), width=_READS)
        return [found[reference] for reference in references]

    def _values_of(self, node: Node) -> list[Reference]:
        """The values of a leaf that move."""
        if not isinstance(node, Leaf):
            return []
        values = references_in([*node.values])
        return [value for value in values if value.file.path in self._leaving]

    def _changed(self, node: Node, below: Iterator[_Moved]) -> Node | None:
        """A node after what is below it has moved, which comes next; None if nothing has."""
        if isinstance(node, Leaf):
            if not self._values_of(node):
                return None
            values = [
                self._values.get(value, value) if isinstance(value, Reference) else value
                for value in node.values
            ]
            return Leaf(node.keys, values)
        children = [
            Child(child.shared, place, statistics)
            for child, (place, statistics) in zip(node.children, below, strict=False)
        ]
        return None if children == node.children else Interior(node.height, node.keys, children)

    def _written(self, node: Node) -> _Moved:
        data = encode_node(node, self._config.zstd_level)
        reference = self._append(self._prefixes.btree_nodes, data)
        if isinstance(node, Leaf):
            size = sum(value.length for value in node.values if isinstance(value, Reference))
            return reference, Statistics(len(node.keys), reference.length, size)
        total = Statistics.total([child.statistics for child in node.children])
        return reference, total._replace(tree_bytes=total.tree_bytes + reference.length)

    async def _move(self, values: list[Reference]) -> None:
        """Copy values that were not copied yet, in the order of the files that they are in."""
        wanted = sorted({value for value in values if value not in self._values})
        begin = 0
        while begin < len(wanted):
            end, size = begin, 0
            while end < len(wanted) and end - begin < _VALUES:
                size += wanted[end].length
                if end > begin and size > _FILE_BYTES:
                    break
                end += 1
            batch = wanted[begin:end]
            found = await self._database.bytes_of_several([(value, WHOLE) for value in batch])
            for value, data in zip(batch, found, strict=True):
                # A part of what was read together would keep all of it.
                own = bytes(data) if len(data) < _SMALL_BYTES else data
                self._values[value] = self._append(self._prefixes.values, own)
            if self._pending >= _FILE_BYTES:
                await self.store()
            begin = end


def _groups(nodes: Sequence[_Moved]) -> Iterator[list[_Moved]]:
    """Nodes as many at a time as are read, and held."""
    group: list[_Moved] = []
    size = 0
    for each in nodes:
        length = each[0].length
        if group and (len(group) == _READS or size + length > _HELD_BYTES):
            yield group
            group, size = [], 0
        group.append(each)
        size += length
    if group:
        yield group
