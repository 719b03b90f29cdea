"""Drive a coroutine that never suspends, with no event loop.

An `async def` whose awaits never really wait runs to its end on the first `send(None)`.
That is what lets one body serve local stores (which may block a worker thread) and remote
ones (which must not). The one rule: inside an inline store nothing suspends; if something
does, that is a programming error and is named at once, never a hang. The exception is `give_way`:
a body that suspends there can go on in another thread, if whoever runs it has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tensorstore_py._runtime.signals import GIVE_WAY

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

__all__ = ["GaveWay", "InlineSuspendError", "run_inline"]


class InlineSuspendError(RuntimeError):
    """Code that was declared inline awaited something that really waits."""


class GaveWay(Exception):  # noqa: N818 - not an error
    """The rest of a body is to go on in another thread, where it is run again."""


def run_inline(coro: Coroutine[Any, Any, T], *, movable: bool = False) -> T:
    """Run `coro` to completion on this thread.

    Args:
        coro: a coroutine whose awaits all complete at once.
        movable: whether the rest of it can go on in another thread.

    Returns:
        What the coroutine returns.

    Raises:
        InlineSuspendError: it suspended; the store or driver must be declared `inline = False`.
        GaveWay: it is movable, and a signal waits for this thread.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run_inline(answer())
        42
    """
    try:
        while (waited_on := coro.send(None)) is GIVE_WAY:
            if movable:
                break
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    if waited_on is GIVE_WAY:
        raise GaveWay
    coro.close()
    name = getattr(coro, "__qualname__", repr(coro))
    raise InlineSuspendError(
        f"{name} suspended (on {waited_on!r}) in an inline context; "
        f"declare its store or driver `inline = False` to run it on the event loop"
    )
