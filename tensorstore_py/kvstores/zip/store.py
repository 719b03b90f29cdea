"""The zip store: the entries of an archive in a value of another store as keys and values.

What it answers is what the archive has at that time: an entry is read on the condition that the
archive was not replaced, and that there is no such entry is not said before the archive was looked
at again. Opening asks nothing of the other store. All who open one archive through one cache pool
share what is known of it. `auto` knows an archive by its first bytes.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal, NamedTuple

from tensorstore_py.errors import DataLossError, OutOfRangeError, UnsupportedError
from tensorstore_py.kvstores.zip.archive import Archive, Directory, Fetched
from tensorstore_py.kvstores.zip.commits import Change, Commits
from tensorstore_py.kvstores.zip.methods import Packed, pack
from tensorstore_py.kvstores.zip.records import encode_name
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    Buffer,
    ByteRange,
    ChunkCache,
    KeyRange,
    KvStore,
    KvStoreField,
    KvStoreSpec,
    ListEntry,
    RangeReadAsOf,
    ReadResult,
    Resource,
    ResourceField,
    RetryPolicy,
    ThreadLimiter,
    TimestampedStorageGeneration,
    WholeRewrite,
    adapter_url_rest,
    encode_key,
    encode_path,
    holds,
    kvstore,
    offload,
)

__all__ = [
    "SharedArchive",
    "ZipSpec",
    "ZipStore",
]

Compression = Literal["store", "deflate", "zstd", "xz"]
Results = list[ReadResult]


class SharedArchive:
    """What all stores of one archive share: what is known of it, and who waits to change it."""

    def __init__(
        self, base: KvStore, key: str, cache: ChunkCache | None = None, name: Hashable = None
    ) -> None:
        self.archive = Archive(base, key, self._keep)
        self.commits = Commits(self.archive)
        self._cache = cache
        self._name = name

    def _keep(self, directory: Directory) -> None:
        if self._cache is not None and self._cache.limit_bytes:
            self._cache.put(self._name, _Kept(self, directory.size_bytes))


class _Kept(NamedTuple):
    """What the cache pool keeps."""

    shared: SharedArchive
    size_bytes: int


class ZipStore(RangeReadAsOf, WholeRewrite, KvStore):
    """See the head of this file.

    Args:
        shared: the archive.
        compression: how new entries are compressed.
        places: for compressing and decompressing; each holds one while it runs.
    """

    def __init__(
        self,
        shared: SharedArchive,
        compression: Compression = "deflate",
        places: ThreadLimiter | None = None,
    ) -> None:
        self._shared = shared  # as long as one store has it, others find it
        self._archive = shared.archive
        self._commits = shared.commits
        self._compression = compression
        self._places = ThreadLimiter(64) if places is None else places
        base = self._archive.base
        self.inline = base.inline
        self.width = base.width
        if base.identity is not None:
            self.identity = f"{base.identity}|{self._archive.key}|zip"

    async def read_ranges_as_of(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        staleness_bound: float,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> Results:
        directory = await self._archive.latest()
        attempts = RetryPolicy().begin("read", partial(self.describe_key, key), inline=self.inline)
        while True:
            entry = directory.keys.get(key)
            generation = NO_VALUE if entry is None else entry.generation
            unwanted = generation == if_not_equal or not holds(if_equal, generation)
            fresh = directory.time >= staleness_bound
            if entry is not None and not unwanted:
                try:
                    found = await self._archive.fetch(directory, entry, ranges, self._places)
                except (OutOfRangeError, DataLossError, UnsupportedError):
                    if fresh:
                        raise
                else:
                    if found is not None:
                        return _values(found, generation)
                    await attempts.lost(directory.generation)
                    staleness_bound = time.time()
            elif fresh:
                state: Literal["missing", "unspecified"]
                state = "missing" if entry is None else "unspecified"
                stamp = TimestampedStorageGeneration(generation, directory.time)
                return [ReadResult(state, b"", stamp.copy()) for _ in ranges]
            directory = await self._archive.since(staleness_bound)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        conditions = {} if if_equal is None else {key: if_equal}
        change = Change({key: await self._packed(key, value)}, conditions)
        await self._commits.make(change)
        generation = UNKNOWN if change.failed is not None else change.generations[key]
        return TimestampedStorageGeneration(generation, change.time)

    async def write_batch(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        packed = {key: await self._packed(key, value) for key, value in values.items()}
        change = Change(packed, conditions)
        await self._commits.make(change)
        return change.failed

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        await self._commits.make(Change({}, {}, key_range))

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        directory = await self._archive.since(time.time())
        for key in sorted(directory.keys, key=encode_key):
            if key in key_range:
                yield ListEntry(key, directory.keys[key].size)

    def describe_key(self, key: str) -> str:
        archive = f"the zip archive {self._archive.describe()}"
        return f"{super().describe_key(key)} in {archive}" if key else archive

    async def _packed(self, key: str, value: Buffer | None) -> Packed | None:
        if value is None:
            return None
        encode_name(key)

        def compress() -> Packed:
            with self._places:
                return pack(value, self._compression)

        return await offload(self.inline, compress)


def _values(found: Fetched, generation: bytes) -> Results:
    return [
        ReadResult("value", value, TimestampedStorageGeneration(generation, found.time))
        for value in found.values
    ]


#: What a local file header begins with, and what an archive without entries does.
_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")


@kvstore("zip", schemes=["zip"])
class ZipSpec(KvStoreSpec):
    """`{"driver": "zip", "base": "file:///a.zip", "path": "inner/"}`, or `file:///a.zip|zip:inner/`.

    Attributes:
        base: the archive: a store whose path is its key.
        compression: how new entries are compressed.
        cache_pool: where the directory of the archive is kept.
        data_copy_concurrency: how many threads compress and decompress.

    Example:
        >>> ZipSpec.from_url("zip:inner/")
        {'driver': 'zip', 'path': 'inner/'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "base", "compression", "cache_pool", "data_copy_concurrency",
    })  # fmt: skip
    keeps_values: ClassVar[bool] = False

    base: KvStoreField
    compression: Literal["store", "deflate", "zstd", "xz"] = "deflate"
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")
    data_copy_concurrency: Resource[ThreadLimiter] = ResourceField("data_copy_concurrency")

    @classmethod
    def detects(cls, head: bytes) -> bool:
        return head.startswith(_SIGNATURES)

    def open(self) -> ZipStore:
        cache, where = self.cache_pool.value, self.base
        scope = cache.scope(where.path, where, "zip")
        shared = cache.companion(
            scope, lambda: SharedArchive(where.open(), where.path, cache, (scope, "directory"))
        )
        return ZipStore(shared, self.compression, self.data_copy_concurrency.value)

    def to_url(self) -> str:
        return f"{self.base.to_url()}|zip:{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        path = adapter_url_rest(url, "zip")
        return {"driver": "zip", "path": path} if path else {"driver": "zip"}
