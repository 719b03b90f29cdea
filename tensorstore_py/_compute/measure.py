"""`Measure`: what is found out of the elements of many rows, piece by piece, and merged.

Whatever is reduced is seen as rows: one for each element of the result, of all elements that it is
made of. What is known of the rows is a state, a few arrays by name; it begins empty, takes pieces
of rows, and merges with another state of the same rows. The one invariant: it doesn't matter how
elements are spread over pieces and states, nor in which order these come.

The simple measures are here, too: counts (for all data types, as nothing is computed with the
elements), extremes, sums, and spread. NaN is the extreme of any row that has one, as NumPy has it,
unless it is passed over; then a row of nothing else has NaN.

A sum of whole numbers is kept in three parts of 32 bits and so never overflows; whether it fits 64
bits is seen at the end. A floating-point sum is two numbers, the second of them what was lost of
the first (D. E. Knuth, The Art of Computer Programming, vol. 2, 4.2.2, theorem B), so that the
order in which states are merged makes no difference but to the last bit, rarely.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Array",
    "Counts",
    "ExactTotal",
    "Extreme",
    "FillCount",
    "FloatTotal",
    "Measure",
    "Piece",
    "Spread",
    "State",
    "computable",
    "equal_to",
    "exact_sums",
    "float_sums",
    "narrow_sums",
    "state_from_json",
    "state_json",
    "variances",
]


Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
#: What is known of some rows: arrays by name.
State = dict[str, Array]

_WHOLE = {np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4)}
_NATURAL = {np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4)}


def computable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of NumPy's own that elements are computed with, which holds each of them exactly.

    Example:
        >>> computable(np.dtype(bool)), computable(np.dtype("M8[s]")), computable(np.dtype("f2"))
        (dtype('uint8'), dtype('int64'), dtype('float16'))
    """
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind in "mM":
        return np.dtype(np.int64)
    if dtype in _WHOLE:
        return np.dtype(np.int8)
    if dtype in _NATURAL:
        return np.dtype(np.uint8)
    return np.dtype(np.float32) if dtype.kind == "V" else dtype


class Piece:
    """Some elements of some rows."""

    def __init__(self, raw: Array, *, skips: bool) -> None:
        self.raw = raw
        self._skips = skips

    @cached_property
    def values(self) -> Array:
        """The elements, of a type that can be computed with."""
        dtype = computable(self.raw.dtype)
        if self.raw.dtype.kind in "bmM":
            return self.raw.view(dtype)
        return self.raw.astype(dtype, copy=False)

    @cached_property
    def missing(self) -> Array | None:
        """Which are NaN or NaT; None: none of them."""
        dtype = self.raw.dtype
        if dtype.kind in "OSU" or (dtype.kind == "V" and dtype.type is np.void):
            return None
        if dtype.kind in "mM":
            found = np.isnat(self.raw)
        elif self.values.dtype.kind in "fc":
            found = np.isnan(self.values)
        else:
            return None
        return found if found.any() else None

    @cached_property
    def valid(self) -> Array | None:
        """Which elements are taken; None: all. NaT never is, since it is no number."""
        if not self._skips and self.raw.dtype.kind not in "mM":
            return None
        return None if self.missing is None else ~self.missing

    def count(self) -> Array:
        """How many elements are taken, by row."""
        if self.valid is None:
            return np.full(len(self.raw), self.raw.shape[1], np.int64)
        found: Array = self.valid.sum(axis=1, dtype=np.int64)
        return found


class Measure(ABC):
    """See the head of this file."""

    @abstractmethod
    def begin(self, rows: int) -> State:
        """What is known of rows of which nothing was seen."""

    @abstractmethod
    def take(self, state: State, rows: slice, piece: Piece) -> None:
        """Add a piece of some of the rows."""

    @staticmethod
    @abstractmethod
    def merge(one: State, other: State) -> State:
        """What is known of the same rows from other elements; states alone tell how."""

    def close(self, state: State) -> State:
        """The state when all pieces of a block were taken; by default as it is."""
        return state


def state_json(state: State) -> dict[str, list[object]]:
    """A state as JSON: for each array its type, its shape, and its bytes.

    Example:
        >>> known = {"n": np.arange(3)}
        >>> state_from_json(state_json(known))
        {'n': array([0, 1, 2])}
    """
    return {
        name: [
            array.dtype.str,
            list(array.shape),
            base64.b85encode(np.ascontiguousarray(array).tobytes()).decode(),
        ]
        for name, array in state.items()
    }


