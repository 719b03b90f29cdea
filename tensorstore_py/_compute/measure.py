"""`Measure`: what is found out of the elements of many rows, piece by piece, and merged.

Whatever is reduced is seen as rows: one for each element of the result, of all elements that it is
made of. What is known of the rows is a state, a few arrays by name; it begins empty, takes pieces
of rows, and merges with another state of the same rows. The one invariant: it doesn't matter how
elements are spread over pieces and states, nor in which order these come.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Array", "Measure", "Piece", "State", "computable", "state_from_json", "state_json"]

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
    """Some elements of some rows.

    Args:
        raw: rows and columns, as they were read.
        skips: whether NaN is passed over.

    Attributes:
        raw: see above.
    """

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

    Raises:
        SpecError: it is none.
    """
    try:
        return {
            name: np.frombuffer(bytearray(base64.b85decode(data)), np.dtype(dtype)).reshape(shape)
            for name, (dtype, shape, data) in json.items()
        }
    except (TypeError, ValueError) as error:
        raise SpecError(f"a partial result is damaged: {error}") from error
