"""An open stack: reads and writes are cut by layer, and handed on.

A read or write that one layer has all of is handed on as it is. Any other is cut wherever a layer
begins or ends (`cells`), so that each cell lies wholly inside or outside of any layer, into parts
for one layer each, which run several at a time. Only what is asked for is cut, so layers may be
without bounds, and many layers cost little where few are needed.

A layer is opened when it is first needed, and then kept; one that nothing reads need not exist.
Errors say which layer they come from in a note: their class and message are the layer's own.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tensorstore_py.errors import (
    MismatchError,
    OutOfRangeError,
    PermissionDeniedError,
    TensorStoreError,
)
from tensorstore_py.plugin.codec import Array
from tensorstore_py.plugin.driver import (
    CutAxis,
    Driver,
    IndexDomain,
    IndexTransform,
    Opened,
    Part,
    Schema,
    new_array,
    output_box,
    partition,
    propagate_bounds,
    within,
)
from tensorstore_py.plugin.kvstore import KeyedLock, fan_out

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from tensorstore_py.plugin.codec import dtype
    from tensorstore_py.plugin.driver import (
        Batch,
        DriverSpec,
        IndexTransform,
        Selection,
        Transaction,
    )

__all__ = ["NOBODY", "Box", "Cells", "Layer", "Stack", "cells"]

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


T = TypeVar("T")


class Layer:
    """A layer.

    Args:
        number: its place in the stack.
        spec: its bound spec; `transform` is given.
        data_type: the stack's.
        inline: the stack's execution mode.
        transaction: that it is seen through.

    Attributes:
        spec: see above.
        box: its bounds.
        readable: whether it may be read, as far as is known before it is opened.
        writable: whether it may be written, as far as is known before it is opened.
    """

    def __init__(
        self,
        number: int,
        spec: DriverSpec,
        data_type: dtype,
        inline: bool,
        transaction: Transaction | None = None,
    ) -> None:
        assert spec.transform is not None
        transform = spec.view_transform
        self.spec = spec
        self._number = number
        self._data_type = data_type
        self._inline = inline
        self._transform = spec.transform if transform is None else transform
        domain = spec.transform.domain
        self.box: Box = tuple(zip(domain.inclusive_min, domain.exclusive_max, strict=True))
        self._transaction = transaction
        self._driver: Driver | None = None
        if isinstance(spec, Opened):
            self._driver = spec.handle.with_transaction(transaction)
        self.readable = not isinstance(spec, Opened) or spec.readable
        self.writable = not isinstance(spec, Opened) or spec.writable
        self._gate = KeyedLock(inline=inline)

    async def read(self, transform: IndexTransform) -> Array:
        """Read what a transform to the stack's coordinates selects.

        Raises:
            PermissionDeniedError: the layer cannot be read.
        """
        driver = await self._open()
        if not (self.readable and driver.readable):
            raise PermissionDeniedError(f"layer {self._number} of the stack cannot be read")
        wanted = self._transform[transform]
        return await self._of_mine(driver.inline, lambda: driver.read(wanted, "C"))

    def forget_cached(self, transform: IndexTransform) -> None:
        """Keep nothing of what a transform to the stack's coordinates selects."""
        if self._driver is not None:
            self._driver.forget_cached(self._transform[transform])

    def with_batch(self, batch: Batch) -> Layer:
        """The layer, read together with whatever else is in a batch."""
        if self._driver is None:
            return self  # what it takes to open it is nobody else's
        reads = copy(self)
        reads._driver = self._driver.with_batch(batch)
        return reads

    async def write(self, transform: IndexTransform, source: Array) -> None:
        """Write to what a transform to the stack's coordinates selects.

        Raises:
            PermissionDeniedError: the layer cannot be written.
        """
        driver = await self._open()
        if not (self.writable and driver.writable):
            raise PermissionDeniedError(f"layer {self._number} of the stack cannot be written")
        wanted = self._transform[transform]
        await self._of_mine(driver.inline, lambda: driver.write(wanted, source))

    async def _open(self) -> Driver:
        if self._driver is not None:
            return self._driver
        async with self._gate.acquire(self._number):
            if self._driver is None:
                body = partial(self.spec.open_within, self._transaction)
                driver = await self._of_mine(self.spec.inline, body)
                if driver.data_type is not self._data_type:
                    raise MismatchError(
                        f"layer {self._number} of the stack holds {driver.data_type.name}, "
                        f"but the stack {self._data_type.name}"
                    )
                self._driver = driver
            return self._driver

    async def _of_mine(self, inline: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await within(self._inline, inline, body)
        except TensorStoreError as error:
            error.add_note(f"This was layer {self._number} of a stack.")
            raise


class Stack(Driver):
    """Open arrays laid over each other.

    Args:
        spec: what it was opened with.
        layers: the specs of the layers, their transforms given.
        schema: the stack's; domain and data type are known.
        inline: the execution mode.
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

    def with_transaction(self, transaction: Transaction | None) -> Stack:
        specs = [layer.spec for layer in self._layers]
        return Stack(self._spec, specs, self._schema, self.inline, transaction)

    def with_batch(self, batch: Batch) -> Stack:
        reads = copy(self)
        reads._layers = [layer.with_batch(batch) for layer in self._layers]
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

        async def read_part(step: tuple[Layer, Part]) -> None:
            layer, part = step
            view[(..., *part.outside)] = await layer.read(part.transform)

        await fan_out(self.inline, todo, read_part, count=len(todo))
        return selection.put(view, out)

    def forget_cached(self, transform: IndexTransform) -> None:
        resolved = propagate_bounds(self._domain, transform)
        work = self._parts(resolved)
        if isinstance(work, Layer):
            work.forget_cached(resolved)
            return
        for layer, part in work[1]:
            layer.forget_cached(part.transform)

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

        async def write_part(step: tuple[Layer, Part]) -> None:
            layer, part = step
            await layer.write(part.transform, view[(..., *part.outside)])

        await fan_out(self.inline, todo, write_part, count=len(todo))

    def _parts(
        self, resolved: IndexTransform
    ) -> Layer | tuple[Selection, list[tuple[Layer, Part]]]:
        """The only layer that is needed, or parts with their layers.

        Raises:
            OutOfRangeError: something is wanted that no layer has.
        """
        box = output_box(resolved)
        grid, owners = cells(box, [layer.box for layer in self._layers])
        top = int(owners.flat[0])
        if top != NOBODY and bool(np.all(owners == top)):
            return self._layers[top]
        selection, cut = partition(resolved, [low for low, _ in box], grid)
        todo = []
        for part in cut:
            owner = int(owners[part.cell])
            if owner == NOBODY:
                where = [low for low, _ in output_box(part.transform)]
                raise OutOfRangeError(
                    f"no layer of the stack holds position {where}; take a part of the stack "
                    "that is covered, or add a layer below"
                )
            todo.append((self._layers[owner], part))
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
