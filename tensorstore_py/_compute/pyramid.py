"""`PyramidPart`: one step of a pyramid, as an operation on its regions; and the steps there are.

A step reads its base, which is the source or a level that was made before, and writes the levels
that follow. Its regions are boxes of the base. Within a region levels are made cell by cell, depth
first: each cell is read or made once, stored if its level is to be made, and becomes a part of a
cell of the next level. So a region takes the memory of one cell of each level, however large it is.
Every level is what `ts.downsample` gives for the level above it, element for element.

The invariants: a cell is made of whole write chunks of its level and lies in one region, so no two
regions touch the same chunk of any level. A cell of the base is made of whole chunks of what is
read, as far as memory allows, so each of these is decoded once.
"""

from __future__ import annotations

from itertools import product
from math import lcm, prod
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import selected
from tensorstore_py._index import IndexDomain, d, identity, propagate_bounds
from tensorstore_py._plan.arrays import open_json
from tensorstore_py._plan.steps import register
from tensorstore_py._runtime.fan_out import fan_out, offload, within
from tensorstore_py.drivers.downsample.blocks import downsampled
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.steps import Operation
    from tensorstore_py._runtime.limiters import MemoryBudget
    from tensorstore_py._spec.context import Context

    Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

__all__ = [
    "LevelForm",
    "MadeLevel",
    "PyramidPart",
    "PyramidStep",
    "pyramid_steps",
    "seen_from_0",
    "smaller_shape",
]


#: A region is larger only if one level more would not be made else.
_MOST_BYTES: Final = 2**26
#: Smaller regions are not worth a task.
_LEAST_BYTES: Final = 2**22
#: So many regions are wanted of a step, so that every worker has something to do.
_REGIONS: Final = 64

Extents = tuple[int, ...]


