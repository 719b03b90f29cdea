"""A cache pool: decoded chunks by array and cell, bounded in bytes, least recently used first out.

One entry stands for a chunk while it is read or written through the pool, and while it is kept:

| the entry has | it means |
|---|---|
| `kept` | what the chunk was at a generation, and when that was last known to be current |
| `fetch` | a read is under way; others wait for it and take what it found |
| `fetch.outdated` | the chunk was written to since that read began: its result is not kept |
| `writes` | writes are under way; of several at a time none is known to be the last |

A reader decides by its own staleness bound whether to use what is kept, to ask the store whether it
is still current, or to read again. What was read before a write of this process is never kept after
it, however late it arrives. A pool of zero bytes keeps nothing and costs nothing. Metadata is kept
here, too, within the same bound.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeVar, cast
from weakref import ReferenceType, ref

from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py._runtime.single_flight import SingleFlight
from tensorstore_py._spec.context import alike
from tensorstore_py._spec.model import NonNegativeInt
from tensorstore_py._spec.registry import context_resource
from tensorstore_py._spec.resource import ResourceModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tensorstore_py._chunked.array import Array, Cell, ChunkedArray
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._interface.kvstore import ReadResult

__all__ = ["CachePool", "CachedChunk", "ChunkCache", "PoolPart", "Writes", "needed_since"]

T = TypeVar("T")

#: How many arrays at one path, in different stores or forms, are told apart.
_SCOPES_PER_PATH = 8


class _Sized(Protocol):
    """What can be kept."""

    @property
    def size_bytes(self) -> int:
        """What it counts against the pool's limit; never changes."""


@dataclass(slots=True)
class CachedChunk:
    """A decoded chunk as it was at `generation`, known to be current at `time`.

    Attributes:
        chunk: read-only; None if the chunk was missing.
        generation: the store's stamp.
        time: seconds since the epoch.
    """

    chunk: Array | None
    generation: bytes
    time: float

    @property
    def size_bytes(self) -> int:
        """What it counts against the pool's limit: the data and a fixed share for the entry."""
        return 256 + (0 if self.chunk is None else self.chunk.nbytes)

    def confirmed_by(self, result: ReadResult) -> CachedChunk | None:
        """The same, current as of a conditional read that says that it is; None if it does not."""
        if result.state != "unspecified":
            return None
        return CachedChunk(self.chunk, self.generation, max(self.time, result.stamp.time))


class Writes:
    """The writes of one key that are under way, see `ChunkCache.writing`."""

    __slots__ = ("began", "count", "made", "single")

    def __init__(self) -> None:
        self.began = time.time()
        self.count = 0
        self.single = True
        self.made: CachedChunk | None = None

    def stored(self, chunk: Array, generation: bytes) -> None:
        """This chunk is what is stored now, at `generation`."""
        # Others may change it from now on, unseen by those who trust what is kept.
        found = None if generation == NO_VALUE else chunk
        self.made = CachedChunk(found, generation, self.began)


class _Entry:
    """See the head of this file."""

    __slots__ = ("fetch", "kept", "writes")

    def __init__(self) -> None:
        self.kept: _Sized | None = None
        self.fetch: SingleFlight[CachedChunk] | None = None
        self.writes: Writes | None = None

    @property
    def idle(self) -> bool:
        return self.kept is None and self.fetch is None and self.writes is None


@dataclass(slots=True, eq=False)
class _Scope:
    """One array's part of the cache."""

    store: object
    form: object
    companion: ReferenceType[object] | None = None

    @property
    def companion_now(self) -> object | None:
        """The object beside it, unless that is gone or was never made."""
        return None if self.companion is None else self.companion()


