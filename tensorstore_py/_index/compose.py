"""Composition of frames, propagation of bounds, and evaluation at single positions.

`compose(outer, inner)` is the frame that goes through `inner` first: its positions are inner's,
its maps are outer's after inner's. Bounds of the outer domain flow to the inner one: an implicit
inner bound takes what the outer domain allows, an explicit one must lie within it.

Invariant: values of index arrays are not looked at here unless the array itself is indexed; they
are bounded by the map's `value_range` and checked when they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from tensorstore_py._index.dim import quote
from tensorstore_py._index.frame import Frame
from tensorstore_py._index.interval import (
    INF,
    BoundState,
    Interval,
    affine_domain,
    check_int64,
    contains,
    format_interval,
    from_the_end,
    int64_or_none,
    intersect_preferring_explicit,
)
from tensorstore_py._index.maps import IndexArray, OutputIndexMap, array_map, constant, single
from tensorstore_py.errors import IndexingError, OutOfRangeError

__all__ = [
    "collapse_array",
    "compose",
    "name_dim",
    "propagate",
    "propagate_domain",
    "same_maps",
    "shown_maps",
    "transform_position",
]


def name_dim(frame: Frame, dim: int) -> str:
    """A dimension for an error message: its position and its label, if it has one."""
    label = frame.labels[dim]
    return f"{dim} ({quote(label)})" if label else f"{dim}"


def propagate_domain(outer: Frame, inner: Frame) -> Frame:
    """Inner with its bounds resolved against the outer domain; maps are inner's, unchanged.

    Raises OutOfRangeError: an explicit bound or a constant lies outside the outer domain.
    """
    if len(inner.maps) != outer.rank:
        raise IndexingError(
            f"Rank {outer.rank} -> {len(outer.maps)} transform cannot be composed with rank "
            f"{inner.rank} -> {len(inner.maps)} transform: its output rank must be {outer.rank}"
        )
    is_empty = inner.is_explicitly_empty()
    inferred = _infer_bounds(outer, inner, is_empty)
    # Bound by bound, not as one list of intervals: every read comes through here.
    lower, upper = list(inner.lower), list(inner.upper)
    implicit_lower, implicit_upper = list(inner.implicit_lower), list(inner.implicit_upper)
    for dim, limits in enumerate(inferred):
        if limits is None:
            continue
        low = limits[0] if implicit_lower[dim] else lower[dim]
        up = max(low, limits[1] if implicit_upper[dim] else upper[dim])
        allowed_low = -INF if limits[2] else limits[0]
        allowed_up = INF + 1 if limits[3] else limits[1]
        if not is_empty and low != up and not (allowed_low <= low and up <= allowed_up):
            raise OutOfRangeError(
                f"dimension {name_dim(inner, dim)} {_limited(limits, low, up)}, "
                f"but {format_interval(low, up)} is asked for"
            )
        lower[dim], upper[dim] = low, up
        implicit_lower[dim] = implicit_lower[dim] and limits[2]
        implicit_upper[dim] = implicit_upper[dim] and limits[3]
    return Frame(
        tuple(lower),
        tuple(upper),
        tuple(implicit_lower),
        tuple(implicit_upper),
        inner.labels,
        inner.maps,
    )


def _infer_bounds(outer: Frame, inner: Frame, is_empty: bool) -> list[BoundState | None]:
    """Per input dimension of `inner`, what the outer domain allows; None where nothing does."""
    inferred: list[BoundState | None] = [None] * inner.rank
    for out, index_map in enumerate(inner.maps):
        if index_map.index_array is not None:
            continue
        dim, stride = index_map.input_dimension, index_map.stride
        if dim is None or stride is None:
            if not is_empty:
                _check_constant(outer, out, index_map.offset)
            continue
        low, up, implicit_low, implicit_up = outer.bounds(out)
        low, up = affine_domain(low, up, index_map.offset, stride)
        if stride < 0:
            implicit_low, implicit_up = implicit_up, implicit_low
        state = (low, up, implicit_low, implicit_up)
        known = inferred[dim]
        inferred[dim] = state if known is None else intersect_preferring_explicit(state, known)
    return inferred


def _check_constant(outer: Frame, dim: int, index: int) -> None:
    if not contains(*outer.effective(dim), index):
        lower, upper = outer.lower[dim], outer.upper[dim]
        raise OutOfRangeError(
            f"index {index} is outside {format_interval(lower, upper)} of dimension "
            f"{name_dim(outer, dim)}{from_the_end(index, lower, upper)}"
        )


def _limited(limits: BoundState, low: int, up: int) -> str:
    """What a dimension is limited to, as far as it matters for what is asked for."""
    if low >= limits[0] or limits[2]:
        return f"ends at {limits[1]}"
    if up <= limits[1] or limits[3]:
        return f"starts at {limits[0]}"
    return f"is {format_interval(limits[0], limits[1])}"


def compose(outer: Frame, inner: Frame) -> Frame:
    """The frame whose positions are inner's and whose outputs are outer's.

    Raises:
        OutOfRangeError: `inner` leaves the outer domain.
        IndexingError: the ranks do not match, or 64 bits overflow.
    """
    frame = propagate_domain(outer, inner)
    is_empty = frame.is_explicitly_empty()
    maps = tuple(
        _compose_map(outer, frame, out, index_map, is_empty)
        for out, index_map in enumerate(outer.maps)
    )
    return frame.with_maps(maps)


def _compose_map(
    outer: Frame, inner: Frame, out: int, outer_map: OutputIndexMap, is_empty: bool
) -> OutputIndexMap:
    if outer_map.index_array is not None:
        if is_empty:
            return constant(0)
        values = _index_the_array(outer, inner, outer_map.index_array)
        return collapse_array(outer_map, values, out)
    dim, stride = outer_map.input_dimension, outer_map.stride
    if dim is None or stride is None:
        return outer_map
    inner_map = inner.maps[dim]
    offset = check_int64(outer_map.offset + stride * inner_map.offset, "offset", out)
    if inner_map.stride is None:
        return constant(offset)
    total_stride = check_int64(stride * inner_map.stride, "stride", out)
    if inner_map.input_dimension is not None:
        return single(offset, total_stride, inner_map.input_dimension)
    if is_empty or inner_map.index_array is None:
        return constant(0)
    allowed = affine_domain(*outer.effective(dim), inner_map.offset, inner_map.stride)
    limits = _overlap(inner_map.value_range, allowed)
    composed = array_map(offset, total_stride, inner_map.index_array, limits)
    return collapse_array(composed, inner_map.index_array, out)


def _overlap(a: Interval, b: Interval) -> Interval:
    lower = max(a[0], b[0])
    return lower, max(lower, min(a[1], b[1]))


def collapse_array(index_map: OutputIndexMap, values: IndexArray, out: int) -> OutputIndexMap:
    """The map with other `values`, as a constant where there is only one."""
    stride = index_map.stride or 0
    if values.size != 1:
        return array_map(index_map.offset, stride, values, index_map.value_range)
    value = int(values.item())
    limits = index_map.value_range
    if not contains(*limits, value):
        raise OutOfRangeError(
            f"index {value} is outside {format_interval(*limits)} of output dimension {out}"
            + ("; negative indices do not count from the end" if value < 0 else "")
        )
    return constant(check_int64(index_map.offset + stride * value, "offset", out))


def _index_the_array(outer: Frame, inner: Frame, values: IndexArray) -> IndexArray:
    """Outer's index array seen through inner's maps: an array of inner's rank."""
    positions: list[IndexArray | int] = []
    for dim, size in enumerate(values.shape):
        positions.append(_positions(outer, inner, dim) if size != 1 else 0)
    result = values[tuple(positions)]
    if np.ndim(result) != inner.rank:
        result = np.reshape(result, (1,) * inner.rank)
    return np.asarray(result, dtype=np.int64)


