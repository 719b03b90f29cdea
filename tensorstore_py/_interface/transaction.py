"""Transactions: changes to several keys and arrays that take effect together, at their end.

Here is only their life: open, then committed or aborted, once. What they change is kept by one
`Overlay` for each store; what they wait for are the operations that were begun in them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from tensorstore_py._display.public_name import public
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.future import Settleable
from tensorstore_py._runtime.handle import Handle
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py._spec.context import likeness
from tensorstore_py.errors import AbortedError, FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from types import TracebackType

    from tensorstore_py._interface.kvstore import KvStore, KvStoreSpec
    from tensorstore_py._runtime.future import Future

__all__ = ["Transaction"]

T = TypeVar("T")
_State = Literal["open", "closing", "closed", "aborted"]

#: Operations that are over are forgotten when there are so many.
_MANY = 256


@public
class Transaction(Handle):
    """A staging area for writes, of arrays and key-value stores.

    Reads through it see its own writes; no other reader sees any of them before it is committed.
    As a context manager, also with `async with`, it is committed at the end of the block, or
    aborted if the block raises.

    Args:
        atomic: store everything at once or nothing. A store that can change only one key at a time
            (files, HTTP) allows only one key then, and there may be one such store. Of several
            stores each is changed at once, one after the other, and none if what any of them was
            read as has changed. Without it, keys are stored one after the other, and a crash in
            the middle leaves some of them.
        repeatable_read: fail to commit if anything that was read (other than by listing) was
            changed by another writer meanwhile.

    Example:
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
        >>> store = ts.open(spec, create=True, dtype="int32", shape=[4]).result()
        >>> with ts.Transaction() as transaction:
        ...     staged = store.with_transaction(transaction)
        ...     staged[1:3] = 7
        ...     print(staged.read().result(), store.read().result())
        [0 7 7 0] [0 0 0 0]
        >>> store.read().result()
        array([0, 7, 7, 0], dtype=int32)
    """

    __slots__ = (
        "__weakref__", "_atomic", "_changes", "_mutex", "_outcome", "_overlays", "_repeatable",
        "_shared", "_state", "_under_way",
    )  # fmt: skip

    def __init__(self, atomic: bool = False, repeatable_read: bool = False) -> None:
        self._atomic = bool(atomic)
        self._repeatable = bool(repeatable_read)
        self._state: _State = "open"
        self._mutex = Mutex()
        self._outcome: Settleable[None] = Settleable()
        self._overlays: list[tuple[object, Overlay]] = []
        self._shared: dict[Hashable, object] = {}
        self._under_way: list[Future[Any]] = []
        self._changes: list[Future[Any]] = []

    # What users see.

    @property
    def atomic(self) -> bool:
        """Whether everything is stored at once, or nothing."""
        return self._atomic

    @property
    def repeatable_read(self) -> bool:
        """Whether what was read must be unchanged at the end."""
        return self._repeatable

    @property
    def open(self) -> bool:
        """Whether it can be used: it is neither committed nor aborted."""
        return self._state == "open"

    @property
    def commit_started(self) -> bool:
        """Whether a commit was begun."""
        return self._state in ("closing", "closed")

    @property
    def aborted(self) -> bool:
        """Whether it was aborted."""
        return self._state == "aborted"

    @property
    def future(self) -> Future[None]:
        """Done when everything is stored, or when it failed or was aborted."""
        return self._outcome.future

    @uninterrupted
    def commit_async(self) -> Future[None]:
        """Store everything, when the operations that were begun in it are over.

        Returns:
            `future`.

        Raises:
            AbortedError: (by the Future) it was aborted, an operation in it failed, or something
                that it rests on was changed by another writer; names the key.
            FailedPreconditionError: (by the Future) it is atomic, and its keys cannot be stored at
                once; names them.
        """
        with self._mutex:
            if self._state != "open":
                return self.future
            self._state = "closing"
        inline = all(overlay.inline for _, overlay in self._overlays)
        commit = start(inline, lambda: self._commit(inline))
        self._outcome.attach(commit.claim, lambda: _stop(commit), commit.force)
        commit.follow(self._settle)
        return self.future

    def commit_sync(self) -> None:
        """`commit_async().result()`."""
        self.commit_async().result()

    @uninterrupted
    def abort(self) -> None:
        """Forget everything. Without effect after the commit began."""
        with self._mutex:
            if self._state != "open":
                return
            self._state = "aborted"
        self._drop()
        self._outcome.error(AbortedError("Transaction aborted"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit_sync()
        else:
            self.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.commit_async()
        else:
            self.abort()

    # What stores and drivers need.

    def check_open(self) -> None:
        """Refuse what is begun too late.

        Raises:
            FailedPreconditionError: it is not open.
        """
        if self._state != "open":
            self._check_usable()
            raise FailedPreconditionError("Transaction not open (commit already started)")

    @uninterrupted
    def overlay(self, spec: KvStoreSpec, store: KvStore) -> Overlay:
        """The store as this transaction sees it; the same for all that stand for one store.

        Args:
            spec: what it was opened with, bound.
            store: the open store.
        """
        if isinstance(store, Overlay):
            return store
        known = store.identity or likeness(spec.replace(path=""))
        with self._mutex:
            self._check_usable()
            for other, overlay in self._overlays:
                if overlay.base is store or other == known:
                    return overlay
            overlay = self.new_overlay(store)
            self._overlays.append((known, overlay))
            return overlay

    def new_overlay(self, store: KvStore) -> Overlay:
        """What stages the changes of a store that the transaction meets."""
        return Overlay(
            store, repeatable=self._repeatable, atomic=self._atomic, check=self._check_usable
        )

    @property
    def overlays(self) -> list[Overlay]:
        """Of all stores that it has met."""
        return [overlay for _, overlay in self._overlays]

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """An object that lives as long as the transaction, made at first use."""
        with self._mutex:
            if key not in self._shared:
                self._shared[key] = make()
            return cast("T", self._shared[key])

    @uninterrupted
    def follow(self, operation: Future[T], *, changes: bool) -> Future[T]:
        """Have the commit wait for an operation; gives it back.

        Args:
            operation: begun in this transaction.
            changes: whether the commit fails if it does.
        """
        with self._mutex:
            operations = self._changes if changes else self._under_way
            operations.append(operation)
            if len(operations) >= _MANY:
                operations[:] = [each for each in operations if not _went_well(each)]
        return operation

    @property
    def changing(self) -> bool:
        """Whether a change that was begun in it is under way; what comes later has to wait."""
        if not self._changes:
            return False
        with self._mutex:
            self._changes[:] = [each for each in self._changes if not _went_well(each)]
            return bool(self._changes)

    def _drop(self) -> None:
        """Let go of what was staged: views of the transaction may live on."""
        with self._mutex:
            overlays, self._overlays = self._overlays, []
            self._shared.clear()
        for _, overlay in overlays:
            overlay.drop()

    def _check_usable(self) -> None:
        if self._state == "aborted":
            raise FailedPreconditionError("Transaction not open (aborted)")
        if self._state == "closed":
            raise FailedPreconditionError("Transaction not open (commit already started)")

    async def _commit(self, inline: bool) -> None:
        await self._finish_operations(inline)
        self._state = "closed"
        if self._atomic:
            await self._check_stores(inline)
        for _, overlay in self._overlays:
            await within(inline, overlay.inline, overlay.commit)

    async def _check_stores(self, inline: bool) -> None:
        """Find what an atomic commit to several stores would fail of, before the first changes.

        Raises:
            AbortedError: another writer changed what was read.
            FailedPreconditionError: two of the stores change one key at a time.
        """
        changed = [overlay for _, overlay in self._overlays if overlay.first_changed is not None]
        if len(changed) < 2:
            return
        single = [overlay.first_changed or "" for overlay in changed if overlay.one_key]
        if len(single) > 1:
            raise FailedPreconditionError(
                f"cannot change {', '.join(single)} in one atomic transaction: they are in "
                "different stores, which change one key at a time; use ts.Transaction(), which "
                "stores key after key"
            )
        for overlay in changed:
            await within(inline, overlay.inline, overlay.check_conditions)

    async def _finish_operations(self, inline: bool) -> None:
        """Wait for what was begun.

        Raises:
            AbortedError: a write failed.
        """
        for operation in self._under_way:
            await _over(inline, operation)
        for operation in self._changes:
            await _over(inline, operation)
            error = operation.error()
            if error is not None and not operation.cancelled():
                raise AbortedError(
                    f"an operation in this transaction failed, so nothing was stored: {error}"
                ) from error
        self._under_way.clear()
        self._changes.clear()

    def _settle(self, commit: Future[None]) -> None:
        error = commit.error()
        self._state = "closed"
        self._drop()
        if error is None:
            self._outcome.value(None)
        else:
            self._outcome.error(error)


def _stop(commit: Future[None]) -> None:
    commit.cancel()


def _went_well(operation: Future[Any]) -> bool:
    return operation.done() and operation.error() is None


async def _over(inline: bool, operation: Future[Any]) -> None:
    """Wait for the end of an operation, however it ends."""
    if inline:
        with suppress(asyncio.CancelledError):
            operation.exception()
        return
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def wake(_: Future[Any]) -> None:
        loop.call_soon_threadsafe(over.set)

    operation.add_done_callback(wake)
    await over.wait()
