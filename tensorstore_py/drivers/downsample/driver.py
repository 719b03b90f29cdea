"""An open downsampled view: reads are cut into blocks, each made of a read of the base.

Blocks end where chunks of the base do, so every chunk is read once, and only blocks that are being
made are in memory. The method "stride" needs no blocks: it is a read of the base with strides.

The data type is the base's, and may be given here or there. Constraints on units and on the codec
are the base's business, too; all others are compared with what is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np

from tensorstore_py.drivers.downsample.blocks import (
    Box,
    base_box,
    block_extents,
    downsampled,
    downsampled_domain,
)
from tensorstore_py.drivers.downsample.methods import check_method
from tensorstore_py.errors import PermissionDeniedError, SpecError
from tensorstore_py.plugin.codec import Array, Level
from tensorstore_py.plugin.driver import (
    AdapterSpec,
    CutAxis,
    Driver,
    IndexDomain,
    IndexTransform,
    Opened,
    OutputIndexMap,
    Part,
    Schema,
    StorageStatistics,
    Unit,
    driver,
    new_array,
    output_box,
    partition,
    propagate_bounds,
    read_array,
    shifted,
)
from tensorstore_py.plugin.kvstore import fan_out, model_validator, offload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tensorstore_py.plugin.driver import (
        Batch,
        DriverSpec,
        IndexDomain,
        Transaction,
    )

__all__ = ["Downsample", "DownsampleSpec", "smaller_schema"]


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

    def with_transaction(self, transaction: Transaction | None) -> Downsample:
        base = self._base.with_transaction(transaction)
        return Downsample(self._spec, base, self._view, self._factors, self._method)

    def with_batch(self, batch: Batch) -> Downsample:
        base = self._base.with_batch(batch)
        return Downsample(self._spec, base, self._view, self._factors, self._method)

    async def resolve(self) -> IndexDomain:
        view = propagate_bounds(await self._base.resolve(), self._view)
        return downsampled_domain(view.domain, self._factors, self._method)

    async def read(self, transform: IndexTransform, order: str) -> Array:
        resolved = propagate_bounds(self._domain.mark_bounds_implicit[False], transform)
        if self._method == "stride" or all(factor == 1 for factor in self._factors):
            return await self._base.read(self._view[self._scaled(resolved)], order)
        out = new_array(resolved.input_shape, self.data_type.array_dtype, order)
        if not out.size:
            return out
        box = output_box(resolved)
        selection, blocks = partition(resolved, [low for low, _ in box], self._grid(box))
        view = selection.view(out)

        async def make(part: Part) -> None:
            here = output_box(part.transform)
            below = self._below(here)
            base = await self._base.read(self._view[_domain_of(below)], "C")
            view[(..., *part.outside)] = await offload(
                self.inline, lambda: self._made(base, below, here, part.transform)
            )

        await fan_out(self.inline, blocks, make, count=len(blocks))
        return selection.put(view, out)

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


Method = Literal["stride", "mean", "median", "mode", "min", "max"]
Factor = Annotated[int, Level(1, 2**63 - 1)]


@driver("downsample")
class DownsampleSpec(AdapterSpec):
    """A smaller view of an array.

    Attributes:
        downsample_factors: for each dimension how many positions of the base one element stands
            for, along it; counted from position 0.
        downsample_method: how it is made of them: the first ("stride"), their mean, median,
            mode, least or greatest.

    Example:
        >>> base = {"driver": "array", "dtype": "int8", "array": [1, 3, 5]}
        >>> spec = DownsampleSpec.parse(
        ...     {"base": base, "downsample_factors": [2], "downsample_method": "mean"}
        ... )
        >>> spec.known_domain()
        { [0, 2) }
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "downsample_factors", "downsample_method",
    })  # fmt: skip

    downsample_factors: tuple[Factor, ...]
    downsample_method: Method

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        """The data type may stand here alone."""
        if isinstance(json, dict):
            base, data_type = json.get("base"), json.get("dtype")
            if isinstance(base, dict) and data_type is not None and "dtype" not in base:
                json = {**json, "base": {**base, "dtype": data_type}}
        return super().parse_frozen(json)

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        asked = super().known_schema()
        if asked.fill_value is not None:
            raise SpecError(
                "give the fill value to the base; here the member must be left out",
                ("schema", "fill_value"),
            )
        base, left = self._split(asked)
        rank = len(self.downsample_factors)
        for other in (_rank_of(base), asked.rank):
            if other not in (None, rank):
                raise SpecError(f"{rank} factors, but {other} dimensions", ("downsample_factors",))
        data_type = base.known_schema().dtype or base.dtype
        if data_type is not None:
            check_method(self.downsample_method, data_type)
        domain = base.known_domain()
        if base.transform is None and domain is not None:
            base = base.replace(transform=IndexTransform(domain))
        stated = set(left.to_json()) - {"rank"}
        return self.replace(base=base, dtype=data_type, rank=rank, schema_=left if stated else None)

    def _split(self, asked: Schema) -> tuple[DriverSpec, Schema]:
        """The base with the constraints that are its business, and those left to be compared."""
        base = self.base
        known = base.known_schema().dtype or base.dtype
        if None not in (asked.dtype, known) and known is not asked.dtype:
            raise SpecError(f"the base holds {known}, not {asked.dtype}; cast it", ("dtype",))
        left = Schema(domain=asked.domain, chunk_layout=asked.chunk_layout)
        changes: dict[str, object] = {}
        if known is None and asked.dtype is not None:
            changes["dtype"] = asked.dtype
        domain, units = base.known_domain(), asked.dimension_units
        whole = base.transform is None or (domain and base.transform == IndexTransform(domain))
        if isinstance(base, Opened) or not whole:
            left.update(dimension_units=units, codec=asked.codec)
        else:
            if asked.codec is not None:
                changes["codec"] = asked.codec
            if units is not None and any(units) and len(units) == len(self.downsample_factors):
                changes["dimension_units"] = [
                    None if unit is None else unit * (1 / factor)
                    for unit, factor in zip(units, self.downsample_factors, strict=True)
                ]
        if not changes:
            return base, left
        schema = Schema() if base.schema_ is None else base.schema_.copy()
        schema.update(**changes)  # type: ignore[arg-type]
        return base.replace(schema_=schema, dtype=schema.dtype or base.dtype).checked(), left

    def known_domain(self) -> IndexDomain | None:
        base = super().known_domain()
        if base is None:
            return None
        return downsampled_domain(base, self.downsample_factors, self.downsample_method)

    def known_schema(self) -> Schema:
        below = self.base.known_schema()
        if self.base.transform is not None:
            below = below[self.base.transform]
        schema = smaller_schema(below, self.downsample_factors, self.known_domain(), fill=False)
        if self.transform is not None:
            schema.update(rank=self.transform.output_rank)
        return schema

    @property
    def view_transform(self) -> IndexTransform | None:
        # The open driver has the coordinates of what is seen here, not of what is underneath.
        return self.transform

    def minimal(self) -> Self:
        return self

    def over(self, base: Driver) -> Driver:
        if not base.readable or (isinstance(self.base, Opened) and not self.base.readable):
            raise PermissionDeniedError("an array that cannot be read cannot be downsampled")
        rank = _rank_of(self.base)
        if rank is None:
            rank = base.domain.rank
        if len(self.downsample_factors) != rank:
            raise SpecError(
                f"{len(self.downsample_factors)} factors, but {rank} dimensions",
                ("downsample_factors",),
            )
        check_method(self.downsample_method, base.data_type)
        view = self.base.view_transform
        if view is None:
            view = IndexTransform(base.domain)
        elif not isinstance(self.base, Opened):  # whose bounds are as it was opened
            view = propagate_bounds(base.domain, view)
        made = Downsample(self, base, view, self.downsample_factors, self.downsample_method)
        if self.schema_ is not None:
            self.check_schema(made.schema)
        return made

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        base = json.get("base")
        if isinstance(base, dict) and not include_defaults:
            told = {"rank", "dtype"} if "dtype" in json else {"rank"}
            json["base"] = {name: base[name] for name in base if name not in told}


def _rank_of(base: DriverSpec) -> int | None:
    if base.transform is not None:
        return base.transform.input_rank
    return base.known_schema().rank
