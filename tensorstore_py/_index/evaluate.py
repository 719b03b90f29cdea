"""Evaluation of a frame: at a position, as users see its maps, and compared by values.

The only module besides `compose` that reads the values of index arrays. Nothing here makes a new
frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from tensorstore_py._index.compose import name_dim
from tensorstore_py._index.frame import Frame
from tensorstore_py._index.interval import check_int64, contains, format_interval, int64_or_none
from tensorstore_py._index.maps import OutputIndexMap, array_map
from tensorstore_py.errors import OutOfRangeError

__all__ = ["same_maps", "shown_maps", "transform_position"]


def transform_position(frame: Frame, indices: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """The output position of one input position.

    Raises:
        ValueError: the number of indices is not the rank.
        OutOfRangeError: the position lies outside the domain.
    """
    position: list[int] = []
    for item in indices:
        number = int64_or_none(item)
        if number is None:
            raise TypeError(f"A position consists of 64-bit integers, not {item!r}")
        position.append(number)
    if len(position) != frame.rank:
        raise ValueError(
            f"input indices vector of length {len(position)} cannot be used with index transform "
            f"with input rank {frame.rank}"
        )
    for dim, number in enumerate(position):
        if not contains(*frame.effective(dim), number):
            raise OutOfRangeError(
                f"Index {number} is not contained in the domain "
                f"{format_interval(*frame.bounds(dim))} for input dimension {name_dim(frame, dim)}"
            )
    return tuple(
        [_coordinate(frame, index_map, position, out) for out, index_map in enumerate(frame.maps)]
    )


def _coordinate(frame: Frame, index_map: OutputIndexMap, position: list[int], out: int) -> int:
    stride = index_map.stride
    if stride is None:
        return index_map.offset
    values = index_map.index_array
    if values is None:
        value = position[index_map.input_dimension or 0]
    else:
        element = tuple(
            [
                number - low if size != 1 else 0
                for number, low, size in zip(position, frame.lower, values.shape, strict=True)
            ]
        )
        value = int(values[element])
        if not contains(*index_map.value_range, value):
            raise OutOfRangeError(
                f"Computing index for output dimension {out}: Index {value} is outside valid "
                f"range {format_interval(*index_map.value_range)}"
            )
    return check_int64(index_map.offset + stride * value, "index", out)


def shown_maps(frame: Frame) -> tuple[OutputIndexMap, ...]:
    """The maps as users see them: an index array has no elements where the domain has none."""
    if not any(map(int.__eq__, frame.lower, frame.upper)):
        return frame.maps
    window = tuple([slice(0, extent and None) for extent in frame.shape])
    return tuple(
        [
            m
            if m.index_array is None
            else array_map(m.offset, m.stride or 0, m.index_array[window], m.value_range)
            for m in frame.maps
        ]
    )


def same_maps(a: Frame, b: Frame) -> bool:
    """Whether two frames of equal domain have equal maps.

    An index array that repeats itself equals one that does not vary along that dimension.
    """
    if len(a.maps) != len(b.maps):
        return False
    return all(_same_map(one, two) for one, two in zip(a.maps, b.maps, strict=True))


def _same_map(a: OutputIndexMap, b: OutputIndexMap) -> bool:
    if a is b:
        return True
    if a.index_array is None or b.index_array is None:
        return a == b
    if (a.offset, a.stride) != (b.offset, b.stride):
        return False
    # An interval that all values lie in says nothing, and JSON does not say it.
    if a.value_range != b.value_range and (a.reaches_outside or b.reaches_outside):
        return False
    return bool(np.all(a.index_array == b.index_array))
