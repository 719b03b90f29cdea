"""The JSON of the zip store: an archive in a value of another store, and its URL.

Values only. What opens it comes with the store; `auto` knows an archive by its first bytes.
"""

from __future__ import annotations

from typing import Literal

from tensorstore_py.plugin import (
    CachePool,
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

    base: KvStoreField
    compression: Literal["store", "deflate", "zstd", "xz"] = "deflate"
    cache_pool: Resource[CachePool] = ResourceField("cache_pool")
    data_copy_concurrency: Resource[Places] = ResourceField("data_copy_concurrency")

    @classmethod
    def detects(cls, head: bytes) -> bool:
        return head.startswith(_SIGNATURES)

    def to_url(self) -> str:
        return f"{self.base.to_url()}|zip:{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        path = adapter_url_rest(url, "zip")
        return {"driver": "zip", "path": path} if path else {"driver": "zip"}
