"""Selections: which elements of an array, in a form that can be cut along a chunk grid.

An `IndexTransform` says, for every position of the user's array (the "view"), which element of
the stored array is meant. A selection says the same as a list of independent axes. Each axis
covers one or more dimensions of the stored array, and every dimension belongs to one axis:

- `Strided`: one dimension, `start + step * k`, with `step >= 1`;
- `Gathered`: one or more dimensions that move together, by index arrays.

The *working view* is the user's array with exactly these axes, in this order, plus leading axes
for input dimensions on which nothing depends. Strided axes never cost an index array.

The commonest selection is a `Rectangle`: one contiguous block within the array. Requests that cost
little more than their planning are planned as one, if they are one; it needs no axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._index import OutputIndexMethod

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from tensorstore_py._index import IndexTransform, OutputIndexMap

__all__ = ["Axis", "Gathered", "Rectangle", "Selection", "Strided", "rectangle_of", "select"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements `start + step * k` for `k` in `[0, count)` of dimension `dim`; `step >= 1`."""

    dim: int
    start: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """Elements at `indices[j][k]` of dimensions `dims[j]`.

    Attributes:
        dims: the dimensions that move together.
        indices: one coordinate array of shape `[n]` for each of them.
        positions: where element `k` stands along the working view's axis, shape `[n]`.
    """

    dims: tuple[int, ...]
    indices: tuple[NDArray[np.int64], ...]
    positions: NDArray[np.intp]


Axis = Strided | Gathered

_IN_ORDER: Final = tuple(range(32))


@dataclass(frozen=True, slots=True)
class Selection:
    """Axes, and how to see the user's array through them.

    Attributes:
        axes: see the head of this file.
        order: input dimensions in the working view's order (those nothing depends on first).
        flip: whether each of `order` runs backwards.
        shape: the working view's shape; a 1 stands for an axis with no input dimension.
        free: how many leading axes of the working view nothing depends on.
    """

    axes: tuple[Axis, ...]
    order: tuple[int, ...]
    flip: tuple[bool, ...]
    shape: tuple[int, ...]
    free: int

    def view(self, array: Array) -> Array:
        """`array`, of the transform's input shape, as the working view.

        The result shares memory with `array` unless a `Gathered` axis merges dimensions that
        are not adjacent in memory; `put` brings back what was written to it.
        """
        turned = self._turn(array)
        return turned if turned.shape == self.shape else turned.reshape(self.shape)

    def values(self, array: Array) -> Array:
        """The working view's part that is written: one axis for each of `axes`.

        Free axes say the same thing again, so their first position will do.

        Args:
            array: the new values, of the transform's input shape.
        """
        view = self.view(array)
        if not view.size:
            return view
        # Without the ellipsis, what has no dimensions would be an element and no array.
        first: tuple[Any, ...] = (0,) * self.free
        return view[(*first, ...)]

    def put(self, view: Array, array: Array) -> Array:
        """`array`, with what was written to its working view, which may be memory of its own."""
        if not np.may_share_memory(view, array):
            turned = self._turn(array)
            turned[...] = view.reshape(turned.shape)
        return array

    def _turn(self, array: Array) -> Array:
        turned = array
        if self.order != _IN_ORDER[: len(self.order)]:
            turned = array.transpose(self.order)
        if any(self.flip):
            turned = turned[tuple(slice(None, None, -1 if back else 1) for back in self.flip)]
        return turned


def select(transform: IndexTransform) -> Selection:
    """The selection that `transform` makes; its bounds must be finite and resolved.

    Example:
        >>> from tensorstore_py._index import IndexTransform
        >>> select(IndexTransform(input_shape=[4, 5])[1:3, 2]).axes
        (Strided(dim=0, start=1, step=1, count=2), Strided(dim=1, start=2, step=1, count=1))
    """
    straight = _straight(transform)
    if straight is not None:
        return straight
    groups = _groups(transform)
    axes: list[Axis] = []
    order: list[int] = []
    flip: list[bool] = []
    shape: list[int] = []
    extents = transform.input_shape
    for inputs, outputs in groups:
        axis, backwards = _axis(transform, inputs, outputs)
        axes.append(axis)
        order.extend(inputs)
        flip.extend([backwards] * len(inputs))
        size = 1
        for dim in inputs:
            size *= extents[dim]
        shape.append(size)
    used = set(order)
    free = [dim for dim in range(transform.input_rank) if dim not in used]
    return Selection(
        tuple(axes),
        (*free, *order),
        (*[False] * len(free), *flip),
        (*[extents[dim] for dim in free], *shape),
        len(free),
    )


def _straight(transform: IndexTransform) -> Selection | None:
    """The selection without index arrays, turns and flips, which nearly all are; or None."""
    origin, extents = transform.input_origin, transform.input_shape
    axes = []
    shape = []
    rank = 0
    for output, each in enumerate(transform.maps):
        dim, step = each.input_dimension, each.stride
        if dim is None:
            if each.index_array is not None:
                return None
            axes.append(Strided(output, each.offset, 1, 1))
            shape.append(1)
        elif dim == rank and step is not None and step > 0:
            axes.append(Strided(output, each.offset + step * origin[dim], step, extents[dim]))
            shape.append(extents[dim])
            rank += 1
        else:
            return None
    if rank != len(extents):
        return None
    in_order = _IN_ORDER[:rank]
    return Selection(tuple(axes), in_order, (False,) * rank, tuple(shape), 0)


