"""WriteFutures: the two moments of a write.

`copy` is done when the source may change again, `commit` when the data is stored. The object
itself stands for `commit`: awaiting it, or its `.result()`, waits until the data is stored. In a
transaction both are done when the write is staged, so that the transaction's reads see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorstore_py._runtime.future import Future, Settleable
from tensorstore_py._runtime.live import Live

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["Copying", "WriteFutures"]


class Copying:
    """The first of the two moments, while it is not known when it will be.

    Example:
        >>> copying = Copying()
        >>> futures = copying.until(Future(5))
        >>> futures.copy.result()
    """

    __slots__ = ("_settle",)

    def __init__(self) -> None:
        self._settle: Settleable[None] = Settleable()

    def done(self) -> None:
        """Nobody reads the source any more."""
        self._settle.value(None)

    def until(self, commit: Future[None]) -> WriteFutures:
        """Both moments; the first one is over when the second one is, if not before."""
        settle = self._settle

        def follow(future: Future[None]) -> None:
            error = future.error()
            if error is None:
                settle.value(None)
            else:
                settle.error(error)

        settle.attach(commit.claim, lambda: None, commit.force)
        commit.follow(follow)
        return WriteFutures(settle.future, commit)


class WriteFutures(Live):
    """The outcome of `TensorStore.write`.

    Attributes:
        copy: done when the source array may be changed again; in a transaction, when every read
            in it that begins from then on sees the new values.
        commit: done when the data is stored; in a transaction, when it is staged.

    Example:
        >>> import tensorstore_py as ts
        >>> store = ts.open(
        ...     {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="int8", shape=[3]
        ... ).result()
        >>> futures = store.write([1, 2, 3])
        >>> futures.copy.result()
        >>> futures.result()
        >>> futures.done()
        True
    """

    __slots__ = ("commit", "copy")

    def __init__(self, copy: Future[None], commit: Future[None]) -> None:
        self.copy = copy
        self.commit = commit

    def __await__(self) -> Generator[Any, None, None]:
        return self.commit.__await__()

    def result(self, timeout: float | None = None, deadline: float | None = None) -> None:
        """Block until stored; see `Future.result`."""
        self.commit.result(timeout, deadline)

    def exception(
        self, timeout: float | None = None, deadline: float | None = None
    ) -> BaseException | None:
        """Block until stored or failed; the error, or None."""
        return self.commit.exception(timeout, deadline)

    def done(self) -> bool:
        """Whether the data is stored, or the write failed or was cancelled."""
        return self.commit.done()

    def cancelled(self) -> bool:
        """Whether the write was cancelled."""
        return self.commit.cancelled()

    def cancel(self) -> bool:
        """Ask to stop; chunks already stored stay. False if it was done already."""
        self.copy.cancel()
        return self.commit.cancel()

    def add_done_callback(self, callback: Callable[[Future[None]], None]) -> None:
        """Call `callback` when stored; see `Future.add_done_callback`."""
        self.commit.add_done_callback(callback)

    def remove_done_callback(self, callback: Callable[[Future[None]], None]) -> int:
        """Take back every registration of `callback`; returns how many there were."""
        return self.commit.remove_done_callback(callback)
