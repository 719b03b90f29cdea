"""`Members`: the nodes below a group, to be iterated over, with `for` or `async for`, or awaited.

Nodes come in batches, each begun when the one before it was taken, as one operation of the group's
temperament. Nothing is asked before the first is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
    from typing import Any

    from tensorstore_py._runtime.future import Future

__all__ = ["Members"]

N = TypeVar("N")


class Members(Generic[N]):
    """Pairs of a path and the open node that is there.

    Args:
        begin: begins a step as an operation.
        steps: begins a walk: makes a function whose coroutines give a batch each, None at the end.

    Example:
        >>> import tensorstore_py as ts
        >>> group = ts.Group.open("memory://", create=True).result()
        >>> _ = group.create_array("a/b", dtype="int16", shape=[3]).result()
        >>> [(path, type(node).__name__) for path, node in group.members(max_depth=None)]
        [('a', 'Group'), ('a/b', 'TensorStore')]
        >>> dict(group.members())
        {'a': Group('memory://a/', zarr_format=3)}
    """

    __slots__ = ("_begin", "_steps")

    def __init__(
        self,
        begin: Callable[[Callable[[], Coroutine[Any, Any, Any]]], Future[Any]],
        steps: Callable[[], Callable[[], Coroutine[Any, Any, list[tuple[str, N]] | None]]],
    ) -> None:
        self._begin = begin
        self._steps = steps

    def __iter__(self) -> Iterator[tuple[str, N]]:
        step = self._steps()
        while (batch := self._begin(step).result()) is not None:
            yield from batch

    async def __aiter__(self) -> AsyncIterator[tuple[str, N]]:
        step = self._steps()
        while (batch := await self._begin(step)) is not None:
            for pair in batch:
                yield pair

    def read(self) -> Future[list[tuple[str, N]]]:
        """All of them, as a list."""
        return self._begin(self.collect)

    async def collect(self) -> list[tuple[str, N]]:
        """All of them, as a part of another operation."""
        step = self._steps()
        found: list[tuple[str, N]] = []
        while (batch := await step()) is not None:
            found += batch
        return found

    def __await__(self) -> Generator[object, None, list[tuple[str, N]]]:
        return self.read().__await__()

    def result(self) -> list[tuple[str, N]]:
        """`read().result()`."""
        return self.read().result()