def state_from_json(json: Mapping[str, Any]) -> State:
    """The state of which this is the JSON.

    Raises SpecError: it is none.
    """
    try:
        return {
            name: np.frombuffer(bytearray(base64.b85decode(data)), np.dtype(dtype)).reshape(shape)
            for name, (dtype, shape, data) in json.items()
        }
    except (TypeError, ValueError) as error:
        raise SpecError(f"a partial result is damaged: {error}") from error


class Counts(Measure):
    """How many elements are taken, and how many are NaN or NaT."""

    def begin(self, rows: int) -> State:
        return {"valid": np.zeros(rows, np.int64), "missing": np.zeros(rows, np.int64)}

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        state["valid"][rows] += piece.count()
        if piece.missing is not None:
            state["missing"][rows] += piece.missing.sum(axis=1, dtype=np.int64)

    @staticmethod
    def merge(one: State, other: State) -> State:
        return {name: one[name] + other[name] for name in one}


class FillCount(Measure):
    """How many elements equal the fill value; NaN equals NaN."""

    def __init__(self, fill: Array) -> None:
        self._fill = fill

    def begin(self, rows: int) -> State:
        return {"count": np.zeros(rows, np.int64)}

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        state["count"][rows] += equal_to(piece.raw, self._fill).sum(axis=1, dtype=np.int64)

    @staticmethod
    def merge(one: State, other: State) -> State:
        return {"count": one["count"] + other["count"]}


def equal_to(one: Array, other: Array) -> Array:
    """Where elements of one type are equal, or both NaN or NaT.

    Example:
        >>> equal_to(np.array([1, np.nan, 3]), np.array(np.nan))
        array([False,  True, False])
    """
    dtype = one.dtype
    if dtype.names is not None:
        found = np.ones(np.broadcast_shapes(one.shape, other.shape), bool)
        for name in dtype.names:
            fields = equal_to(one[name], other[name])
            found &= fields.reshape(*found.shape, -1).all(axis=-1)
        return found
    if dtype.kind == "O":
        return np.asarray(np.equal(one, other, dtype=object), bool)
    same = np.asarray(one == other)
    if dtype.kind in "mM":
        same |= np.isnat(one) & np.isnat(other)
    elif dtype.kind in "fc" or (dtype.kind == "V" and dtype.type is not np.void):
        with np.errstate(invalid="ignore"):
            same |= (one != one) & (other != other)  # noqa: PLR0124 - of any type that has NaN
    return same


#: How two are made one; states name it.
_FUNCTIONS: Final = {
    "minimum": np.minimum, "maximum": np.maximum, "fmin": np.fmin, "fmax": np.fmax
}  # fmt: skip


class Extreme(Measure):
    """The least or the greatest."""

    def __init__(self, dtype: np.dtype[Any], *, greatest: bool, skips: bool) -> None:
        self._dtype = computable(dtype)
        if self._dtype.kind == "f":
            self._name = "maximum" if greatest else "minimum"
            self._first: Any = -np.inf if greatest else np.inf
            if skips:
                self._name, self._first = ("fmax" if greatest else "fmin"), np.nan
        else:
            known = np.iinfo(self._dtype)
            self._name = "maximum" if greatest else "minimum"
            self._first = known.min if greatest else known.max

    def begin(self, rows: int) -> State:
        return {self._name: np.full(rows, self._first, self._dtype)}

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        function, value = _FUNCTIONS[self._name], state[self._name]
        if self._dtype.kind == "f" or piece.valid is None:
            found = function.reduce(piece.values, axis=1)
        else:
            found = function.reduce(piece.values, axis=1, where=piece.valid, initial=self._first)
        value[rows] = function(value[rows], found)

    @staticmethod
    def merge(one: State, other: State) -> State:
        return {name: _FUNCTIONS[name](one[name], other[name]) for name in one}


_LOW = 0xFFFFFFFF


class ExactTotal(Measure):
    """The sum of whole numbers, or of times as such."""

    def begin(self, rows: int) -> State:
        return {name: np.zeros(rows, np.int64) for name in ("low", "high", "top")}

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        values = piece.values
        where: Any = True if piece.valid is None else piece.valid
        if values.dtype.itemsize < 8:
            total = values.sum(axis=1, dtype=np.int64, where=where)
            low, high = total & _LOW, total >> 32
        else:
            low = (values & values.dtype.type(_LOW)).sum(axis=1, dtype=np.int64, where=where)
            high = (values >> values.dtype.type(32)).sum(axis=1, dtype=np.int64, where=where)
        added = {"low": low, "high": high, "top": np.zeros(len(values), np.int64)}
        found = self.merge({name: part[rows] for name, part in state.items()}, added)
        for name, part in state.items():
            part[rows] = found[name]

    @staticmethod
    def merge(one: State, other: State) -> State:
        low = one["low"] + other["low"]
        high = one["high"] + other["high"] + (low >> 32)
        return {
            "low": low & _LOW,
            "high": high & _LOW,
            "top": one["top"] + other["top"] + (high >> 32),
        }


