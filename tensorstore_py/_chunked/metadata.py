"""The metadata document of one array: read, revalidated, and replaced on condition.

The document is small and read often, so equal bytes are parsed and bound only once per process
(`LruCache`). What is known of it (`MetadataState`) is one object for all arrays that were
opened through the same pool (`SharedMetadata`), and only what is too old for the caller is asked
for again. As long as an array is open, all handles of it see the newest state that any of them
learned of; beyond that the pool keeps it while it fits, like a chunk. No state ever replaces a
later one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from tensorstore_py._chunked.pool import ChunkCache
from tensorstore_py._interface.array_metadata import ArrayMetadata
from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py._interface.store_abilities import read_as_of
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py._runtime.retry import CONFLICTS
from tensorstore_py.errors import (
    DataLossError,
    MismatchError,
    SpecError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorstore_py._chunked.array import ArrayLayout
    from tensorstore_py._chunked.format import ArrayFormat
    from tensorstore_py._interface.kvstore import KvStore, ReadResult
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.retry import Attempts

__all__ = ["MetadataFile", "MetadataState", "SharedMetadata"]

M = TypeVar("M", bound=ArrayMetadata)

_parsed: LruCache[tuple[object, ArrayLayout]] = LruCache(256)
_mutex = Mutex()


@dataclass(frozen=True, slots=True)
class MetadataState(Generic[M]):
    """Metadata as it was at `generation`, known to be current at `time` (in s since 1970).

    Attributes:
        metadata: parsed.
        layout: bound.
        generation: the store's stamp.
        time: when it was last known to be current.
        size_bytes: the document's size.
    """

    metadata: M
    layout: ArrayLayout
    generation: bytes
    time: float
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the pool keeps: it must know the size, and must not be known by what it keeps."""

    metadata: object
    size_bytes: int


class SharedMetadata(Generic[M]):
    """What is known of one array's metadata, the same for all handles of one pool.

    Attributes:
        state: as last known; None if nothing is known, or nothing is there.
    """

    __slots__ = ("__weakref__", "_key", "state")

    def __init__(self, key: Hashable = None) -> None:
        self._key = key
        self.state: MetadataState[M] | None = None

    @classmethod
    def of(cls, pool: ChunkCache, scope: object) -> SharedMetadata[M]:
        """The one for an array, by its scope in the pool."""
        return pool.companion(scope, lambda: cls((scope, "metadata")))

    def learn(
        self,
        before: MetadataState[M] | None,
        after: MetadataState[M] | None,
        pool: ChunkCache | None,
    ) -> bool:
        """Replace the state, unless it was replaced meanwhile: then that may be the newer one.

        `before` is the state when the caller asked the store, `after` what that said; None: nothing
        is there. The pool keeps it beyond the life of its last user.
        """
        with _mutex:
            if not _same(self.state, before):
                return False
            self.state = after
        if pool is not None and pool.limit_bytes:
            if after is None:
                pool.drop(self._key)
            else:
                pool.put(self._key, _Kept(self, _SHARE + after.size_bytes))
        return True


#: What a parsed and bound document takes beside its text, about.
_SHARE = 4096


def _same(state: MetadataState[M] | None, other: MetadataState[M] | None) -> bool:
    if state is other:
        return True
    if state is None or other is None:
        return False
    return state.generation == other.generation != UNKNOWN


