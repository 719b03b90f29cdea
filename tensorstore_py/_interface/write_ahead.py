"""Writing ahead: what is outside of the bounds is stored first, and the bounds are changed last.

A transaction whose metadata is staged and whose chunks are not: they are stored at once, each on
the condition that the metadata is still the one that this began with when the chunk was read. So
whoever changes the bounds meanwhile is seen: what he wrote stays, and this ends with an error. A
store that stores several keys at once, or only all of itself, gets everything at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
)
from tensorstore_py._interface.overlay import Overlay, generation_of
from tensorstore_py._interface.transaction import Transaction
from tensorstore_py._interface.update import Update
from tensorstore_py.errors import AbortedError

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import Buffer, KvStore

__all__ = ["WriteAhead"]


class WriteAhead(Transaction):
    """What one writer stores ahead of the metadata that makes it seen."""

    __slots__ = ()

    def new_overlay(self, store: KvStore) -> Overlay:
        if store.atomic or store.rewritten:
            return super().new_overlay(store)
        return _Ahead(store, repeatable=False, atomic=False, check=self.check_open)

    async def finish(self) -> None:
        """Store the metadata.

        Raises:
            AbortedError: somebody changed it meanwhile.
        """
        for overlay in self.overlays:
            await overlay.commit()
        self.abort()

    def give_up(self) -> None:
        """Store no metadata. What was stored ahead of it stays outside of the bounds."""
        for overlay in self.overlays:
            overlay.spoil()
        self.abort()


class _Ahead(Overlay):
    """A store of which only what is written on a condition first is staged: the metadata."""

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        if if_equal is None or not self._conditions or key in self._conditions:
            return await super().write(key, value, if_equal=if_equal)
        await self._check_metadata()
        return await self.base.write(key, value, if_equal=if_equal)

    async def update(self, key: str, update: Update) -> TimestampedStorageGeneration:
        self._check()
        if not self._conditions or key in self._conditions:
            return await super().update(key, update)
        if update.replaces:
            # Outside of the bounds there is nothing, as a rule.
            await self._check_metadata()
            parts = await update.parts(None)
            stamp = await self.base.write_parts(key, parts, if_equal=NO_VALUE)
            if stamp.generation != UNKNOWN:
                return stamp
        while True:
            if update.replaces:
                before = generation_of(await self.base.read(key), None)
                parts = await update.parts(None)
            else:
                before, parts = await update.parts_in(self.base, key)
            await self._check_metadata()
            stamp = await self.base.write_parts(key, parts, if_equal=before)
            if stamp.generation != UNKNOWN:
                return stamp

    async def _check_metadata(self) -> None:
        """Whoever stored the chunk that was just read has changed the metadata before."""
        for key, generation in self._conditions.items():
            found = await self.base.read(key, if_not_equal=generation)
            if generation_of(found, generation) != generation:
                raise self._conflict(key)

    def _conflict(self, key: str) -> AbortedError:
        return AbortedError(
            f"Error writing {self.base.describe_key(key)}: somebody else changed it, and so maybe "
            "the bounds, while data was written outside of them; the array has not grown by that, "
            'and nothing of others is lost; append again, or with grow="before" if there are '
            "several appenders"
        )
