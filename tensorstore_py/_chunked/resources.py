"""Context resources of chunked arrays: cache pools and the limit on data copying.

A resource model says what JSON may say; its `create` makes the live object once per context.
"""

from __future__ import annotations

from typing import Literal

from tensorstore_py._chunked.cache import ChunkCache
from tensorstore_py._runtime.workers import width
from tensorstore_py._spec.model import NonNegativeInt, PositiveInt
from tensorstore_py._spec.registry import context_resource
from tensorstore_py._spec.resource import ResourceModel

__all__ = ["CachePool", "DataCopyConcurrency"]


@context_resource("cache_pool")
class CachePool(ResourceModel):
    """Decoded chunks are kept up to `total_bytes_limit` bytes, shared by all that name it."""

    total_bytes_limit: NonNegativeInt = 0

    def create(self) -> ChunkCache:
        return ChunkCache(self.total_bytes_limit)


@context_resource("data_copy_concurrency")
class DataCopyConcurrency(ResourceModel):
    """How many threads encode, decode and copy at a time; `"shared"` is one a core."""

    limit: PositiveInt | Literal["shared"] = "shared"

    def create(self) -> int:
        return width() if self.limit == "shared" else self.limit
