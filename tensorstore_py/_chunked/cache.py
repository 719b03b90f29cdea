"""A cache pool: decoded chunks by array and cell, bounded in bytes, least recently used first out.

Entries carry the generation they were read at and when that was last known to be current, so a
reader decides by its own staleness bound whether to use one, to ask the store whether it is
still current, or to read again. A pool of zero bytes keeps nothing and costs nothing.

What was read before a write of this process is never kept after it, however late it arrives.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorstore_py._chunked.layout import Remembered
from tensorstore_py._runtime.gate import Mutex

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import numpy as np

__all__ = ["CachedChunk", "ChunkCache"]


@dataclass(slots=True)
class CachedChunk:
    """A decoded chunk as it was at `generation`, known to be current at `time`.

    Attributes:
        chunk: read-only; None if the chunk was missing.
        generation: the store's stamp.
        time: seconds since the epoch.
    """

    chunk: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None
    generation: bytes
    time: float

    @property
    def size_bytes(self) -> int:
        """What it counts against the pool's limit: the data and a fixed share for the entry."""
        return 256 + (0 if self.chunk is None else self.chunk.nbytes)


@dataclass(slots=True)
class _Readers:
    """How many are reading a key, and whether it was dropped meanwhile."""

    count: int = 0
    outdated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """One array's part of the cache."""

    store: object
    form: object


#: How many arrays at one path, in different stores or forms, are told apart.
_SCOPES_PER_PATH = 8


class ChunkCache:
    """A byte-bounded map from `(scope of the array, cell)` to decoded chunks.

    Args:
        limit_bytes: total size of what is kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._entries: OrderedDict[Hashable, CachedChunk] = OrderedDict()
        self._held_bytes = 0
        self._scopes: Remembered[list[_Scope]] = Remembered(1024)
        self._readers: dict[Hashable, _Readers] = {}
        self._mutex = Mutex()

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
            store: the bound spec of that store; equal specs mean the same one.
            form: how its chunks are encoded.
        """
        scopes = self._scopes.get(path, list)
        with self._mutex:
            for scope in scopes:
                if scope.form == form and scope.store == store:
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
            readers = self._readers.setdefault(key, _Readers())
            readers.count += 1
        try:
            yield
        finally:
            with self._mutex:
                readers.count -= 1
                if not readers.count:
                    del self._readers[key]

    def get(self, key: Hashable) -> CachedChunk | None:
        """The entry, which becomes the most recently used; None if there is none."""
        with self._mutex:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: Hashable, entry: CachedChunk) -> None:
        """Keep an entry and drop the least recently used ones that no longer fit."""
        with self._mutex:
            readers = self._readers.get(key)
            if readers is not None and readers.outdated:
                return
            self._drop(key)
            if entry.size_bytes > self.limit_bytes:
                return
            self._entries[key] = entry
            self._held_bytes += entry.size_bytes
            while self._held_bytes > self.limit_bytes:
                self._drop(next(iter(self._entries)))

    def drop(self, key: Hashable) -> None:
        """Forget an entry, if there is one, and what is being read to replace it."""
        with self._mutex:
            readers = self._readers.get(key)
            if readers is not None:
                readers.outdated = True
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._held_bytes -= entry.size_bytes
