"""Updates of one key that are under way together are made as one.

Whoever comes while another update of the same key is being stored adds its own to those that wait,
and the first of them to get its turn stores them all. So a thousand writers of parts of one chunk
cost a handful of reads and writes, and none of them waits longer than for two. The order in which
they came is the order in which they are applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._interface.update import merged
from tensorstore_py._runtime.gate import Gate

if TYPE_CHECKING:
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import KvStore
    from tensorstore_py._interface.update import Update

__all__ = ["MergedUpdates"]


class _Waiting:
    """One update on its way."""

    __slots__ = ("done", "error", "gone", "stamp", "update")

    def __init__(self, update: Update) -> None:
        self.update = update
        self.done = False
        self.gone = False  # nobody wants it to be made any more
        self.error: Exception | None = None
        self.stamp: TimestampedStorageGeneration | None = None


class MergedUpdates(Gate):
    """The updates that are under way to one store.

    Args:
        store: where.
    """

    def __init__(self, store: KvStore) -> None:
        super().__init__(inline=store.inline)
        self._store = store
        self._waiting: dict[str, list[_Waiting]] = {}

    async def update(self, key: str, update: Update) -> TimestampedStorageGeneration | None:
        """Make an update, with others of the same key if there are any.

        Returns:
            The new stamp, if it was made by itself.

        Raises:
            Whatever the store, or one of the updates that were made together, raises.
        """
        mine = _Waiting(update)
        with self._mutex:
            self._waiting.setdefault(key, []).append(mine)
        try:
            async with self.hold(key):
                if not mine.done:
                    await self._store_all(key)
        finally:
            self._give_up(key, mine)
        if mine.error is not None:
            raise mine.error
        return mine.stamp

    async def _store_all(self, key: str) -> None:
        with self._mutex:
            batch = self._waiting.pop(key)
        error: Exception | None = None
        try:
            stamp = await self._store.update(key, merged([each.update for each in batch]))
            if len(batch) == 1:
                batch[0].stamp = stamp
        except Exception as failure:  # noqa: BLE001 - it is everybody's
            error = failure
        except BaseException:
            # Only this one is cancelled. The others still wait for their turn, but for those who
            # went while it was storing theirs.
            with self._mutex:
                rest = [each for each in batch if not each.gone]
                self._waiting[key] = [*rest, *self._waiting.get(key, ())]
            raise
        for each in batch:
            each.error, each.done = error, True

    def _give_up(self, key: str, mine: _Waiting) -> None:
        """Whatever happened: nobody else is to make this update later."""
        if mine.done:
            return
        with self._mutex:
            mine.gone = True
            rest = [each for each in self._waiting.pop(key, ()) if each is not mine]
            if rest:
                self._waiting[key] = rest

    def after_fork(self) -> None:
        super().after_fork()
        self._waiting = {}
