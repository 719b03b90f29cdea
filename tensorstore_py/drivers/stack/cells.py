"""Which layer is on top, anywhere in a box: plain arithmetic on bounds.

Every dimension is cut wherever a layer begins or ends, so that each cell of the grid lies wholly
inside or outside of any layer. Only what is asked for is cut, so layers may be without bounds, and
many layers cost little where few are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py.plugin import CutAxis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["NOBODY", "Box", "Cells", "cells"]

#: For each dimension the least, and one beyond the greatest coordinate.
Box = tuple[tuple[int, int], ...]

#: The owner of a cell that no layer has.
NOBODY = -1


class Cells(NamedTuple):
    """A box, cut.

    Attributes:
        grid: the cuts; coordinates begin at the box's least ones.
        owners: for each cell the number of the layer on top, or `NOBODY`.
    """

    grid: tuple[CutAxis, ...]
    owners: NDArray[np.intp]


def cells(box: Box, layers: Sequence[Box]) -> Cells:
    """Cut a box by the layers' bounds; later layers lie over earlier ones.

    Args:
        box: not empty.
        layers: of the box's rank.

    Example:
        >>> cells(((0, 7),), [((0, 4),), ((3, 7),)]).owners
        array([0, 1, 1])
        >>> cells(((2, 9),), [((0, 4),), ((3, 7),)]).owners
        array([ 0,  1,  1, -1])
    """
    met = [
        (number, inside)
        for number, layer in enumerate(layers)
        if (inside := _inside(box, layer)) is not None
    ]
    cuts = [
        np.unique([0, high - low, *(edge for _, inside in met for edge in inside[dim])])
        for dim, (low, high) in enumerate(box)
    ]
    owners = np.full([len(each) - 1 for each in cuts], NOBODY, np.intp)
    for number, inside in met:
        region = tuple(
            slice(*np.searchsorted(cut, bounds)) for cut, bounds in zip(cuts, inside, strict=True)
        )
        owners[region] = number
    return Cells(tuple(CutAxis(each) for each in cuts), owners)


def _inside(box: Box, layer: Box) -> Box | None:
    """What of a layer is in the box, from the box's least coordinates; None if nothing is."""
    found = []
    for (low, high), (begin, end) in zip(box, layer, strict=True):
        first, last = max(low, begin), min(high, end)
        if first >= last:
            return None
        found.append((first - low, last - low))
    return tuple(found)
