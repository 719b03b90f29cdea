"""A guest's kvstore, `breaking_memory`: the memory store, which breaks when a test says so.

All stores of one context share a map and how many writes are left before every operation fails, as
if the process had been killed; what was written is counted.
"""

from collections import Counter
from typing import Any

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import (
    KvStore,
    KvStoreSpec,
    Resource,
    ResourceField,
    ResourceModel,
    context_resource,
    kvstore,
)
from tensorstore_py.testing.fake_stores import LoopStore, StoreAround


class BrokenError(Exception):
    """The store is not there any more."""


class BreakingStore(StoreAround):
    """See the head of this file."""

    def __init__(self):
        super().__init__(MemoryStore(SharedMap()))
        self.left: int | None = None
        self.written: Counter[str] = Counter()

    def restore(self):
        """Work again, and count anew."""
        self.left = None
        self.written.clear()

    async def read(self, key, *arguments, **options):
        self._check()
        return await super().read(key, *arguments, **options)

    async def write(self, key, value, *, if_equal=None):
        self._check()
        if self.left is not None:
            self.left -= 1
        stamp = await super().write(key, value, if_equal=if_equal)
        self.written[key] += 1
        return stamp

    def _check(self):
        if self.left is not None and self.left <= 0:
            raise BrokenError


@context_resource("breaking_map")
class BreakingMapResource(ResourceModel):
    """The store of one context."""

    def create(self) -> BreakingStore:
        return BreakingStore()


@kvstore("breaking_memory")
class BreakingMemorySpec(KvStoreSpec):
    """`{"driver": "breaking_memory", "path": ..., "loop": ...}`."""

    breaking_map: Resource[BreakingStore] = ResourceField("breaking_map")
    loop: bool = False

    def open(self) -> KvStore:
        found = self.breaking_map.value
        return LoopStore(found) if self.loop else found


def store_of(context) -> Any:
    """The store that specs with this context share."""
    face = ts.KvStore.open({"driver": "breaking_memory"}, context=context).result()
    return face.store
