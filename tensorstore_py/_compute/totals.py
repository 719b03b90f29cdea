"""Sums of rows: exact for whole numbers, in double precision with what rounding lost for others.

A sum of whole numbers is kept in three parts of 32 bits and so never overflows; whether it fits 64
bits is seen at the end. A floating-point sum is two numbers, the second of them what was lost of
the first (D. E. Knuth, The Art of Computer Programming, vol. 2, 4.2.2, theorem B), so that the
order in which states are merged makes no difference but to the last bit, rarely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorstore_py._compute.measure import Measure, computable

if TYPE_CHECKING:
    from tensorstore_py._compute.measure import Array, Piece, State

__all__ = ["ExactTotal", "FloatTotal", "exact_sums", "float_sums", "narrow_sums"]

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
    """The sum of floating-point numbers.

    Args:
        dtype: the type of elements.
    """

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
