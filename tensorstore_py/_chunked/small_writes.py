"""Small writes under way at one time: what several of them change of a chunk is stored once.

A write is announced when it is asked for, with what it changes of each chunk. Whoever comes to a
chunk first makes all changes of it that were announced by then, in their order. "Small" is what
changes a few chunks, and none of them as a whole: such a chunk is stored without a look at what is
there, which is nobody else's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.write import ChunkWriter, NewValues, ShardWriter
from tensorstore_py._runtime.fan_out import SHARE_BYTES, fan_out
from tensorstore_py._runtime.start import Announced

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    import numpy as np

    from tensorstore_py._chunked.merging import Waiting
    from tensorstore_py._chunked.plan import Plan
    from tensorstore_py._chunked.selection import Axis
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._chunked.write import Destination
    from tensorstore_py._interface.given import Given

    Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    Change = tuple[Cell, Waiting]

__all__ = ["SmallWrite", "small_write"]

#: What touches more chunks is planned when its turn comes.
_MOST_CHUNKS: Final = 256

#: Chunks that are changed together are so large at most.
_ROW_BYTES: Final = 2**19


class SmallWrite(Announced):
    """One write; called, it runs.

    Args:
        to: where to.
        plan: what it changes: of no chunk all there is.
        view: the working view of the new values, see `write_from`.
        given: what is known of its memory.
        current: tells whether `to` is still what is written to.
        again: the write as it is made if it is not.
    """

    __slots__ = ("_again", "_changes", "_current", "_to", "_writer")

    def __init__(
        self,
        to: Destination,
        plan: Plan,
        view: Array,
        given: Given,
        current: Callable[[], bool],
        again: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        kind = ChunkWriter if to.array.sharded is None else ShardWriter
        self._to = to
        self._writer = kind(to, plan, NewValues(view, given, plan.count))
        steps = list(plan.steps())
        waiting = self._writer.announce(steps)
        self._changes = [(step.cell, each) for step, each in zip(steps, waiting, strict=True)]
        self._current = current
        self._again = again

    @property
    def short(self) -> bool:
        to = self._to
        return to.source.inline and 2 * to.array.chain.chunk.size_bytes <= _ROW_BYTES

    async def __call__(self) -> None:
        if not self._current():
            self.withdraw()
            await self._again()
            return
        try:
            await self._make_all()
        except BaseException:
            self.withdraw()
            raise

    async def _make_all(self) -> None:
        to, changes = self._to, self._changes
        source, count = to.source, len(changes)
        size = to.array.chain.chunk.size_bytes
        if source.inline and (count * size < 2 * SHARE_BYTES or to.merged.crowded(count)):
            for change in changes:  # other threads have enough to do, or would not be worth it
                await self._make(change)
            return
        await fan_out(source.inline, changes, self._make, count=count, width=source.width)

    async def _make(self, change: Change) -> None:
        to = self._to
        size = to.array.chain.chunk.size_bytes
        limits, inline = to.array.limits, to.source.inline
        counted = limits.in_flight(size)
        if not limits.memory.matters(inline, counted):
            along = max(0, _ROW_BYTES // size - 1) if inline and to.pool is None else 0
            await self._writer.make(*change, along)
            return
        await limits.memory.take(inline, counted)
        try:
            await self._writer.make(*change, 0)
        finally:
            limits.memory.release(counted)

    def withdraw(self) -> None:
        self._to.merged.give_up([waiting for _, waiting in self._changes])


def small_write(
    to: Destination,
    axes: Sequence[Axis],
    view: Array,
    given: Given,
    current: Callable[[], bool],
    again: Callable[[], Coroutine[Any, Any, None]],
) -> SmallWrite | None:
    """Announce a write; None if it is not small. Arguments as for `write_from` and `SmallWrite`."""
    if to.array.shapes is not None or not view.size:
        return None
    plan = make_plan(axes, to.array.grid)
    if plan.count > (1 if to.source.store.rewritten else _MOST_CHUNKS):
        return None
    if all(any(piece.full for piece in pieces) for pieces in plan.pieces):
        return None  # so some chunk is changed as a whole
    return SmallWrite(to, plan, view, given, current, again)
