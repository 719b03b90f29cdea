"""`MapBlocks`: a function called on aligned blocks of some sources, as an operation.

A block of the target is whole write chunks, so tasks never meet. Of each source the same block is
read, with its halo, and all of it along dimensions that the target lacks. What is to be written is
checked before it is.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorstore_py._api.blocks import Blocks, chunk_edges
from tensorstore_py._api.blockwise import limits, read_surely, selected
from tensorstore_py._compute.map_blocks_options import extended
from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap, propagate_bounds
from tensorstore_py._index import OutputIndexMethod as Method
from tensorstore_py._runtime.fan_out import offload, within
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._compute.alignment import Alignment
    from tensorstore_py._compute.block_function import BlockFunction
    from tensorstore_py._compute.map_blocks_options import Halo, Window
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._runtime.limiters import MemoryBudget

    Array = NDArray[Any]

__all__ = ["Input", "MapBlocks", "made_of"]

#: So often blocks are halved until they fit into memory, if they ever do.
_TRIES: Final = 16


class Input(NamedTuple):
    """A source.

    Attributes:
        view: from positions that begin at 0 to the array's.
        dims: for each dimension, which of the space it is.
        once: those of the space along which it is broadcast.
    """

    driver: Driver
    view: IndexTransform
    dims: tuple[int, ...]
    once: tuple[int, ...]

    @staticmethod
    def of(store: TensorStore, dims: tuple[int, ...], once: tuple[int, ...]) -> Input:
        """An open array as a source."""
        driver = store._driver
        seen = propagate_bounds(driver.domain.mark_bounds_implicit[False], store._transform)
        origin = enumerate(seen.input_origin)
        moved = IndexTransform(
            input_shape=seen.input_shape,
            output=[OutputIndexMap(input_dimension=dim, offset=low) for dim, low in origin],
        )
        return Input(driver, seen[moved], dims, once)


class MapBlocks(NamedTuple):
    """See the head of this file.

    Attributes:
        alignment: which dimensions are the same.
        halo: for each dimension of the space.
        to: from the positions of the call to the target's.
        blocks: what to make.
        item_bytes: how much memory an element takes meanwhile, without what the function takes.
    """

    function: BlockFunction
    alignment: Alignment
    halo: tuple[Halo, ...]
    inputs: tuple[Input, ...]
    target: Driver
    to: IndexTransform
    blocks: Blocks
    item_bytes: int

    @staticmethod
    def of(
        function: BlockFunction,
        alignment: Alignment,
        halo: tuple[Halo, ...],
        sources: Sequence[TensorStore],
        target: TensorStore,
        blocks: Blocks | None = None,
    ) -> MapBlocks:
        """The operation over open arrays.

        Raises SpecError: the target is a view in which one element has several places, or any.
        """
        driver = target._driver
        to = propagate_bounds(driver.domain.mark_bounds_implicit[False], target._transform)
        _check_target(to)
        all_of = zip(sources, alignment.sources, alignment.once, strict=True)
        inputs = tuple(Input.of(*each) for each in all_of)
        found = MapBlocks(function, alignment, halo, inputs, driver, to, Blocks.from_json([]), 1)
        return found._cut(blocks)

    @property
    def inline(self) -> bool:
        """The execution mode of `run`."""
        drivers = (self.target, *(each.driver for each in self.inputs))
        return self.function.inline and all(driver.inline for driver in drivers)

    @property
    def memory(self) -> MemoryBudget | None:
        """The budget that blocks count in."""
        drivers = (self.target, *(each.driver for each in self.inputs))
        return next((driver.memory for driver in drivers if driver.memory is not None), None)

    @property
    def progress_bytes(self) -> int:
        """What an element counts."""
        return self.target.data_type.array_dtype.itemsize

    def _cut(self, given: Blocks | None) -> MapBlocks:
        to, dims = self.to, self.alignment.target_dims
        mine = chunk_edges(self.target, to, self.target.schema.chunk_layout.write_chunk.shape)
        first = self.inputs[0]
        read = first.driver.schema.chunk_layout.read_chunk.shape
        theirs = chunk_edges(first.driver, first.view[self._in_first()], read)
        whole = [dim is None for dim in dims]
        reach = [0 if dim is None else sum(self.halo[dim][:2]) for dim in dims]

        def cut(item: int) -> Blocks:
            sizes = limits(item, self.memory)
            return Blocks(to, mine, theirs, sizes["least"], sizes["most"], whole=whole, reach=reach)

        most, item = limits(1, self.memory)["most"], self._item_bytes(to.input_shape)
        blocks = cut(item) if given is None else given
        for _ in range(_TRIES):
            if given is not None or self._block_bytes(blocks.extents) <= most:
                break
            item *= 2  # the halo takes more than was thought
            blocks = cut(item)
        return self._replace(blocks=blocks, item_bytes=self._item_bytes(blocks.extents))

    def _item_bytes(self, extents: Sequence[int]) -> int:
        return max(1, -(-self._block_bytes(extents) // max(1, prod(extents))))

    def _in_first(self) -> IndexTransform:
        """The positions of the first source, seen from the target's."""
        first, dims = self.inputs[0], self.alignment.target_dims
        outputs = []
        for dim in first.dims:
            if dim not in dims or dim in first.once:
                outputs.append(OutputIndexMap(offset=0))
            else:
                at = dims.index(dim)
                low = self.to.input_origin[at]
                outputs.append(OutputIndexMap(input_dimension=at, offset=-low))
        return IndexTransform(
            input_inclusive_min=self.to.input_origin, input_shape=self.to.input_shape,
            output=outputs,
        )  # fmt: skip

    def _block_bytes(self, extents: Sequence[int]) -> int:
        """How much memory a block of some extents takes, with its halo, before and after."""
        space = self.alignment.space.shape
        longest = list(space)
        made = 1
        for dim, extent in zip(self.alignment.target_dims, extents, strict=True):
            if dim is not None:
                longest[dim] = self.halo[dim].largest(extent, space[dim])
            made *= extent if dim is None else longest[dim]
        total = made * self.target.data_type.array_dtype.itemsize
        for each in self.inputs:
            total += each.driver.data_type.array_dtype.itemsize * prod(
                longest[dim] for dim in each.dims if dim not in each.once
            )
        return total

    async def run(self, block: Block) -> None:
        """Make one block."""
        windows = self._windows(block)
        read = [await self._read(each, windows) for each in self.inputs]
        try:
            found = await self.function(self.inline, *read, domain=self._domain(block))
        except Exception as error:
            bounds = ", ".join(f"{low}:{high}" for low, high in block.bounds)
            error.add_note(f"in task {block.number}, {self.function.name} for block [{bounds}]")
            raise
        data = await offload(self.inline, lambda: self._made(found, block, windows))
        place = self.to[selected(block.bounds)]
        await within(self.inline, self.target.inline, lambda: self.target.write(place, data))

    def _windows(self, block: Block) -> list[Window]:
        """What the block is made of along each dimension of the space."""
        space = self.alignment.space.shape
        bounds = [(0, extent) for extent in space]
        for at, dim in enumerate(self.alignment.target_dims):
            if dim is not None:
                low, high = block.bounds[at]
                origin = self.to.input_origin[at]
                bounds[dim] = low - origin, high - origin
        return [
            halo.window(low, high, extent)
            for halo, (low, high), extent in zip(self.halo, bounds, space, strict=True)
        ]

    def _domain(self, block: Block) -> IndexDomain:
        """Which part of the target a block is, in the order in which the function gives it."""
        order = self.alignment.order
        bounds = [block.bounds[order.index(dim)] for dim in range(len(order))]
        return IndexDomain(
            inclusive_min=[low for low, _ in bounds],
            exclusive_max=[high for _, high in bounds],
            labels=self.alignment.made.labels,
        )

    async def _read(self, source: Input, windows: Sequence[Window]) -> Array:
        """A source's block, its dimensions in the order of the space."""
        terms: list[object] = []
        for dim in source.dims:
            read = range(1) if dim in source.once else windows[dim].read
            terms.append(slice(read.start, read.stop) if isinstance(read, range) else read)
        part = source.view.oindex[tuple(terms)]
        driver = source.driver
        data = await within(self.inline, driver.inline, lambda: read_surely(driver, part))
        return await offload(self.inline, lambda: self._arranged(source, data, windows))

    def _arranged(self, source: Input, data: Array, windows: Sequence[Window]) -> Array:
        for axis, dim in enumerate(source.dims):
            if dim not in source.once:
                data = extended(data, axis, windows[dim], self.halo[dim].boundary)
        order = sorted(range(data.ndim), key=lambda axis: source.dims[axis])
        data = data.transpose(order)
        there = sorted(source.dims)
        gaps = [dim for dim in range(min(there, default=0), len(windows)) if dim not in there]
        return np.expand_dims(data, [dim - min(there, default=0) for dim in gaps]) if gaps else data

    def _made(self, found: object, block: Block, windows: Sequence[Window]) -> Array:
        """What the function gave, as it is written.

        Raises MismatchError: it has another shape, or a type whose values might not survive.
        """
        extents, margins = [], []
        bounds = [block.bounds[self.alignment.order.index(dim)]
                  for dim in range(len(self.alignment.order))]  # fmt: skip
        for dim, (low, high) in zip(self.alignment.output, bounds, strict=True):
            extents.append(high - low)
            margins.append((0, 0) if dim is None else windows[dim].margins)
        data = made_of(found, extents, margins, self.alignment.made.labels, self.function.name)
        dtype = self.target.data_type.record.array_dtype
        if not np.can_cast(data.dtype, dtype, "safe"):
            raise MismatchError(
                f"{self.function.name} gave {data.dtype.name}, but the target is of "
                f"{self.target.data_type.name}, which cannot hold all of its values; convert it in "
                "the function (.astype), or pass another dtype"
            )
        return data.transpose(self.alignment.order).astype(dtype, copy=False)


