"""Operations on selected dimensions of a frame, each a pure function.

translate, stride, label, mark_bounds_implicit, transpose and diagonal. `dims` is always a list of
distinct dimension indices in `[0, rank)`; functions that change which dimensions it names return
the new selection next to the frame.

Invariant: none of them reads the values of an index array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from tensorstore_py._index.compose import collapse_array
from tensorstore_py._index.frame import Frame
from tensorstore_py._index.interval import (
    INF,
    affine_domain,
    check_int64,
    format_interval,
    shift,
)
from tensorstore_py._index.labels import require_unique
from tensorstore_py._index.maps import OutputIndexMap, array_map, constant, single
from tensorstore_py._index.selection import DimRange, DimSpec, normalize_index, resolve_range
from tensorstore_py.errors import IndexingError, OutOfRangeError

__all__ = [
    "IndexVector",
    "TranslateKind",
    "diagonal",
    "label",
    "mark_bounds_implicit",
    "stride",
    "translate",
    "transpose",
    "transpose_to",
]

IndexVector: TypeAlias = int | tuple[int | None, ...] | None
"""One value for all selected dimensions, or one for each; None leaves a dimension alone."""

TranslateKind: TypeAlias = Literal["to", "by", "backward_by"]


def _spread(values: IndexVector, count: int) -> Sequence[int | None]:
    if not isinstance(values, tuple):
        return (values,) * count
    if not values:
        # An empty vector means 0 for every dimension, a peculiarity of the reference.
        return (0,) * count
    if len(values) != count:
        raise IndexingError(
            f"Number of dimensions ({count}) does not match number of indices ({len(values)})"
        )
    return values


def translate(frame: Frame, dims: list[int], values: IndexVector, kind: TranslateKind) -> Frame:
    """Move the domain; the outputs of the moved positions stay the same."""
    lower, upper = list(frame.lower), list(frame.upper)
    moves = [0] * frame.rank
    for dim, value in zip(dims, _spread(values, len(dims)), strict=True):
        if value is None:
            continue
        offset = value
        if kind == "to":
            offset = _offset_to(value, lower[dim], upper[dim])
        elif kind == "backward_by":
            offset = -value
        lower[dim], upper[dim] = shift(lower[dim], upper[dim], offset)
        moves[dim] = offset
    maps = frame.maps
    if any(moves):
        maps = tuple(_moved(m, moves, out) for out, m in enumerate(maps))
    return Frame(
        tuple(lower), tuple(upper), frame.implicit_lower, frame.implicit_upper, frame.labels, maps
    )


def _offset_to(origin: int, lower: int, upper: int) -> int:
    if not -INF < origin < INF:
        raise OutOfRangeError(
            f"Origin {origin} is outside valid range {format_interval(-INF + 1, INF)}"
        )
    if lower == -INF:
        raise IndexingError(f"Interval {format_interval(lower, upper)} is not bounded below")
    return origin - lower


def _moved(index_map: OutputIndexMap, moves: list[int], out: int) -> OutputIndexMap:
    dim, step = index_map.input_dimension, index_map.stride
    if dim is None or step is None or not moves[dim]:
        return index_map
    return single(check_int64(index_map.offset - moves[dim] * step, "offset", out), step, dim)


def stride(frame: Frame, dims: list[int], values: IndexVector) -> Frame:
    """Keep the positions that are multiples of the stride, divided by it."""
    lower, upper = list(frame.lower), list(frame.upper)
    implicit_lower, implicit_upper = list(frame.implicit_lower), list(frame.implicit_upper)
    steps = [1] * frame.rank
    for dim, step in zip(dims, _spread(values, len(dims)), strict=True):
        if not step:
            raise IndexingError(f"Applying stride to input dimension {dim}: it must be non-zero")
        lower[dim], upper[dim] = affine_domain(lower[dim], upper[dim], 0, step)
        if step < 0:
            implicit_lower[dim], implicit_upper[dim] = implicit_upper[dim], implicit_lower[dim]
        steps[dim] = step
    result = Frame(
        tuple(lower),
        tuple(upper),
        tuple(implicit_lower),
        tuple(implicit_upper),
        frame.labels,
        (),
    )
    is_empty = result.is_explicitly_empty()
    return result.with_maps(
        tuple(
            _strided(frame, result, m, steps=steps, out=out, is_empty=is_empty)
            for out, m in enumerate(frame.maps)
        )
    )


def _strided(
    old: Frame, new: Frame, index_map: OutputIndexMap, *, steps: list[int], out: int, is_empty: bool
) -> OutputIndexMap:
    dim, step = index_map.input_dimension, index_map.stride
    if dim is not None and step is not None:
        return single(index_map.offset, check_int64(step * steps[dim], "stride", out), dim)
    values = index_map.index_array
    if values is None:
        return index_map
    if is_empty:
        return constant(0)
    for axis, factor in enumerate(steps):
        if factor != 1 and values.shape[axis] > 1:
            first = new.lower[axis] * factor - old.lower[axis]
            count = new.upper[axis] - new.lower[axis]
            values = values.take(np.arange(count) * factor + first, axis=axis)
    return collapse_array(index_map, values, out)


def label(frame: Frame, dims: list[int], labels: Sequence[str]) -> Frame:
    """Rename dimensions."""
    if len(dims) != len(labels):
        raise IndexingError(
            f"Number of dimensions ({len(dims)}) does not match number of labels ({len(labels)})."
        )
    new = list(frame.labels)
    for dim, text in zip(dims, labels, strict=True):
        new[dim] = text
    require_unique(new)
    return Frame(
        frame.lower,
        frame.upper,
        frame.implicit_lower,
        frame.implicit_upper,
        tuple(new),
        frame.maps,
    )


def mark_bounds_implicit(
    frame: Frame, dims: list[int], lower: bool | None, upper: bool | None
) -> Frame:
    """Set or clear the implicit flags; None leaves a flag alone."""
    if lower or upper:
        for out, index_map in enumerate(frame.maps):
            values = index_map.index_array
            for dim in dims:
                if values is not None and values.shape[dim] != 1:
                    raise IndexingError(
                        f"Cannot mark input dimension {dim} as having implicit bounds because it "
                        f"indexes the index array map for output dimension {out}"
                    )
    implicit_lower, implicit_upper = list(frame.implicit_lower), list(frame.implicit_upper)
    for dim in dims:
        if lower is not None:
            implicit_lower[dim] = lower
        if upper is not None:
            implicit_upper[dim] = upper
    result = Frame(
        frame.lower,
        frame.upper,
        tuple(implicit_lower),
        tuple(implicit_upper),
        frame.labels,
        frame.maps,
    )
    return result.without_arrays() if result.is_explicitly_empty() else result


def transpose(frame: Frame, order: Sequence[int]) -> Frame:
    """Reorder the dimensions: dimension i of the result is dimension `order[i]` of `frame`."""
    place = {old: new for new, old in enumerate(order)}
    return Frame(
        tuple([frame.lower[dim] for dim in order]),
        tuple([frame.upper[dim] for dim in order]),
        tuple([frame.implicit_lower[dim] for dim in order]),
        tuple([frame.implicit_upper[dim] for dim in order]),
        tuple([frame.labels[dim] for dim in order]),
        tuple([_renumbered(m, place, order) for m in frame.maps]),
    )


def _renumbered(
    index_map: OutputIndexMap, place: dict[int, int], order: Sequence[int]
) -> OutputIndexMap:
    step = index_map.stride
    if step is None:
        return index_map
    if index_map.input_dimension is not None:
        return single(index_map.offset, step, place[index_map.input_dimension])
    values = index_map.index_array
    if values is None:
        return index_map
    return array_map(index_map.offset, step, values.transpose(order), index_map.value_range)


def transpose_to(
    frame: Frame, dims: list[int], targets: tuple[DimSpec, ...]
) -> tuple[Frame, list[int]]:
    """Move the selected dimensions to the target positions; the others fill the gaps in order."""
    rank = frame.rank
    if len(targets) == 1 and isinstance(targets[0], int):
        first = normalize_index(targets[0], rank - len(dims) + 1) if dims else 0
        places = list(range(first, first + len(dims)))
    else:
        places = _resolve_targets(targets, rank)
    if len(places) != len(dims):
        raise IndexingError(
            f"Number of selected dimensions ({len(dims)}) must equal number of target dimensions "
            f"({len(places)})"
        )
    order: list[int | None] = [None] * rank
    for old, place in zip(dims, places, strict=True):
        if order[place] is not None:
            raise IndexingError(f"Target dimension {place} occurs more than once")
        order[place] = old
    rest = iter([dim for dim in range(rank) if dim not in dims])
    return transpose(frame, [next(rest) if old is None else old for old in order]), places


def _resolve_targets(targets: tuple[DimSpec, ...], rank: int) -> list[int]:
    places: list[int] = []
    for target in targets:
        if isinstance(target, str):
            raise IndexingError("Target dimensions cannot be specified by label")
        if isinstance(target, DimRange):
            places.extend(resolve_range(target, rank))
        else:
            places.append(normalize_index(target, rank))
    return places


def diagonal(frame: Frame, dims: list[int]) -> tuple[Frame, list[int]]:
    """Walk the selected dimensions in step; the new dimension comes first, unlabeled."""
    rest = [dim for dim in range(frame.rank) if dim not in dims]
    lower = max((frame.lower[dim] for dim in dims), default=-INF)
    upper = max(lower, min((frame.upper[dim] for dim in dims), default=INF + 1))
    result = Frame(
        (lower, *(frame.lower[dim] for dim in rest)),
        (upper, *(frame.upper[dim] for dim in rest)),
        (all(frame.implicit_lower[dim] for dim in dims), *_pick(frame.implicit_lower, rest)),
        (all(frame.implicit_upper[dim] for dim in dims), *_pick(frame.implicit_upper, rest)),
        ("", *(frame.labels[dim] for dim in rest)),
        (),
    )
    is_empty = result.is_explicitly_empty()
    maps = tuple(
        _on_diagonal(frame, result, m, dims=dims, rest=rest, is_empty=is_empty) for m in frame.maps
    )
    return result.with_maps(maps), [0]


def _pick(flags: tuple[bool, ...], dims: list[int]) -> list[bool]:
    return [flags[dim] for dim in dims]


def _on_diagonal(
    old: Frame,
    new: Frame,
    index_map: OutputIndexMap,
    *,
    dims: list[int],
    rest: list[int],
    is_empty: bool,
) -> OutputIndexMap:
    step, dim = index_map.stride, index_map.input_dimension
    if step is None:
        return index_map
    if dim is not None:
        return single(index_map.offset, step, 0 if dim in dims else 1 + rest.index(dim))
    values = index_map.index_array
    if values is None or is_empty:
        return constant(0)
    count = new.upper[0] - new.lower[0]
    varies = any(values.shape[d] != 1 for d in dims)
    position = np.arange(count) if varies else np.zeros(1, dtype=np.int64)
    picks: dict[int, np.ndarray | int] = {
        d: position + (new.lower[0] - old.lower[d]) if values.shape[d] != 1 else 0 for d in dims
    }
    moved = values.transpose([*dims, *rest])
    walked = moved[tuple(picks[d] for d in dims)]
    if not varies:
        walked = walked[np.newaxis]
    return array_map(index_map.offset, step, np.array(walked), index_map.value_range)