class LevelForm(NamedTuple):
    """One level of a pyramid.

    Attributes:
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


Box = tuple[tuple[int, int], ...]

#: So many cells of the base are on their way in one region, where waiting is what takes the time.
_AT_A_TIME: Final = 8
#: With so many regions all threads are busy, each with a cell at a time.
_ENOUGH: Final = 4


class MadeLevel(NamedTuple):
    """A level that is made: its array, which begins at position 0.

    Attributes:
        factors: how many positions of the level above make one of it.
        cell: extents of what is made at a time.
    """

    driver: Driver
    factors: Extents
    cell: Extents

    @property
    def shape(self) -> Extents:
        """Its extents."""
        return self.driver.domain.shape


class PyramidPart(NamedTuple):
    """One step."""

    base: Driver
    seen: IndexTransform
    leaf: Extents
    levels: tuple[MadeLevel, ...]
    method: str
    blocks: Blocks

    @staticmethod
    def of(
        cells: Sequence[Extents],
        base: Driver,
        seen: IndexTransform,
        made: Sequence[tuple[Driver, Extents]],
        method: str,
        blocks: Blocks,
    ) -> PyramidPart:
        """A step over open arrays; `cells` are extents of what is made at a time, the base's first.

        `seen` leads from positions that begin at 0 to the base's; `made` has factors, too.
        """
        levels = [
            MadeLevel(driver, factors, cell)
            for (driver, factors), cell in zip(made, cells[1:], strict=True)
        ]
        return PyramidPart(base, seen, cells[0], tuple(levels), method, blocks)

    @property
    def inline(self) -> bool:
        """The execution mode of `run`."""
        return self.base.inline and all(level.driver.inline for level in self.levels)

    @property
    def memory(self) -> MemoryBudget | None:
        """The budget that regions count in."""
        return self.levels[0].driver.memory or self.base.memory

    @property
    def progress_bytes(self) -> int:
        """What an element of the base counts."""
        return self.base.data_type.array_dtype.itemsize

    @property
    def item_bytes(self) -> int:
        """How much memory an element of a region takes meanwhile; at least a byte."""
        held = self._width * prod(self.leaf) + sum(prod(each.cell) for each in self.levels[1:])
        return max(1, -(-held * self.progress_bytes // max(1, self.blocks.largest)))

    @property
    def _width(self) -> int:
        if not self.inline:
            return _AT_A_TIME
        return 1 if self.blocks.count >= _ENOUGH else 2

    async def run(self, block: Block) -> None:
        """Read one region, and store what is made of it of every level."""
        box = block.bounds
        top = len(self.levels) - 1
        for level in self.levels:
            box = _smaller(box, level.factors)
        for cell in _cells(box, self.levels[top].cell):
            await self._made(top, cell)

    async def _made(self, number: int, box: Box) -> Array:
        """Make a cell of a level and store it."""
        level = self.levels[number]
        above = self.levels[number - 1].shape if number else self.seen.input_shape
        covered = tuple(
            (low * factor, min(high * factor, extent))
            for (low, high), factor, extent in zip(box, level.factors, above, strict=True)
        )
        if max(level.factors) == 1:
            data = await self._below(number, covered)
        else:
            data = await self._gathered(number, box, covered)
        place = identity(level.driver.domain.mark_bounds_implicit[False])[selected(box)]
        data = data.astype(level.driver.data_type.record.array_dtype, copy=False)
        await within(self.inline, level.driver.inline, lambda: level.driver.write(place, data))
        return data

    async def _gathered(self, number: int, box: Box, covered: Box) -> Array:
        """The elements of a cell of a level, made of the level above."""
        level = self.levels[number]
        size = self.leaf if number == 0 else self.levels[number - 1].cell
        dtype = self.levels[0].driver.data_type.array_dtype
        out = np.empty([high - low for low, high in box], dtype)

        async def gather(part: Box) -> None:
            data = await self._below(number, part)
            made = _smaller(part, level.factors)
            place = tuple(
                slice(low - start, high - start)
                for (low, high), (start, _) in zip(made, box, strict=True)
            )
            out[place] = await offload(
                self.inline, lambda: _reduced(data, part, made, level.factors, self.method)
            )

        parts = list(_cells(covered, size))
        lowest = number == 0 or (number == 1 and max(self.levels[0].factors) == 1)
        width = self._width if lowest else 1
        await fan_out(self.inline, parts, gather, count=len(parts), width=width)
        return out

    async def _below(self, number: int, box: Box) -> Array:
        """The elements that a cell of a level is made of."""
        if number:
            return await self._made(number - 1, box)
        part = self.seen[selected(box)]
        return await within(self.inline, self.base.inline, lambda: self.base.read(part, "C"))


def _reduced(data: Array, part: Box, made: Box, factors: Extents, method: str) -> Array:
    if method == "stride":
        return data[tuple(slice(None, None, factor) for factor in factors)]
    return downsampled(data, part, made, factors, method)


def _smaller(box: Box, factors: Extents) -> Box:
    return tuple(
        (low // factor, -(-high // factor))
        for (low, high), factor in zip(box, factors, strict=True)
    )


def _cells(box: Box, size: Extents) -> Iterator[Box]:
    """The cells of a box, which begins where one does."""
    cuts = [
        [(at, min(at + step, high)) for at in range(low, high, step)]
        for (low, high), step in zip(box, size, strict=True)
    ]
    yield from product(*cuts)


def seen_from_0(store: TensorStore) -> IndexTransform:
    """An array's driver from positions that begin at 0."""
    domain = store._driver.domain.mark_bounds_implicit[False]
    seen = propagate_bounds(domain, store._transform)
    return seen[d[:].translate_to[0]] if seen.input_rank else seen


async def _open(arguments: JsonObject, context: Context, blocks: Blocks) -> Operation:
    match arguments:
        case {"base": base, "levels": list(levels), "factors": list(factors),
              "cells": list(cells), "method": str(method)}:  # fmt: skip
            read = await open_json(base, context, "what a pyramid is made of")
            stores = [await open_json(each, context, "a level of a pyramid") for each in levels]
            made = [
                (store._driver, tuple(each)) for store, each in zip(stores, factors, strict=True)
            ]
            sizes = [tuple(cell) for cell in cells]
            return PyramidPart.of(sizes, read._driver, seen_from_0(read), made, method, blocks)
    raise SpecError("expected base, levels, factors, cells and method", ("arguments",))


register("pyramid", _open)
