"""Futures: what every asynchronous call of the public API returns.

A Future is settled once, from any thread. `.result()` blocks any thread; `await` works in any
event loop; cancellation flows both ways. A Future may carry work that has not begun (`Work`): a
thread that asks for its result runs that work itself instead of waiting for a worker to wake up.
All state changes happen under the future's own lock; callbacks run outside it. Signals do not
interrupt the main thread in any of this, except where it waits (`signals`).

| state | work | `result()` | `await`, `done()`, callbacks | `cancel()` |
|---|---|---|---|---|
| pending | not begun | runs it here | start it on another thread | it never begins |
| running | begun | blocks | wait | it stops at its next step |
| settled | none | at once | at once | False |
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from enum import Enum, auto
from threading import TIMEOUT_MAX, Lock, get_ident
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from tensorstore_py._display.public_name import public
from tensorstore_py._runtime.awaitable_bridge import bridge, loop_waiter
from tensorstore_py._runtime.fork import check_threads, epoch
from tensorstore_py._runtime.handle import Handle, MistakenForValue
from tensorstore_py._runtime.metrics import counter
from tensorstore_py._runtime.signals import enter, leave, uninterrupted
from tensorstore_py.errors import AbortedError

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "CallbackWork",
    "Copying",
    "Future",
    "FutureLike",
    "OnInterrupt",
    "Promise",
    "Settleable",
    "Work",
    "WriteFutures",
]

T = TypeVar("T")
FutureLike: TypeAlias = "Awaitable[T] | T"
_log = logging.getLogger(__name__)
_CALLBACKS = counter("/tensorstore/futures/ready_callbacks", "callbacks of settled Futures")

_UNSET: Any = object()

#: Identity of the library's loop thread, set by `loop`; blocking it would hang everything on it.
loop_thread: list[int | None] = [None]


class OnInterrupt(Enum):
    """What becomes of work when a signal handler raises in the thread that waits for it."""

    #: It goes on to its end, also when the process ends: it may change something.
    CONTINUE = auto()
    #: It goes on, but the end of the process stops it: it changes nothing.
    CONTINUE_UNTIL_EXIT = auto()
    #: It is cancelled: it consists of many changes, each of them whole, and can be continued.
    CANCEL = auto()


class Work:
    """What a Future is the result of, as far as it is to be run, started or cancelled."""

    __slots__ = ()

    on_interrupt = OnInterrupt.CONTINUE

    def run(self) -> bool:
        """Run it on this thread if it has not begun. Returns whether it ran."""
        return False

    def start(self) -> None:
        """Begin it now, on another thread."""

    def cancel(self) -> None:
        """Its result is no longer wanted."""


class CallbackWork(Work):
    """Work that is given by functions; see `Work`."""

    __slots__ = ("_cancel", "_run", "_start")

    def __init__(
        self,
        run: Callable[[], bool] | None,
        cancel: Callable[[], None],
        start: Callable[[], None] | None,
    ) -> None:
        self._run = run
        self._cancel = cancel
        self._start = start

    def run(self) -> bool:
        return self._run is not None and self._run()

    def start(self) -> None:
        if self._start is not None:
            self._start()

    def cancel(self) -> None:
        self._cancel()


@public
class Future(MistakenForValue, Handle, Generic[T]):
    """The result of an asynchronous operation.

    Args:
        future: a Future (returned as is), an awaitable (run on `loop`), or a plain value.
        loop: the event loop on which an awaitable runs; the running one by default.

    Raises:
        ValueError: an awaitable, but no loop is given and none is running.

    Example:
        >>> Future(3).result()
        3
    """

    __slots__ = (
        "__weakref__", "_callbacks", "_epoch", "_error", "_lock", "_value", "_waiters", "_work",
    )  # fmt: skip
    __class_getitem__: ClassVar[classmethod[Any, Any, GenericAlias]] = classmethod(GenericAlias)

    _lock: Lock
    _epoch: int
    _value: T
    _error: BaseException | None
    _callbacks: list[Callable[[Any], None]] | None
    _waiters: list[Lock] | None
    _work: Work | None

    def __new__(
        cls, future: FutureLike[T] = _UNSET, *, loop: asyncio.AbstractEventLoop | None = None
    ) -> Self:
        is_made = future is _UNSET  # by the library, for something that is under way
        if not is_made and isinstance(future, cls):
            return future
        self = super().__new__(cls)
        self._lock = Lock()
        self._value = _UNSET
        self._error = None
        self._callbacks = None
        self._waiters = None
        self._work = None
        self._epoch = epoch()
        if is_made:
            return self
        if isinstance(future, Awaitable):
            cancel = bridge(future, loop, self._settled, self._fulfil, self._fail)
            self._work = CallbackWork(None, cancel, None)
        else:
            self._value = future
        return self

    def done(self) -> bool:
        """Whether it has a result, failed, or was cancelled."""
        if not (settled := self._settled()):
            self.force()  # a program that polls does not run the work itself
        return settled

    def _settled(self) -> bool:
        return self._value is not _UNSET or self._error is not None

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return isinstance(self._error, asyncio.CancelledError)

    @uninterrupted
    def cancel(self) -> bool:
        """Ask to stop. Work that has begun stops at its next step; nothing is left half-written.

        Returns:
            False if it was done already.
        """
        work = self._work
        if not self._settle(_UNSET, asyncio.CancelledError()):
            return False
        if work is not None:
            work.cancel()
        return True

    @uninterrupted
    def force(self) -> None:
        """Begin the work now, on another thread, instead of within a millisecond."""
        work = self._work
        if work is not None:
            work.start()

    def result(self, timeout: float | None = None, deadline: float | None = None) -> T:
        """Block until done and return the value.

        Args:
            timeout: how long to wait, in seconds; forever by default.
            deadline: until when to wait, in seconds since the epoch.

        Raises:
            TimeoutError: not done in time; the operation goes on.
            asyncio.CancelledError: it was cancelled.
            RuntimeError: called on the library's own loop thread, which it would block for good.
        """
        self._wait(timeout, deadline)
        if self._error is not None:
            raise self._error
        return self._value

    def exception(
        self, timeout: float | None = None, deadline: float | None = None
    ) -> BaseException | None:
        """Block until done and return its error, or None. Arguments as for `result`."""
        self._wait(timeout, deadline)
        if isinstance(self._error, asyncio.CancelledError):
            raise self._error
        return self._error

    @uninterrupted
    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` when done, on the thread that settles it; at once if it is."""
        self.follow(callback)
        self.force()

    @uninterrupted
    def remove_done_callback(self, callback: Callable[[Future[T]], None]) -> int:
        """Take back every registration of `callback`; returns how many there were."""
        with self._lock:
            callbacks = self._callbacks or []
            kept = [each for each in callbacks if each != callback]
            removed = len(callbacks) - len(kept)
            self._callbacks = kept
        return removed

    def __await__(self) -> Generator[Any, None, T]:
        if not self._settled():
            self._check_epoch()
            waiter, wake = loop_waiter()

            def settled(_: Future[T]) -> None:
                wake()

            self.add_done_callback(settled)
            try:
                yield from waiter
            except asyncio.CancelledError:
                self.remove_done_callback(settled)
                self.cancel()
                raise
        if self._error is not None:
            raise self._error
        return self._value

    def __repr__(self) -> str:
        if not self._settled():
            state = "pending"
        elif self._error is None:
            state = f"done: {type(self._value).__name__}"
        else:
            state = "cancelled" if self.cancelled() else f"failed: {type(self._error).__name__}"
        return f"<Future {state}>"

    @property
    def epoch(self) -> int:
        """After how many forks it was begun. For the runtime."""
        return self._epoch

    def follow(self, callback: Callable[[Future[T]], None]) -> None:
        """`add_done_callback` without starting the work. For the runtime."""
        with self._lock:
            if not self._settled():
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        _CALLBACKS.note(1)
        self._call(callback)

    def claim(self) -> bool:
        """Run the work on this thread if it has not begun; whether it ran. For the runtime."""
        work = self._work
        return work is not None and work.run()

    def error(self) -> BaseException | None:
        """The error of a Future that is done, cancellation included. For the runtime."""
        return self._error

    def _wait(self, timeout: float | None, deadline: float | None) -> None:
        if self._settled():
            return
        work = self._work
        began = enter()
        try:
            self._check_epoch()
            # Only without a limit: work that runs on this very thread could not be left in time.
            if timeout is None and deadline is None:
                self.claim()
            if self._settled():
                return
            if get_ident() == loop_thread[0]:
                raise RuntimeError(
                    "Future.result() on the library's own loop thread would block it for good; "
                    "await the Future instead"
                )
            check_threads()
            self.force()
            waiter = self._register()
        finally:
            if began:
                self._leave(work)
        self._block(waiter, _limit(timeout, deadline), work)

    def _leave(self, work: Work | None) -> None:
        try:
            leave()
        except BaseException:
            self._interrupted(work)
            raise

    def _interrupted(self, work: Work | None) -> None:
        """A signal handler raised in the thread that waits here."""
        if work is not None and work.on_interrupt is OnInterrupt.CANCEL:
            self.cancel()

    def _check_epoch(self) -> None:
        if self._epoch != epoch():
            raise RuntimeError(
                "this Future was started before a fork; start the operation again in the child"
            )

    def _register(self) -> Lock:
        """A lock that is released when this Future is settled."""
        waiter = Lock()
        with self._lock:
            if not self._settled():
                waiter.acquire()
                if self._waiters is None:
                    self._waiters = []
                self._waiters.append(waiter)
        return waiter

    def _block(self, waiter: Lock, timeout: float, work: Work | None) -> None:
        """Wait for a lock of `_register`. Signal handlers may raise here: nothing is held."""
        settled = False
        try:
            settled = waiter.acquire(timeout=timeout)
        except BaseException:
            self._interrupted(work)
            raise
        finally:
            if not settled:
                self._unregister(waiter)
        if not self._settled():
            raise TimeoutError(f"not done after {timeout:g} s")

    @uninterrupted
    def _unregister(self, waiter: Lock) -> None:
        with self._lock:
            if self._waiters is not None and waiter in self._waiters:
                self._waiters.remove(waiter)

    def _fulfil(self, value: T) -> None:
        self._settle(value, None)

    def _fail(self, error: BaseException) -> None:
        self._settle(_UNSET, error)

    def _settle(self, value: T, error: BaseException | None) -> bool:
        """Set the outcome, once; later outcomes are dropped. Returns whether this one counted."""
        with self._lock:
            if self._settled():
                return False
            # What ran the work refers back to this future: without these links a result is
            # freed with the last reference to it, not when the cycle collector comes by.
            self._work = None
            self._value = value
            self._error = error
            callbacks, waiters = self._callbacks, self._waiters
            self._callbacks = self._waiters = None
        if waiters is not None:
            for waiter in waiters:
                waiter.release()
        if callbacks is not None:
            _CALLBACKS.note(len(callbacks))
            for callback in callbacks:
                self._call(callback)
        return True

    def _call(self, callback: Callable[[Future[T]], None]) -> None:
        try:
            callback(self)
        except Exception:
            _log.exception("exception in a Future's done callback")


