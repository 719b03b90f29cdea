"""Updates of one key that are under way together are made as one.

An update is announced, and made when its turn comes: by whoever comes to its key first, together
with all others of that key that were announced by then. So a thousand writers of parts of one chunk
cost a handful of reads and writes, and none of them waits longer than for two. The order in which
they were announced is the order in which they are applied.

Where keys are small, whoever makes an update makes some of other keys along with it, from the end
of the line: those at its head are about to be made by others.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tensorstore_py._interface.update import merged
from tensorstore_py._runtime.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import KvStore
    from tensorstore_py._interface.update import Update

__all__ = ["MergedUpdates", "Waiting"]


class Waiting:
    """One update on its way.

    Attributes:
        key: what it changes.
        update: how.
        done: it was made, or failed.
        gone: nobody wants it to be made any more.
        error: why it failed.
        stamp: the new one, if the update was made by itself.
    """

    __slots__ = ("done", "error", "gone", "key", "stamp", "update")

    def __init__(self, key: str, update: Update) -> None:
        self.key = key
        self.update = update
        self.done = False
        self.gone = False
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
        self._waiting: dict[str, list[Waiting]] = {}

    async def update(self, key: str, update: Update) -> TimestampedStorageGeneration | None:
        """Make an update, with others of the same key if there are any; see `make`."""
        (mine,) = self.announce([(key, update)])
        return await self.make(mine)

    def announce(self, updates: Sequence[tuple[str, Update]]) -> list[Waiting]:
        """Have updates wait for their turn; each is to be made, or given up."""
        found = [Waiting(key, update) for key, update in updates]
        with self._mutex:
            for each in found:
                self._waiting.setdefault(each.key, []).append(each)
        return found

    def crowded(self, mine: int) -> bool:
        """Whether keys other than `mine` wait."""
        return len(self._waiting) > mine

    async def make(self, mine: Waiting, along: int = 0) -> TimestampedStorageGeneration | None:
        """See to it that an announced update is made.

        Args:
            mine: the update.
            along: of how many other keys to make the updates, if those wait.

        Returns:
            The new stamp, if it was made by itself.

        Raises:
            Whatever the store, or one of the updates that were made together, raises.
        """
        if not mine.done:
            try:
                async with self.hold(mine.key):
                    if not mine.done:
                        await self._store_all(mine, along)
            finally:
                self.give_up([mine])
        if mine.error is not None:
            raise mine.error
        return mine.stamp

    async def _store_all(self, mine: Waiting, along: int) -> None:
        with self._mutex:
            # A forked child finds nothing waiting, not even what it asked for before.
            batches = [self._waiting.pop(mine.key, None) or [mine]]
            others = self._seize_last(along) if along else ()
            batches += [self._waiting.pop(key) for key in others]
        try:
            await self._store_batches(batches)
        except BaseException:
            # Only this one is cancelled. The others still wait for their turn, but for those who
            # went while it was storing theirs.
            with self._mutex:
                for batch in batches:
                    rest = [each for each in batch if not each.gone and not each.done]
                    if rest:
                        key = rest[0].key
                        self._waiting[key] = [*rest, *self._waiting.get(key, ())]
            raise
        finally:
            self.let_go(others)

    def _seize_last(self, most: int) -> list[str]:
        """Enter for the last keys that wait and that nobody has come to yet."""
        free = (key for key in reversed(self._waiting) if key not in self._turns)
        return self._seize(islice(free, most))

    async def _store_batches(self, batches: Sequence[Sequence[Waiting]]) -> None:
        updates = [merged([each.update for each in batch]) for batch in batches]
        if len(batches) > 1:
            keys = [batch[0].key for batch in batches]
            outcomes = await self._store.update_values(keys, updates)
        else:
            try:
                outcomes = [await self._store.update(batches[0][0].key, updates[0])]
            except Exception as error:  # noqa: BLE001 - it is everybody's
                outcomes = [error]
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, Exception):
                for each in batch:
                    each.error = outcome
            elif len(batch) == 1:
                batch[0].stamp = outcome
            for each in batch:
                each.done = True

    def give_up(self, mine: Sequence[Waiting]) -> None:
        """Whatever happened: nobody else is to make these later."""
        for each in mine:
            if each.done:
                continue
            with self._mutex:
                each.gone = True
                rest = [other for other in self._waiting.pop(each.key, ()) if other is not each]
                if rest:
                    self._waiting[each.key] = rest

    def after_fork(self) -> None:
        super().after_fork()
        self._waiting = {}
