"""An open stack: reads and writes are cut by layer, and handed on.

A read or write that one layer has all of is handed on as it is. Any other is cut into parts, one
for each cell (see `cells`) and hence for one layer, which run several at a time.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.drivers.stack.cells import NOBODY, cells
from tensorstore_py.drivers.stack.layer import Layer
from tensorstore_py.errors import OutOfRangeError
from tensorstore_py.plugin import (
    Array,
    Driver,
    IndexDomain,
    IndexTransform,
    Opened,
    Part,
    Schema,
    fan_out,
    new_array,
    output_box,
    parts,
    propagate_bounds,
    select,
    shifted,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py.plugin import Batch, DriverSpec, Selection, Transaction

__all__ = ["Stack"]


class Stack(Driver):
    """Open arrays laid over each other.

    Args:
        spec: what it was opened with.
        layers: the specs of the layers, their transforms given.
        schema: the stack's; domain and data type are known.
        inline: the temperament.
        transaction: that they are seen through.
    """

    def __init__(
        self,
        spec: DriverSpec,
        layers: Sequence[DriverSpec],
        schema: Schema,
        inline: bool,
        transaction: Transaction | None = None,
    ) -> None:
        assert schema.domain is not None
        assert schema.dtype is not None
        self._spec = spec
        self._schema = schema
        self._domain = schema.domain.mark_bounds_implicit[False]
        self.data_type = schema.dtype
        self.inline = inline
        self._transaction = transaction
        self._layers = [
            Layer(number, layer, schema.dtype, inline, transaction)
            for number, layer in enumerate(layers)
        ]
        self.readable = any(layer.readable for layer in self._layers) or not self._layers
        self.writable = any(layer.writable for layer in self._layers) or not self._layers

    @property
    def domain(self) -> IndexDomain:
        return self._domain

    @property
    def schema(self) -> Schema:
        return self._schema.copy()

    @property
    def transaction(self) -> Transaction | None:
        return self._transaction

    def within(self, transaction: Transaction | None) -> Stack:
        specs = [layer.spec for layer in self._layers]
        return Stack(self._spec, specs, self._schema, self.inline, transaction)

    def batched(self, batch: Batch) -> Stack:
        reads = copy(self)
        reads._layers = [layer.batched(batch) for layer in self._layers]
        return reads

    async def resolve(self) -> IndexDomain:
        return self._domain

    async def read(self, transform: IndexTransform, order: str) -> Array:
        resolved = propagate_bounds(self._domain, transform)
        out = new_array(resolved.input_shape, self.data_type.array_dtype, order)
        if not out.size:
            return out
        work = self._parts(resolved)
        if isinstance(work, Layer):
            out[...] = await work.read(resolved)
            return out
        selection, todo = work
        view = selection.view(out)

        async def read_part(step: tuple[Layer, Part, IndexTransform]) -> None:
            layer, part, wanted = step
            view[(..., *part.outside)] = await layer.read(wanted)

        await fan_out(self.inline, todo, read_part, count=len(todo))
        if not np.may_share_memory(view, out):
            selection.put(view, out)
        return out

    def forget_cached(self, transform: IndexTransform) -> None:
        resolved = propagate_bounds(self._domain, transform)
        work = self._parts(resolved)
        if isinstance(work, Layer):
            work.forget_cached(resolved)
            return
        for layer, _, wanted in work[1]:
            layer.forget_cached(wanted)

    async def write(self, transform: IndexTransform, source: Array) -> None:
        resolved = propagate_bounds(self._domain, transform)
        whole = np.broadcast_to(source, resolved.input_shape)
        if not whole.size:
            return
        work = self._parts(resolved)
        if isinstance(work, Layer):
            await work.write(resolved, whole)
            return
        selection, todo = work
        view = selection.values(whole)

        async def write_part(step: tuple[Layer, Part, IndexTransform]) -> None:
            layer, part, wanted = step
            await layer.write(wanted, view[(..., *part.outside)])

        await fan_out(self.inline, todo, write_part, count=len(todo))

    def _parts(
        self, resolved: IndexTransform
    ) -> Layer | tuple[Selection, list[tuple[Layer, Part, IndexTransform]]]:
        """The only layer that is needed, or parts with their layers and what is wanted of these.

        Raises:
            OutOfRangeError: something is wanted that no layer has.
        """
        box = output_box(resolved)
        grid, owners = cells(box, [layer.box for layer in self._layers])
        top = int(owners.flat[0])
        if top != NOBODY and bool(np.all(owners == top)):
            return self._layers[top]
        origin = [low for low, _ in box]
        back = [-low for low in origin]
        selection = select(shifted(resolved, origin))
        todo = []
        for part in parts(selection.axes, grid):
            owner = int(owners[part.cell])
            wanted = shifted(part.transform, back)
            if owner == NOBODY:
                where = [low for low, _ in output_box(wanted)]
                raise OutOfRangeError(
                    f"no layer of the stack holds position {where}; take a part of the stack "
                    "that is covered, or add a layer below"
                )
            todo.append((self._layers[owner], part, wanted))
        return selection, todo

    def spec(self) -> DriverSpec:
        layers = tuple(
            layer.spec.view_spec() if isinstance(layer.spec, Opened) else layer.spec
            for layer in self._layers
        )
        units = self._schema.dimension_units
        stated = units if units is not None and any(units) else None
        return self._spec.replace(
            layers=layers, schema_=Schema(domain=self._domain, dimension_units=stated)
        )

    def view_spec(self, transform: IndexTransform) -> DriverSpec:
        return self.spec().replace(transform=transform)
