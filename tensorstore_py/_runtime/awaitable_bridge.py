"""Awaitable bridge: coroutines and event loops of other code, from here and back.

- `bridge` runs an awaitable of the user on an event loop, and hands its outcome on;
- `in_other_loop` awaits what has to run in the loop that an object of another library belongs to;
- `run_coroutine` runs a coroutine of another library to its end where a plain function is wanted;
- `loop_waiter` is how a task waits for a thread.

The library's own coroutines are run by `execution`. Nothing here knows what a `Future` is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tensorstore_py.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["bridge", "in_other_loop", "loop_waiter", "run_coroutine"]

T = TypeVar("T")


def loop_waiter() -> tuple[asyncio.Future[None], Callable[[], None]]:
    """A future of the running loop, and what completes it, from any thread."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    return waiter, partial(_wake, loop, waiter)


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nothing waits there any more
        loop.call_soon_threadsafe(_complete, waiter)


def _complete(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():  # the task that waited may have been cancelled
        waiter.set_result(None)


def bridge(
    awaitable: Awaitable[T],
    loop: asyncio.AbstractEventLoop | None,
    unwanted: Callable[[], bool],
    fulfil: Callable[[T], object],
    fail: Callable[[BaseException], object],
) -> Callable[[], None]:
    """Begin to await `awaitable` in a task of its own; returns what cancels it, from any thread.

    `loop` is the one that runs in this thread, if it is None. `unwanted` is asked before the task
    begins. `fulfil` or `fail` is called on that loop in the end.

    Raises:
        ValueError: no loop is given and none is running.
    """
    target = _running_loop(awaitable) if loop is None else loop

    async def follow() -> None:
        try:
            value = await awaitable
        except BaseException as error:  # the error is the outcome
            fail(error)
        else:
            fulfil(value)

    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        if not unwanted():
            tasks.append(target.create_task(follow()))
        elif isinstance(awaitable, Coroutine):
            awaitable.close()

    def stop() -> None:
        for task in tasks:
            task.cancel()

    def cancel() -> None:
        target.call_soon_threadsafe(stop)

    target.call_soon_threadsafe(begin)
    return cancel


def _running_loop(awaitable: Awaitable[T]) -> asyncio.AbstractEventLoop:
    """The loop that runs in this thread; `awaitable` is disposed of if there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        if isinstance(awaitable, Coroutine):
            awaitable.close()
        raise ValueError(
            "no event loop specified, and none is running in this thread: "
            "pass loop=, or call this from a coroutine"
        ) from None


async def in_other_loop(
    loop: asyncio.AbstractEventLoop, begin: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """The result of a coroutine that runs in another loop; to cancel this cancels that.

    Objects of other libraries keep sockets and locks that belong to one loop, on one thread.

    Args:
        loop: where it runs.
        begin: makes the coroutine.

    Raises:
        UnavailableError: that loop was closed.
    """
    if loop is asyncio.get_running_loop():
        return await begin()
    if loop.is_closed():
        raise UnavailableError("the event loop that the object belongs to was closed")
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(begin(), loop))


def run_coroutine(make: Callable[[], Coroutine[object, object, T]]) -> T:
    """The result of a coroutine that is run on this thread, whatever runs on the thread.

    Most coroutines where a plain function is wanted, such as a codec's, never wait and need no
    event loop; the others get one of their own, which ends with them. The event loop of the caller,
    if there is one, is neither seen nor changed by the coroutine.

    Args:
        make: begins it; is called a second time if it turns out to need an event loop.

    Example:
        >>> async def three():
        ...     return 3
        >>> async def four():
        ...     await asyncio.sleep(0)
        ...     return 4
        >>> run_coroutine(three), run_coroutine(four)
        (3, 4)
    """
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        coroutine = make()
        try:
            coroutine.send(None)
        except StopIteration as done:
            return cast("T", done.value)
        except RuntimeError:
            pass  # it asked for the running loop
        coroutine.close()
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(make())
    finally:
        asyncio._set_running_loop(outer)
