"""Cast value: numbers stored as another type of numbers.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value
Example: `{"name": "cast_value", "configuration": {"data_type": "uint8", "out_of_range": "clamp",
"rounding": "nearest-even", "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}}`.
Limits: integers and real floats. What the stored type cannot hold, and no member says what becomes
of it, is an error when it is written; so is a fill value that does not come back.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from tensorstore_py.codecs.exact_numbers.arithmetic import (
    OutOfRange,
    Rounding,
    UnrepresentableError,
    cast_numbers,
)
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    BeforeValidator,
    ChunkType,
    JsonForm,
    Model,
    codec,
    describe,
    dtype,
    parse_number,
)

__all__ = ["CastValue", "CastValueSpec", "ScalarMap"]


def _type_name(json: object) -> str:
    """The name of a type of real numbers, however metadata writes it."""
    name = json
    if isinstance(json, dict) and json.keys() <= {"name", "configuration"}:
        name = json.get("name") if json.get("configuration", {}) == {} else None
    if isinstance(name, str):
        try:
            found = dtype(name)
        except ValueError:
            found = None
        if found is not None and found.kind in "iuf" and found.name == name:
            return name
    raise SpecError(
        f'expected the name of a type of integers or floats, such as "uint8", '
        f"but found {describe(json)}"
    )


def _pairs(json: object) -> object:
    if not isinstance(json, list | tuple):
        raise SpecError(f"expected an array of [input, output], but found {describe(json)}")
    for position, pair in enumerate(json):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise SpecError(f"expected [input, output], but found {describe(pair)}", (position,))
    return json


TypeName = Annotated[
    str, BeforeValidator(_type_name), JsonForm({"type": "string", "examples": ["uint8"]})
]
Pairs = Annotated[
    tuple[tuple[int | float | str, int | float | str], ...],
    BeforeValidator(_pairs),
    JsonForm({"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}}),
]


class ScalarMap(Model):
    """Numbers that become certain others, whatever the rules say.

    Attributes:
        encode: pairs of a number of the array and the one that is stored.
        decode: pairs of a number that is stored and one of the array.
    """

    encode: Pairs = ()
    decode: Pairs = ()


@codec("cast_value", family="zarr3")
class CastValueSpec(ArrayToArraySpec):
    """Asked: `cast_value`.

    Attributes:
        data_type: the type that is stored.
        rounding: which neighbour a number becomes that the type does not have.
        out_of_range: what becomes of numbers beyond its greatest and least; an error by default.
        scalar_map: exceptions from the rules.

    Example:
        >>> CastValueSpec.parse({"data_type": {"name": "int8"}, "out_of_range": "wrap"}).to_json()
        {'data_type': 'int8', 'out_of_range': 'wrap'}
    """

    data_type: TypeName
    rounding: Rounding = "nearest-even"
    out_of_range: OutOfRange | None = None
    scalar_map: ScalarMap = ScalarMap()

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        try:
            source = dtype(chunk.dtype)
        except ValueError:
            source = None
        if source is None or source.kind not in "iuf":
            raise SpecError(f'codec "cast_value" casts integers and floats, not {chunk.dtype}')
        stored = dtype(self.data_type)
        if self.out_of_range == "wrap" and stored.kind == "f":
            raise SpecError(
                f'only integers wrap around, not {stored.name}; "clamp" is possible',
                ("out_of_range",),
            )
        forwards = _Way(
            stored.array_dtype,
            self.rounding,
            self.out_of_range,
            _parsed(self.scalar_map.encode, source, stored, "encode"),
        )
        backwards = _Way(
            source.array_dtype,
            self.rounding,
            None if self.out_of_range == "wrap" and source.kind == "f" else self.out_of_range,
            _parsed(self.scalar_map.decode, stored, source, "decode"),
        )
        return CastValue(chunk, forwards, backwards)


class _Way(NamedTuple):
    """One of the two directions.

    Attributes:
        target: the type that numbers become.
        rounding: as in the spec.
        out_of_range: as in the spec.
        exceptions: pairs of input and output, each an array of rank 0.
    """

    target: np.dtype[np.generic]
    rounding: Rounding
    out_of_range: OutOfRange | None
    exceptions: list[tuple[Array, Array]]

    def go(self, array: Array) -> Array:
        """All numbers of an array.

        Raises:
            UnrepresentableError: one has no counterpart.
        """
        masks = [(_equal(array, given), wanted) for given, wanted in self.exceptions]
        hit = [(mask, wanted) for mask, wanted in masks if mask.any()]
        if hit:
            # 1, which every type has, stands where the rules do not count.
            some = np.any([mask for mask, _ in hit], axis=0)
            array = np.where(some, np.ones((), array.dtype), array)
        out = cast_numbers(
            array, self.target, rounding=self.rounding, out_of_range=self.out_of_range
        )
        # The first exception for a number counts, so it has the last word.
        for mask, wanted in reversed(hit):
            out = np.where(mask, wanted, out)
        return out


class CastValue(ArrayToArray):
    """The bound codec.

    Raises:
        SpecError: the fill value does not come back.
    """

    def __init__(self, decoded: ChunkType, forwards: _Way, backwards: _Way) -> None:
        self._forwards = forwards
        self._backwards = backwards
        fill_value = decoded.fill_value
        try:
            stored = forwards.go(fill_value)
            returned = backwards.go(stored)
        except UnrepresentableError as error:
            raise SpecError(f"the fill value cannot be stored: {error}") from None
        if not _equal(returned, fill_value).all():
            raise SpecError(
                f"the fill value {fill_value} would come back as {returned}: map it by "
                '"scalar_map", or choose another'
            )
        self.encoded = ChunkType(decoded.shape, forwards.target, np.asarray(stored))

    def encode(self, array: Array) -> Array:
        try:
            return self._forwards.go(array)
        except UnrepresentableError as error:
            raise ValueError(
                f'codec "cast_value": {error}; say by "out_of_range" or "scalar_map" what becomes '
                "of it"
            ) from None

    def decode(self, array: Array) -> Array:
        try:
            return self._backwards.go(array)
        except UnrepresentableError as error:
            raise DataLossError(
                f'codec "cast_value": what is stored does not fit: {error}'
            ) from None


def _parsed(pairs: Pairs, given: dtype, wanted: dtype, member: str) -> list[tuple[Array, Array]]:
    parsed: list[tuple[Array, Array]] = []
    for position, pair in enumerate(pairs):
        try:
            parsed.append((parse_number(pair[0], given), parse_number(pair[1], wanted)))
        except SpecError as error:
            raise error.inside("scalar_map", member, position) from None
    return parsed


def _equal(array: Array, value: Array) -> Array:
    """Where the number is; what is no number is one as good as another."""
    same = np.asarray(array == value)
    if (value != value).any():  # noqa: PLR0124 - NaN
        same = same | np.asarray(array != array)  # noqa: PLR0124 - NaN
    return same
