"""The metadata document of one array: read, revalidated, and replaced on condition.

The document is small and read often, so equal bytes are parsed and bound only once, whoever
opens them (`layout.Remembered`). What is known is shared with all who opened the array through
the same pool (`metadata_cache`), and only what is too old for the caller is asked for again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

from tensorstore_py._chunked.cache import ChunkCache
from tensorstore_py._chunked.layout import ArrayLayout, Remembered
from tensorstore_py._chunked.metadata_cache import MetadataState, SharedMetadata
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py._runtime.attempts import CONFLICTS
from tensorstore_py.errors import DataLossError, MismatchError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._chunked.spec import ChunkedSpec
    from tensorstore_py._interface.kvstore import KvStore, ReadResult
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.attempts import Attempts

__all__ = ["MetadataFile", "MetadataState"]

M = TypeVar("M")

_parsed: Remembered[tuple[object, ArrayLayout]] = Remembered(256)


class MetadataFile(Generic[M]):
    """Where an array's metadata is stored.

    Args:
        spec: the array's spec, which knows the format.
        store: where.
        prefix: the array's path, ending in "/" unless empty.
        pool: through which others may have opened it; None: they don't matter.
    """

    __slots__ = ("_key", "_pool", "_shared", "prefix", "spec", "store")

    def __init__(
        self, spec: ChunkedSpec[M], store: KvStore, prefix: str, pool: ChunkCache | None = None
    ) -> None:
        self.spec = spec
        self.store = store
        self.prefix = prefix
        self._key = prefix + spec.metadata_key
        self._pool = pool
        self._shared: SharedMetadata[M] = SharedMetadata()
        if pool is not None:
            form = (type(spec), spec.layout_variant)
            scope = pool.scope(self._key, spec.store_spec(), form)
            self._shared = SharedMetadata.of(pool, scope)

    def within(self, transaction: Transaction) -> MetadataFile[M]:
        """The document as a transaction sees it, shared by all that it has open of the array."""
        spec = self.spec
        overlay = transaction.overlay(spec.store_spec(), self.store)
        pool = transaction.shared(ChunkCache, lambda: ChunkCache(0))
        return MetadataFile(spec, overlay, self.prefix, pool)

    @property
    def known(self) -> MetadataState[M] | None:
        """The state that was last learned of; None if none was, or nothing is there."""
        return self._shared.state

    def learn(self, before: MetadataState[M] | None, after: MetadataState[M] | None) -> bool:
        """Make `after` known, if `before` still is: else somebody knows better, or as much."""
        return self._shared.learn(before, after, self._pool)

    async def current(self, since: float) -> MetadataState[M] | None:
        """What is stored; None if nothing is.

        Args:
            since: what was known to be current then or later is not asked for.

        Raises:
            AbortedError: others learned of another document each of the many times.
        """
        attempts: Attempts | None = None
        while True:
            before = self.known
            if before is not None and before.time >= since:
                self.learn(before, before)
                return before
            found = await self.read(before)
            if self.learn(before, found):
                return found
            if attempts is None:
                attempts = CONFLICTS.begin("read", self.describe, inline=self.store.inline)
            await attempts.lost()

    def take(self, document: ReadResult) -> MetadataState[M]:
        """What somebody else has read, or what is known, if that is at least as new.

        Args:
            document: a value; its generation is `UNKNOWN` if it comes from a copy, which tells
                less than anything that was read.

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

    async def read(self, known: MetadataState[M] | None = None) -> MetadataState[M] | None:
        """What is stored now; None if nothing is.

        Args:
            known: what the caller has; if that is still current, nothing is fetched or parsed.

        Raises:
            DataLossError: the document is not valid metadata; names its key and the member.
            UnsupportedError: it asks for what is not here, by name; names its key.
        """
        before = known.generation if known is not None and known.generation != UNKNOWN else None
        result = await self.store.read(self._key, if_not_equal=before)
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
        data = self.spec.serialize_metadata(metadata)
        layout = self._layout(metadata, data)  # before the write: what can't be bound isn't stored
        stamp = await self.store.write(self._key, data, if_equal=if_equal)
        if stamp.generation == UNKNOWN:
            return None
        return MetadataState(metadata, layout, stamp.generation, stamp.time, len(data))

    def _layout(self, metadata: M, data: bytes) -> ArrayLayout:
        """The layout of `metadata`, whose document is `data`."""
        spec = self.spec
        content = (type(spec), spec.layout_variant, data)
        return _parsed.get(content, lambda: (metadata, spec.layout(metadata)))[1]

    def _parse(self, data: bytes) -> tuple[M, ArrayLayout]:
        spec = self.spec

        def make() -> tuple[object, ArrayLayout]:
            try:
                metadata = spec.parse_metadata(data)
                return metadata, spec.layout(metadata)
            except MismatchError as error:
                raise MismatchError(f"Error opening {self.describe()}: {error}") from error
            except (SpecError, DataLossError, OverflowError) as error:
                raise DataLossError(f"Error reading {self.describe()}: {error}") from error
            except UnsupportedError as error:
                raise UnsupportedError(f"Error reading {self.describe()}: {error}") from error

        return _parsed.get((type(spec), spec.layout_variant, data), make)  # type: ignore[return-value]
