"""Transpose and reshape: the dimensions of a chunk, in another order or as others.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/ and
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/reshape
Example: `{"name": "transpose", "configuration": {"order": [1, 0]}}`, `{"name": "reshape",
"configuration": {"shape": [[0, 1], [2], 3, -1]}}`: each new dimension is a size, a list of the
dimensions that become one, or -1 for whatever is left.
Limits: encoded dimension `i` of a transpose is decoded dimension `order[i]`; only views are made,
in both directions. Behind reshape nothing is known of the array's dimensions, so that a layout says
neither their order nor the inner chunks of shards there.
"""

from __future__ import annotations

from math import prod
from typing import Annotated, ClassVar, Literal

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    BeforeValidator,
    ChunkType,
    JsonForm,
    Level,
    codec,
    describe,
)

__all__ = ["Reshape", "ReshapeSpec", "Transpose", "TransposeSpec"]

_DIMENSION = Level(0, 31)
_SIZE = Level(-1, 2**63 - 1)
_MAX_RANK = 32
_REST = -1


def _order(value: object) -> object:
    if value in ("C", "F"):
        return value
    if not isinstance(value, list | tuple):
        raise SpecError(f'expected "C", "F" or a list of dimensions, but found {value!r}')
    order = tuple(_DIMENSION.check(dimension) for dimension in value)
    if sorted(order) != list(range(len(order))):
        raise SpecError(f"{list(order)} is no permutation: each of 0 … {len(order) - 1} once")
    return order


Order = Annotated[tuple[int, ...] | Literal["C", "F"], BeforeValidator(_order)]


@codec("transpose", family="zarr3")
class TransposeSpec(ArrayToArraySpec):
    """Asked: `transpose`.

    Attributes:
        order: decoded dimension for each encoded one; `"C"` keeps, `"F"` reverses them.

    Example:
        >>> TransposeSpec.parse({"order": "F"}).to_json()
        {'order': 'F'}
    """

    order: Order

    def resolved(self, chunk: ChunkType) -> TransposeSpec:
        return self.replace(order=self.permutation(len(chunk.shape)))

    def merged(self, other: TransposeSpec) -> TransposeSpec:
        # "F" and (1, 0) say the same; the explicit form also says the rank.
        mine, theirs = self.order, other.order
        if isinstance(mine, str) and not isinstance(theirs, str):
            mine = self.permutation(len(theirs))
        elif isinstance(theirs, str) and not isinstance(mine, str):
            theirs = other.permutation(len(mine))
        return super(TransposeSpec, self.replace(order=mine)).merged(other.replace(order=theirs))

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        return Transpose(self.permutation(len(chunk.shape)), chunk)

    def permutation(self, rank: int) -> tuple[int, ...]:
        """The order for chunks of a rank.

        Raises:
            SpecError: the order is for another rank.
        """
        order = self.order
        if isinstance(order, str):
            return tuple(range(rank)) if order == "C" else tuple(reversed(range(rank)))
        if len(order) != rank:
            raise SpecError(
                f"{list(order)} permutes {len(order)} dimensions, but the chunk has {rank}",
                ("configuration", "order"),
            )
        return order


class Transpose(ArrayToArray):
    """The bound codec."""

    exact = True

    def __init__(self, order: tuple[int, ...], chunk: ChunkType) -> None:
        shape = tuple(chunk.shape[dimension] for dimension in order)
        self.encoded = ChunkType(shape, chunk.dtype, chunk.fill_value)
        self._order = order
        self._inverse = tuple(order.index(dimension) for dimension in range(len(order)))

    def encode(self, array: Array) -> Array:
        return array.transpose(self._order)

    def decode(self, array: Array) -> Array:
        return array.transpose(self._inverse)

    def view_of(self, out: Array) -> Array:
        return out.transpose(self._order)