def _positions(outer: Frame, inner: Frame, dim: int) -> IndexArray | int:
    """Positions along one dimension of an outer index array, relative to its origin."""
    index_map = inner.maps[dim]
    offset = index_map.offset - outer.lower[dim]
    stride = index_map.stride
    if index_map.index_array is not None and stride is not None:
        lower, upper = _overlap(
            index_map.value_range,
            affine_domain(*outer.effective(dim), index_map.offset, stride),
        )
        _check_values(index_map.index_array, lower, upper, name_dim(outer, dim))
        return index_map.index_array * stride + offset
    source = index_map.input_dimension
    if source is None or stride is None:
        return offset
    first, size = inner.lower[source], inner.upper[source] - inner.lower[source]
    steps = np.arange(size, dtype=np.int64) * stride + (first * stride + offset)
    shape = [1] * inner.rank
    shape[source] = size
    return steps.reshape(shape)


def _check_values(values: IndexArray, lower: int, upper: int, where: str) -> None:
    """Raise OutOfRangeError naming the first value outside the interval."""
    low, high = int(values.min()), int(values.max())
    if lower <= low and high < upper:
        return
    value = low if low < lower else high
    raise OutOfRangeError(
        f"index {value} is outside {format_interval(lower, upper)} of dimension {where}"
        f"{from_the_end(value, lower, upper)}"
    )


def propagate(outer: Frame, inner: Frame) -> Frame:
    """Resolve `inner` against the domain that it will be read from.

    Unlike `compose`, every value of every index array is checked now: after this, each position
    of the frame has an output inside the outer domain.

    Raises OutOfRangeError: naming the dimension, the value or bounds, and the valid range.
    """
    frame = propagate_domain(outer, inner)
    if all(index_map.index_array is None for index_map in frame.maps):
        return frame
    if frame.is_explicitly_empty():
        return frame.without_arrays()
    maps = list(frame.maps)
    for out, index_map in enumerate(maps):
        if index_map.index_array is None or index_map.stride is None:
            continue
        allowed = affine_domain(*outer.effective(out), index_map.offset, index_map.stride)
        limits = _overlap(index_map.value_range, allowed)
        if index_map.index_array.size:
            _check_values(index_map.index_array, *limits, name_dim(outer, out))
        maps[out] = array_map(index_map.offset, index_map.stride, index_map.index_array, limits)
    return frame.with_maps(tuple(maps))


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
