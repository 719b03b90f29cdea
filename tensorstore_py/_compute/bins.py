"""Histograms of rows: how many elements lie between edges that are known before.

An element belongs to the bin that NumPy puts it in: each has its lower edge, the last one its upper
edge, too; what lies outside, and NaN, is in none. So counts are those of `numpy.histogram` of all
elements at once, whatever pieces they come in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._compute.measure import Measure, computable
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._compute.measure import Array, Piece, State

__all__ = ["Bins", "Histogram", "edges_of"]


class Histogram(NamedTuple):
    """How many elements lie in each bin, as `numpy.histogram` gives it.

    Attributes:
        counts: by bin; along dimensions, bins are the last dimension.
        edges: between the bins, one more than there are.

    Example:
        >>> import tensorstore_py as ts
        >>> found = ts.reduce(ts.array([1.0, 2.5, 2.5]), "histogram", bins=2, range=(1, 3)).result()
        >>> found["histogram"]
        Histogram(counts=array([1, 2]), edges=array([1., 2., 3.]))
    """

    counts: Array
    edges: Array


def edges_of(
    dtype: np.dtype[Any], bins: int | Sequence[float], range: tuple[float, float] | None
) -> Array:
    """The edges of bins for elements of a type.

    Args:
        dtype: the type.
        bins: how many of equal width, or their edges.
        range: of the bins together; None: all numbers of the type, if it has but 8 or 16 bits.

    Raises:
        SpecError: the type does not tell the range; or edges are none.

    Example:
        >>> edges_of(np.dtype("u1"), 4, None)
        array([  0.,  64., 128., 192., 256.])
    """
    known = computable(dtype)
    if not isinstance(bins, int):
        edges = np.asarray(bins)
        if edges.ndim != 1 or len(edges) < 2 or edges.dtype.kind not in "iuf":
            raise SpecError("expected a number of bins, or two edges or more", ("bins",))
        if not (edges[1:] >= edges[:-1]).all():
            raise SpecError("edges must be in ascending order", ("bins",))
        return edges
    if range is None:
        if dtype.kind == "b":
            range, bins = (0, 2), min(bins, 2)
        elif known.kind in "iu" and known.itemsize <= 2:
            limits = np.iinfo(known)
            range = (limits.min, limits.max + 1)
        else:
            raise SpecError(
                f"a histogram of {dtype} elements needs a range: say range=(low, high), or give "
                "the edges, bins=[...]",
                ("range",),
            )
    try:
        found: Array = np.histogram_bin_edges(np.empty(0, known), bins, range)
    except ValueError as error:
        raise SpecError(str(error), ("range" if bins > 0 else "bins",)) from None
    return found


class Bins(Measure):
    """See the head of this file.

    Args:
        edges: in ascending order.
        dtype: the type of elements.
    """

    def __init__(self, edges: Array, dtype: np.dtype[Any]) -> None:
        self.edges = edges
        self._table: Array | None = None
        self._least = 0
        self._count = len(edges) - 1
        self._first, self._last = edges[0], edges[-1]
        even = np.linspace(self._first, self._last, self._count + 1, dtype=edges.dtype)
        self._even = bool(self._last > self._first and np.array_equal(even, edges))
        known = computable(dtype)
        if known.kind in "iu" and known.itemsize <= 2:
            # Of so few numbers the bins are found once.
            self._least = int(np.iinfo(known).min)
            numbers = np.arange(self._least, np.iinfo(known).max + 1)
            self._table = self._numbers(numbers.astype(known))

    def begin(self, rows: int) -> State:
        return {"counts": np.zeros((rows, self._count), np.int64)}

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        values, counts = piece.values, state["counts"][rows]
        if self._table is None:
            numbers = self._numbers(values)
        else:
            numbers = self._table[values.astype(np.int64) - self._least]
        if len(values) > 1:
            numbers += (np.arange(len(values)) * (self._count + 1))[:, None]
        if counts.size > 4 * values.size:
            inside = numbers % (self._count + 1) != self._count
            row, number = np.divmod(numbers[inside], self._count + 1)
            np.add.at(counts, (row, number), 1)
            return
        size = len(values) * (self._count + 1)
        found = np.bincount(numbers.ravel(), minlength=size)
        counts += found.reshape(len(values), -1)[:, :-1]

    def _numbers(self, values: Array) -> Array:
        """In which bin each value is; behind the last one: in none."""
        inside = (values >= self._first) & (values <= self._last)
        if inside.all():
            return self._bins(values)
        found = np.full(values.shape, self._count)
        found[inside] = self._bins(values[inside])
        return found

    def _bins(self, values: Array) -> Array:
        """In which bin each value is, all of them inside."""
        edges, last = self.edges, self._count - 1
        if not self._even:
            found: Array = np.searchsorted(edges, values, "right") - 1
            return np.minimum(found, last)
        low = float(self._first)
        scale = self._count / (float(self._last) - low)
        found = ((values.astype(np.float64) - low) * scale).astype(np.int64)
        np.clip(found, 0, last, out=found)
        # Edges say what counts; the number above may be one off.
        found -= values < edges[found]
        np.clip(found, 0, last, out=found)
        found += (values >= edges[found + 1]) & (found != last)
        return found

    @staticmethod
    def merge(one: State, other: State) -> State:
        return {"counts": one["counts"] + other["counts"]}
