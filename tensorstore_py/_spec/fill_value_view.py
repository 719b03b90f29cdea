"""Fill values seen through an index transform, in either direction.

An axis of extent 1 is broadcast and follows any transform; an axis that varies needs to know where
in the domain it lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.fill_value import FillValue, reduced
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tensorstore_py._index import IndexDomain, IndexTransform

__all__ = ["fill_value_to_input", "fill_value_to_output"]


def fill_value_to_input(
    array: FillValue, transform: IndexTransform, domain: IndexDomain | None
) -> FillValue:
    """The fill value as seen through a transform.

    Args:
        array: of the transform's output space.
        transform: bounds within `domain`.
        domain: of the output space, if known.

    Raises:
        MismatchError: without `domain`, part of an array of unknown place is selected.
    """
    if array.ndim == 0:
        return array
    rank = transform.input_rank
    missing = transform.output_rank - array.ndim
    terms: list[NDArray[np.int64]] = []
    for axis, extent in enumerate(array.shape):
        each = transform.maps[axis + missing]
        zero = np.zeros((1,) * rank, dtype=np.int64)
        if extent == 1:
            terms.append(zero)
            continue
        if domain is None:
            terms.append(_whole_axis(transform, axis + missing, extent))
            continue
        start = domain.inclusive_min[axis + missing]
        if each.index_array is not None:
            assert each.stride is not None
            terms.append(each.offset - start + each.stride * each.index_array)
        elif each.input_dimension is not None:
            assert each.stride is not None
            dim = each.input_dimension
            lower, count = transform.input_origin[dim], transform.input_shape[dim]
            steps = each.offset - start + each.stride * np.arange(lower, lower + count)
            terms.append(_along(steps, dim, rank))
        else:
            terms.append(zero + (each.offset - start))
    return reduced(array[tuple(terms)])


def _along(values: NDArray[np.int64], dim: int, rank: int) -> NDArray[np.int64]:
    return values.reshape([-1 if axis == dim else 1 for axis in range(rank)])


def _whole_axis(transform: IndexTransform, output_dim: int, extent: int) -> NDArray[np.int64]:
    """Positions along an axis whose bounds are unknown: all of them, or an error."""
    each = transform.maps[output_dim]
    dim = each.input_dimension
    if dim is None or each.stride not in (1, -1):
        raise MismatchError(
            f"fill_value varies along dimension {output_dim}, whose bounds are unknown; "
            f"give the domain before indexing"
        )
    lower, upper = transform.input_inclusive_min[dim], transform.input_inclusive_max[dim]
    bounded = lower != -INFINITY and upper != INFINITY
    if bounded and transform.input_shape[dim] != extent:
        raise MismatchError(
            f"Cannot broadcast array of shape [{extent}] to target shape "
            f"[{transform.input_shape[dim]}]"
        )
    positions = np.arange(extent, dtype=np.int64)[:: each.stride]
    return _along(positions, dim, transform.input_rank)


def fill_value_to_output(array: FillValue, transform: IndexTransform) -> FillValue:
    """The fill value of a transform's output space, given that of its input space.

    Raises:
        MismatchError: an axis that varies has no output dimension of unit stride.
    """
    if array.ndim == 0:
        return array
    missing = transform.input_rank - array.ndim
    shape, strides = [], []
    used = set()
    flips: list[slice] = []
    for each in transform.maps:
        axis = -1 if each.input_dimension is None else each.input_dimension - missing
        if axis < 0 or array.shape[axis] == 1:
            shape.append(1)
            strides.append(0)
            flips.append(slice(None))
            continue
        if each.stride not in (1, -1) or axis in used:
            raise MismatchError("fill_value varies along a dimension that is strided or diagonal")
        used.add(axis)
        shape.append(array.shape[axis])
        strides.append(array.strides[axis])
        flips.append(slice(None, None, each.stride))
    lost = [a for a, extent in enumerate(array.shape) if extent != 1 and a not in used]
    if lost:
        raise MismatchError(
            f"fill_value varies along input dimension {lost[0] + missing}, "
            f"which no output dimension follows"
        )
    return reduced(as_strided(array, shape, strides, writeable=False)[tuple(flips)])
