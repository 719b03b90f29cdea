"""A store as a transaction sees it: what is underneath, with the transaction's own changes on top.

Nothing is stored underneath before `commit`. Until then a change is kept as what it does, not as
what came of it, so that what others store meanwhile is changed and not undone. The one invariant:
what the transaction read by a condition, or at all if its reads are to be repeatable, is still
stored when it is committed; else nothing of it is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
    holds,
)
from tensorstore_py._interface.key_range import ALL, KeyRange
from tensorstore_py._interface.kvstore import Buffer, KvStore, ListEntry, ReadResult
from tensorstore_py._interface.read_modify_write import (
    CheckedChange,
    Copied,
    ReadModifyWrite,
    Replace,
    ReplaceOwned,
    merged,
)
from tensorstore_py._interface.store_abilities import (
    AtomicBatch,
    AtomicUpdate,
    DirectoryListing,
    GroupedWrite,
    ReferenceCopy,
    SegmentedWrite,
    WholeRewrite,
    list_directory,
    update,
)
from tensorstore_py._runtime.buffers import joined
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.retry import CONFLICTS
from tensorstore_py.errors import AbortedError, FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._runtime.retry import Attempts

__all__ = ["Overlay", "generation_of", "write_group"]


#: A group of writes is stored when it has so many bytes.
_TOGETHER: Final = 64 << 20
#: What is counted of a change whose value is not known yet.
_ABOUT: Final = 1 << 20


class _Value(NamedTuple):
    """What came of a change, and from which generation underneath (None: from any)."""

    value: Buffer | None
    before: bytes | None


class _Staged:
    """What the transaction does to one key."""

    __slots__ = ("_found", "change", "number")

    def __init__(self, change: ReadModifyWrite, number: int) -> None:
        self.change = change
        self.number = number  # another one after every change
        self._found: _Value | None = None

    @property
    def value(self) -> _Value | None:
        """What came of the change, as far as that is known."""
        change = self.change
        return _Value(change.value, None) if isinstance(change, Replace) else self._found

    @value.setter
    def value(self, value: _Value) -> None:
        self._found = value

    @property
    def generation(self) -> bytes:
        """What stands for the changed value within the transaction."""
        change, found, number = self.change, self._found, self.number.to_bytes(8, "little")
        if isinstance(change, Replace):
            return NO_VALUE if change.value is None else b"\x7f" + number
        if found is None:
            return b"\x7f" + number
        return NO_VALUE if found.value is None else b"\x7f" + number + (found.before or b"")


class Overlay(AtomicUpdate, SegmentedWrite, DirectoryListing, KvStore):
    """See the head of this file.

    Args:
        base: the store underneath.
        repeatable: what is read must be unchanged when the transaction is committed.
        atomic: all changes are stored at once, or none.
        check: called before every operation; raises if the transaction is over.

    Attributes:
        one_key: it is atomic, and the store underneath changes one key at a time.
    """

    def __init__(
        self, base: KvStore, *, repeatable: bool, atomic: bool, check: Callable[[], None]
    ) -> None:
        self.base = base
        self.inline = base.inline
        self.width = base.width
        self._repeatable = repeatable
        self.one_key = atomic and not isinstance(base, AtomicBatch)
        self._check = check
        self._staged: dict[str, _Staged] = {}
        self._conditions: dict[str, bytes] = {}
        self._changes: list[Callable[[], None]] = []
        self._afterwards: list[Callable[[], Coroutine[Any, Any, object]]] = []
        self._count = 0
        self._mutex = Mutex()

    @property
    def first_changed(self) -> str | None:
        """A key that the transaction changes, for a person to read; None if it changes none."""
        key = next(iter(self._staged), None)
        return None if key is None else self.base.describe_key(key)

    def changing(self, step: Callable[[], None]) -> None:
        """Have `step()` called when anything of this may have been stored, however that ended."""
        with self._mutex:
            self._changes.append(step)

    def afterwards(self, step: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Have `step()` run when everything is stored."""
        with self._mutex:
            self._afterwards.append(step)

    # The store's promise.

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        self._check()
        staged = self._staged.get(key)
        if staged is None:
            result = await self.base.read(
                key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
            )
            if self._repeatable:
                self._saw(key, generation_of(result, if_not_equal))
            return result
        value = await self._value(key, staged)
        return ReadResult.of(
            value, staged.generation, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
        )

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        return await self._replace(key, Replace(value).kept(), if_equal)

    async def write_segments(
        self,
        key: str,
        segments: Sequence[Buffer],
        *,
        if_equal: bytes | None = None,
        owned: bool = False,
    ) -> TimestampedStorageGeneration:
        if not owned and len(segments) == 1:
            return await self.write(key, segments[0], if_equal=if_equal)
        value = segments[0] if len(segments) == 1 else joined(segments)
        return await self._replace(key, ReplaceOwned(value), if_equal)

    async def _replace(
        self, key: str, change: ReadModifyWrite, if_equal: bytes | None
    ) -> TimestampedStorageGeneration:
        if if_equal in (None, UNKNOWN):
            return await self.update(key, change)
        attempts = CONFLICTS.begin("write", partial(self.describe_key, key), inline=self.inline)
        while True:
            self._check()
            staged = self._staged.get(key)
            if staged is None:
                found = await self.base.read(key, if_not_equal=if_equal)
                present = generation_of(found, if_equal)
            else:
                await self._value(key, staged)
                present = staged.generation
            if not holds(if_equal, present):
                return TimestampedStorageGeneration.now(UNKNOWN)
            with self._mutex:
                if self._staged.get(key) is staged:
                    stamp = self._stage(key, change)
                    if staged is None:
                        self._conditions.setdefault(key, present)
                    return stamp
            await attempts.lost()

    async def update(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        self._check()
        kept = change.kept()
        with self._mutex:
            return self._stage(key, kept)

    async def update_checked(self, key: str, change: CheckedChange) -> None:
        """`update`, if the change can be made to what the transaction sees now.

        Raises:
            TensorStoreError: it cannot be made; nothing is staged.
        """
        while True:
            self._check()
            staged = self._staged.get(key)
            whole = change if staged is None else staged.change.then(change)
            if not isinstance(whole, CheckedChange):
                result = await self.read(key)
                await change.apply(result.value if result.state == "value" else None)
                await self.update(key, change)
                return
            before = whole.checked
            found = await self.base.read(key, if_not_equal=before)
            generation = generation_of(found, before)
            if self._repeatable:
                self._saw(key, generation)
            with self._mutex:
                if self._staged.get(key) is staged and whole.checked == before:
                    whole.check(generation, found.value if found.state == "value" else None)
                    self._stage(key, change)
                    return

    def stage(self, key: str, value: bytes | None) -> TimestampedStorageGeneration:
        """`write` without a condition, which needs no more than this: there is nothing to wait for.

        Raises:
            FailedPreconditionError: the transaction is over, or the store changes one key at a
                time and the transaction is atomic.
        """
        self._check()
        with self._mutex:
            return self._stage(key, Replace(value))

    def _stage(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        """Keep a change on top of what is kept of its key. Call with the mutex held."""
        staged = self._staged.get(key)
        if staged is None:
            if self.one_key and self._staged:
                first = next(iter(self._staged))
                raise FailedPreconditionError(
                    f"cannot change {self.base.describe_key(first)} and "
                    f"{self.base.describe_key(key)} in one atomic transaction: this store changes "
                    "one key at a time; use ts.Transaction(), which stores key after key"
                )
        else:
            change = merged([staged.change, change])
        self._count += 1
        self._staged[key] = changed = _Staged(change, self._count)
        return TimestampedStorageGeneration.now(changed.generation)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        async for entry in self.list(key_range):
            await self.write(entry.key, None)

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        self._check()
        staged = {key: each for key, each in dict(self._staged).items() if key in key_range}
        async for entry in self.base.list(key_range):
            if entry.key not in staged:
                yield entry
        for key, each in staged.items():
            if isinstance(each.change, Copied):
                yield ListEntry(key, each.change.value.size)
                continue
            value = await self._value(key, each, listing=True)
            if value is not None:
                yield ListEntry(key, memoryview(value).nbytes)

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        self._check()
        changed: dict[str, list[str]] = {}
        for key in dict(self._staged):
            if key.startswith(prefix):
                first, slash, _ = key[len(prefix) :].partition("/")
                changed.setdefault(first + slash, []).append(key)
        async for name in list_directory(self.base, prefix):
            if name not in changed:
                yield name
        for name, keys in changed.items():
            if name and await self._any_left(prefix + name, keys):
                yield name

    async def _any_left(self, start: str, keys: Sequence[str]) -> bool:
        """Whether anything is at a key, or below a directory, of which some keys are staged."""
        for key in keys:
            staged = self._staged.get(key)
            if staged is None or isinstance(staged.change, Copied):
                return True
            if await self._value(key, staged, listing=True) is not None:
                return True
        if start.endswith("/"):
            async for _ in self.list(KeyRange.prefix(start)):
                return True
        return False

    def describe_key(self, key: str) -> str:
        return self.base.describe_key(key)

    # The end.

    async def commit(self) -> None:
        """Store all changes.

        Raises:
            AbortedError: something that the transaction rests on was changed by another writer;
                names the key. Nothing was stored.
        """
        if not self._staged and not self._conditions:
            return
        try:
            if isinstance(self.base, AtomicBatch):
                await self._commit_together(self.base)
            else:
                await self._commit_one_by_one()
        finally:
            self.spoil()
        for step in self._afterwards:
            await step()

    async def check_conditions(self) -> None:
        """Look whether what the transaction rests on is still stored.

        Raises:
            AbortedError: something was changed by another writer; names the key.
        """
        for key, generation in self._conditions.items():
            found = await self.base.read(key, if_not_equal=generation)
            if generation_of(found, generation) != generation:
                raise self._conflict(key)

    def spoil(self) -> None:
        """Tell all that what they know of the store may be old."""
        for change in self._changes:
            change()

    def drop(self) -> None:
        """Forget everything: the transaction is over."""
        with self._mutex:
            self._staged.clear()
            self._conditions.clear()
            self._changes.clear()
            self._afterwards.clear()

    async def _commit_together(self, base: AtomicBatch) -> None:
        attempts: Attempts | None = None
        refers = isinstance(base, ReferenceCopy)
        while True:
            conditions = dict(self._conditions)
            values: dict[str, Any] = {}  # stored values among them only if the store takes them
            for key, staged in self._staged.items():
                change = staged.change
                if isinstance(change, Replace) or (refers and isinstance(change, Copied)):
                    values[key] = change.value
                    continue
                values[key] = await self._value(key, staged)
                if staged.value is not None and staged.value.before is not None:
                    conditions.setdefault(key, staged.value.before)
            failed = await base.write_batch(values, conditions)
            if failed is None:
                return
            if failed in self._conditions:
                raise self._conflict(failed)
            if attempts is None:
                where = partial(self.base.describe_key, failed)
                attempts = CONFLICTS.begin("commit", where, inline=self.inline)
            await attempts.lost((failed, conditions.get(failed)))

    async def _commit_one_by_one(self) -> None:
        # What can fail is looked at first, and stored last: metadata after the chunks.
        kept = [key for key in self._conditions if key not in self._staged]
        if len(self._staged) > 1 or kept:
            await self.check_conditions()
        free = [key for key in self._staged if key not in self._conditions]

        async def store(key: str) -> None:
            await update(self.base, key, self._staged[key].change)

        waiting = self.base.writes_wait
        await fan_out(self.inline, free, store, count=len(free), width=self.width, waiting=waiting)
        for key, staged in self._staged.items():
            condition = self._conditions.get(key)
            if condition is None:
                continue
            value = await self._value(key, staged)
            before = condition if staged.value is None else staged.value.before
            if before not in (None, condition):
                raise self._conflict(key)
            stamp = await self.base.write(key, value, if_equal=condition)
            if stamp.generation == UNKNOWN:
                raise self._conflict(key)

    def _conflict(self, key: str) -> AbortedError:
        return AbortedError(
            f"Error writing {self.base.describe_key(key)}: it was changed by somebody else since "
            "the transaction read it, so nothing was stored; begin again"
        )

    def _saw(self, key: str, generation: bytes) -> None:
        """Remember what must be unchanged at the end.

        Raises:
            AbortedError: it was something else before.
        """
        if generation == UNKNOWN:
            return
        with self._mutex:
            before = self._conditions.setdefault(key, generation)
        if before != generation:
            raise self._conflict(key)

    async def _value(self, key: str, staged: _Staged, *, listing: bool = False) -> Buffer | None:
        """The value as it would be if the transaction were committed now.

        Args:
            key: of the value.
            staged: what changes.
            listing: the transaction does not see the value, and so need not find it unchanged.
        """
        known = staged.value
        if known is not None and known.before is None:
            return known.value
        if staged.change.replaces:
            value = await staged.change.apply(None)
            if isinstance(staged.change, Copied):
                return value  # and it stays a reference
            staged.value = _Value(value, None)
            staged.change = Replace(value)
            return value
        before = None if known is None else known.before
        found = await self.base.read(key, if_not_equal=before)
        generation = generation_of(found, before)
        if self._repeatable and not listing:
            self._saw(key, generation)
        if known is not None and generation == before:
            return known.value
        value = await staged.change.apply(found.value if found.state == "value" else None)
        staged.value = _Value(value, generation)
        return value


def write_group(store: KvStore) -> Overlay | None:
    """What stages changes that belong together, if each alone costs as much as many.

    The caller writes to it and ends with `commit`. None: the caller writes to the store.
    """
    if isinstance(store, WholeRewrite):
        return Overlay(store, repeatable=False, atomic=False, check=lambda: None)
    if isinstance(store, AtomicBatch) and isinstance(store, GroupedWrite):
        return _WriteGroup(store, repeatable=False, atomic=False, check=lambda: None)
    return None


class _WriteGroup(Overlay):
    """What is stored together, as much of it at a time as memory should hold."""

    _bytes = 0

    def _stage(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        value = change.value if isinstance(change, Replace) else None
        self._bytes += _ABOUT if value is None else memoryview(value).nbytes
        return super()._stage(key, change)

    async def update(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        stamp = await super().update(key, change)
        if self._bytes >= _TOGETHER:
            await self._commit_staged()
        return stamp

    async def _commit_staged(self) -> None:
        part = Overlay(self.base, repeatable=False, atomic=False, check=self._check)
        with self._mutex:
            part._staged, self._staged = self._staged, part._staged
            part._conditions, self._conditions = self._conditions, part._conditions
            self._bytes = 0
        await part.commit()


def generation_of(result: ReadResult, if_not_equal: bytes | None) -> bytes:
    """The generation that a read found."""
    if result.state == "missing":
        return NO_VALUE
    if result.state == "unspecified" and if_not_equal is not None:
        return if_not_equal
    return result.stamp.generation