class MetadataFile(Generic[M]):
    """Where an array's metadata is stored; shared with others who opened it through the pool."""

    __slots__ = ("_form", "_key", "_pool", "prefix", "shared", "spec", "store")

    def __init__(
        self, spec: ArrayFormat[M], store: KvStore, prefix: str, pool: ChunkCache | None = None
    ) -> None:
        self.spec = spec
        self.store = store
        self.prefix = prefix
        self._key = prefix + spec.metadata_key
        self._pool = pool
        self._form = (type(spec), spec.layout_variant)
        self.shared: SharedMetadata[M] = SharedMetadata()
        if pool is not None:
            scope = pool.scope(self._key, spec.store_spec(), self._form)
            self.shared = SharedMetadata.of(pool, scope)

    def with_transaction(self, transaction: Transaction) -> MetadataFile[M]:
        """The document as a transaction sees it, shared by all that it has open of the array."""
        spec = self.spec
        overlay = transaction.overlay(spec.store_spec(), self.store)
        pool = transaction.shared(ChunkCache, lambda: ChunkCache(0))
        return MetadataFile(spec, overlay, self.prefix, pool)

    @property
    def known(self) -> MetadataState[M] | None:
        """The state that was last learned of; None if none was, or nothing is there."""
        return self.shared.state

    def learn(self, before: MetadataState[M] | None, after: MetadataState[M] | None) -> bool:
        """Make `after` known, if `before` still is: else somebody knows better, or as much."""
        return self.shared.learn(before, after, self._pool)

    async def current(self, since: float) -> MetadataState[M] | None:
        """What is stored, unless what is known was current at `since`; None if nothing is.

        Raises:
            AbortedError: others learned of another document each of the many times.
        """
        attempts: Attempts | None = None
        while True:
            before = self.known
            if before is not None and before.time >= since:
                self.learn(before, before)
                return before
            found = await self.read(before, since)
            if self.learn(before, found):
                return found
            if attempts is None:
                attempts = CONFLICTS.begin("read", self.describe, inline=self.store.inline)
            await attempts.lost()

    def take(self, document: ReadResult) -> MetadataState[M]:
        """What somebody else has read, or what is known, if that is at least as new.

        The generation of a copy is `UNKNOWN`: it tells less than anything that was read.

        Raises:
            DataLossError, UnsupportedError: as for `read`.
        """
        before, stamp = self.known, document.stamp
        if before is not None and (before.time >= stamp.time or stamp.generation == UNKNOWN):
            return before
        data = bytes(document.value)
        metadata, layout = self._parse(data)
        state = MetadataState(metadata, layout, stamp.generation, stamp.time, len(data))
        self.learn(before, state)
        return state

    def describe(self) -> str:
        """How to name the document in an error message."""
        return self.store.describe_key(self._key)

    async def read(
        self, known: MetadataState[M] | None = None, since: float | None = None
    ) -> MetadataState[M] | None:
        """What is stored; None if nothing is. Nothing is fetched if `known` is still current.

        By default that is what is stored now, else what was stored `since` then or is by now.

        Raises:
            DataLossError: the document is not valid metadata; names its key and the member.
            UnsupportedError: it asks for what is not here, by name; names its key.
        """
        before = known.generation if known is not None and known.generation != UNKNOWN else None
        if since is None:
            result = await self.store.read(self._key, if_not_equal=before)
        else:
            result = await read_as_of(self.store, self._key, WHOLE, since, if_not_equal=before)
        if result.state == "missing":
            return None
        stamp = result.stamp
        if result.state == "unspecified" and known is not None:
            return replace(known, time=max(known.time, stamp.time))
        data = bytes(result.value)
        metadata, layout = self._parse(data)
        return MetadataState(metadata, layout, stamp.generation, stamp.time, len(data))

    async def write(self, metadata: M, *, if_equal: bytes) -> MetadataState[M] | None:
        """Store `metadata` if the stored generation is `if_equal`; None if it was not.

        Raises:
            SpecError, UnsupportedError: it cannot be bound, and so is not stored.
        """
        data = metadata.serialize()
        layout = self._layout(metadata, data)  # before the write: what can't be bound isn't stored
        stamp = await self.store.write(self._key, data, if_equal=if_equal)
        if stamp.generation == UNKNOWN:
            return None
        return MetadataState(metadata, layout, stamp.generation, stamp.time, len(data))

    def _layout(self, metadata: M, data: bytes) -> ArrayLayout:
        """The layout of `metadata`, whose document is `data`."""
        spec = self.spec
        content = (*self._form, data)
        return _parsed.get(content, lambda: (metadata, spec.layout(metadata)))[1]

    def _parse(self, data: bytes) -> tuple[M, ArrayLayout]:
        spec = self.spec

        def make() -> tuple[object, ArrayLayout]:
            try:
                metadata = spec.read_metadata(data)
                return metadata, spec.layout(metadata)
            except MismatchError as error:
                raise MismatchError(f"Error opening {self.describe()}: {error}") from error
            except (SpecError, DataLossError, OverflowError) as error:
                raise DataLossError(f"Error reading {self.describe()}: {error}") from error
            except UnsupportedError as error:
                raise UnsupportedError(f"Error reading {self.describe()}: {error}") from error

        return _parsed.get((*self._form, data), make)  # type: ignore[return-value]