def exact_sums(state: State) -> Array:
    """The sums as Python's whole numbers, which have any number of digits.

    Example:
        >>> part = {"low": np.array([1]), "high": np.array([2]), "top": np.array([-1])}
        >>> exact_sums(part)
        array([-18446744065119617023], dtype=object)
    """
    top, high, low = (state[name].astype(object) for name in ("top", "high", "low"))
    found: Array = (top << 64) + (high << 32) + low
    return found


def narrow_sums(state: State) -> Array | None:
    """The sums as `int64`, if all of them fit.

    Example:
        >>> part = {"low": np.array([1]), "high": np.array([2**32 - 1]), "top": np.array([-1])}
        >>> narrow_sums(part)
        array([-4294967295])
    """
    high = np.where(state["high"] >= 2**31, state["high"] - 2**32, state["high"])
    if not np.array_equal(state["top"], high >> 63):
        return None
    found: Array = (high << 32) | state["low"]
    return found


class FloatTotal(Measure):
    """The sum of floating-point numbers."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = np.dtype(np.complex128 if computable(dtype).kind == "c" else np.float64)

    def begin(self, rows: int) -> State:
        return {"sum": np.zeros(rows, self._dtype), "lost": np.zeros(rows, self._dtype)}

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        where: Any = True if piece.valid is None else piece.valid
        with np.errstate(all="ignore"):
            total = piece.values.sum(axis=1, dtype=self._dtype, where=where)
        added = {"sum": total, "lost": np.zeros_like(total)}
        found = self.merge({name: part[rows] for name, part in state.items()}, added)
        for name, part in state.items():
            part[rows] = found[name]

    @staticmethod
    def merge(one: State, other: State) -> State:
        here, there = one["sum"], other["sum"]
        with np.errstate(all="ignore"):
            total = here + there
            back = total - here
            error = (here - (total - back)) + (there - back)
            lost = one["lost"] + other["lost"] + error
        # What is infinite, or no number, has lost nothing.
        return {"sum": total, "lost": np.where(np.isfinite(total), lost, 0)}


def float_sums(state: State) -> Array:
    """The sums."""
    with np.errstate(all="ignore"):
        found: Array = state["sum"] + state["lost"]
    return found


class Spread(Measure):
    """Count, mean and sum of squared deviations of rows: what variances are made of.

    Two states are merged by the parallel algorithm of T. F. Chan, G. H. Golub and R. J. LeVeque
    ("Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979), which loses
    nothing where the mean is large beside the deviations.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = np.dtype(np.complex128 if computable(dtype).kind == "c" else np.float64)

    def begin(self, rows: int) -> State:
        return {
            "count": np.zeros(rows, np.int64),
            "mean": np.zeros(rows, self._dtype),
            "squares": np.zeros(rows, np.float64),
        }

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        values = piece.values.astype(self._dtype, copy=False)
        where: Any = True if piece.valid is None else piece.valid
        count = piece.count()
        with np.errstate(all="ignore"):
            mean = values.sum(axis=1, where=where) / np.maximum(count, 1)
            apart = values - mean[:, None]
            if self._dtype.kind == "c":
                parts = np.square(apart.real) + np.square(apart.imag)
            else:
                parts = np.square(apart, out=apart)
            squares = parts.sum(axis=1, where=where)
        added = {"count": count, "mean": mean, "squares": squares}
        found = self.merge({name: part[rows] for name, part in state.items()}, added)
        for name, part in state.items():
            part[rows] = found[name]

    @staticmethod
    def merge(one: State, other: State) -> State:
        here, there = one["count"], other["count"]
        count = here + there
        share = there / np.maximum(count, 1)
        with np.errstate(all="ignore"):
            apart = other["mean"] - one["mean"]
            far = np.square(apart.real) + np.square(apart.imag)
            mean = one["mean"] + apart * share
            squares = one["squares"] + other["squares"] + far * (here * share)
        # A side without elements has no mean.
        mean = np.where(here == 0, other["mean"], np.where(there == 0, one["mean"], mean))
        squares = np.where(here == 0, other["squares"], squares)
        squares = np.where(there == 0, one["squares"], squares)
        return {"count": count, "mean": mean, "squares": squares}


def variances(state: State, ddof: int) -> Array:
    """The variances; NaN where there are no more elements than `ddof`."""
    free = state["count"] - ddof
    with np.errstate(all="ignore"):
        found: Array = np.where(free > 0, state["squares"] / np.maximum(free, 1), np.nan)
    return found
