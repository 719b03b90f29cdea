"""What is known of one array's metadata, shared by everybody who opened it through one pool.

As long as somebody has the array open, all of them see the newest state that any of them learned
of; beyond that the pool keeps it while it fits, like a chunk. Nothing here asks a store, and no
state ever takes the place of one that came after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py._runtime.gate import Mutex

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorstore_py._chunked.cache import ChunkCache
    from tensorstore_py._chunked.layout import ArrayLayout

__all__ = ["MetadataState", "SharedMetadata"]

M = TypeVar("M")

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
    """See the head of this file.

    Args:
        key: what stands for it in the pool.

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
        """Replace the state, unless somebody did meanwhile: then theirs may be the newer one.

        Args:
            before: the state when the caller asked the store.
            after: what the store said; None: nothing is there.
            pool: where to keep it beyond the life of its last user.
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
