"""The geometry of a drawing of an array: how long its sides are, and where lines of chunks stand.

Pictures and text are drawn of it. Lengths are roots of the extents: flat and long boxes can be
distinguished and still be seen. The one invariant: however many chunks there are, so many lines
stand along a side at most; where there are more chunks, one line stands for several, and a note
says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

__all__ = ["Axis", "Lines", "lines", "notes", "shares"]


class Axis(NamedTuple):
    """One dimension.

    Attributes:
        low: the first position; None: there is none.
        high: one past the last; None: there is none.
        chunk: extent of a chunk; None: unknown.
        shard: extent of a shard; None: as a chunk.
        origin: a position where a chunk, and a shard, begins.
    """

    low: int | None
    high: int | None
    label: str = ""
    chunk: int | None = None
    shard: int | None = None
    origin: int = 0

    @property
    def extent(self) -> int | None:
        """How many positions; None: no end is known."""
        if self.low is None or self.high is None:
            return None
        return max(0, self.high - self.low)

    @property
    def named(self) -> str:
        """The label and the extent, for people.

        Example:
            >>> Axis(0, 1200, "x").named, Axis(None, None).named
            ('x 1,200', '∞')
        """
        extent = "∞" if self.extent is None else f"{self.extent:,}"
        label = self.label if len(self.label) <= 18 else f"{self.label[:17]}…"
        return f"{label} {extent}".lstrip()


class Lines(NamedTuple):
    """Lines along one axis, as positions from its beginning.

    Attributes:
        thin: where a chunk begins, but for the first.
        bold: where a shard begins, but for the first.
        chunk: where the first chunk ends; None: there are no chunks.
        shard: where the first shard ends; None: there are no shards.
        step: a line stands for so many chunks, or shards if there are any; 0: lines of chunks are
            left out, since they would not meet those of shards.
    """

    thin: Sequence[int] = ()
    bold: Sequence[int] = ()
    chunk: int | None = None
    shard: int | None = None
    step: int = 1


def shares(axes: Sequence[Axis], least: float) -> list[float]:
    """How long each side is, from `least` to 1, which the longest has.

    Example:
        >>> shares([Axis(0, 25), Axis(0, 100)], 0.1)
        [0.5, 1.0]
    """
    longest = max([1, *(each.extent or 0 for each in axes)])
    return [
        1.0 if each.extent is None else max(least, sqrt(each.extent / longest)) for each in axes
    ]


def lines(axis: Axis, most: int) -> Lines:
    """Where lines stand along an axis, `most` of them for chunks and as many for shards.

    Example:
        >>> lines(Axis(0, 100, chunk=10), 24).thin
        range(10, 100, 10)
        >>> lines(Axis(0, 100, chunk=10), 4)
        Lines(thin=range(30, 100, 30), bold=(), chunk=10, shard=None, step=3)
    """
    thin, step, chunk = _of(axis, axis.chunk, most)
    if axis.shard is None or axis.shard == axis.chunk:
        return Lines(thin, (), chunk, None, step)
    bold, bold_step, shard = _of(axis, axis.shard, most)
    if step > 1:
        thin, step = (), 0
    return Lines(thin, bold, chunk, shard, bold_step if bold_step > 1 else step)


def _of(axis: Axis, size: int | None, most: int) -> tuple[Sequence[int], int, int | None]:
    if not size or not axis.extent or axis.low is None:
        return (), 1, None
    first = (axis.origin - axis.low) % size or size
    count = max(0, -(-(axis.extent - first) // size))
    step = max(1, -(-count // max(1, most)))
    return range(first + (step - 1) * size, axis.extent, step * size), step, min(first, axis.extent)


def notes(axes: Sequence[Axis], drawn: Sequence[Lines]) -> str:
    """What a drawing of the last dimensions does not show, in words."""
    found = []
    if len(axes) > 3:
        found.append(f"the last 3 of {len(axes)} dimensions")
    steps = [each.step for each in drawn if each.step > 1]
    if steps:
        several = f"up to {max(steps):,}" if len(set(steps)) > 1 else f"{steps[0]:,}"
        kind = "shards" if any(each.bold for each in drawn) else "chunks"
        found.append(f"a line for {several} {kind}")
    elif any(each.step == 0 for each in drawn):
        found.append("shards without their chunks")
    if any(each.extent == 0 for each in axes):
        found.append("empty")
    return "; ".join(found)
