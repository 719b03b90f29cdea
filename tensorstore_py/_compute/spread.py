"""Count, mean and sum of squared deviations of rows: what variances are made of.

Two states are merged by the parallel algorithm of T. F. Chan, G. H. Golub and R. J. LeVeque
("Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979), which loses
nothing where the mean is large beside the deviations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorstore_py._compute.measure import Measure, computable

if TYPE_CHECKING:
    from tensorstore_py._compute.measure import Array, Piece, State

__all__ = ["Spread", "variances"]


class Spread(Measure):
    """See the head of this file.

    Args:
        dtype: the type of elements.
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
