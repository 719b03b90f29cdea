"""Operations on dimensions of a frame, each a pure function, and what their brackets accept.

translate, stride, label, mark_bounds_implicit, transpose and diagonal. `dims` is always a list of
distinct dimension indices in `[0, rank)`; functions that change which dimensions it names return
the new selection next to the frame. `restrict` is what indexing with an `IndexDomain` means:
dimensions are matched by label where both sides have labels, else by position.

Invariant: none of them reads the values of an index array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from tensorstore_py._index.compose import collapse_array
from tensorstore_py._index.dim import find_label, quote, require_unique
from tensorstore_py._index.frame import Frame
from tensorstore_py._index.interval import (
    INF,
    affine_domain,
    check_int64,
    format_interval,
    int64_or_none,
    shift,
)
from tensorstore_py._index.maps import OutputIndexMap, array_map, constant, single
from tensorstore_py._index.numpy_terms import IndexMode
from tensorstore_py._index.selection import DimRange, DimSpec, normalize_index, resolve_range
from tensorstore_py.errors import IndexingError, OutOfRangeError

__all__ = [
    "IndexSubscript",
    "IndexVector",
    "Subscript",
    "TranslateKind",
    "diagonal",
    "label",
    "mark_bounds_implicit",
    "parse_implicit",
    "parse_index_vector",
    "parse_labels",
    "restrict",
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
    bounds = frame.all_bounds()
    moves = [0] * frame.rank
    for dim, value in zip(dims, _spread(values, len(dims)), strict=True):
        if value is None:
            continue
        low, up, implicit_low, implicit_up = bounds[dim]
        offset = value
        if kind == "to":
            offset = _offset_to(value, low, up)
        elif kind == "backward_by":
            offset = -value
        bounds[dim] = (*shift(low, up, offset), implicit_low, implicit_up)
        moves[dim] = offset
    maps = frame.maps
    if any(moves):
        maps = tuple(_moved(m, moves, out) for out, m in enumerate(maps))
    return Frame.of(bounds, frame.labels, maps)


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
    bounds = frame.all_bounds()
    steps = [1] * frame.rank
    for dim, step in zip(dims, _spread(values, len(dims)), strict=True):
        if not step:
            raise IndexingError(f"Applying stride to input dimension {dim}: it must be non-zero")
        low, up, implicit_low, implicit_up = bounds[dim]
        if step < 0:
            implicit_low, implicit_up = implicit_up, implicit_low
        bounds[dim] = (*affine_domain(low, up, 0, step), implicit_low, implicit_up)
        steps[dim] = step
    result = Frame.of(bounds, frame.labels)
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
    return Frame.of(frame.all_bounds(), new, frame.maps)


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
    bounds = frame.all_bounds()
    for dim in dims:
        low, up, implicit_low, implicit_up = bounds[dim]
        bounds[dim] = (
            low,
            up,
            implicit_low if lower is None else lower,
            implicit_up if upper is None else upper,
        )
    result = Frame.of(bounds, frame.labels, frame.maps)
    return result.without_arrays() if result.is_explicitly_empty() else result


def transpose(frame: Frame, order: Sequence[int]) -> Frame:
    """Reorder the dimensions: dimension i of the result is dimension `order[i]` of `frame`."""
    place = {old: new for new, old in enumerate(order)}
    return Frame.of(
        [frame.bounds(dim) for dim in order],
        [frame.labels[dim] for dim in order],
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
    implicit_lower = all(frame.implicit_lower[dim] for dim in dims)
    implicit_upper = all(frame.implicit_upper[dim] for dim in dims)
    result = Frame.of(
        [(lower, upper, implicit_lower, implicit_upper), *(frame.bounds(dim) for dim in rest)],
        ["", *(frame.labels[dim] for dim in rest)],
    )
    is_empty = result.is_explicitly_empty()
    maps = tuple(
        _on_diagonal(frame, result, m, dims=dims, rest=rest, is_empty=is_empty) for m in frame.maps
    )
    return result.with_maps(maps), [0]


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


def restrict(frame: Frame, domain: Frame) -> Frame:
    """Restrict a frame to a domain whose dimensions are matched by label, else by position.

    Raises:
        OutOfRangeError: the domain is not contained in the frame's.
        IndexingError: the dimensions cannot be matched.
    """
    dims, labels = _match(frame, domain)
    bounds = frame.all_bounds()
    is_empty = False
    for position, dim in enumerate(dims):
        low, up = domain.lower[position], domain.upper[position]
        allowed_low, allowed_up = frame.effective(dim)
        if low == up:
            is_empty = True
        elif low < allowed_low or up > allowed_up:
            raise OutOfRangeError(
                f"Cannot slice target dimension {dim} {{{_describe(frame, dim)}}} with index "
                f"domain dimension {position} {{{_describe(domain, position)}}}"
            )
        bounds[dim] = (low, up, False, False)
    result = Frame.of(bounds, labels, frame.maps)
    if is_empty:
        return result.without_arrays()
    return result.with_maps(tuple(_cropped(frame, result, m) for m in frame.maps))


def _describe(frame: Frame, dim: int) -> str:
    prefix = f"{quote(frame.labels[dim])}: " if frame.labels[dim] else ""
    return prefix + format_interval(*frame.bounds(dim))


def _match(frame: Frame, domain: Frame) -> tuple[list[int], tuple[str, ...]]:
    """The frame's dimension for each of the domain's, and the labels of the result."""
    has_labels = any(domain.labels)
    if not has_labels or not any(frame.labels):
        if domain.rank != frame.rank:
            raise IndexingError(
                f"Rank of index domain ({domain.rank}) must match rank of slice target "
                f"({frame.rank}) when the index domain or slice target is unlabeled"
            )
        return list(range(frame.rank)), domain.labels if has_labels else frame.labels
    unlabeled = iter([dim for dim, text in enumerate(frame.labels) if not text])
    dims: list[int] = []
    for text in domain.labels:
        dim = find_label(text, frame.labels) if text else next(unlabeled, None)
        if dim is None:
            raise IndexingError(
                "Number of unlabeled dimensions in index domain exceeds number of unlabeled "
                "dimensions in slice target"
            )
        dims.append(dim)
    if not all(domain.labels) and frame.rank != domain.rank:
        raise IndexingError(
            f"Rank ({domain.rank}) of index domain containing unlabeled dimensions must equal "
            f"slice target rank ({frame.rank})"
        )
    return dims, frame.labels


def _cropped(old: Frame, new: Frame, index_map: OutputIndexMap) -> OutputIndexMap:
    values = index_map.index_array
    if values is None or index_map.stride is None:
        return index_map
    window: list[slice] = []
    for dim, size in enumerate(values.shape):
        start = new.lower[dim] - old.lower[dim] if size != 1 else 0
        count = new.upper[dim] - new.lower[dim] if size != 1 else 1
        window.append(slice(start, start + count))
    return array_map(
        index_map.offset, index_map.stride, values[tuple(window)], index_map.value_range
    )


Result_co = TypeVar("Result_co", covariant=True)


class Subscript(Generic[Result_co]):
    """`parent.name[key]` as `function(key)`; its repr says which parent and name."""

    __slots__ = ("_function", "_name", "_parent")
    __iter__ = None
    """Without this, Python would iterate by calling `__getitem__` with 0, 1, 2, …"""

    def __init__(self, parent: object, name: str, function: Callable[[object], Result_co]) -> None:
        self._parent = parent
        self._name = name
        self._function = function

    def __getitem__(self, key: object) -> Result_co:
        return self._function(key)

    def __repr__(self) -> str:
        return f"{self._parent!r}.{self._name}"


class _Assignable(Protocol):
    def _assign_index(self, index: object, mode: IndexMode, source: object) -> None: ...


class IndexSubscript(Subscript[Result_co]):
    """`x.oindex[...]` and `x.vindex[...]`; they assign too where the parent can."""

    __slots__ = ("_mode",)

    def __init__(
        self, parent: _Assignable, mode: IndexMode, function: Callable[[object], Result_co]
    ) -> None:
        super().__init__(parent, mode, function)
        self._mode: IndexMode = mode

    def __setitem__(self, index: object, source: object) -> None:
        parent: _Assignable = self._parent  # type: ignore[assignment]
        parent._assign_index(index, self._mode, source)


def parse_index_vector(key: object) -> IndexVector:
    """An integer or None, or a sequence of these; TypeError otherwise."""
    if key is None:
        return None
    number = int64_or_none(key)
    if number is not None:
        return number
    if isinstance(key, Iterable) and not isinstance(key, str | bytes):
        numbers = tuple((item, int64_or_none(item)) for item in key)
        if all(item is None or number is not None for item, number in numbers):
            return tuple(number for _, number in numbers)
    raise TypeError(f"Expected an integer, None or a sequence of these, but received {key!r}")


def parse_labels(key: object) -> tuple[str, ...]:
    """A label or a sequence of labels; TypeError otherwise."""
    if isinstance(key, str):
        return (key,)
    if isinstance(key, Iterable):
        labels = tuple(key)
        if all(isinstance(item, str) for item in labels):
            return labels
    raise TypeError(f"Expected a label or a sequence of labels, but received {key!r}")


def parse_implicit(key: object) -> tuple[bool | None, bool | None]:
    """A bool for both bounds, or `lower:upper` with None for a bound to leave alone."""
    if not isinstance(key, slice):
        flag = _parse_flag(key)
        return flag, flag
    if key.step is not None:
        raise TypeError(f"mark_bounds_implicit takes lower:upper without a step, not {key!r}")
    return _parse_flag(key.start), _parse_flag(key.stop)


def _parse_flag(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.bool_ | int):
        return bool(value)
    raise TypeError(f"mark_bounds_implicit takes bools or None, not {value!r}")