def _new_shape(json: object) -> tuple[int | tuple[int, ...], ...]:
    if not isinstance(json, list | tuple) or len(json) > _MAX_RANK:
        raise SpecError(
            f"expected an array of up to {_MAX_RANK} sizes, lists of dimensions or -1, "
            f"but found {describe(json)}"
        )
    shape: list[int | tuple[int, ...]] = []
    for position, item in enumerate(json):
        try:
            shape.append(_dimension(item))
        except SpecError as error:
            raise error.inside(position) from None
    if shape.count(_REST) > 1:
        raise SpecError("-1 can stand for one dimension only")
    dimensions = [dimension for item in shape if isinstance(item, tuple) for dimension in item]
    if dimensions != sorted(set(dimensions)):
        raise SpecError(
            f"dimensions must be listed once each and in order, not {dimensions}: this codec does "
            "not transpose"
        )
    return tuple(shape)


def _dimension(json: object) -> int | tuple[int, ...]:
    if isinstance(json, list | tuple):
        return tuple(_DIMENSION.check(dimension) for dimension in json)
    size = _SIZE.check(json)
    if not size:
        raise SpecError("expected a positive size, a list of dimensions or -1, but found 0")
    return size


NewShape = Annotated[
    tuple[int | tuple[int, ...], ...],
    BeforeValidator(_new_shape),
    JsonForm(
        {
            "type": "array",
            "items": {
                "anyOf": [
                    {"type": "integer", "minimum": -1},
                    {"type": "array", "items": {"type": "integer", "minimum": 0}},
                ]
            },
        }
    ),
]


@codec("reshape", family="zarr3")
class ReshapeSpec(ArrayToArraySpec):
    """Asked: `reshape`.

    Attributes:
        shape: a size, the dimensions that it is the product of, or -1, for each new dimension.

    Example:
        >>> ReshapeSpec.parse({"shape": [[0, 1], 3, -1]}).sizes((4, 5, 6))
        (20, 3, 2)
    """

    keeps_dimensions: ClassVar[bool] = False

    shape: NewShape

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        encoded = ChunkType(self.sizes(chunk.shape), chunk.dtype, chunk.fill_value)
        return Reshape(chunk, encoded)

    def sizes(self, old: tuple[int, ...]) -> tuple[int, ...]:
        """The new shape of chunks of a shape.

        Raises:
            SpecError: it cannot hold as many elements, or joins dimensions in another place.
        """
        sizes: list[int] = []
        for position, item in enumerate(self.shape):
            if isinstance(item, int):
                sizes.append(item)
            elif item and item[-1] >= len(old):
                raise SpecError(
                    f"there is no dimension {item[-1]}, the chunk has {len(old)}",
                    ("shape", position),
                )
            else:
                sizes.append(prod(old[dimension] for dimension in item))
        total, count = prod(old), prod(size for size in sizes if size != _REST)
        if _REST in sizes and count:
            sizes[sizes.index(_REST)] = total // count
        if prod(sizes) != total or _REST in sizes:
            raise SpecError(
                f"a chunk of shape {list(old)} has {total} elements, which cannot have the shape "
                f"{[list(item) if isinstance(item, tuple) else item for item in self.shape]}",
                ("shape",),
            )
        self._check_places(old, sizes)
        return tuple(sizes)

    def _check_places(self, old: tuple[int, ...], sizes: list[int]) -> None:
        """Whether dimensions that are joined have as much in front of them and behind as before."""
        for position, item in enumerate(self.shape):
            if isinstance(item, tuple) and item:
                in_front = prod(sizes[:position]) == prod(old[: item[0]])
                behind = prod(sizes[position + 1 :]) == prod(old[item[-1] + 1 :])
                if not in_front or not behind:
                    raise SpecError(
                        f"{list(item)} are not the dimensions of {list(old)} that are stored at "
                        f"this place of {sizes}",
                        ("shape", position),
                    )


class Reshape(ArrayToArray):
    """The bound codec."""

    exact = True

    def __init__(self, decoded: ChunkType, encoded: ChunkType) -> None:
        self._shape = decoded.shape
        self.encoded = encoded

    def encode(self, array: Array) -> Array:
        return array.reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        return array.reshape(self._shape)

    def view_of(self, out: Array) -> Array | None:
        return out.reshape(self.encoded.shape) if out.flags.c_contiguous else None
