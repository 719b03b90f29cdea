"""Arrays opened by the public door over stores of the test's own: they count, fail, suspend."""

import asyncio
from collections import Counter
from typing import ClassVar

import numpy as np

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import ALL, WHOLE, KvStore, KvStoreSpec
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


CODECS: dict[str, list[object]] = {
    "raw": ["bytes"],
    "big": [{"name": "bytes", "configuration": {"endian": "big"}}],
    "gzip": ["bytes", {"name": "gzip", "configuration": {"level": 1}}],
    "blosc": [{"name": "transpose", "configuration": {"order": "F"}}, "bytes", "blosc"],
    "zstd": ["bytes", "zstd", "crc32c"],
}


def transposed(rank):
    return {"name": "transpose", "configuration": {"order": list(range(rank))[::-1]}}


def codecs_named(name, rank):
    return [transposed(rank) if _is_f(codec) else codec for codec in CODECS[name]]


def _is_f(codec):
    return isinstance(codec, dict) and codec["name"] == "transpose"


def sharding(chunk_shape, codecs, index_location="end"):
    """The codec list of a shard of `chunk_shape` chunks."""
    configuration = {
        "chunk_shape": list(chunk_shape),
        "codecs": codecs,
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"],
        "index_location": index_location,
    }
    return [{"name": "sharding_indexed", "configuration": configuration}]


def nothing(_operation, _key):
    """Interfere with nothing."""


class WatchedStore(KvStore):
    """A memory store that counts, and calls back before each operation.

    Set `before` to a function of `(operation, key)` to interfere.
    """

    def __init__(self, inline=True):
        self.inline = inline
        self.width = 1 if inline else 4
        self.shared = SharedMap()
        self.memory = MemoryStore(self.shared)
        self.counts: Counter[str] = Counter()
        self.bytes_read = 0
        self.before = nothing

    @property
    def entries(self):
        return {key: value for key, (value, _) in self.shared.entries.items()}

    async def _enter(self, operation, key):
        self.counts[operation] += 1
        self.before(operation, key)
        if not self.inline:
            await asyncio.sleep(0)

    async def read(self, key, byte_range=WHOLE, *, if_equal=None, if_not_equal=None):
        await self._enter("read", key)
        result = await self.memory.read(
            key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
        )
        self.bytes_read += len(result.value)
        return result

    async def write(self, key, value, *, if_equal=None):
        await self._enter("write" if value is not None else "delete", key)
        return await self.memory.write(key, value, if_equal=if_equal)

    async def list(self, key_range=ALL):
        self.counts["list"] += 1
        async for entry in self.memory.list(key_range):
            yield entry

    def poke(self, key, value):
        """What another process would do between two operations of ours."""
        self.shared.put(key, value)


class Opened:
    """An array at "a/" whose metadata is assumed: only its chunks are read and written."""

    def __init__(
        self, shape, chunks, dtype="uint16", codecs="raw", *, fill=0, store=None,
        fill_missing=True, store_fill=False, grid=None, **options,
    ):  # fmt: skip
        self.store = WatchedStore() if store is None else store
        self.dtype = np.dtype(dtype)
        self.fill = np.array(fill, self.dtype)
        self.chunks = tuple(chunks)
        listed = codecs_named(codecs, len(chunks)) if isinstance(codecs, str) else codecs
        regular = {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}
        members = {
            "metadata": {"chunk_grid": grid or regular, "codecs": listed},
            "fill_missing_data_reads": fill_missing,
            "store_data_equal_to_fill_value": store_fill,
        }
        self.handle = opened(
            self.store, members=members, open=True, assume_metadata=True, dtype=self.dtype,
            shape=shape, fill_value=self.fill, **options,
        )  # fmt: skip
        self.identity = ts.IndexTransform(input_shape=shape)

    @property
    def array(self):
        return self.handle._driver._known.array

    def _view(self, transform):
        return self.handle[self.identity if transform is None else transform]

    def start_read(self, transform=None, order="C"):
        return self._view(transform).read(order=order)

    def read(self, transform=None, order="C"):
        return self.start_read(transform, order).result()

    def start_write(self, values, transform=None):
        return self._view(transform).write(np.asarray(values, self.dtype))

    def write(self, values, transform=None):
        self.start_write(values, transform).result()
