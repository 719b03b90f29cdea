"""In which steps the levels of a pyramid are made, and in which cells: arithmetic on extents.

A step reads its base, which is the source or a level that was made before, and writes the levels
that follow. Its regions are boxes of the base. Within a region levels are made cell by cell, depth
first: a cell of a level is made of whole cells of the level above it. So a region takes the memory
of one cell of each level, however large it is.

The invariants: a cell is made of whole write chunks of its level and lies in one region, so no two
regions touch the same chunk of any level. A cell of the base is made of whole chunks of what is
read, as far as memory allows, so each of these is decoded once.
"""

from __future__ import annotations

from math import lcm, prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._index import IndexDomain, identity

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LevelForm", "PyramidStep", "pyramid_steps", "smaller_shape"]

#: A region is larger only if one level more would not be made else.
_MOST_BYTES: Final = 2**26
#: Smaller regions are not worth a task.
_LEAST_BYTES: Final = 2**22
#: So many regions are wanted of a step, so that there is something to do for everybody.
_REGIONS: Final = 64

Extents = tuple[int, ...]


class LevelForm(NamedTuple):
    """One level of a pyramid.

    Attributes:
        shape: its extents.
        chunk: extents of what is stored at a time.
        factors: how many positions of the level above make one of it; 1 for the first level.
    """

    shape: Extents
    chunk: Extents
    factors: Extents


class PyramidStep(NamedTuple):
    """Levels that are made together.

    Attributes:
        base: the number of the level that is read; -1: the source.
        first: the number of the first level that is made.
        cells: extents of a cell of the base, and of each level that is made.
        shape: extents of the base.
        region: extents of a region, in positions of the base.
    """

    base: int
    first: int
    cells: tuple[Extents, ...]
    shape: Extents
    region: Extents

    @property
    def last(self) -> int:
        """The number of the last level that is made."""
        return self.first + len(self.cells) - 2

    @property
    def blocks(self) -> Blocks:
        """The regions."""
        edges = [
            range(size, extent, size) for size, extent in zip(self.region, self.shape, strict=True)
        ]
        whole = identity(IndexDomain(shape=self.shape))
        return Blocks(whole, edges, edges, 1, 1)


def smaller_shape(shape: Sequence[int], factors: Sequence[int]) -> Extents:
    """Extents of the next level: what is left over at the end makes one more position.

    Example:
        >>> smaller_shape([30, 1001, 1], [2, 2, 1])
        (15, 501, 1)
    """
    return tuple(-(-extent // factor) for extent, factor in zip(shape, factors, strict=True))


def pyramid_steps(
    levels: Sequence[LevelForm], leaf: Sequence[int], item_bytes: int
) -> list[PyramidStep]:
    """The steps, in the order in which they depend on each other.

    Args:
        levels: all of them, the first of the source's shape.
        leaf: extents of what is read of the source at a time: whole chunks of the first level, and
            of the source where memory allows that.
        item_bytes: size of an element.

    Example:
        >>> sizes = [(64, 1024, 1024), (32, 512, 512), (16, 256, 256)]
        >>> forms = [LevelForm(size, (32, 64, 64), (2, 2, 2)) for size in sizes]
        >>> steps = pyramid_steps(forms, (32, 64, 64), 2)
        >>> [(step.base, step.first, step.last, step.region) for step in steps]
        [(-1, 0, 1, (64, 128, 128)), (1, 2, 2, (32, 128, 128))]
    """
    ones = (1,) * len(leaf)
    forms = [levels[0]._replace(factors=ones), *levels[1:]]
    steps = [_step(forms, -1, _evened(leaf, forms, 0), item_bytes)]
    while (base := steps[-1].last) < len(forms) - 1:
        steps.append(_step(forms, base, _evened(forms[base].chunk, forms, base), item_bytes))
    return steps


def _step(forms: list[LevelForm], base: int, cell: Extents, item_bytes: int) -> PyramidStep:
    """The step that reads a level and makes as many of the next ones as regions can hold."""
    shape = forms[max(base, 0)].shape
    total = item_bytes * prod(shape)
    most = max(_LEAST_BYTES, min(_MOST_BYTES, total // _REGIONS))
    first = base + 1
    cells, regions = [cell], [cell]
    scale = (1,) * len(shape)
    for number in range(first, len(forms)):
        above = shape if number == first else forms[number - 1].shape
        cells.append(_cell(forms, number, cells[-1], above))
        scale = tuple(a * b for a, b in zip(scale, forms[number].factors, strict=True))
        regions.append(
            tuple(
                extent if size >= whole else min(extent, size * factor)
                for size, whole, factor, extent in zip(
                    cells[-1], forms[number].shape, scale, shape, strict=True
                )
            )
        )
        made = number - max(base, 0)
        if made > 1 and item_bytes * prod(regions[-1]) > most:
            cells.pop()
            regions.pop()
            break
    return PyramidStep(base, first, tuple(cells), shape, regions[-1])


def _cell(forms: list[LevelForm], number: int, below: Extents, above: Extents) -> Extents:
    """What of a level is made at a time, of whole cells of the level above it."""
    form = forms[number]
    parts = [
        extent if size >= whole else lcm(chunk, size // factor)
        for chunk, size, factor, whole, extent in zip(
            form.chunk, below, form.factors, above, form.shape, strict=True
        )
    ]
    return _evened(parts, forms, number)


def _evened(sizes: Sequence[int], forms: list[LevelForm], number: int) -> Extents:
    """Extents that the next level's factors divide, or all there is."""
    following = forms[number + 1].factors if number + 1 < len(forms) else (1,) * len(sizes)
    return tuple(
        min(lcm(size, factor), extent)
        for size, factor, extent in zip(sizes, following, forms[number].shape, strict=True)
    )
