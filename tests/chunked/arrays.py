"""Chunked arrays over stores that watch and interfere, put together from real codecs."""

import asyncio
import json
from collections import Counter

import numpy as np

from tensorstore_py._chunked.array import ChunkedArray
from tensorstore_py._chunked.merging import MergedUpdates
from tensorstore_py._chunked.read import read_into
from tensorstore_py._chunked.selection import select
from tensorstore_py._chunked.source import StoredChunks
from tensorstore_py._chunked.write import Destination, write_from
from tensorstore_py._index import IndexTransform
from tensorstore_py._interface.bind_chain import bind_chain
from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.chunk_keys import SeparatedKeys
from tensorstore_py._interface.codec import ChunkType
from tensorstore_py._interface.codec_json import parse_codec_list
from tensorstore_py._interface.key_range import ALL
from tensorstore_py._interface.kvstore import KvStore
from tensorstore_py._runtime.start import start
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap

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
    """A chunked array, read and written as the driver does it."""

    def __init__(
        self, shape, chunks, dtype="uint16", codecs="raw", *, fill=0, store=None,
        fill_missing=True, store_fill=False,
    ):  # fmt: skip
        self.store = WatchedStore() if store is None else store
        self.shape = tuple(shape)
        kind = np.dtype(dtype)
        chunk = ChunkType(tuple(chunks), kind, np.array(fill, kind))
        listed = codecs_named(codecs, len(chunks)) if isinstance(codecs, str) else codecs
        self.chain = bind_chain(parse_codec_list("zarr3", json.loads(json.dumps(listed))), chunk)
        self.source = StoredChunks(self.store, "a/", SeparatedKeys(len(chunks), "/", prefix="c/"))
        grid = tuple(RegularAxis(size, cut) for size, cut in zip(shape, chunks, strict=True))
        self.array = ChunkedArray(self.source, grid, self.chain, fill_missing, store_fill)
        self.merged = MergedUpdates(self.store)
        self.identity = IndexTransform(input_shape=self.shape)

    def start_read(self, transform=None, order="C"):
        transform = self.identity if transform is None else transform
        return start(self.store.inline, lambda: self._read(transform, order))

    def read(self, transform=None, order="C"):
        return self.start_read(transform, order).result()

    def start_write(self, values, transform=None):
        transform = self.identity if transform is None else transform
        values = np.asarray(values, self.chain.chunk.dtype)
        return start(self.store.inline, lambda: self._write(transform, values))

    def write(self, values, transform=None):
        self.start_write(values, transform).result()

    async def _read(self, transform, order):
        out = np.empty(transform.input_shape, self.chain.chunk.dtype, order=order)
        selection = select(transform)
        view = selection.view(out)
        await read_into(self.array, selection.axes, view)
        if not np.may_share_memory(view, out):
            selection.put(view, out)
        return out

    async def _write(self, transform, values):
        selection = select(transform)
        view = selection.view(np.broadcast_to(values, transform.input_shape))
        if view.size:
            view = view[(0,) * selection.free]
            to = Destination(self.array, self.source, self.merged)
            await write_from(to, selection.axes, view)
