"""The least and the greatest element of rows.

NaN is the extreme of any row that has one, as NumPy has it, unless it is passed over; then a row of
nothing else has NaN. Elements of rows of whole numbers begin with the far end of their type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorstore_py._compute.measure import Measure, computable

if TYPE_CHECKING:
    from tensorstore_py._compute.measure import Array, Piece, State

__all__ = ["Extreme"]


class Extreme(Measure):
    """The least or the greatest.

    Args:
        dtype: the type of elements.
        greatest: which of the two.
        skips: whether NaN is passed over.
    """

    def __init__(self, dtype: np.dtype[Any], *, greatest: bool, skips: bool) -> None:
        self._dtype = computable(dtype)
        if self._dtype.kind == "f":
            self._function = np.maximum if greatest else np.minimum
            self._first: Any = -np.inf if greatest else np.inf
            if skips:
                self._function, self._first = (np.fmax if greatest else np.fmin), np.nan
        else:
            known = np.iinfo(self._dtype)
            self._function = np.maximum if greatest else np.minimum
            self._first = known.min if greatest else known.max

    def begin(self, rows: int) -> State:
        return {"value": np.full(rows, self._first, self._dtype)}

    def take(self, state: State, rows: slice, piece: Piece) -> None:
        value = state["value"]
        value[rows] = self._function(value[rows], self._extreme(piece))

    def _extreme(self, piece: Piece) -> Array:
        if self._dtype.kind == "f" or piece.valid is None:
            found: Array = self._function.reduce(piece.values, axis=1)
            return found
        found = self._function.reduce(piece.values, axis=1, where=piece.valid, initial=self._first)
        return found

    def merge(self, one: State, other: State) -> State:
        return {"value": self._function(one["value"], other["value"])}
