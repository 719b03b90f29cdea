"""The least and the greatest element of rows.

NaN is the extreme of any row that has one, as NumPy has it, unless it is passed over; then a row of
nothing else has NaN. Elements of rows of whole numbers begin with the far end of their type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._compute.measure import Measure, computable

if TYPE_CHECKING:
    from tensorstore_py._compute.measure import Piece, State

__all__ = ["Extreme"]

#: How two are made one; states name it.
_FUNCTIONS: Final = {
    "minimum": np.minimum, "maximum": np.maximum, "fmin": np.fmin, "fmax": np.fmax
}  # fmt: skip


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
