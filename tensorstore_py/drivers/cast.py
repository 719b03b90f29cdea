"""The `cast` driver: another array with its elements converted to another data type.

{"driver": "cast", "base": "file:///data/a/|zarr3:", "dtype": "float32"}

Everything is the base's except the elements. Constraints on the schema are the base's, too, save
the data type; a fill value is converted on its way there and back.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import Array, dtype
from tensorstore_py.plugin.driver import (
    Adapter,
    AdapterSpec,
    Driver,
    IndexTransform,
    Schema,
    driver,
    element_from_json,
    freeze,
    thaw,
)
from tensorstore_py.plugin.kvstore import model_validator, offload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Cast", "CastSpec", "conversion"]

NUMBERS = "biufc"
TEXT = frozenset({"string", "ustring"})
BYTES = frozenset({"char", "byte"})


def conversion(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    """The function that converts arrays of `source` to `target`; None if there is none.

    Example:
        >>> convert = conversion(dtype("float32"), dtype("uint8"))
        >>> convert(np.array([1.9, 300], np.float32))
        array([ 1, 44], dtype=uint8)
        >>> conversion(dtype("string"), dtype("uint8")) is None
        True
    """
    if source is target:
        return _same
    if source.kind in NUMBERS:
        return _from_numbers(source, target)
    if source.name in TEXT:
        return _from_text(source, target)
    if source.name == "json":
        if target.kind == "c" or target.name in BYTES or target.kind not in f"{NUMBERS}O":
            return None
        return (
            None if target.name == "object" else partial(_each, partial(_of_json, target), target)
        )
    if source.name in BYTES or target.name in BYTES:
        return partial(_view, target) if {source.name, target.name} <= BYTES else None
    return _from_parametric(source, target)


def _from_numbers(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    if target.kind in NUMBERS:
        if source.kind == "c" and target.kind == "b":
            return None
        return partial(_number, target)
    if target.name in TEXT:
        return None if source.kind == "b" else partial(_each, partial(_text, target), target)
    if target.name == "json":
        return partial(_each, _json_of_number, target)
    if target.kind in "mM" and source.kind in "iu":
        return partial(_through_int64, target)
    return None


def _from_text(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    decode = source.name == "string"
    if target.name == "string":
        return partial(_each, _encode, target)
    if target.name in ("ustring", "json"):
        return partial(_each, _decode, target) if decode else partial(_retype, target)
    if target.kind == "U":
        return partial(_fixed, target, decode)
    return None


def _from_parametric(source: dtype, target: dtype) -> Callable[[Array], Array] | None:
    if source.name == "object" and target.kind == "O":
        return partial(_each, partial(_of_object, target), target)
    if source.kind == "U" and target.name in ("ustring", "json"):
        return partial(_retype, target)
    if source.kind == "U" and target.name == "string":
        return partial(_each, _encode, target)
    if source.kind in "mM" and target.kind == "i" and target.itemsize == 8:
        return partial(_view, target)
    if source.kind == target.kind and np.can_cast(
        source.array_dtype, target.array_dtype, "same_kind"
    ):
        return partial(_retype, target)
    return None


def _same(array: Array) -> Array:
    return array


def _view(target: dtype, array: Array) -> Array:
    return np.ascontiguousarray(array).view(target.array_dtype).reshape(array.shape)


def _retype(target: dtype, array: Array) -> Array:
    return array.astype(target.array_dtype)


def _fixed(target: dtype, decode: bool, array: Array) -> Array:
    texts = [_decode(element) if decode else element for element in array.flat]
    longest = max((len(str(text)) for text in texts), default=0)
    if longest > target.itemsize // 4:
        raise SpecError(f"text of length {longest} does not fit data type {target.name}")
    return np.array(texts, target.array_dtype).reshape(array.shape)


def _number(target: dtype, array: Array) -> Array:
    """As a cast in C: cut towards zero, then wrapped around."""
    wanted = target.array_dtype
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and target.kind != "c":
            array = array.real
        floating = target.kind != "b" and dtype(array.dtype).kind == "f"
        # a float beyond a narrow integer is undefined in C; through a wide one it wraps
        if floating and target.kind in "iu" and target.itemsize <= 2:
            array = array.astype(np.float64).astype(np.int32)
        elif floating and target.name == "uint32":
            array = array.astype(np.float64).astype(np.int64)
        if target.name in ("int2", "int4", "uint2", "uint4"):
            mask = (1 << int(target.name[-1])) - 1
            half = mask // 2 + 1 if target.kind == "i" else 0
            array = (((array.astype(np.int64) + half) & mask) - half).astype(np.int8)
        # extension types know the way to few others
        elif array.dtype.isbuiltin == 2 and (target.kind in "biuc" or wanted.isbuiltin == 2):
            array = array.astype(np.int64 if dtype(array.dtype).kind in "iu" else np.float64)
        if wanted.isbuiltin == 2 and array.dtype.kind in "iu":
            array = array.astype(np.float64)
        return array.astype(wanted)


def _through_int64(target: dtype, array: Array) -> Array:
    return array.astype(np.int64).view(target.array_dtype)


def _each(function: Callable[[object], object], target: dtype, array: Array) -> Array:
    out = np.empty(array.shape, target.array_dtype)
    flat = out.reshape(-1)
    for place, element in enumerate(array.flat):
        flat[place] = function(element)
    return out


def _encode(element: object) -> object:
    return element.encode() if isinstance(element, str) else element


def _decode(element: object) -> object:
    if not isinstance(element, bytes):
        return element
    try:
        return element.decode()
    except UnicodeDecodeError as error:
        raise SpecError(f"{element!r} is not UTF-8 text: {error.reason}") from None


def _of_json(target: dtype, element: object) -> object:
    if target.name == "string":
        if not isinstance(element, str):
            raise SpecError(f"expected a string, but found {element!r}")
        return element.encode()
    return element_from_json(freeze(element), target)


def _of_object(target: dtype, element: object) -> object:
    if target.name == "json":
        try:
            return thaw(freeze(element))
        except TypeError as error:
            raise SpecError(str(error)) from None
    if not isinstance(element, str | bytes):
        raise SpecError(f"expected text to convert to {target.name}, but found {element!r}")
    return _encode(element) if target.name == "string" else _decode(element)


def _json_of_number(element: object) -> object:
    value = element.item() if isinstance(element, np.generic) else element
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, bool | int | float):
        return value
    number = float(value)  # type: ignore[arg-type]  # an extension type's scalar
    return int(number) if dtype(type(element)).kind == "i" else number


def _text(target: dtype, element: object) -> object:
    text = _number_text(element)
    return text.encode() if target.name == "string" else text


def _number_text(element: object) -> str:
    kind = dtype(type(element)).kind
    if kind in "iu":
        return str(int(element))  # type: ignore[call-overload]
    if isinstance(element, np.complexfloating):
        return f"({_number_text(element.real)},{_number_text(element.imag)})"
    # six digits where they say it all, as the reference prints; else as many as it takes
    value = float(element)  # type: ignore[arg-type]
    text = f"{value:g}"
    back = np.array(float(text)).astype(type(element))
    same = back == element or value != value  # noqa: PLR0124 - NaN
    return text if same else str(element)


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
            self.check_schema(found)
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
