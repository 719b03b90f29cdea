"""Trees of keys that leave some data files: what they need of these is written to new ones.

A node that changes is written anew with all above it; what versions share stays shared, since each
node and each value is moved once.
"""

from __future__ import annotations

from typing import Final

from tensorstore_py.kvstores.ocdbt.btree import Child, Interior, Leaf, Node, Statistics, encode_node
from tensorstore_py.kvstores.ocdbt.data_files import DataFilePrefixes, NewDataFiles
from tensorstore_py.kvstores.ocdbt.database import Database
from tensorstore_py.kvstores.ocdbt.manifest import Config
from tensorstore_py.kvstores.ocdbt.references import MISSING, Reference
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, encode_version_node
from tensorstore_py.ocdbt.walk import read_node
from tensorstore_py.plugin.kvstore import Buffer, fan_out

__all__ = ["Mover"]

#: So many bytes are gathered before a new data file is written; larger values go alone.
_FILE_BYTES: Final = 64 << 20
_READS: Final = 32

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

    async def version(self, version: Version) -> Version:
        """The same version, which needs nothing of the files to be left."""
        if version.root is MISSING or not self._leaving:
            return version
        root, statistics = await self._node(version.root, version.statistics)
        return version._replace(root=root, statistics=statistics)

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

    async def _node(self, reference: Reference, statistics: Statistics) -> _Moved:
        known = self._nodes.get(reference)
        if known is not None:
            return known
        most = self._config.max_decoded_node_bytes
        node = await read_node(self._database, reference, most)
        changed = await self._changed(node)
        if changed is None and reference.file.path not in self._leaving:
            moved = reference, statistics
        else:
            moved = self._written(node if changed is None else changed)
            if self._pending >= _FILE_BYTES:
                await self.store()
        self._nodes[reference] = moved
        return moved

    async def _changed(self, node: Node) -> Node | None:
        """A node after what is below it has moved; None if nothing has."""
        if isinstance(node, Leaf):
            wanted = [
                value
                for value in node.values
                if isinstance(value, Reference) and value.file.path in self._leaving
            ]
            await self._move(wanted)
            values = [
                self._values.get(value, value) if isinstance(value, Reference) else value
                for value in node.values
            ]
            return Leaf(node.keys, values) if wanted else None
        children: list[Child] = []
        for child in node.children:
            place, statistics = await self._node(child.reference, child.statistics)
            children.append(Child(child.shared, place, statistics))
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
            while end < len(wanted) and (end == begin or size + wanted[end].length <= _FILE_BYTES):
                size += wanted[end].length
                end += 1
            batch = wanted[begin:end]
            found: dict[Reference, Buffer] = {}

            async def read(value: Reference, found: dict[Reference, Buffer] = found) -> None:
                found[value] = await self._database.bytes_of(value)

            await fan_out(self._database.inline, batch, read, count=len(batch), width=_READS)
            for value in batch:
                self._values[value] = self._append(self._prefixes.values, found[value])
            if self._pending >= _FILE_BYTES:
                await self.store()
            begin = end
