"""Transpose: the order in which a chunk's dimensions are stored.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/
Names: `transpose` (zarr3).
Example: `{"name": "transpose", "configuration": {"order": [1, 0]}}`.
Limits: none. Encoded dimension `i` is decoded dimension `order[i]`. Only views are made, in both
directions; who needs the elements side by side copies them anyway.
"""

from __future__ import annotations

from typing import Annotated, Literal

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    BeforeValidator,
    ChunkType,
    Level,
    codec,
)

__all__ = ["Transpose", "TransposeSpec"]

_DIMENSION = Level(0, 31)


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
    """The bound codec.

    Args:
        order: decoded dimension for each encoded one.
        chunk: the decoded chunk.
    """

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
