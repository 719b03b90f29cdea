"""How the elements of rows are distributed: histograms, and a sketch for quantiles.

Both are counts, so they are the same however elements are spread over blocks and merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._compute.measure import Measure, computable
from tensorstore_py._display.public_name import public
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._compute.measure import Array, Piece, State

__all__ = ["Bins", "Buckets", "Histogram", "edges_of", "quantiles"]


@public
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
    """The edges of bins (so many of equal width, or their edges) for elements of a type.

    Without a range they are of all numbers of the type, if it has but 8 or 16 bits.

    Raises SpecError: the type does not tell the range; or edges are none.

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
    """Histograms of rows: how many elements lie between edges that are known before.

    An element belongs to the bin that NumPy puts it in: each has its lower edge, the last one its
    upper edge, too; what lies outside, and NaN, is in none. So counts are those of
    `numpy.histogram` of all elements at once, whatever pieces they come in.
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


_KEPT_BITS = 11
_STORED_BITS = {2: 10, 4: 23, 8: 52}
#: So many entries are gathered before they are put together.
_GATHERED = 2**18


class Buckets(Measure):
    """A sketch of how the elements of rows are distributed, for quantiles.

    Elements are counted by buckets: a number's sign, exponent and first bits. Numbers of 8 and 16
    bits have a bucket each, so their quantiles are exact. Of others a bucket stands for the number
    in it that is nearest to zero: eleven bits after the first, so less than 2^-11 of an element is
    lost, and a number of up to twelve significant bits is itself. This is the sketch of C. Masson,
    J. E. Rim and H. K. Lee ("DDSketch: A Fast and Fully-Mergeable Quantile Sketch with Relative-
    Error Guarantees", VLDB 2019) with buckets that are even between powers of two, which takes a
    shift and no logarithm. It is a sum, so it is the same however elements are spread and merged.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        known = computable(dtype)
        self._whole = known.kind in "iu" and known.itemsize <= 2
        self._least = int(np.iinfo(known).min) if self._whole else 0
        if not self._whole and known.kind in "iu":
            known = np.dtype(np.float64)
        self._dtype = known
        bits = 8 * known.itemsize
        self._shift = 0 if bits == 16 or self._whole else _STORED_BITS[known.itemsize] - _KEPT_BITS
        #: How many bits a bucket's number has; in front of them is that of the row.
        self.bits = bits - self._shift
        self._word = np.dtype(f"u{known.itemsize}").type

    def begin(self, rows: int) -> State:
        return _Gathered()

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        numbers = self._numbers(piece.values)
        if rows.start or len(numbers) > 1:
            numbers |= (np.arange(len(numbers)) + rows.start)[:, None] << self.bits
        missing = piece.missing
        keys, counts = _counted(numbers.ravel() if missing is None else numbers[~missing])
        assert isinstance(state, _Gathered)
        state.add(keys, counts)

    def close(self, state: State) -> State:
        assert isinstance(state, _Gathered)
        state.settle()
        return dict(state)

    @staticmethod
    def merge(one: State, other: State) -> State:
        return _together({name: np.concatenate([one[name], other[name]]) for name in one})

    def _numbers(self, values: Array) -> Array:
        """The number of each value's bucket; greater ones for greater values."""
        if self._whole:
            return values.astype(np.int64) - self._least
        words = np.ascontiguousarray(values.astype(self._dtype, copy=False)).view(self._word)
        top = self._word(1 << (words.itemsize * 8 - 1))
        kept = words >> self._word(self._shift)
        high = top >> self._word(self._shift)
        most = self._word((int(high) << 1) - 1)
        found: Array = np.where(words & top, kept ^ most, kept | high).astype(np.int64)
        return found

    def values(self, numbers: Array) -> Array:
        """What buckets stand for."""
        if self._whole:
            return (numbers + self._least).astype(np.float64)
        high = 1 << (self.bits - 1)
        most = (high << 1) - 1
        kept = np.where(numbers & high, numbers ^ high, numbers ^ most).astype(self._word)
        found: Array = (kept << self._word(self._shift)).view(self._dtype).astype(np.float64)
        found += 0.0  # there is but one zero
        return found


class _Gathered(dict[str, "Array"]):
    """A state that entries are added to; they are put together when as many are new as old."""

    def __init__(self) -> None:
        super().__init__(keys=np.zeros(0, np.int64), counts=np.zeros(0, np.int64))
        self._new: list[tuple[Array, Array]] = []
        self._count = 0

    def add(self, keys: Array, counts: Array) -> None:
        """Add some entries."""
        self._new.append((keys, counts))
        self._count += len(keys)
        if self._count > max(_GATHERED, len(self["keys"])):
            self.settle()

    def settle(self) -> None:
        """Put together what is there."""
        parts = [(self["keys"], self["counts"]), *self._new]
        self._new, self._count = [], 0
        keys, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
        self.update(_together({"keys": keys, "counts": counts}))


def _counted(numbers: Array) -> tuple[Array, Array]:
    """Which numbers there are, in ascending order, and how many of each."""
    if not numbers.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > 4 * numbers.size + 2**16:
        found = np.unique(numbers, return_counts=True)
        return found[0], found[1].astype(np.int64)
    counts = np.bincount(numbers - low)
    there = np.nonzero(counts)[0]
    return there + low, counts[there].astype(np.int64)


def _together(state: State) -> State:
    """Each key once, in ascending order."""
    order = np.argsort(state["keys"], kind="stable")
    keys, counts = state["keys"][order], state["counts"][order]
    if not len(keys):
        return {"keys": keys, "counts": counts}
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    starts = np.nonzero(first)[0]
    return {"keys": keys[starts], "counts": np.add.reduceat(counts, starts)}


def quantiles(sketch: Buckets, state: State, rows: int, asked: Sequence[float]) -> Array:
    """Quantiles by row and share, as NumPy interpolates them; NaN for a row without elements."""
    keys, ends = state["keys"], np.cumsum(state["counts"])
    found = np.full((rows, len(asked)), np.nan)
    if not len(keys):
        return found
    numbers = keys & ((1 << sketch.bits) - 1)
    borders = np.searchsorted(keys, np.arange(rows + 1) << sketch.bits)
    before = np.concatenate([[0], ends])[borders]
    count = np.diff(before)
    there = np.nonzero(count)[0]
    for column, share in enumerate(asked):
        where = share * (count[there] - 1)
        low = np.floor(where).astype(np.int64)
        high = np.minimum(low + 1, count[there] - 1)
        ranks = np.stack([low, high]) + before[there]
        below, above = sketch.values(numbers[np.searchsorted(ends, ranks, "right")])
        found[there, column] = _between(below, above, where - low)
    return found


def _between(low: Array, high: Array, part: Array) -> Array:
    with np.errstate(all="ignore"):
        apart = high - low
        found = np.where(part < 0.5, low + apart * part, high - apart * (1 - part))
    return np.where((low == high) | (part == 0), low, found)  # of infinite ones, too
