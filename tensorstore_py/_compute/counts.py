"""How many elements there are: those that are taken, those that are NaN, those equal to the fill.

Nothing is computed with elements here, so this is for all data types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._compute.measure import Array, Measure

if TYPE_CHECKING:
    from tensorstore_py._compute.measure import Piece, State

__all__ = ["Counts", "FillCount", "equal_to"]


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
    """How many elements equal the fill value; NaN equals NaN.

    Args:
        fill: the value.
    """

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
