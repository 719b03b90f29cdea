"""Writing ahead: what is outside of the bounds is stored first, and the bounds are changed last.

A transaction whose metadata is staged and whose chunks are not: they are stored at once, each on
the condition that the metadata is still the one that this began with when the chunk was read. So
a writer that changes the bounds meanwhile is noticed: its data stays, and this ends with an error.
A store that stores several keys at once, or only all of itself, gets everything at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._interface.overlay import Overlay, generation_of
from tensorstore_py._interface.read_modify_write import ReadModifyWrite
from tensorstore_py._interface.store_abilities import (
    AtomicBatch,
    conditional_update,
    write_segments,
)
from tensorstore_py._interface.transaction import Transaction
from tensorstore_py.errors import AbortedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.kvstore import Buffer, KvStore

__all__ = ["WriteAhead"]


class WriteAhead(Transaction):
    """What one writer stores ahead of the metadata that makes it seen."""

    __slots__ = ()

    def new_overlay(self, store: KvStore) -> Overlay:
        if isinstance(store, AtomicBatch):
            return super().new_overlay(store)
        return _Ahead(store, repeatable=False, atomic=False, check=self.check_open)

    async def finish(self) -> None:
        """Store the metadata.

        Raises:
            AbortedError: another writer changed it meanwhile.
        """
        for overlay in self.overlays:
            await overlay.commit()
        self.abort()

    def give_up(self) -> None:
        """Store no metadata. What was stored ahead of it stays outside of the bounds."""
        for overlay in self.overlays:
            overlay.spoil()
        self.abort()


class _Checked(ReadModifyWrite):
    """A change that is stored on condition, and after a check that follows the look at the value.

    Args:
        change: what becomes of the value.
        check: raises if it must not be stored.
    """

    __slots__ = ("_change", "_check")

    def __init__(
        self, change: ReadModifyWrite, check: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._change = change
        self._check = check

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        await self._check()
        return await self._change.apply(stored)

    async def parts(self, stored: Buffer | None) -> Sequence[Buffer] | None:
        await self._check()
        return await self._change.parts(stored)

    async def parts_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Buffer] | None]:
        if self._change.replaces:
            before = generation_of(await store.read(key), None)
            found = before, await self._change.parts(None)
        else:
            found = await self._change.parts_in(store, key)
        await self._check()
        return found


class _Ahead(Overlay):
    """A store of which only what is written on a condition first is staged: the metadata.

    Drivers write to it, and users do not; so nobody calls `stage`. Conditions are looked at after a
    chunk was read: a writer that stored that chunk has changed the metadata before.
    """

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        if if_equal is None or not self._conditions or key in self._conditions:
            return await super().write(key, value, if_equal=if_equal)
        await self.check_conditions()
        return await self.base.write(key, value, if_equal=if_equal)

    async def write_segments(
        self,
        key: str,
        segments: Sequence[Buffer],
        *,
        if_equal: bytes | None = None,
        owned: bool = False,
    ) -> TimestampedStorageGeneration:
        if if_equal is None or not self._conditions or key in self._conditions:
            return await super().write_segments(key, segments, if_equal=if_equal, owned=owned)
        await self.check_conditions()
        return await write_segments(self.base, key, segments, if_equal=if_equal, owned=owned)

    async def update(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        self._check()
        if not self._conditions or key in self._conditions:
            return await super().update(key, change)
        # Outside of the bounds there is nothing, as a rule.
        checked = _Checked(change, self.check_conditions)
        return await conditional_update(self.base, key, checked, assume_missing=change.replaces)

    def _conflict(self, key: str) -> AbortedError:
        return AbortedError(
            f"Error writing {self.base.describe_key(key)}: somebody else changed it, and so maybe "
            "the bounds, while data was written outside of them; the array has not grown by that, "
            'and nothing of others is lost; append again, or with grow="before" if there are '
            "several appenders"
        )
