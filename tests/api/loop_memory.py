"""A guest's kvstore, `loop_memory`: the memory store as it would be across a network.

It suspends before every operation, counts how many are in flight, and can be told to hold or to
lose them.
"""

import asyncio
import threading

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
from tensorstore_py.testing import LoopStore

WIDTH = 6


class Traffic:
    """What all stores of one context share."""

    def __init__(self):
        self.shared = SharedMap()
        self.in_flight = 0
        self.busy = threading.Event()
        self.quiet = threading.Event()
        self.most = 0
        self.begun = 0
        self.held = False
        self.broken = ""


@context_resource("loop_memory_map")
class TrafficResource(ResourceModel):
    """The keys of one context."""

    def create(self) -> Traffic:
        return Traffic()


@kvstore("loop_memory")
class LoopMemorySpec(KvStoreSpec):
    """`{"driver": "loop_memory", "path": ...}`."""

    loop_memory_map: Resource[Traffic] = ResourceField("loop_memory_map")

    def open(self) -> KvStore:
        return WatchedLoopStore(self.loop_memory_map.value)


class WatchedLoopStore(LoopStore):
    """See the head of this file."""

    def __init__(self, traffic):
        super().__init__(MemoryStore(traffic.shared), WIDTH)
        self.traffic = traffic

    async def read(self, key, *arguments, **options):
        return await self._watch(key, super().read(key, *arguments, **options))

    async def write(self, key, value, *, if_equal=None):
        return await self._watch(key, super().write(key, value, if_equal=if_equal))

    async def _watch(self, key, operation):
        traffic = self.traffic
        traffic.begun += 1
        traffic.in_flight += 1
        traffic.most = max(traffic.most, traffic.in_flight)
        traffic.quiet.clear()
        traffic.busy.set()
        try:
            if traffic.broken and traffic.broken in key:
                raise ConnectionResetError(f"lost on the way to {key}")
            if traffic.held:
                await asyncio.Event().wait()
            return await operation
        finally:
            operation.close()
            traffic.in_flight -= 1
            if not traffic.in_flight:
                traffic.quiet.set()
