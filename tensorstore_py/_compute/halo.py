"""`Halo`: how far a block reaches beyond its bounds along one dimension, and what is there.

Positions are counted from the beginning of the dimension. What is wanted beyond its ends is either
not there, or made of what is inside, or a constant; so all that is read lies inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.intp]

__all__ = ["BOUNDARIES", "Boundary", "Halo", "Window"]

BOUNDARIES = ("none", "reflect", "nearest", "periodic")

#: One of `BOUNDARIES`, or a constant.
Boundary = str | float


class Window(NamedTuple):
    """What a block is made of along one dimension.

    Attributes:
        read: what is read: a range, or positions in order.
        take: for each position of the window, which of those that are read it is; None: they are
            the same.
        constant: how many positions before and after are a constant.
        margins: how many positions before and after do not belong to the block itself.
    """

    read: range | Positions
    take: Positions | None
    constant: tuple[int, int]
    margins: tuple[int, int]

    @property
    def extent(self) -> int:
        """How many positions it has."""
        return sum(self.constant) + len(self.read if self.take is None else self.take)


class Halo(NamedTuple):
    """See the head of this file.

    Attributes:
        before: how many elements.
        after: how many elements.
        boundary: what is beyond the ends: `"none"`: nothing, so the block is smaller there;
            `"reflect"`: the elements in reverse order, the outermost one again at first;
            `"nearest"`: the outermost element; `"periodic"`: those of the other end; or a constant.

    Example:
        >>> Halo(1, 2, "none").window(0, 4, 5)
        Window(read=range(0, 5), take=None, constant=(0, 0), margins=(0, 1))
        >>> Halo(2, 2, "reflect").window(0, 2, 5).take
        array([1, 0, 0, 1, 2, 3])
        >>> Halo(1, 1, 7).window(0, 5, 5).constant
        (1, 1)
    """

    before: int = 0
    after: int = 0
    boundary: Boundary = "none"

    def window(self, low: int, high: int, extent: int) -> Window:
        """What a block with some bounds is made of.

        Args:
            low: its first position.
            high: the one after its last.
            extent: of the dimension.
        """
        first, last = low - self.before, high + self.after
        inside = range(max(0, first), min(extent, last))
        if first >= 0 and last <= extent:
            return Window(inside, None, (0, 0), (self.before, self.after))
        if self.boundary == "none":
            return Window(inside, None, (0, 0), (low - inside.start, inside.stop - high))
        margins = self.before, self.after
        if not isinstance(self.boundary, str):
            return Window(inside, None, (inside.start - first, last - inside.stop), margins)
        wanted = _inside(np.arange(first, last), extent, self.boundary)
        read, take = np.unique(wanted, return_inverse=True)
        start, stop = int(read[0]), int(read[-1]) + 1
        together = stop - start == len(read)
        return Window(range(start, stop) if together else read, take.reshape(-1), (0, 0), margins)

    def largest(self, longest: int, extent: int) -> int:
        """How many positions the window of a block of some extent has at most."""
        reach = longest + self.before + self.after
        return min(reach, extent) if self.boundary == "none" else reach


def _inside(wanted: Positions, extent: int, boundary: str) -> Positions:
    """The position whose element stands at each that is wanted."""
    if boundary == "nearest":
        return np.clip(wanted, 0, extent - 1)
    if boundary == "periodic":
        return wanted % extent
    folded = wanted % (2 * extent)
    return np.minimum(folded, 2 * extent - 1 - folded)


def extended(data: NDArray[Any], dim: int, window: Window, constant: Boundary) -> NDArray[Any]:
    """What was read along a dimension, with what is beyond its ends."""
    if window.take is not None:
        data = data.take(window.take, axis=dim)
    if any(window.constant):
        widths = [window.constant if each == dim else (0, 0) for each in range(data.ndim)]
        data = np.pad(data, widths, constant_values=constant)
    return data
