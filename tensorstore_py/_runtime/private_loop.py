"""Run a coroutine of somebody else's to its end on this thread, whatever runs on the thread.

Libraries write coroutines where a plain function is wanted here, such as a codec's. Most never
wait and need no event loop at all; the others get one of their own, which ends with them. The
invariant: the caller's event loop, if there is one, is neither seen nor changed by the coroutine.
Our own coroutines are run by `start` and `run_inline`, never so.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["run_coroutine"]

T = TypeVar("T")


def run_coroutine(make: Callable[[], Coroutine[object, object, T]]) -> T:
    """The result of a coroutine.

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