def _groups(transform: IndexTransform) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Output dimensions that share input dimensions, as `(inputs, outputs)`, by first output."""
    groups: list[tuple[set[int], list[int]]] = []
    for output, each in enumerate(transform.maps):
        inputs = set(_inputs(each))
        joined: list[int] = []
        apart = []
        for group in groups:
            if inputs & group[0]:
                inputs |= group[0]
                joined += group[1]
            else:
                apart.append(group)
        groups = [*apart, (inputs, [*joined, output])]
    groups.sort(key=lambda group: group[1][0])
    return [(tuple(sorted(inputs)), tuple(outputs)) for inputs, outputs in groups]


def _inputs(each: OutputIndexMap) -> list[int]:
    """The input dimensions that a map depends on."""
    if each.method == OutputIndexMethod.single_input_dimension:
        return [each.input_dimension]  # type: ignore[list-item]
    if each.index_array is not None:
        return [dim for dim, size in enumerate(each.index_array.shape) if size != 1]
    return []


def _axis(
    transform: IndexTransform, inputs: tuple[int, ...], outputs: tuple[int, ...]
) -> tuple[Axis, bool]:
    """The axis of one group, and whether the working view runs backwards along it."""
    first = transform.maps[outputs[0]]
    if len(outputs) == 1 and first.index_array is None:
        if not inputs:
            return Strided(outputs[0], first.offset, 1, 1), False
        (dim,) = inputs
        count = transform.input_shape[dim]
        step = first.stride or 0
        start = first.offset + step * transform.input_origin[dim]
        if step < 0:
            return Strided(outputs[0], start + step * (count - 1), -step, count), True
        return Strided(outputs[0], start, step, count), False
    shape = tuple(transform.input_shape[dim] for dim in inputs)
    indices = tuple(
        np.ascontiguousarray(
            np.broadcast_to(_coordinates(transform, transform.maps[output], inputs), shape)
        ).reshape(-1)
        for output in outputs
    )
    count = indices[0].size
    return Gathered(outputs, indices, np.arange(count, dtype=np.intp)), False


def _coordinates(
    transform: IndexTransform, each: OutputIndexMap, inputs: tuple[int, ...]
) -> NDArray[np.int64]:
    """What one map gives over the box of `inputs`, broadcastable to it."""
    stride = each.stride or 0
    if each.index_array is not None:
        array = each.index_array
        kept = array.reshape(tuple(array.shape[dim] for dim in inputs))
        return np.asarray(each.offset + stride * kept, dtype=np.int64)
    dim = each.input_dimension
    if dim is None:
        return np.asarray(each.offset, dtype=np.int64)
    origin = transform.input_origin[dim]
    line = np.arange(origin, origin + transform.input_shape[dim], dtype=np.int64)
    spread = [1] * len(inputs)
    spread[inputs.index(dim)] = -1
    return (each.offset + stride * line).reshape(spread)


class Rectangle(NamedTuple):
    """Elements `[starts, stops)` of the stored array.

    Attributes:
        starts: one for each dimension of the array.
        stops: one for each dimension of the array.
        kept: whether the reader's array has that dimension; where it has not, there is one element.
    """

    starts: Sequence[int]
    stops: Sequence[int]
    kept: Sequence[bool]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the reader's array."""
        return tuple(
            [
                stop - start
                for start, stop, kept in zip(self.starts, self.stops, self.kept, strict=True)
                if kept
            ]
        )


def rectangle_of(transform: IndexTransform, extents: Sequence[int]) -> Rectangle | None:
    """The rectangle that `transform` selects of an array of `extents` from zero.

    None if it selects anything else, nothing at all, or something outside the array: `select` then
    finds out what it is, errors included.

    Example:
        >>> from tensorstore_py._index import IndexTransform
        >>> rectangle_of(IndexTransform(input_shape=[4, 5])[1:3, 2], [4, 5])
        Rectangle(starts=[1, 2], stops=[3, 3], kept=[True, False])
    """
    lower, upper = transform.input_origin, transform.input_exclusive_max
    no_lower, no_upper = transform.implicit_lower_bounds, transform.implicit_upper_bounds
    starts: list[int] = []
    stops: list[int] = []
    kept: list[bool] = []
    rank = 0
    for each, extent in zip(transform.maps, extents, strict=True):
        dim = each.input_dimension
        if dim is None:
            if each.index_array is not None:
                return None
            start = each.offset
            stop = start + 1
        elif dim == rank and each.stride == 1:
            start = 0 if no_lower[dim] else each.offset + lower[dim]
            stop = extent if no_upper[dim] else each.offset + upper[dim]
            rank += 1
        else:
            return None
        if not 0 <= start < stop <= extent:
            return None
        starts.append(start)
        stops.append(stop)
        kept.append(dim is not None)
    return Rectangle(starts, stops, kept) if rank == len(lower) else None