@public
class Promise(Handle, Generic[T]):
    """The producer's end of a Future.

    Example:
        >>> promise, future = Promise.new()
        >>> promise.set_result(5)
        >>> future.result()
        5
    """

    __slots__ = ("_future",)
    __class_getitem__: ClassVar[classmethod[Any, Any, GenericAlias]] = classmethod(GenericAlias)

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    def __del__(self) -> None:
        if not self._future._settled():
            self._future._settle(
                _UNSET, AbortedError("the Promise was dropped before it was fulfilled")
            )

    @staticmethod
    def new() -> tuple[Promise[T], Future[T]]:
        """A fresh pair."""
        future: Future[T] = Future()
        return Promise(future), future

    def set_result(self, result: T) -> None:
        """Settle the Future with a value; without effect if it is done."""
        self._future._settle(result, None)  # two ends of one object

    def set_exception(self, exception: BaseException) -> None:
        """Settle the Future with an error; without effect if it is done."""
        self._future._settle(_UNSET, exception)


class Settleable(Generic[T]):
    """A Future as its producer sees it: settle it, or attach how to run and cancel its work."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: Future[T] = Future()

    def attach(
        self,
        run: Callable[[], bool] | None,
        cancel: Callable[[], None],
        start: Callable[[], None] | None,
    ) -> None:
        """Attach how to run work that has not begun here, to cancel it, and to start it elsewhere.

        See `Work`.
        """
        self.future._work = CallbackWork(run, cancel, start)

    def value(self, value: T) -> None:
        """Settle with a value."""
        self.future._settle(value, None)

    def error(self, error: BaseException) -> None:
        """Settle with an error."""
        self.future._settle(_UNSET, error)

    def follow(self: Settleable[None], future: Future[Any]) -> Future[None]:
        """Settle with `future`, if not before: with its error, but without its value.

        Returns:
            The Future of this, which runs and starts the work of `future`, but does not cancel it.
        """

        def settle(done: Future[Any]) -> None:
            error = done.error()
            if error is None:
                self.value(None)
            else:
                self.error(error)

        self.attach(future.claim, lambda: None, future.force)
        future.follow(settle)
        return self.future


class Copying:
    """The first moment of a write, while it is not known when it will be."""

    __slots__ = ("_settle",)

    def __init__(self) -> None:
        self._settle: Settleable[None] = Settleable()

    def done(self) -> None:
        """The source is not read any more."""
        self._settle.value(None)

    def until(self, commit: Future[None]) -> WriteFutures:
        """Both moments; the first one is over when the second one is, if not before."""
        return WriteFutures(self._settle.follow(commit), commit)


@public
class WriteFutures(Handle):
    """The outcome of `TensorStore.write`: two moments.

    The object itself stands for `commit`: to await it, or to take its `.result()`, is to wait until
    the data is stored.

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


def _limit(timeout: float | None, deadline: float | None) -> float:
    """Seconds to wait at most; -1 is forever."""
    limits = []
    if timeout is not None:
        limits.append(timeout)
    if deadline is not None:
        limits.append(deadline - time.time())
    return max(0.0, min(limits)) if limits and min(limits) <= TIMEOUT_MAX else -1
