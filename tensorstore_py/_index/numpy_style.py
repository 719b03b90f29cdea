"""NumPy-style indexing of a frame.

`index_frame` applies an expression to all dimensions of a frame, `index_selected` to the ones that
a dimension selection names. Both build the inner frame that the terms describe and compose it.
Unlike NumPy, slices keep the coordinates of the domain and negative indices are just indices.

Invariant: integers and slices never become index arrays.
"""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from tensorstore_py._index.compose import compose, name_dim
from tensorstore_py._index.fast_slice import try_basic_selected
from tensorstore_py._index.frame import Frame, check_rank
from tensorstore_py._index.interval import slice_interval
from tensorstore_py._index.labels import find_label
from tensorstore_py._index.maps import IndexArray, OutputIndexMap, array_map, constant, single
from tensorstore_py._index.numpy_terms import ArrayTerm, IndexSpec, MaskTerm, SliceTerm
from tensorstore_py._index.selection import DimSpec, new_dims, normalize_index, resolve_range
from tensorstore_py.errors import IndexingError, OutOfRangeError

__all__ = ["index_frame", "index_selected", "index_selected_first"]

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
        frame = Frame(
            tuple(bounds[0] for bounds in self._bounds),
            tuple(bounds[1] for bounds in self._bounds),
            tuple(bounds[2] for bounds in self._bounds),
            tuple(bounds[3] for bounds in self._bounds),
            tuple(self._labels),
            (),
        )
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
            raise type(problem)(f"slice of {where}: {problem}") from None
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
