"""NumPy-style indexing of a frame, and `index_into`, which takes index terms of any kind.

`index_frame` applies an expression to all dimensions of a frame, `index_selected` to the ones that
a dimension selection names. There are two ways:
- an expression of integers, `...`, `None` and slices, on a frame without index arrays, selects a
  box: `_apply_box` computes the result at once (`try_basic_index`, `try_basic_selected`);
- any other builds the inner frame that the terms describe and composes it. So does a box that is
  out of bounds, since the errors are worded there.
A property test holds that both ways have the same result; the first takes a tenth of the time.

Unlike NumPy, slices keep the coordinates of the domain and negative indices are just indices.

Invariant: integers and slices never become index arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import EllipsisType

import numpy as np

from tensorstore_py._index.compose import compose, name_dim
from tensorstore_py._index.dim import find_label
from tensorstore_py._index.frame import MAX_RANK, Frame, check_rank
from tensorstore_py._index.interval import INF, slice_interval
from tensorstore_py._index.maps import IndexArray, OutputIndexMap, array_map, constant, single
from tensorstore_py._index.numpy_terms import (
    ArrayTerm,
    IndexMode,
    IndexSpec,
    MaskTerm,
    SliceTerm,
    Term,
    parse_index,
)
from tensorstore_py._index.selection import DimSpec, new_dims, normalize_index, resolve_range
from tensorstore_py.errors import IndexingError, OutOfRangeError

__all__ = [
    "IndexTerm",
    "index_frame",
    "index_into",
    "index_selected",
    "index_selected_first",
    "try_basic_index",
    "try_basic_selected",
]

_INT64 = 2**63
_ALL = slice(None)


def try_basic_index(frame: Frame, index: object) -> Frame | None:
    """Apply a basic expression, or return None where it is not one."""
    terms = index if type(index) is tuple else (index,)
    rank = len(frame.lower)
    consumed = len(terms)
    ellipsis_at = -1
    for position, term in enumerate(terms):
        if term is Ellipsis:
            if ellipsis_at >= 0:
                return None
            ellipsis_at = position
            consumed -= 1
        elif term is None:
            consumed -= 1
        elif type(term) is not slice and type(term) is not int:
            return None
    missing = rank - consumed
    if missing < 0:
        return None
    if ellipsis_at < 0:
        terms = (*terms, Ellipsis)
    return _apply_box(frame, terms, missing)


def try_basic_selected(
    frame: Frame, terms: tuple[Term, ...], dims: list[int], extra: int
) -> tuple[Frame, list[int]] | None:
    """The same for parsed terms that apply to the dimensions `dims`, the ellipsis to `extra`."""
    index: list[int | slice] = [_ALL] * len(frame.lower)
    kept: list[int] = []
    cursor = 0
    for term in terms:
        if term is Ellipsis:
            kept += dims[cursor : cursor + extra]
            cursor += extra
            continue
        if isinstance(term, SliceTerm):
            index[dims[cursor]] = slice(*term)
            kept.append(dims[cursor])
        elif isinstance(term, int):
            index[dims[cursor]] = term
        else:
            return None
        cursor += 1
    result = try_basic_index(frame, tuple(index))
    if result is None:
        return None
    places = [dim for dim, term in enumerate(index) if type(term) is slice]
    return result, [places.index(dim) for dim in kept]


def _apply_box(frame: Frame, terms: tuple[object, ...], missing: int) -> Frame | None:
    lower: list[int] = []
    upper: list[int] = []
    implicit_lower: list[bool] = []
    implicit_upper: list[bool] = []
    labels: list[str] = []
    # Per old dimension: the new dimension, or -1; then the offset and step (or the index).
    places: list[tuple[int, int, int]] = []
    for term in terms:
        old = len(places)
        if type(term) is slice:
            bounds = frame.bounds(old)
            sliced = _unit_slice(bounds, term) or _general_slice(bounds, term)
            if sliced is None:
                return None
            low, up, implicit_low, implicit_up, offset, step = sliced
            places.append((len(lower), offset, step))
            labels.append(frame.labels[old])
        elif type(term) is int:
            low, up, implicit_low, implicit_up = frame.bounds(old)
            if not ((low <= term or implicit_low) and (term < up or implicit_up)):
                return None
            if not -INF < term < INF:
                return None
            places.append((-1, term, 0))
            continue
        elif term is None:
            low, up, implicit_low, implicit_up = 0, 1, True, True
            labels.append("")
        else:
            stop = old + missing
            places.extend([(len(lower) + i, 0, 1) for i in range(missing)])
            lower += frame.lower[old:stop]
            upper += frame.upper[old:stop]
            implicit_lower += frame.implicit_lower[old:stop]
            implicit_upper += frame.implicit_upper[old:stop]
            labels += frame.labels[old:stop]
            continue
        lower.append(low)
        upper.append(up)
        implicit_lower.append(implicit_low)
        implicit_upper.append(implicit_up)
    if len(lower) > MAX_RANK:
        return None
    maps = _through(frame.maps, places)
    if maps is None:
        return None
    return Frame(
        tuple(lower),
        tuple(upper),
        tuple(implicit_lower),
        tuple(implicit_upper),
        tuple(labels),
        maps,
    )


def _unit_slice(
    bounds: tuple[int, int, bool, bool], term: slice
) -> tuple[int, int, bool, bool, int, int] | None:
    """`start:stop` with finite bounds inside the domain; None if it is anything else."""
    if term.step is not None and term.step != 1:
        return None
    low, up, implicit_low, implicit_up = bounds
    start, stop = term.start, term.stop
    if start is None:
        start = low
    elif type(start) is not int or (start < low and not implicit_low) or not start > -INF:
        return None
    else:
        implicit_low = False
    if stop is None:
        stop = up
    elif type(stop) is not int or (stop > up and not implicit_up) or not stop < INF:
        return None
    else:
        implicit_up = False
    if start > stop or start >= INF or stop <= 1 - INF:
        return None
    return start, stop, implicit_low, implicit_up, 0, 1


def _general_slice(
    bounds: tuple[int, int, bool, bool], term: slice
) -> tuple[int, int, bool, bool, int, int] | None:
    start, stop, step = term.start, term.stop, term.step
    if step is None:
        step = 1
    for part in (start, stop, step):
        if part is not None and (type(part) is not int or not -_INT64 < part < _INT64):
            return None
    if step < 0 and (bounds[2] or bounds[3]):
        # The bounds trade places, and an implicit one is inferred anew: the long way's business.
        return None
    try:
        return (*slice_interval(bounds, start, stop, step), step)
    except IndexError:
        return None


def _through(
    maps: tuple[OutputIndexMap, ...], places: list[tuple[int, int, int]]
) -> tuple[OutputIndexMap, ...] | None:
    """The maps seen through the places of the old dimensions; None for arrays and overflow."""
    result = []
    for index_map in maps:
        dim = index_map.input_dimension
        if dim is None:
            if index_map.index_array is not None:
                return None
            result.append(index_map)
            continue
        new, offset, step = places[dim]
        stride = index_map.stride or 0
        if new == dim and step == 1 and offset == 0:
            result.append(index_map)
            continue
        total = index_map.offset + stride * offset
        if not -_INT64 <= total < _INT64 or not -_INT64 <= stride * step < _INT64:
            return None
        result.append(constant(total) if new < 0 else single(total, stride * step, new))
    return tuple(result)


_IMPLICIT_UNIT = (0, 1, True, True)


def index_frame(frame: Frame, spec: IndexSpec) -> Frame:
    """Apply a parsed expression to the whole domain; missing dimensions are taken in full."""
    rank = frame.rank
    extra = rank - spec.consumed
    if extra < 0:
        raise IndexingError(
            f"Indexing expression requires {spec.consumed} dimensions, and cannot be applied to a "
            f"domain of rank {rank}"
        )
    new_rank = check_rank(spec.produced + extra)
    builder = _Builder(frame, new_rank, list(range(rank)), list(range(new_rank)), extra)
    return compose(frame, builder.build(spec))


def index_selected(frame: Frame, spec: IndexSpec, dims: list[int]) -> tuple[Frame, list[int]]:
    """Apply a parsed expression to the dimensions `dims`; returns the new selection too."""
    spec = spec.repeated(len(dims))
    extra = _ellipsis_size(spec, len(dims))
    short = try_basic_selected(frame, spec.terms, dims, extra)
    if short is not None:
        return short
    new_rank = check_rank(spec.produced + frame.rank - spec.consumed)
    indexed, passing = _lay_out(spec, frame.rank, dims, extra)
    builder = _Builder(frame, new_rank, dims, indexed, extra)
    for new_dim, old_dim in passing:
        builder.take_over(new_dim, old_dim)
    return compose(frame, builder.build(spec)), indexed


def index_selected_first(
    frame: Frame, spec: IndexSpec, selection: tuple[DimSpec, ...]
) -> tuple[Frame, list[int]]:
    """Apply the first expression after a selection, whose `newaxis` terms add dimensions.

    Positions in the selection refer to the domain with the new dimensions already in place,
    labels to the existing ones.
    """
    if spec.scalar and spec.added:
        dims = new_dims(selection, frame.rank)
        middle_rank = check_rank(frame.rank + len(dims))
        spec = spec.repeated(len(dims))
        extra = 0
    else:
        middle_rank = check_rank(frame.rank + spec.added)
        dims = _half_resolved(frame, selection, middle_rank)
        spec = spec.repeated(len(dims))
        _refuse_repetition([dim for dim in dims if dim >= 0])
        extra = _ellipsis_size(spec, len(dims))
    added = _new_positions(spec, dims, extra)
    old_to_middle = [dim for dim in range(middle_rank) if dim not in added]
    dims = [old_to_middle[~dim] if dim < 0 else dim for dim in dims]
    _refuse_repetition(dims)
    if not added:
        short = try_basic_selected(frame, spec.terms, dims, extra)
        if short is not None:
            return short
    new_rank = check_rank(spec.produced + frame.rank - spec.consumed)
    indexed, passing = _lay_out(spec, middle_rank, dims, extra)
    middle_to_old = {middle: old for old, middle in enumerate(old_to_middle)}
    old_dims = [middle_to_old[dim] for dim in dims if dim not in added]
    builder = _Builder(frame, new_rank, old_dims, indexed, extra)
    for new_dim, middle_dim in passing:
        builder.take_over(new_dim, middle_to_old[middle_dim])
    return compose(frame, builder.build(spec)), indexed


def _ellipsis_size(spec: IndexSpec, selected: int) -> int:
    required = spec.consumed + spec.added
    extra = selected - required
    if extra < 0 or (extra and not spec.has_ellipsis):
        raise IndexingError(
            f"Indexing expression requires {required} dimensions but selection has {selected} "
            "dimensions"
        )
    return extra


def _half_resolved(frame: Frame, selection: tuple[DimSpec, ...], rank: int) -> list[int]:
    """Positions in the enlarged domain; `~dim` for a label, whose place is not known yet."""
    dims: list[int] = []
    for spec in selection:
        if isinstance(spec, str):
            dims.append(~find_label(spec, frame.labels))
        elif isinstance(spec, int):
            dims.append(normalize_index(spec, rank))
        else:
            dims.extend(resolve_range(spec, rank))
    return dims


def _refuse_repetition(dims: list[int]) -> None:
    seen: set[int] = set()
    for dim in dims:
        if dim in seen:
            raise IndexingError(f"Dimension {dim} specified more than once")
        seen.add(dim)


def _new_positions(spec: IndexSpec, dims: list[int], extra: int) -> set[int]:
    """Which dimensions of the enlarged domain the `newaxis` terms stand for."""
    added: set[int] = set()
    cursor = 0
    for term in spec.terms:
        if term is None:
            if dims[cursor] < 0:
                raise IndexingError("Dimensions specified by label cannot be used with newaxis")
            added.add(dims[cursor])
        cursor += _width(term, extra)
    return added


def _width(term: object, extra: int) -> int:
    """How many selected dimensions a term stands for."""
    if isinstance(term, MaskTerm):
        return len(term.positions)
    return extra if isinstance(term, EllipsisType) else 1


def _lay_out(
    spec: IndexSpec, middle_rank: int, dims: list[int], extra: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Number the new dimensions.

    Returns:
        The new dimensions that the terms produce, in the order of the terms, and pairs
        `(new, old)` for the dimensions that are not selected and pass through.
    """
    joint_rank = len(spec.joint_shape)
    produced: dict[int, int] = {}
    cursor = 0
    joint_pending = spec.joint_in_place
    for term in spec.terms:
        width = _width(term, extra)
        own = dims[cursor : cursor + width]
        cursor += width
        if isinstance(term, ArrayTerm | MaskTerm):
            if not own:
                continue
            if spec.mode == "oindex":
                count = term.values.ndim if isinstance(term, ArrayTerm) else 1
            else:
                count = joint_rank if joint_pending else 0
                joint_pending = False
            produced.update(dict.fromkeys(own, 0))
            produced[own[0]] = count
        else:
            produced.update(dict.fromkeys(own, 0 if isinstance(term, int) else 1))
    leading = 0 if spec.joint_in_place else joint_rank
    next_dim = leading
    placed: dict[int, range] = {}
    passing: list[tuple[int, int]] = []
    for middle in range(middle_rank):
        if middle in produced:
            placed[middle] = range(next_dim, next_dim + produced[middle])
            next_dim += produced[middle]
        else:
            passing.append((next_dim, middle))
            next_dim += 1
    indexed = [*range(leading), *(new for dim in dims if dim in placed for new in placed[dim])]
    return indexed, passing


