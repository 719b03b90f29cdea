"""Adoption: somebody else's awaitable is run on an event loop, and its outcome handed on.

The loop may be any; the outcome is handed over on it. Nothing here knows what a Future is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["adopt"]

T = TypeVar("T")


def adopt(
    awaitable: Awaitable[T],
    loop: asyncio.AbstractEventLoop | None,
    unwanted: Callable[[], bool],
    fulfil: Callable[[T], object],
    fail: Callable[[BaseException], object],
) -> Callable[[], None]:
    """Begin to wait for `awaitable`.

    Args:
        awaitable: what to wait for.
        loop: where; None: the loop that runs in this thread.
        unwanted: asked before it begins: whether nobody wants it any more.
        fulfil: called with what it gives.
        fail: called with what it raises instead.

    Returns:
        What cancels it, from any thread.

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
