"""Resizes of chunked arrays: the shape that is asked for, and the chunks that fall outside it.

Nothing is moved and nothing inside the new bounds is cleared. The metadata is stored by whoever
calls, and first: chunks are deleted when nobody looks for them any more.
"""

from __future__ import annotations

from operator import lt
from typing import TYPE_CHECKING, Final

from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import FailedPreconditionError, OutOfRangeError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorstore_py._chunked.array import Cell, StoredChunks
    from tensorstore_py._chunked.layout import ArrayLayout
    from tensorstore_py._interface.driver import ResizeRequest

__all__ = ["delete_outside", "new_shape"]

#: So many chunks are found before they are deleted: there may be more than memory has room for.
_TOGETHER: Final = 2**12


def new_shape(layout: ArrayLayout, request: ResizeRequest) -> tuple[int, ...]:
    """The chunked dimensions' new extents.

    Raises:
        UnsupportedError: a bound that the format cannot change.
        OutOfRangeError: an extent would be negative.
        FailedPreconditionError: it would grow or shrink against the request's flags.
    """
    domain = layout.domain
    shape = list(domain.shape)
    for dim, low in enumerate(request.inclusive_min):
        if low is not None and low != domain.inclusive_min[dim]:
            raise UnsupportedError(
                f"cannot change the lower bound of dimension {dim}: it is always 0"
            )
    for dim, high in enumerate(request.exclusive_max):
        if high is None or high == shape[dim]:
            continue
        if not domain.implicit_upper_bounds[dim]:
            raise UnsupportedError(
                f"cannot resize dimension {dim}: its extent {shape[dim]} is part of the data type"
            )
        if high < 0:
            raise OutOfRangeError(f"cannot resize dimension {dim} to a negative extent ({high})")
        if request.expand_only and high < shape[dim]:
            raise FailedPreconditionError(
                f"dimension {dim} would shrink from {shape[dim]} to {high}, "
                "but expand_only=True was given"
            )
        if request.shrink_only and high > shape[dim]:
            raise FailedPreconditionError(
                f"dimension {dim} would grow from {shape[dim]} to {high}, "
                "but shrink_only=True was given"
            )
        shape[dim] = high
    return tuple(shape[: len(layout.grid)])


async def delete_outside(
    source: StoredChunks, before: ArrayLayout, now: ArrayLayout, forget: Callable[[Cell], None]
) -> None:
    """Delete the chunks that lie wholly outside the new bounds; other keys are left alone.

    Args:
        source: where chunks are stored.
        before: the array as it was.
        now: the array as it is.
        forget: called for each of these chunks when it is deleted, or may be.
    """
    counts = tuple(axis.count for axis in now.grid)
    old = tuple(axis.count for axis in before.grid)
    if all(present >= former for present, former in zip(counts, old, strict=True)):
        return
    store, prefix = source.store, source.prefix

    async def delete(chunk: tuple[str, Cell]) -> None:
        key, cell = chunk
        try:
            await store.write(key, None)
        finally:
            forget(cell)

    async def delete_all(doomed: Sequence[tuple[str, Cell]]) -> None:
        await fan_out(source.inline, doomed, delete, count=len(doomed), width=store.width)

    doomed: list[tuple[str, Cell]] = []
    async for entry in store.list(KeyRange.prefix(prefix)):
        cell = now.keys.decode(entry.key[len(prefix) :])
        if cell is None or all(map(lt, cell, counts)):
            continue
        doomed.append((entry.key, cell))
        if len(doomed) == _TOGETHER:
            await delete_all(doomed)
            doomed = []
    await delete_all(doomed)
