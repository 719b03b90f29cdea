"""Functions of the user: called where they may block, awaited where they may wait.

A plain function runs on a worker; what it returns may be a Future or another awaitable, and then it
is waited for there. A coroutine function never blocks a worker: its coroutines run on the user's
event loop, or, if none was given, on the library's own.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import to_thread
from tensorstore_py._runtime.future import Future
from tensorstore_py._runtime.signals import lifted
from tensorstore_py.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["UserFunction"]


class UserFunction:
    """A function, and the event loop on which its coroutines run: None for the library's own.

    A copy in another process has none.

    Example:
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> double = UserFunction(lambda number: 2 * number, None)
        >>> double.inline, run_inline(double(True, 4))
        (True, 8)
    """

    __slots__ = ("_function", "_loop", "inline")

    def __init__(
        self, function: Callable[..., object], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        call = getattr(function, "__call__", None)  # noqa: B004 - an object may have a coroutine's
        self._function = function
        self._loop = loop
        self.inline = not (
            inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
        )

    async def __call__(self, inline: bool, *arguments: object) -> object:
        """What the function returns, or what that gives when it is awaited.

        Raises:
            FailedPreconditionError: the event loop to wait for is the one that is waiting.
        """
        if inline:
            with lifted():
                return self._waited(self._function(*arguments))
        if not self.inline:
            return await self._awaited(self._function(*arguments))
        return await self._awaited(await to_thread(lambda: self._function(*arguments)))

    def _waited(self, found: object) -> object:
        if isinstance(found, Future):
            return found.result()
        if not inspect.isawaitable(found):
            return found
        loop = self._loop
        if loop is None:
            return start(False, lambda: _of(found)).result()
        if asyncio._get_running_loop() is loop:
            if inspect.iscoroutine(found):
                found.close()
            raise FailedPreconditionError(
                "the function waits for the event loop of this very thread; "
                "await the Future instead of taking its result()"
            )
        return asyncio.run_coroutine_threadsafe(_of(found), loop).result()

    async def _awaited(self, found: object) -> object:
        if not inspect.isawaitable(found):
            return found
        if self._loop is None or isinstance(found, Future):
            return await found
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_of(found), self._loop))

    def __reduce__(self) -> tuple[object, ...]:
        return UserFunction, (self._function, None)


async def _of(awaitable: Awaitable[object]) -> object:
    return await awaitable
