"""The JSON of the zip store: an archive in a value of another store, and its URL.

Opening asks nothing of the other store. All who open one archive through one cache pool share what
is known of it. `auto` knows an archive by its first bytes.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from tensorstore_py.kvstores.zip.store import SharedArchive, ZipStore
from tensorstore_py.plugin import (
    ChunkCache,
    KvStoreField,
    KvStoreSpec,
    Places,
    Resource,
    ResourceField,
    adapter_url_rest,
    encode_path,
    kvstore,
)

__all__ = ["ZipSpec"]

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

    base: KvStoreField
    compression: Literal["store", "deflate", "zstd", "xz"] = "deflate"
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")
    data_copy_concurrency: Resource[Places] = ResourceField("data_copy_concurrency")

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
