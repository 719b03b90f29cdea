"""The write combiner: read-modify-writes of one key that are under way together are made as one.

A write is registered when it is asked for. The first thread that gets the lock of its key makes it,
together with all others of that key that are registered by then, in their order. So a thousand
writers of parts of one chunk cost a handful of reads and writes; none waits longer than for two.

| a pending write | is in the table | ends |
|---|---|---|
| waits for its key's lock | yes | taken by the thread that gets it, or withdrawn |
| is made, with others of its key | no | `done`, with a stamp or an error |
| was to be made by a thread that was cancelled | again, ahead of later ones | as before |

Where chunks are small, a thread makes some writes of other keys along with its own, from the tail
of the table: those at its head are about to be made by other threads.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tensorstore_py._interface.read_modify_write import merged
from tensorstore_py._interface.store_abilities import update, update_values
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.keyed_lock import KeyedLock, Mutex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import KvStore
    from tensorstore_py._interface.read_modify_write import ReadModifyWrite

__all__ = ["PendingWrite", "WriteCombiner"]

#: So many times as many keys are looked at as are wanted, since some of them are held already.
_LOOKED_AT = 4


class PendingWrite:
    """One read-modify-write on its way.

    Attributes:
        key: what it changes.
        change: how.
        done: it was made, or failed.
        withdrawn: it is not to be made any more.
        assume_missing: try first as if nothing was stored, which needs no read.
        error: why it failed.
        stamp: the new one, if it was made by itself.
    """

    __slots__ = ("assume_missing", "change", "done", "error", "key", "stamp", "withdrawn")

    def __init__(self, key: str, change: ReadModifyWrite) -> None:
        self.key = key
        self.change = change
        self.assume_missing = False
        self.done = False
        self.withdrawn = False
        self.error: Exception | None = None
        self.stamp: TimestampedStorageGeneration | None = None


class WriteCombiner(Forkable):
    """The read-modify-writes that are under way to one store.

    Args:
        store: where.
    """

    def __init__(self, store: KvStore) -> None:
        self._store = store
        self._locks = KeyedLock(inline=store.inline)
        self._mutex = Mutex()
        self._pending: dict[str, list[PendingWrite]] = {}
        super().__init__()

    def after_fork(self) -> None:
        self._pending = {}

    async def update(
        self, key: str, change: ReadModifyWrite, *, assume_missing: bool = False
    ) -> TimestampedStorageGeneration | None:
        """Make a change, with others of the same key if there are any; see `make`."""
        (mine,) = self.register([(key, change)])
        mine.assume_missing = assume_missing
        return await self.make(mine)

    def register(self, changes: Sequence[tuple[str, ReadModifyWrite]]) -> list[PendingWrite]:
        """Have changes wait for their turn; each is to be made, or withdrawn."""
        found = [PendingWrite(key, change) for key, change in changes]
        with self._mutex:
            for each in found:
                self._pending.setdefault(each.key, []).append(each)
        return found

    def crowded(self, mine: int) -> bool:
        """Whether writes of other keys than `mine` are pending."""
        return len(self._pending) > mine

    async def make(self, mine: PendingWrite, along: int = 0) -> TimestampedStorageGeneration | None:
        """See to it that a registered change is made.

        Args:
            mine: the change.
            along: of how many other keys to make the changes, if there are any.

        Returns:
            The new stamp, if it was made by itself.

        Raises:
            Whatever the store, or one of the changes that were made together, raises.
        """
        if not mine.done:
            try:
                async with self._locks.acquire(mine.key):
                    if not mine.done:
                        await self._make_taken(mine, along)
            finally:
                self.withdraw([mine])
        if mine.error is not None:
            raise mine.error
        return mine.stamp

    async def _make_taken(self, mine: PendingWrite, along: int) -> None:
        with self._mutex:
            # A forked child finds an empty table, without even what it registered before.
            batches = [self._pending.pop(mine.key, None) or [mine]]
            last = list(islice(reversed(self._pending), _LOOKED_AT * along)) if along else ()
        others = self._locks.try_acquire(last, along) if last else []
        try:
            if others:
                with self._mutex:  # some may have been withdrawn
                    batches += [self._pending.pop(key) for key in others if key in self._pending]
            await self._store_batches(batches)
        except BaseException:
            # Only this one is cancelled. The others still wait for their turn, but for those that
            # were withdrawn while it was storing theirs.
            with self._mutex:
                for batch in batches:
                    rest = [each for each in batch if not each.withdrawn and not each.done]
                    if rest:
                        key = rest[0].key
                        self._pending[key] = [*rest, *self._pending.get(key, ())]
            raise
        finally:
            self._locks.release(others)

    async def _store_batches(self, batches: Sequence[Sequence[PendingWrite]]) -> None:
        changes = [merged([each.change for each in batch]) for batch in batches]
        if len(batches) > 1:
            keys = [batch[0].key for batch in batches]
            outcomes = await update_values(self._store, keys, changes)
        else:
            (batch,), (change,) = batches, changes
            assumed = any(each.assume_missing for each in batch)
            try:
                stamp = await update(self._store, batch[0].key, change, assume_missing=assumed)
                outcomes = [stamp]
            except Exception as error:  # noqa: BLE001 - it is that of all of them
                outcomes = [error]
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, Exception):
                for each in batch:
                    each.error = outcome
            elif len(batch) == 1:
                batch[0].stamp = outcome
            for each in batch:
                each.done = True

    def withdraw(self, mine: Sequence[PendingWrite]) -> None:
        """Whatever happened: these are not to be made later."""
        for each in mine:
            if each.done:
                continue
            with self._mutex:
                each.withdrawn = True
                rest = [other for other in self._pending.pop(each.key, ()) if other is not each]
                if rest:
                    self._pending[each.key] = rest
