"""A cache pool: decoded chunks by array and cell, bounded in bytes, least recently used first out.

Entries carry the generation they were read at and when that was last known to be current, so a
reader decides by its own staleness bound whether to use one, to ask the store whether it is
still current, or to read again. A pool of zero bytes keeps nothing and costs nothing.

What was read before a write of this process is never kept after it, however late it arrives.
Metadata of arrays is kept here, too (`metadata_cache`), within the same bound.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, cast
from weakref import ReferenceType, ref

import numpy as np

from tensorstore_py._chunked.layout import Remembered
from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._runtime.flight import Flight
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.gate import Mutex
from tensorstore_py._spec.binding import likeness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator

__all__ = ["CachedChunk", "ChunkCache", "Writes", "needed_since"]

T = TypeVar("T")
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class _Entry(Protocol):
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


@dataclass(slots=True, eq=False)
class _Scope:
    """One array's part of the cache."""

    store: object
    form: object
    companion: ReferenceType[object] | None = None


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
        # Whoever changes it from now on is not seen by who trusts what is kept.
        found = None if generation == NO_VALUE else chunk
        self.made = CachedChunk(found, generation, self.began)


#: How many arrays at one path, in different stores or forms, are told apart.
_SCOPES_PER_PATH = 8


class ChunkCache(Forkable):
    """A byte-bounded map from `(scope of the array, cell)` to decoded chunks, and the like.

    Args:
        limit_bytes: total size of what is kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._held_bytes = 0
        self._scopes: Remembered[list[_Scope]] = Remembered(1024)
        self._flights: dict[Hashable, Flight[CachedChunk]] = {}
        self._writes: dict[Hashable, Writes] = {}
        self._mutex = Mutex()
        super().__init__()

    def after_fork(self) -> None:
        self._flights, self._writes = {}, {}  # they went on in the parent

    def let_go(self) -> None:
        """Forget everything, and keep nothing from now on."""
        with self._mutex:
            self.limit_bytes = 0
            self._entries.clear()
            self._held_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def held_bytes(self) -> int:
        """Size of what is kept now."""
        return self._held_bytes

    def scope(self, path: str, store: object, form: object) -> object:
        """What stands for an array here, whoever opens it.

        Args:
            path: where it is in its store.
            store: the bound spec of that store; specs that are alike mean the same one.
            form: how its chunks are encoded.
        """
        scopes = self._scopes.get(path, list)
        with self._mutex:
            for scope in scopes:
                if scope.form == form and _alike(scope.store, store):
                    return scope
            scope = _Scope(store, form)
            # Whatever was opened long ago may begin anew.
            scopes[:-_SCOPES_PER_PATH] = []
            scopes.append(scope)
            return scope

    @contextmanager
    def reading(self, key: Hashable) -> Iterator[None]:
        """Around a read that ends in `put`: if the key is dropped meanwhile, nothing is kept."""
        with self._mutex:
            flight = self._flights.setdefault(key, Flight())
            flight.count += 1
        try:
            yield
        finally:
            self._leave(key, flight)

    @contextmanager
    def writing(self, key: Hashable) -> Iterator[Writes]:
        """Around a write: what was kept is forgotten, and what was `stored` is kept instead.

        Of several writes at a time nobody knows which was the last, so then nothing is kept.
        """
        with self._mutex:
            writes = self._writes.setdefault(key, Writes())
            writes.single = not writes.count and writes.single
            writes.count += 1
        try:
            yield writes
        finally:
            with self._mutex:
                writes.count -= 1
                if not writes.count and self._writes.get(key) is writes:
                    del self._writes[key]
                made = writes.made if writes.single else None
                self._outdate(key)
                if made is not None:
                    self._keep(key, made)

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
            inline: the temperament of `read`, and so of the wait.
            read: gives the entry anew; its argument is what is kept, however old.
        """
        while True:
            with self._mutex:
                kept = self._entries.get(key)
                entry = kept if isinstance(kept, CachedChunk) else None
                if entry is not None and entry.time >= since:
                    self._entries.move_to_end(key)
                    return entry
                flight = self._flights.get(key)
                if flight is None:
                    flight = self._flights[key] = Flight()
                    flight.count = 1
                    break
                joined = flight.join(inline)
            await flight.over(joined)
            found = flight.found
            if found is not None and found.time >= since and not flight.outdated:
                return found
        try:
            found = await read(entry)
            self.put(key, found)
            flight.found = found
        finally:
            self._leave(key, flight)
        return found

    def _leave(self, key: Hashable, flight: Flight[CachedChunk]) -> None:
        with self._mutex:
            flight.count -= 1
            over = not flight.count
            if over and self._flights.get(key) is flight:
                del self._flights[key]
        if over:
            flight.land()

    def companion(self, scope: object, make: Callable[[], T]) -> T:
        """The object beside a scope, the same one as long as anybody, or the pool, has it."""
        assert isinstance(scope, _Scope)
        with self._mutex:
            found = None if scope.companion is None else scope.companion()
            if found is None:
                found = make()
                scope.companion = ref(found)
            return cast("T", found)

    def get(self, key: Hashable) -> CachedChunk | None:
        """The chunk, which becomes the most recently used entry; None if there is none."""
        with self._mutex:
            entry = self._entries.get(key)
            if not isinstance(entry, CachedChunk):
                return None
            self._entries.move_to_end(key)
            return entry

    def put(self, key: Hashable, entry: _Entry) -> None:
        """Keep an entry and drop the least recently used ones that no longer fit."""
        with self._mutex:
            flight = self._flights.get(key)
            if flight is None or not flight.outdated:
                self._keep(key, entry)

    def drop(self, key: Hashable) -> None:
        """Forget an entry, if there is one, and what is being read or written to replace it."""
        with self._mutex:
            writes = self._writes.get(key)
            if writes is not None:
                writes.single = False
            self._outdate(key)

    def _outdate(self, key: Hashable) -> None:
        flight = self._flights.get(key)
        if flight is not None:
            flight.outdated = True
        self._drop(key)

    def _keep(self, key: Hashable, entry: _Entry) -> None:
        self._drop(key)
        if entry.size_bytes > self.limit_bytes:
            return
        self._entries[key] = entry
        self._held_bytes += entry.size_bytes
        while self._held_bytes > self.limit_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._held_bytes -= entry.size_bytes


def _alike(store: object, other: object) -> bool:
    return store is other or likeness(store) == likeness(other)


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
