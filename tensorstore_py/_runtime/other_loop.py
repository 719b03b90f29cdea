"""Awaiting what has to run in an event loop of somebody else's.

Objects of other libraries keep sockets and locks that belong to one loop, on one thread. So their
coroutines run there, and whoever wants the result awaits it here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from tensorstore_py.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["in_other_loop"]

T = TypeVar("T")


async def in_other_loop(
    loop: asyncio.AbstractEventLoop, begin: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """The result of a coroutine that runs in another loop; to cancel this cancels that.

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
