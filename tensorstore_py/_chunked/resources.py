"""Context resources of chunked arrays: cache pools, and limits on copying and on memory.

A resource model says what JSON may say; its `create` makes the live object once per context.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, Literal

from tensorstore_py._chunked.cache import ChunkCache
from tensorstore_py._interface.codec_chain import UNPACKED_BYTES
from tensorstore_py._runtime.admission import Bytes
from tensorstore_py._runtime.workers import width
from tensorstore_py._spec.limits import ConcurrencyModel
from tensorstore_py._spec.model import NonNegativeInt, PositiveInt
from tensorstore_py._spec.registry import context_resource
from tensorstore_py._spec.resource import ResourceModel

__all__ = ["CachePool", "DataCopyConcurrency", "MemoryLimit", "UnpackingLimit", "memory_bytes"]

_LEAST_BYTES: Final = 64 * 2**20
#: Where the system does not say.
_UNKNOWN_BYTES: Final = 4 * 2**30


@context_resource("cache_pool")
class CachePool(ResourceModel):
    """Decoded chunks are kept up to `total_bytes_limit` bytes, shared by all that name it."""

    data_members: ClassVar[frozenset[str] | None] = frozenset({"total_bytes_limit"})

    total_bytes_limit: NonNegativeInt = 0

    @property
    def remembers(self) -> bool:
        return self.total_bytes_limit > 0

    def create(self) -> ChunkCache:
        return ChunkCache(self.total_bytes_limit)


@context_resource("data_copy_concurrency")
class DataCopyConcurrency(ConcurrencyModel):
    """How many threads encode, decode and copy at a time; `"shared"` is one a core."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    @classmethod
    def shared_limit(cls) -> int:
        """One a core."""
        return width()


@context_resource("memory_limit")
class MemoryLimit(ResourceModel):
    """How many bytes of chunks may be in flight: fetched, being decoded, or being written.

    Attributes:
        limit_bytes: a number for this resource alone; `"shared"`, a quarter of the machine's
            memory, is one for the whole process. The arrays that a program reads to and writes
            from are its own and not counted. A chunk larger than the limit goes alone.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"limit_bytes"})

    unseen: ClassVar[bool] = True

    limit_bytes: PositiveInt | Literal["shared"] = "shared"

    def create(self) -> Bytes:
        return _shared_memory() if self.limit_bytes == "shared" else Bytes(self.limit_bytes)


@context_resource("unpacking_limit")
class UnpackingLimit(ResourceModel):
    """To how much compressed data may unpack where the chunk does not say: text, objects.

    Attributes:
        limit_bytes: what a chunk may unpack to in any case. More is allowed for large chunks: a
            hundred times what is stored, and 64 bytes for each element.
    """

    # None of them: the limit is a guard, which a spec that is not trusted must not lift.
    data_members: ClassVar[frozenset[str] | None] = frozenset()

    unseen: ClassVar[bool] = True

    limit_bytes: PositiveInt = UNPACKED_BYTES

    def create(self) -> int:
        return self.limit_bytes


@cache
def _shared_memory() -> Bytes:
    return Bytes(max(_LEAST_BYTES, memory_bytes() // 4))


def memory_bytes() -> int:
    """How much memory this process may use: the machine's, or its control group's if less."""
    sizes = [_UNKNOWN_BYTES]
    if hasattr(os, "sysconf"):
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            sizes.append(int(text))
    return min(sizes)
