"""An open downsampled view: reads are cut into blocks, each made of a read of the base.

Blocks end where chunks of the base do, so every chunk is read once, and only blocks that are being
made are in memory. The method "stride" needs no blocks: it is a read of the base with strides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.drivers.downsample.blocks import (
    Box,
    base_box,
    block_extents,
    downsampled,
    downsampled_domain,
)
from tensorstore_py.plugin import (
    Array,
    CutAxis,
    Driver,
    IndexDomain,
    IndexTransform,
    OutputIndexMap,
    Part,
    Schema,
    StorageStatistics,
    Unit,
    fan_out,
    new_array,
    offload,
    output_box,
    parts,
    propagate_bounds,
    read_array,
    resolved_view,
    select,
    shifted,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tensorstore_py.plugin import Batch, Bytes, DriverSpec, KvStore, KvStoreSpec, Transaction

__all__ = ["Downsample", "smaller_schema"]


class Downsample(Driver):
    """A smaller view of an open array.

    Args:
        spec: what it was opened with.
        base: the array underneath.
        view: from positions of what is downsampled to those of the base.
        factors: of each dimension.
        method: how one element is made of many.
    """

    writable = False

    def __init__(
        self,
        spec: DriverSpec,
        base: Driver,
        view: IndexTransform,
        factors: tuple[int, ...],
        method: str,
    ) -> None:
        self._spec = spec
        self._base = base
        self._view = view
        self._factors = factors
        self._method = method
        self.inline = base.inline
        self.data_type = base.data_type
        self._domain = downsampled_domain(view.domain, factors, method)

    @property
    def domain(self) -> IndexDomain:
        return self._domain

    @property
    def schema(self) -> Schema:
        return smaller_schema(self._base.schema[self._view], self._factors, self._domain, fill=True)

    @property
    def transaction(self) -> Transaction | None:
        return self._base.transaction

    def within(self, transaction: Transaction | None) -> Downsample:
        base = self._base.within(transaction)
        return Downsample(self._spec, base, self._view, self._factors, self._method)

    def batched(self, batch: Batch) -> Downsample:
        base = self._base.batched(batch)
        return Downsample(self._spec, base, self._view, self._factors, self._method)

    async def resolve(self) -> IndexDomain:
        view = resolved_view(await self._base.resolve(), self._view)
        return downsampled_domain(view.domain, self._factors, self._method)

    async def read(self, transform: IndexTransform, order: str) -> Array:
        resolved = propagate_bounds(self._domain.mark_bounds_implicit[False], transform)
        if self._method == "stride" or all(factor == 1 for factor in self._factors):
            return await self._base.read(self._view[self._scaled(resolved)], order)
        out = new_array(resolved.input_shape, self.data_type.array_dtype, order)
        if not out.size:
            return out
        box = output_box(resolved)
        origin = [low for low, _ in box]
        selection = select(shifted(resolved, origin))
        view = selection.view(out)

        async def make(part: Part) -> None:
            wanted = shifted(part.transform, [-low for low in origin])
            here = output_box(wanted)
            below = self._below(here)
            base = await self._base.read(self._view[_domain_of(below)], "C")
            view[(..., *part.outside)] = await offload(
                self.inline, lambda: self._made(base, below, here, wanted)
            )

        blocks = list(parts(selection.axes, self._grid(box)))
        await fan_out(self.inline, blocks, make, count=len(blocks))
        if not np.may_share_memory(view, out):
            selection.put(view, out)
        return out

    def _made(self, base: Array, below: Box, here: Box, wanted: IndexTransform) -> Array:
        block = downsampled(base, below, here, self._factors, self._method)
        return read_array(block, shifted(wanted, [low for low, _ in here]), "C")

    def _grid(self, box: Box) -> list[CutAxis]:
        """The blocks that a box is made in; coordinates begin at its least ones."""
        layout = self.schema.chunk_layout
        chunk = layout.read_chunk.shape or [None] * len(box)
        shape = [high - low for low, high in box]
        item_bytes = self.data_type.array_dtype.itemsize
        extents = block_extents(chunk, self._factors, shape, item_bytes)
        starts = layout.grid_origin or [None] * len(box)
        return [
            CutAxis(_cuts(high - low, extent, ((start or 0) - low) % extent))
            for (low, high), extent, start in zip(box, extents, starts, strict=True)
        ]

    def _scaled(self, resolved: IndexTransform) -> IndexTransform:
        """From the transform's input to positions of the base's view that come first."""
        return IndexTransform(
            resolved.domain,
            [
                OutputIndexMap(
                    index_array=each.index_array,
                    offset=each.offset * factor,
                    stride=(each.stride or 1) * factor,
                )
                if each.index_array is not None
                else OutputIndexMap(offset=each.offset * factor)
                if each.input_dimension is None
                else OutputIndexMap(
                    input_dimension=each.input_dimension,
                    offset=each.offset * factor,
                    stride=(each.stride or 0) * factor,
                )
                for each, factor in zip(resolved.output, self._factors, strict=True)
            ],
        )

    async def storage_statistics(
        self, transform: IndexTransform, *, not_stored: bool, fully_stored: bool
    ) -> StorageStatistics:
        resolved = propagate_bounds(self._domain.mark_bounds_implicit[False], transform)
        if 0 in resolved.input_shape:
            region = self._view[tuple(slice(low, low) for low in self._view.input_origin)]
        else:
            region = self._view[_domain_of(self._below(output_box(resolved)))]
        return await self._base.storage_statistics(
            region, not_stored=not_stored, fully_stored=fully_stored
        )

    def spec(self) -> DriverSpec:
        return self._spec.replace(base=self._base.view_spec(self._view))

    @property
    def base(self) -> Driver:
        """The array underneath."""
        return self._base

    def base_view(self, transform: IndexTransform) -> IndexTransform:
        resolved = propagate_bounds(self._domain, transform)
        if self._method == "stride":
            return self._view[self._scaled(resolved)]
        return self._view[_domain_of(self._below(output_box(resolved)))]

    def _below(self, box: Box) -> Box:
        """The positions of the base that a box stands for."""
        domain = self._view.domain
        bounds = tuple(zip(domain.inclusive_min, domain.exclusive_max, strict=True))
        return base_box(box, self._factors, bounds)

    @property
    def kvstore(self) -> tuple[KvStoreSpec, KvStore] | None:
        return self._base.kvstore

    @property
    def memory(self) -> Bytes | None:
        return self._base.memory


def _cuts(extent: int, block: int, first: int) -> NDArray[np.int64]:
    """0, every `block` from `first` on, and the extent."""
    inner = np.arange(first or block, extent, block, dtype=np.int64)
    return np.concatenate([[0], inner, [extent]]).astype(np.int64)


def _domain_of(box: Box) -> IndexDomain:
    return IndexDomain(
        inclusive_min=[low for low, _ in box], exclusive_max=[high for _, high in box]
    )


def smaller_schema(
    base: Schema, factors: Sequence[int], domain: IndexDomain | None, *, fill: bool
) -> Schema:
    """The schema of the smaller array.

    Args:
        base: of what is downsampled.
        factors: of each dimension.
        domain: of the smaller array.
        fill: keep the fill value.
    """
    rank = len(factors)
    scale = IndexTransform(
        input_rank=rank,
        output=[
            OutputIndexMap(input_dimension=dim, stride=factor) for dim, factor in enumerate(factors)
        ],
    )
    layout = Schema(rank=rank, chunk_layout=base.chunk_layout)[scale].chunk_layout
    units: list[Unit | None] | None = None
    if base.dimension_units is not None:
        units = [
            None if unit is None else unit * factor
            for unit, factor in zip(base.dimension_units, factors, strict=True)
        ]
    return Schema(
        rank=rank,
        dtype=base.dtype,
        domain=domain,
        chunk_layout=layout,
        codec=base.codec,
        fill_value=base.fill_value if fill else None,
        dimension_units=units,
    )
