"""What is asked of a cast, and the open driver: everything is the base's except the elements.

Constraints on the schema are the base's, too, save the data type; a fill value is converted on
its way there and back.
"""

from __future__ import annotations

from typing import ClassVar, Self

from tensorstore_py.drivers.cast.conversion import conversion
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    Adapter,
    AdapterSpec,
    Array,
    Driver,
    IndexTransform,
    Schema,
    check_schema,
    driver,
    dtype,
    model_validator,
    offload,
)

__all__ = ["Cast", "CastSpec"]


@driver("cast", schemes=["cast"])
class CastSpec(AdapterSpec):
    """An array of another data type.

    Attributes:
        dtype: the data type to read and write as; may come later, as an option of `ts.open`.

    Example:
        >>> CastSpec.from_url("cast:float32")
        {'driver': 'cast', 'dtype': 'float32'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        asked = super().known_schema()
        if self.schema_ is None:
            return self
        if self.base.transform is not None:
            return self.replace(dtype=asked.dtype)  # compared when it is open
        below = self.base.schema_.copy() if self.base.schema_ is not None else Schema()
        below.update(
            rank=asked.rank,
            domain=asked.domain,
            chunk_layout=asked.chunk_layout,
            codec=asked.codec,
            fill_value=self._base_fill_value(asked.fill_value),
            dimension_units=asked.dimension_units,
        )
        base = self.base.replace(schema_=below).checked()
        return self.replace(base=base, dtype=asked.dtype, schema_=None)

    def _base_fill_value(self, value: Array | None) -> Array | None:
        below = self.base.known_schema().dtype
        if value is None or below is None or value.dtype.hasobject:
            return value
        convert = conversion(dtype(value.dtype), below)
        return value if convert is None else convert(value)

    def known_schema(self) -> Schema:
        below = self.base.known_schema()
        if self.base.transform is not None:
            below = below[self.base.transform]
        schema = _cast_schema(below, self.dtype)
        if self.transform is not None:
            schema.update(rank=self.transform.output_rank)
        return schema

    def over(self, base: Driver) -> Driver:
        if self.dtype is None:
            raise SpecError(
                'the data type to convert to is required, for example "float32"', ("dtype",)
            )
        made = Cast(self, base, self.dtype)
        if self.schema_ is not None:
            view = self.base.view_transform
            found = made.schema if view is None else made.schema[view]
            check_schema(self.schema_, found)
        return made

    @classmethod
    def from_url(cls, part: str) -> dict[str, object]:
        """The JSON for `cast:DTYPE`.

        Raises:
            SpecError: no such data type.
        """
        return {"driver": "cast", "dtype": dtype.parse(part.partition(":")[2]).to_json()}

    def to_url(self) -> str:
        if self.dtype is None:
            raise SpecError("a cast without a data type has no URL form", ("dtype",))
        return f"{self.base.to_url()}|cast:{self.dtype.name}"


class Cast(Adapter):
    """An open array, its elements converted on the way.

    Args:
        spec: what it was opened with.
        base: the array underneath.
        data_type: the type to convert to.

    Raises:
        SpecError: there is no conversion in either direction.
    """

    def __init__(self, spec: CastSpec, base: Driver, data_type: dtype) -> None:
        super().__init__(spec, base)
        self.data_type = data_type
        self._out = conversion(base.data_type, data_type)
        self._in = conversion(data_type, base.data_type)
        if self._out is None and self._in is None:
            raise SpecError(f"Cannot convert {base.data_type.name} <-> {data_type.name}")
        self.readable = base.readable and self._out is not None
        self.writable = base.writable and self._in is not None

    @property
    def schema(self) -> Schema:
        return _cast_schema(self._base.schema, self.data_type)

    async def read(self, transform: IndexTransform, order: str) -> Array:
        array = await self._base.read(transform, order)
        convert = self._out
        assert convert is not None
        return await offload(self.inline, lambda: convert(array))

    async def write(self, transform: IndexTransform, source: Array) -> None:
        convert = self._in
        assert convert is not None
        await self._base.write(transform, await offload(self.inline, lambda: convert(source)))


def _cast_schema(base: Schema, data_type: dtype | None) -> Schema:
    """The base's schema with another data type; a fill value that cannot follow is left out."""
    fill_value = base.fill_value
    if fill_value is not None and data_type is not None:
        # One that was given as JSON, before the base's data type was known, is JSON still.
        known = base.dtype or dtype("json" if fill_value.dtype.hasobject else fill_value.dtype)
        convert = conversion(known, data_type)
        fill_value = None if convert is None else convert(fill_value)
    return Schema(
        rank=base.rank,
        dtype=data_type,
        domain=base.domain,
        chunk_layout=base.chunk_layout,
        codec=base.codec,
        fill_value=fill_value,
        dimension_units=base.dimension_units,
    )
