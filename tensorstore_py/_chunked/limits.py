"""Limits that operations share: the live objects, and the context resources that make them.

A resource model says what JSON may say; its `create` makes the live object once per context.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeVar

from tensorstore_py._interface.codec_chain import UNPACKED_BYTES
from tensorstore_py._runtime.executors import width
from tensorstore_py._runtime.limiters import MemoryBudget, ThreadLimiter
from tensorstore_py._spec.limits import ConcurrencyModel
from tensorstore_py._spec.model import PositiveInt
from tensorstore_py._spec.registry import context_resource
from tensorstore_py._spec.resource import ResourceModel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = [
    "UNLIMITED",
    "DataCopyConcurrency",
    "Limits",
    "MemoryLimit",
    "UnpackingLimit",
    "memory_bytes",
]

T = TypeVar("T")

_LEAST_BYTES: Final = 64 * 2**20
#: Where the system does not say.
_UNKNOWN_BYTES: Final = 4 * 2**30


class Limits(NamedTuple):
    """What all operations that name the same context resources share.

    Attributes:
        copying: places for threads that encode, decode or copy a chunk.
        memory: bytes of chunks in flight.
    """

    copying: ThreadLimiter
    memory: MemoryBudget

    def in_flight(self, chunk_bytes: int) -> int:
        """What one chunk of that size counts: there may be it and its encoded form."""
        return 2 * chunk_bytes

    async def holding(
        self, inline: bool, size: int, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Do something that takes so many bytes of memory, when they can be had.

        Args:
            inline: the execution mode of `work`.
            size: in bytes.
            work: makes the coroutine.
        """
        memory = self.memory
        if not memory.matters(inline, size):
            return await work()
        await memory.acquire(inline, size)
        try:
            return await work()
        finally:
            memory.release(size)


UNLIMITED: Final = Limits(ThreadLimiter(2**12), MemoryBudget(2**62))


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

    def create(self) -> MemoryBudget:
        return _shared_memory() if self.limit_bytes == "shared" else MemoryBudget(self.limit_bytes)


@context_resource("unpacking_limit")
class UnpackingLimit(ResourceModel):
    """To how much compressed data may unpack where the chunk does not say: text, objects.

    Attributes:
        limit_bytes: what a chunk may unpack to in any case. More is allowed for large chunks: a
            hundred times what is stored, and 64 bytes for each element.
    """

    # Who does not trust a spec does not let it say how much memory it may take.
    data_members: ClassVar[frozenset[str] | None] = frozenset()

    unseen: ClassVar[bool] = True

    limit_bytes: PositiveInt = UNPACKED_BYTES

    def create(self) -> int:
        return self.limit_bytes


@cache
def _shared_memory() -> MemoryBudget:
    return MemoryBudget(max(_LEAST_BYTES, memory_bytes() // 4))


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