def made_of(
    found: object,
    extents: Sequence[int],
    margins: Sequence[tuple[int, int]],
    labels: Sequence[str],
    name: str,
) -> Array:
    """What a function gave, without the halo: `margins` are those before and after the block.

    Raises MismatchError: it has neither the block's shape nor that with the halo.
    """
    data = np.asarray(found)
    wide = [extent + sum(margin) for extent, margin in zip(extents, margins, strict=True)]
    if data.ndim != len(wide) or any(
        size not in (extent, whole)
        for size, extent, whole in zip(data.shape, extents, wide, strict=True)
    ):
        what = "None" if found is None else f"an array of shape {data.shape}"
        names = f" ({', '.join(labels)})" if any(labels) else ""
        halo = f", or {tuple(wide)} with the halo" if wide != [*extents] else ""
        raise MismatchError(
            f"{name} gave {what}, but the block{names} is of shape {tuple(extents)}{halo}; "
            "dimensions that the function removes are named by drop=, and those that it "
            "makes by new="
        )
    return data[
        tuple(
            slice(before, before + extent) if size != extent else slice(None)
            for size, extent, (before, _) in zip(data.shape, extents, margins, strict=True)
        )
    ]


def _check_target(to: IndexTransform) -> None:
    if any(each.method == Method.array for each in to.maps):
        raise SpecError(
            "the target is a view by index arrays, whose chunks two tasks would write; pass the "
            "array, or a view by slices",
            ("target",),
        )
    used = {each.input_dimension for each in to.maps if each.input_dimension is not None}
    for dim, extent in enumerate(to.input_shape):
        if dim not in used and extent > 1:
            raise SpecError(
                f"each element of the target stands at {extent} positions along dimension {dim}, "
                "so tasks would write it several times; pass a view without that dimension",
                ("target",),
            )