class _Builder:
    """Collects the bounds and maps of the inner frame while the terms are read."""

    def __init__(
        self, frame: Frame, rank: int, old_dims: list[int], new_dims: list[int], extra: int
    ) -> None:
        self._frame = frame
        self._rank = rank
        self._old = iter(old_dims)
        self._new_dims = new_dims
        self._cursor = 0
        self._extra = extra
        self._joint_start = -1
        self._bounds = [_IMPLICIT_UNIT] * rank
        self._labels = [""] * rank
        self._maps: dict[int, OutputIndexMap] = {}
        self._arrays: list[tuple[int, list[int], IndexArray]] = []

    def build(self, spec: IndexSpec) -> Frame:
        """Read all terms and return the inner frame."""
        if not spec.joint_in_place:
            self._place_joint(spec)
        for term in spec.terms:
            self._add(term, spec)
        if not spec.has_ellipsis:
            self._take_rest()
        frame = Frame.of(self._bounds, self._labels)
        is_empty = frame.is_explicitly_empty()
        for old_dim, along, values in self._arrays:
            self._maps[old_dim] = constant(0) if is_empty else self._array(along, values)
        return frame.with_maps(tuple(self._maps[dim] for dim in range(self._frame.rank)))

    def _next_new(self) -> int:
        self._cursor += 1
        return self._new_dims[self._cursor - 1]

    def take_over(self, new_dim: int, old_dim: int) -> None:
        """Let an old dimension pass through unchanged."""
        self._bounds[new_dim] = self._frame.bounds(old_dim)
        self._labels[new_dim] = self._frame.labels[old_dim]
        self._maps[old_dim] = single(0, 1, new_dim)

    def _take_rest(self) -> None:
        for _ in range(self._extra):
            self.take_over(self._next_new(), next(self._old))

    def _add(self, term: object, spec: IndexSpec) -> None:
        if isinstance(term, int):
            self._maps[next(self._old)] = constant(term)
        elif term is None:
            self._bounds[self._next_new()] = _IMPLICIT_UNIT
        elif isinstance(term, SliceTerm):
            self._add_slice(term)
        elif isinstance(term, MaskTerm):
            dims = self._array_dims((term.count,), spec)
            for positions in term.positions:
                self._arrays.append((next(self._old), dims, positions))
        elif isinstance(term, ArrayTerm):
            dims = self._array_dims(term.values.shape, spec)
            self._arrays.append((next(self._old), dims, term.values))
        else:
            self._take_rest()

    def _add_slice(self, term: SliceTerm) -> None:
        new_dim, old_dim = self._next_new(), next(self._old)
        try:
            lower, upper, implicit_lower, implicit_upper, offset = slice_interval(
                self._frame.bounds(old_dim), *term
            )
        except (IndexingError, OutOfRangeError) as problem:
            where = f"dimension {name_dim(self._frame, old_dim)}"
            raise type(problem)(f"Computing interval slice for {where}: {problem}") from None
        self._bounds[new_dim] = (lower, upper, implicit_lower, implicit_upper)
        self._labels[new_dim] = self._frame.labels[old_dim]
        self._maps[old_dim] = single(offset, term.step, new_dim)

    def _place_joint(self, spec: IndexSpec) -> None:
        self._joint_start = self._cursor
        for size in spec.joint_shape:
            self._bounds[self._next_new()] = (0, size, False, False)

    def _array_dims(self, shape: tuple[int, ...], spec: IndexSpec) -> list[int]:
        """The new dimensions along which an array of `shape` lies."""
        if spec.mode == "oindex":
            start = self._cursor
            for size in shape:
                self._bounds[self._next_new()] = (0, size, False, False)
            return self._new_dims[start : self._cursor]
        if self._joint_start < 0:
            self._place_joint(spec)
        end = self._joint_start + len(spec.joint_shape)
        return self._new_dims[end - len(shape) : end]

    def _array(self, along: list[int], values: IndexArray) -> OutputIndexMap:
        """The map of an array laid along these dimensions, of size 1 along all others."""
        shape = [1] * self._rank
        for dim, size in zip(along, values.shape, strict=True):
            shape[dim] = size
        order = np.argsort(along)
        return array_map(0, 1, values.transpose(order).reshape(shape))


class IndexTerm(ABC):
    """Something that can stand between the brackets and is no NumPy-style expression."""

    __slots__ = ()

    @abstractmethod
    def _index_into(self, frame: Frame) -> Frame:
        """Apply this term to a frame (without maps: to a domain)."""


def index_into(frame: Frame, term: object, mode: IndexMode) -> Frame:
    """Apply an index term of any kind.

    Raises:
        IndexError: the term does not fit, or leaves the domain.
        TypeError: a slice with bounds that are no integers.
    """
    result = try_basic_index(frame, term)
    if result is not None:
        return result
    if mode == "default" and isinstance(term, IndexTerm):
        return term._index_into(frame)
    return index_frame(frame, parse_index(term, mode, "direct"))
