"""The optimistic loop: change a stored value on the condition that nobody else did meanwhile.

Every update of a key comes by here, whichever store it is in, so that there is one rule for how
often it is tried, how long it waits, and how it ends. The invariant: the change is applied to what
is stored and to nothing older, once for each answer that says that it was stored.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py._runtime.attempts import CONFLICTS, DOUBTS
from tensorstore_py.errors import AbortedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import KvStore
    from tensorstore_py._interface.update import Update
    from tensorstore_py._runtime.attempts import Attempts, RetryPolicy

__all__ = ["conditional_update"]


async def conditional_update(
    store: KvStore, key: str, change: Update, policy: RetryPolicy = CONFLICTS
) -> TimestampedStorageGeneration:
    """Change a value, however often others change it meanwhile.

    Args:
        store: where.
        key: the whole key.
        change: what to make of the present value.
        policy: how often to try, and how long to wait in between.

    Returns:
        The new stamp.

    Raises:
        AbortedError: others changed it first, as often as the policy allows; or the store could not
            say, several times, whether it was changed. Says how often it was tried.
        UnavailableError: the store refused again and again although nothing had changed.
    """
    where = partial(store.describe_key, key)
    attempts: Attempts | None = None
    doubts: Attempts | None = None
    while True:
        before, store_it = await _look(store, key, change)
        try:
            stamp = await store_it()
        except AbortedError as error:
            # What may have been made can be made again, since it is applied to what is there now.
            if doubts is None:
                doubts = DOUBTS.begin("update", where, inline=store.inline)
            await doubts.lost(error=error)
            continue
        if stamp.generation != UNKNOWN:
            return stamp
        if attempts is None:
            attempts = policy.begin("update", where, inline=store.inline)
        await attempts.lost(before)


async def _look(
    store: KvStore, key: str, change: Update
) -> tuple[bytes, Callable[[], Awaitable[TimestampedStorageGeneration]]]:
    """What the change rests on, and what stores its result on condition of that."""
    if change.replaces:
        return UNKNOWN, partial(store.write_parts, key, await change.parts(None))
    if not store.splices:
        before, parts = await change.parts_in(store, key)
        return before, partial(store.write_parts, key, parts, if_equal=before)
    before, mixed = await change.splice_in(store, key)
    if mixed is None:
        return before, partial(store.write, key, None, if_equal=before)
    return before, partial(store.splice, key, mixed, if_equal=before)
