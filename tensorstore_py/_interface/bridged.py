"""A store in the other execution mode: one that blocks, for callers on the event loop.

Stores over several others run in one mode, and not all of the others may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.key_range import ALL, KeyRange
from tensorstore_py._interface.kvstore import KvStore
from tensorstore_py._runtime.fan_out import within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from typing import Any

    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer, ListEntry, ReadResult

__all__ = ["in_one_mode"]

T = TypeVar("T")


def in_one_mode(*stores: KvStore) -> list[KvStore]:
    """The same stores, all in one execution mode: inline if all of them are.

    Example:
        >>> from tensorstore_py.testing import LoopStore
        >>> from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
        >>> stores = MemoryStore(SharedMap()), LoopStore(MemoryStore(SharedMap()))
        >>> [store.inline for store in in_one_mode(*stores)]
        [False, False]
    """
    inline = all(store.inline for store in stores)
    return [store if store.inline == inline else _Bridged(store) for store in stores]


class _Bridged(KvStore):
    """An inline store whose operations run on worker threads."""

    inline = False

    def __init__(self, store: KvStore) -> None:
        self._store = store
        self.width = store.width
        self.identity = store.identity

    async def _run(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await within(False, True, body)

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        return await self._run(
            lambda: self._store.read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)
        )

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        return await self._run(lambda: self._store.write(key, value, if_equal=if_equal))

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        await self._run(lambda: self._store.delete_range(key_range))

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        async def listed() -> list[ListEntry]:
            return [entry async for entry in self._store.list(key_range)]

        for entry in await self._run(listed):
            yield entry

    @property
    def writable(self) -> bool:
        return self._store.writable

    @property
    def listable(self) -> bool:
        return self._store.listable

    def describe_key(self, key: str) -> str:
        return self._store.describe_key(key)

    async def aclose(self) -> None:
        await self._store.aclose()
