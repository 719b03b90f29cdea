"""Arrays opened by the public door over a store of the test's own: it counts, fails, suspends."""

from typing import ClassVar

import tensorstore_py as ts
from tensorstore_py._interface.kvstore import KvStore, KvStoreSpec
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, LoopStore


class GivenSpec(KvStoreSpec):
    """A spec that opens the very store that it was given."""

    driver: ClassVar[str] = "given"
    given: KvStore | None = None

    def open(self):
        return self.given

    def to_json(self, include_defaults=False):
        return {"driver": "given", "path": self.path}


def counting(inline=True):
    """A counting store over memory of its own."""
    memory = MemoryStore(SharedMap())
    return CountingStore(memory if inline else LoopStore(memory))


def start_opening(store, *, driver="zarr3", path="a/", members=None, **options):
    """A Future of the array at `path` in `store`."""
    model = ts.Spec({"driver": driver, **(members or {})}).model
    located = model.replace(kvstore=GivenSpec(given=store, path=path))
    return ts.open(ts.Spec.of(located), **options)


def opened(store, **options):
    return start_opening(store, **options).result()


def created(store, shape, chunks, dtype="uint8", **options):
    layout = ts.ChunkLayout(chunk_shape=chunks)
    return opened(
        store, create=True, open=True, dtype=dtype, shape=shape, chunk_layout=layout, **options
    )


def pool(size=10**7):
    """A context with a cache pool of so many bytes."""
    return ts.Context({"cache_pool": {"total_bytes_limit": size}})


class Hooked(CountingStore):
    """Calls `before(operation, key)` ahead of each read and write, and `after` behind it."""

    def __init__(self, base=None):
        super().__init__(MemoryStore(SharedMap()) if base is None else base)
        self.before = self.after = lambda _operation, _key: None

    async def read(self, key, *args, **named):
        self.before("read", key)
        result = await super().read(key, *args, **named)
        self.after("read", key)
        return result

    async def write(self, key, value, **named):
        self.before("write", key)
        stamp = await super().write(key, value, **named)
        self.after("write", key)
        return stamp


def once(action, operation, key):
    """A hook that acts before or after the first such operation only."""
    pending = [action]

    def hook(now, where):
        if (now, where) == (operation, key) and pending:
            pending.pop()()

    return hook
