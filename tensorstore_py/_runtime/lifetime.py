"""Lifetimes: an open object is closed once, after all that was begun with it has ended.

All views of an array have one lifetime, and so have those of a key-value store. A context has one,
too, which ends those of what was opened with it. The invariant: a closed object begins nothing
more, and `close` returns when all writes that were under way are stored, or failed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakSet

from tensorstore_py._runtime.execution import completion_of
from tensorstore_py._runtime.fork import epoch
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._runtime.future import Future

__all__ = ["Closable", "Lifetime"]

T = TypeVar("T")

#: Of all of them: each is held for a set's operation only.
_mutex = Mutex()


class Lifetime:
    """The lifetime of something open, `what` in errors; `end` is called once, when all is over.

    Attributes:
        closed: whether it is over, or about to be.

    Example:
        >>> lifetime = Lifetime("drawer", lambda: print("shut"))
        >>> lifetime.close()
        shut
        >>> lifetime.check()
        Traceback (most recent call last):
        ...
        tensorstore_py.errors.FailedPreconditionError: this drawer is closed; open it again
    """

    __slots__ = ("__weakref__", "_end", "_inner", "_under_way", "_what", "closed")

    def __init__(self, what: str, end: Callable[[], None] | None = None) -> None:
        self.closed = False
        self._what = what
        self._end = end
        self._under_way: set[Future[Any]] | None = None
        self._inner: WeakSet[Lifetime] | None = None

    def check(self) -> None:
        """Refuse to begin something once it is over.

        Raises:
            FailedPreconditionError: it is.
        """
        if self.closed:
            raise FailedPreconditionError(f"this {self._what} is closed; open it again")

    @uninterrupted
    def follow(self, future: Future[T]) -> Future[T]:
        """`close` waits for this one.

        Raises:
            FailedPreconditionError: it was closed since `check`, without waiting for this one: that
                is cancelled, unless it is done.
        """
        with _mutex:
            late = self.closed
            if not late:
                if self._under_way is None:
                    self._under_way = set()
                self._under_way.add(future)
        if late:
            if future.cancel():
                self.check()
            return future
        future.follow(self._leave)
        return future

    def include(self, inner: Lifetime) -> None:
        """Another one that ends with this one, if not earlier.

        Raises:
            FailedPreconditionError: this one is over.
        """
        self.check()
        with _mutex:
            if self._inner is None:
                self._inner = WeakSet()
            self._inner.add(inner)

    def close(self) -> None:
        """End it: block until what is under way is done. Without effect if it is over.

        Raises:
            Whatever the first write that was under way failed with.
        """
        errors = []
        for future in self._stop():
            try:
                future.result()
            except asyncio.CancelledError:
                pass
            except Exception as error:
                errors.append(error)
        self._finish()
        if errors:
            raise errors[0]

    async def aclose(self) -> None:
        """`close` in any event loop. If it is cancelled, what is under way goes on."""
        errors = []
        for future in self._stop():
            try:
                await completion_of(future)
            except asyncio.CancelledError:
                if not future.cancelled():
                    raise
            except Exception as error:
                errors.append(error)
        self._finish()
        if errors:
            raise errors[0]

    def _leave(self, future: Future[Any]) -> None:
        with _mutex:
            if self._under_way is not None:
                self._under_way.discard(future)

    @uninterrupted
    def _stop(self) -> list[Future[Any]]:
        """Nothing more begins; what is under way."""
        with _mutex:
            self.closed = True
            # What was begun before a fork goes on in the parent.
            futures = [each for each in self._under_way or () if each.epoch == epoch()]
            inner = [] if self._inner is None else list(self._inner)
        for each in inner:
            futures += each._stop()
        return futures

    @uninterrupted
    def _finish(self) -> None:
        with _mutex:
            end, self._end = self._end, None
            inner = [] if self._inner is None else list(self._inner)
        for each in inner:
            each._finish()
        if end is not None:
            end()


class Closable:
    """Something open that can be closed, by hand or at the end of a block."""

    __slots__ = ()

    _life: Lifetime

    @property
    def closed(self) -> bool:
        """Whether it was closed, and does nothing more."""
        return self._life.closed

    def close(self) -> None:
        """Wait until writes that are under way are stored, and let go of what it holds.

        Whatever shares it, such as its other views, is closed with it and refuses to begin
        anything more. Again it is without effect. At the end of a `with` block it is called.

        Raises:
            Whatever a write that was under way failed with.
        """
        self._life.close()

    async def aclose(self) -> None:
        """`close` in any event loop; at the end of an `async with` block it is called."""
        await self._life.aclose()

    def __enter__(self) -> Self:
        self._life.check()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self._life.check()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
