"""What is asked of a stack: layers, each an array somewhere in a common space.

    {"driver": "stack", "layers": [
        {"driver": "zarr3", "kvstore": "file:///a/", "transform": {"input_shape": [10, 10]}},
        {"driver": "zarr3", "kvstore": "file:///b/", "transform": {...}}]}

Later layers lie over earlier ones. A layer whose domain and data type the spec tells is opened
only when it is needed; any other when the stack is. The stack's domain is what holds all layers, or
as the schema says; where no layer is, there is nothing to read.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, ClassVar, Self

from tensorstore_py.drivers.stack.driver import Stack
from tensorstore_py.errors import MismatchError, OutOfRangeError, SpecError
from tensorstore_py.plugin.codec import dtype
from tensorstore_py.plugin.driver import (
    BaseField,
    DriverSpec,
    IndexDomain,
    IndexTransform,
    Opened,
    OpenMode,
    Schema,
    Unit,
    driver,
    within,
)
from tensorstore_py.plugin.kvstore import Resource, ResourceField, model_validator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py.plugin.driver import Transaction

__all__ = ["StackSpec"]


@driver("stack")
class StackSpec(DriverSpec):
    """Arrays laid over each other.

    Attributes:
        layers: specs or URLs; later ones lie over earlier ones.
        data_copy_concurrency: accepted for the reference's sake; the layers limit themselves.

    Example:
        >>> low = {"driver": "array", "dtype": "int8", "array": [1, 2, 3]}
        >>> one = {
        ...     **low,
        ...     "array": [9],
        ...     "transform": {
        ...         "input_inclusive_min": [3],
        ...         "input_shape": [1],
        ...         "output": [{"input_dimension": 0, "offset": -3}],
        ...     },
        ... }
        >>> StackSpec.parse({"layers": [low, one]}).known_domain()
        { [0, 4) }
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"layers", "data_copy_concurrency"})

    layers: tuple[BaseField, ...]
    data_copy_concurrency: Resource[object] = ResourceField("data_copy_concurrency")

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        asked = super().known_schema()
        for name, stated in (
            ("fill_value", asked.fill_value is not None),
            ("codec", asked.codec is not None),
            ("chunk_layout", bool(asked.chunk_layout.to_json().keys() - {"rank"})),
        ):
            if stated:
                raise SpecError(
                    f"a stack has no {name.replace('_', ' ')} of its own: leave the member out, "
                    "or give it to the layers",
                    ("schema", name),
                )
        layers = tuple(_placed(layer) for layer in self.layers)
        data_type = _common_type(layers, asked.dtype)
        rank = _common_rank(layers, asked.rank)
        if rank is not None:
            asked.update(rank=rank)
        _hull(layers)
        return self.replace(layers=layers, dtype=data_type, rank=None)

    def known_schema(self) -> Schema:
        asked = super().known_schema()
        domain = asked.domain or _hull(self.layers)
        schema = Schema(
            dtype=self.dtype,
            rank=asked.rank if domain is None else domain.rank,
            domain=domain,
            dimension_units=asked.dimension_units or _common_units(self.layers),
        )
        if self.transform is not None:
            schema.update(rank=self.transform.output_rank)
        return schema

    @property
    def inline(self) -> bool:
        return all(layer.inline for layer in self.layers)

    def open_mode(self) -> OpenMode:
        modes = [layer.open_mode() for layer in self.layers]
        common = bool(modes) and all(mode == modes[0] for mode in modes)
        return modes[0] if common else OpenMode()

    def with_layers(self, change: Callable[[DriverSpec], DriverSpec]) -> Self:
        return self.replace(layers=tuple(change(layer) for layer in self.layers))

    def minimal(self) -> Self:
        return self

    async def open(self) -> Stack:
        return await self.open_within(None)

    async def open_within(self, transaction: Transaction | None) -> Stack:
        layers: list[DriverSpec] = []
        for number, layer in enumerate(self.layers):
            if layer.transform is None or (self.dtype is None and _type_of(layer) is None):
                try:
                    layers.append(await self._opened(layer, transaction))
                except SpecError as error:
                    raise error.inside("layers", number) from None
            else:
                layers.append(layer)
        spec = self.replace(layers=tuple(layers)).checked()
        schema = spec.known_schema()
        if schema.domain is None or schema.dtype is None:
            raise SpecError("a stack without layers needs a data type and a domain", ("layers",))
        return Stack(spec, spec.layers, schema, self.inline, transaction)

    async def _opened(self, layer: DriverSpec, transaction: Transaction | None) -> Opened:
        body = partial(layer.open_within, transaction)
        handle = await within(self.inline, layer.inline, body)
        transform = layer.view_transform
        if transform is None:
            transform = IndexTransform(handle.domain)
        return Opened(handle=handle, transform=transform)


def _placed(layer: DriverSpec) -> DriverSpec:
    """With a transform, if the domain is known."""
    if layer.transform is not None:
        return layer
    domain = layer.known_domain()
    return layer if domain is None else layer.replace(transform=IndexTransform(domain))


def _type_of(layer: DriverSpec) -> dtype | None:
    return layer.dtype or layer.known_schema().dtype


def _common_type(layers: tuple[DriverSpec, ...], asked: dtype | None) -> dtype | None:
    common = asked
    for number, layer in enumerate(layers):
        found = _type_of(layer)
        if found is None:
            continue
        if common is not None and found is not common:
            raise SpecError(
                f"the layer holds {found.name}, but the stack {common.name}; cast it",
                ("layers", number),
            )
        common = found
    return common


def _common_rank(layers: tuple[DriverSpec, ...], asked: int | None) -> int | None:
    common = asked
    for number, layer in enumerate(layers):
        if layer.transform is None:
            continue
        found = layer.transform.input_rank
        if common is not None and found != common:
            raise SpecError(
                f"the layer has {found} dimensions, but the stack {common}", ("layers", number)
            )
        common = found
    return common


def _hull(layers: tuple[DriverSpec, ...]) -> IndexDomain | None:
    """The least domain that holds all layers; None if there are none, or one is not known."""
    hull: IndexDomain | None = None
    for number, layer in enumerate(layers):
        if layer.transform is None:
            return None
        domain = layer.transform.domain.mark_bounds_implicit[False]
        try:
            hull = domain if hull is None else hull.hull(domain)
        except (ValueError, IndexError) as error:
            raise SpecError(str(error), ("layers", number)) from None
    return hull


def _common_units(layers: tuple[DriverSpec, ...]) -> tuple[Unit | None, ...] | None:
    """The units that no two layers contradict each other about."""
    stated = []
    for layer in layers:
        if layer.transform is None:
            return None
        try:
            units = layer.known_schema()[layer.transform].dimension_units
        except (MismatchError, OutOfRangeError):  # to be found when the layer is opened
            continue
        if units is not None:
            stated.append(units)
    if not stated:
        return None
    return tuple(reduce(_merged_unit, each[1:], each[0]) for each in zip(*stated, strict=True))


def _merged_unit(first: Unit | None, second: Unit | None) -> Unit | None:
    if first is None or second is None:
        return first or second
    return first if first == second else None
