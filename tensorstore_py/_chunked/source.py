"""Where a chunked array's bytes come from, by cell.

For a plain array that is a store, a path and a rule for names; for the inner chunks of a shard
it is a part of one key (see `shard`). The engine above sees only this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tensorstore_py._interface.byte_range import WHOLE, ByteRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._interface.chunk_keys import ChunkKeys
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer, KvStore, ReadResult

__all__ = ["Cell", "ChunkSource", "StoredChunks"]

Cell = tuple[int, ...]


class ChunkSource(ABC):
    """Chunks by cell.

    Attributes:
        inline: the temperament of the store at the bottom.
        width: how many reads in flight it makes good use of.
    """

    inline: bool
    width: int

    @abstractmethod
    async def read(
        self,
        cell: Cell,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """The stored bytes of a chunk, or a part of them; conditions as for `KvStore.read`."""

    async def parts(
        self, cell: Cell, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        """Parts of the stored bytes of a chunk; see `KvStore.read_parts`."""
        return None

    async def values(self, cells: Sequence[Cell], room: memoryview) -> Sequence[Buffer | None]:
        """The stored bytes of several chunks, None where one is missing.

        See `KvStore.read_values`.
        """
        results = [await self.read(cell) for cell in cells]
        return [result.value if result.state == "value" else None for result in results]

    @abstractmethod
    def describe(self, cell: Cell) -> str:
        """How to name the chunk in an error message."""


class StoredChunks(ChunkSource):
    """One key a chunk.

    Args:
        store: where.
        prefix: the array's path, ending in "/" unless empty.
        keys: names of the chunks below it.
        width: how many chunks are worked on at a time; what the store makes good use of by default.
    """

    __slots__ = ("_keys", "inline", "prefix", "store", "width")

    def __init__(
        self, store: KvStore, prefix: str, keys: ChunkKeys, width: int | None = None
    ) -> None:
        self.store = store
        self.prefix = prefix
        self._keys = keys
        self.inline = store.inline
        self.width = store.width if width is None else width

    def on(self, store: KvStore) -> StoredChunks:
        """The same chunks by another way to their store."""
        return StoredChunks(store, self.prefix, self._keys, self.width)

    def key(self, cell: Cell) -> str:
        """The whole key of a chunk."""
        return self.prefix + self._keys.encode(cell)

    async def read(
        self,
        cell: Cell,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        key = self.prefix + self._keys.encode(cell)
        return await self.store.read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)

    async def parts(
        self, cell: Cell, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        key = self.prefix + self._keys.encode(cell)
        return await self.store.read_parts(key, ranges, size)

    async def values(self, cells: Sequence[Cell], room: memoryview) -> Sequence[Buffer | None]:
        prefix, encode = self.prefix, self._keys.encode
        return await self.store.read_values([prefix + encode(cell) for cell in cells], room)

    async def write_values(self, cells: Sequence[Cell], values: Sequence[Buffer | None]) -> None:
        """Store several chunks, or delete those with `None`; see `KvStore.write_values`."""
        prefix, encode = self.prefix, self._keys.encode
        await self.store.write_values([prefix + encode(cell) for cell in cells], values)

    async def write_parts(
        self, cell: Cell, parts: Sequence[Buffer] | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """Store a chunk, or delete it with `None`; see `KvStore.write_parts`."""
        key = self.prefix + self._keys.encode(cell)
        return await self.store.write_parts(key, parts, if_equal=if_equal)

    async def keep(
        self, cell: Cell, value: Buffer, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """Store a chunk whose bytes never change; see `KvStore.keep`."""
        key = self.prefix + self._keys.encode(cell)
        return await self.store.keep(key, value, if_equal=if_equal)

    def describe(self, cell: Cell) -> str:
        return self.store.describe_key(self.key(cell))