class ChunkCache(Forkable):
    """A byte-bounded map from `(scope of the array, cell)` to decoded chunks, and the like.

    Args:
        limit_bytes: total size of what is kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._held_bytes = self._count = 0
        self._scopes: LruCache[list[_Scope]] = LruCache(1024)
        self._mutex = Mutex()
        super().__init__()

    def after_fork(self) -> None:
        for entry in self._entries.values():
            entry.fetch = entry.writes = None  # they went on in the parent
        self._entries = OrderedDict(
            (key, entry) for key, entry in self._entries.items() if not entry.idle
        )

    def let_go(self) -> None:
        """Forget everything, and keep nothing from now on."""
        with self._mutex:
            self.limit_bytes = 0
            for key in list(self._entries):
                self._forget(key)

    def __len__(self) -> int:
        return self._count

    @property
    def held_bytes(self) -> int:
        """Size of what is kept now."""
        return self._held_bytes

    # ------------------------------------------------------------------------------------- arrays

    def scope(self, path: str, store: object, form: object) -> object:
        """What stands for an array here, the same for all who open it.

        Args:
            path: where it is in its store.
            store: the bound spec of that store; specs that are alike mean the same one.
            form: how its chunks are encoded.
        """
        scopes = self._scopes.get(path, list)
        with self._mutex:
            for scope in scopes:
                if scope.form == form and alike(scope.store, store):
                    return scope
            scope = _Scope(store, form)
            # What was opened long ago may begin anew.
            scopes[:-_SCOPES_PER_PATH] = []
            scopes.append(scope)
            return scope

    def companion(self, scope: object, make: Callable[[], T]) -> T:
        """The object beside a scope, the same one as long as anybody, or the pool, has it."""
        assert isinstance(scope, _Scope)
        found = scope.companion_now
        if found is None:
            # Not under the lock: what it is made of may have a companion here, too.
            made = make()
            with self._mutex:
                found = scope.companion_now
                if found is None:
                    found = made
                    scope.companion = ref(made)
        return cast("T", found)

    # ------------------------------------------------------------------------------------- chunks

    def get(self, key: Hashable) -> CachedChunk | None:
        """The chunk, which becomes the most recently used entry; None if there is none."""
        with self._mutex:
            return self._used(key)

    def put(self, key: Hashable, kept: _Sized) -> None:
        """Keep something and forget the least recently used entries that no longer fit."""
        with self._mutex:
            entry = self._entries.get(key)
            if entry is None or entry.fetch is None or not entry.fetch.outdated:
                self._keep(key, kept)

    def drop(self, key: Hashable) -> None:
        """Forget what is kept, and what is being read or written to replace it."""
        with self._mutex:
            entry = self._entries.get(key)
            if entry is not None:
                if entry.writes is not None:
                    entry.writes.single = False
                self._outdate(key, entry)

    async def current(
        self,
        key: Hashable,
        since: float,
        inline: bool,
        read: Callable[[CachedChunk | None], Awaitable[CachedChunk]],
    ) -> CachedChunk:
        """The chunk as it was at `since` or later: what is kept, or what a read gives.

        Of any number who ask for it at a time one reads, and the others wait for that.

        Args:
            key: of the entry.
            since: what was known to be current then is used unasked; in s since 1970.
            inline: the execution mode of `read`, and so of the wait.
            read: gives the chunk anew; its argument is what is kept, however old.
        """
        while True:
            with self._mutex:
                kept = self._used(key, since)
                if kept is not None and kept.time >= since:
                    return kept
                entry = self._entries.setdefault(key, _Entry())
                fetch = entry.fetch
                if fetch is None:
                    fetch = entry.fetch = SingleFlight()
                    fetch.count = 1
                    break
                joined = fetch.register(inline)
            await fetch.wait(joined)
            found = fetch.found
            if found is not None and found.time >= since and not fetch.outdated:
                return found
        try:
            found = await read(kept)
            self.put(key, found)
            fetch.found = found
        finally:
            self._leave(key, fetch)
        return found

    @contextmanager
    def reading(self, key: Hashable) -> Iterator[None]:
        """Around a read that ends in `put`: if the key is dropped meanwhile, nothing is kept."""
        with self._mutex:
            entry = self._entries.setdefault(key, _Entry())
            fetch = entry.fetch = entry.fetch or SingleFlight()
            fetch.count += 1
        try:
            yield
        finally:
            self._leave(key, fetch)

    @contextmanager
    def writing(self, key: Hashable) -> Iterator[Writes]:
        """Around a write: what was kept is forgotten, and what was `stored` is kept instead.

        Of several writes at a time none is known to be the last, so then nothing is kept.
        """
        with self._mutex:
            entry = self._entries.setdefault(key, _Entry())
            writes = entry.writes = entry.writes or Writes()
            writes.single = not writes.count and writes.single
            writes.count += 1
        try:
            yield writes
        finally:
            with self._mutex:
                writes.count -= 1
                found = self._entries.get(key)
                if found is not None:
                    if not writes.count and found.writes is writes:
                        found.writes = None
                    self._outdate(key, found)
                if writes.single and writes.made is not None:
                    self._keep(key, writes.made)

    # ---------------------------------------------------- entries; the mutex is held by who calls

    def _used(self, key: Hashable, since: float | None = None) -> CachedChunk | None:
        entry = self._entries.get(key)
        if entry is None or not isinstance(entry.kept, CachedChunk):
            return None
        if since is None or entry.kept.time >= since:
            self._entries.move_to_end(key)
        return entry.kept

    def _leave(self, key: Hashable, fetch: SingleFlight[CachedChunk]) -> None:
        with self._mutex:
            fetch.count -= 1
            over = not fetch.count
            entry = self._entries.get(key)
            if over and entry is not None and entry.fetch is fetch:
                entry.fetch = None
                self._tidy(key, entry)
        if over:
            fetch.complete()

    def _outdate(self, key: Hashable, entry: _Entry) -> None:
        if entry.fetch is not None:
            entry.fetch.outdated = True
        self._forget(key)

    def _keep(self, key: Hashable, kept: _Sized) -> None:
        self._forget(key)
        if kept.size_bytes > self.limit_bytes:
            return
        entry = self._entries.setdefault(key, _Entry())
        entry.kept = kept
        self._entries.move_to_end(key)
        self._held_bytes += kept.size_bytes
        self._count += 1
        while self._held_bytes > self.limit_bytes:
            # Entries without anything kept are few: they are in use.
            self._forget(next(key for key, each in self._entries.items() if each.kept is not None))

    def _forget(self, key: Hashable) -> None:
        entry = self._entries.get(key)
        if entry is None:
            return
        if entry.kept is not None:
            self._held_bytes -= entry.kept.size_bytes
            self._count -= 1
            entry.kept = None
        self._tidy(key, entry)

    def _tidy(self, key: Hashable, entry: _Entry) -> None:
        if entry.idle:
            del self._entries[key]


class PoolPart(NamedTuple):
    """What a pool holds of one array.

    Attributes:
        cache: the pool.
        scope: what stands for the array there.
    """

    cache: ChunkCache
    scope: object

    def inner(self, cell: Cell) -> PoolPart:
        """What it holds of the inner chunks of a shard."""
        return PoolPart(self.cache, (self.scope, cell))

    def key(self, array: ChunkedArray, cell: Cell) -> Hashable:
        """Of a chunk; of a shard, its index stands for it: without that, nothing else counts."""
        return (self.scope, cell) if array.sharded is None else (self.scope, cell, "index")

    def writing(self, array: ChunkedArray, cell: Cell) -> AbstractContextManager[Writes]:
        """Around a write of one chunk, see `ChunkCache.writing`."""
        return self.cache.writing(self.key(array, cell))

    def forget(self, array: ChunkedArray, axes: Sequence[Axis]) -> None:
        """Drop the chunks that a selection touches: they were written to."""
        for each in make_plan(axes, array.grid).slices():
            self.forget_cell(array, each.cell)

    def forget_cell(self, array: ChunkedArray, cell: Cell) -> None:
        """Drop one chunk."""
        self.cache.drop(self.key(array, cell))


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


def needed_since(bound: bool | str | float, opened: float) -> float:
    """The time since which something must have been known to be current to be used unasked.

    Args:
        bound: true: now; false: always; `"open"`: when opened; or a time in s since 1970.
        opened: when the array was opened.
    """
    if bound is True:
        return time.time()
    if bound is False:
        return float("-inf")
    return opened if isinstance(bound, str) else bound
