"""Orders of dimensions (permutations) passed through an index transform.

Pure; the result is a permutation of the other side's dimensions, whatever the transform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorstore_py._index import IndexTransform

__all__ = ["input_order", "output_order"]

_LAST = 32


def input_order(transform: IndexTransform, order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of input dimensions for an order of the output dimensions.

    An input dimension stands where the first output dimension that it maps to stood; those that
    map to none come last.
    """
    position = [_LAST] * transform.input_rank
    for place, output_dim in enumerate(order):
        source = transform.maps[output_dim].input_dimension
        if source is not None:
            position[source] = min(position[source], place)
    return tuple(sorted(range(transform.input_rank), key=lambda dim: (position[dim], dim)))


def output_order(transform: IndexTransform, order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of output dimensions for an order of the input dimensions.

    Output dimensions that do not come from one input dimension come last.
    """
    place = {dim: position for position, dim in enumerate(order)}
    position = [
        _LAST if each.input_dimension is None else place[each.input_dimension]
        for each in transform.maps
    ]
    return tuple(sorted(range(transform.output_rank), key=lambda dim: (position[dim], dim)))
