"""A guest's kvstore, `counted_memory`: the memory store, with what is asked of it counted.

All stores of one context share a map and its counts.
"""

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
from tensorstore_py.testing import CountingStore


@context_resource("counted_map")
class CountedMapResource(ResourceModel):
    """The store of one context."""

    def create(self) -> CountingStore:
        return CountingStore(MemoryStore(SharedMap()))


@kvstore("counted_memory")
class CountedMemorySpec(KvStoreSpec):
    """`{"driver": "counted_memory", "path": ...}`."""

    counted_map: Resource[CountingStore] = ResourceField("counted_map")

    def open(self) -> KvStore:
        return self.counted_map.value


def counts(group):
    """The store of a group, nothing counted so far."""
    store = group.kvstore.store
    store.reset()
    return store


def asked(store):
    """How many requests of any kind were made."""
    kinds = ("reads", "writes", "deletes", "lists", "directories", "delete_ranges")
    return sum(sum(getattr(store, kind).values()) for kind in kinds)
