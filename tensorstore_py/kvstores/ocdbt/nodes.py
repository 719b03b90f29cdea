"""Nodes that are kept: in the cache pool, and the latest few of a database besides.

A node never changes, so what is kept is never out of date. The root and what is on the way to a
leaf are needed by every read; without these few, each would be read and decoded for every key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NamedTuple, cast

from tensorstore_py.kvstores.ocdbt.btree import Leaf, Node
from tensorstore_py.kvstores.ocdbt.columns import KeyColumn, ValueColumn
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.plugin.kvstore import ChunkCache, Mutex

__all__ = ["NodeCache"]

#: What is kept without a cache pool, in bytes.
_OWN_BYTES: Final = 16 << 20
#: What an entry takes in memory beside its key and value, about.
_ENTRY_BYTES: Final = 200


class _KeptNode(NamedTuple):
    """What the cache pool keeps."""

    node: Node
    size_bytes: int


class NodeCache:
    """Nodes of one database.

    Args:
        pool: where they are kept.
        name: of the database there.
    """

    def __init__(self, pool: ChunkCache, name: Hashable) -> None:
        self._pool = pool
        self._name = name
        self._mutex = Mutex()
        self._own: OrderedDict[Reference, _KeptNode] = OrderedDict()
        self._own_bytes = 0

    def get(self, reference: Reference) -> Node | None:
        """The node, if it is kept."""
        with self._mutex:
            kept = self._own.get(reference)
            if kept is not None:
                self._own.move_to_end(reference)
                return kept.node
        if not self._pool.limit_bytes:
            return None
        pooled = cast("_KeptNode | None", self._pool.get((self._name, reference)))
        return None if pooled is None else pooled.node

    def put(self, reference: Reference, node: Node) -> None:
        """Keep a node."""
        kept = _KeptNode(node, _size_of(node))
        if self._pool.limit_bytes:
            self._pool.put((self._name, reference), kept)
        with self._mutex:
            if reference in self._own:
                return
            self._own[reference] = kept
            self._own_bytes += kept.size_bytes
            while self._own_bytes > _OWN_BYTES and len(self._own) > 1:
                _, gone = self._own.popitem(last=False)
                self._own_bytes -= gone.size_bytes


def _size_of(node: Node) -> int:
    """What it takes in memory, about."""
    if isinstance(node.keys, KeyColumn) and isinstance(node, Leaf):
        assert isinstance(node.values, ValueColumn)
        return node.keys.size_bytes + node.values.size_bytes
    size = _ENTRY_BYTES * len(node.keys) + sum(map(len, node.keys))
    if isinstance(node, Leaf):
        # A reference is a tuple of three.
        size += sum(map(len, node.values))
    return size
