"""Comparing two blocks of elements: where they differ, by how much, and what is there first.

Values are compared, not bits: -0.0 is 0.0, and NaN is NaN unless it is not to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._compute.counts import equal_to
from tensorstore_py._compute.measure import computable

if TYPE_CHECKING:
    from tensorstore_py._compute.measure import Array

__all__ = ["Tolerance", "comparable", "differing", "largest_distance"]

_NUMBERS = "biufc"


class Tolerance(NamedTuple):
    """How far apart elements may be, as `numpy.isclose` has it.

    Attributes:
        equal_nan: whether NaN equals NaN.
        rtol: in proportion to the second one's absolute value.
        atol: in any case.
    """

    equal_nan: bool = True
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether they must be equal."""
        return not self.rtol and not self.atol


def comparable(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether elements of two types can be compared: those of one type, and numbers.

    Example:
        >>> (
        ...     comparable(np.dtype("i2"), np.dtype("f4")),
        ...     comparable(np.dtype("i2"), np.dtype("M8[s]")),
        ... )
        (True, False)
    """
    return one == other or (_is_number(one) and _is_number(other))


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _NUMBERS or (dtype.kind == "V" and dtype.type is not np.void)


def differing(one: Array, other: Array, tolerance: Tolerance) -> Array:
    """Where elements differ.

    Example:
        >>> nan = np.nan
        >>> differing(np.array([1, nan, 3.01]), np.array([2, nan, 3]), Tolerance(atol=0.1))
        array([ True, False, False])
    """
    if not _is_number(one.dtype) or (tolerance.exact and one.dtype == other.dtype):
        same = equal_to(one, other)
        if tolerance.equal_nan:
            return ~same
        return ~np.asarray(one == other, bool)
    wide = _wide(one.dtype, other.dtype)
    if tolerance.exact:
        found = np.asarray(_known(one) != _known(other))
    else:
        here, there = one.astype(wide), other.astype(wide)
        with np.errstate(all="ignore"):
            far = np.abs(here - there) > tolerance.atol + tolerance.rtol * np.abs(there)
            finite = np.isfinite(here) & np.isfinite(there)
        found = np.where(finite, far, here != there)
    if tolerance.equal_nan and wide.kind in "fc":
        found &= ~(_is_nan(one) & _is_nan(other))
    return found


def _is_nan(data: Array) -> Array:
    known = _known(data)
    found: Array = np.isnan(known) if known.dtype.kind in "fc" else np.zeros(known.shape, bool)
    return found


def _known(data: Array) -> Array:
    """The elements, of a type that NumPy compares."""
    return data if data.dtype.kind in _NUMBERS else data.astype(computable(data.dtype))


def _wide(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """A type to compute differences in."""
    return np.dtype(np.complex128 if "c" in (one.kind, other.kind) else np.float64)


def largest_distance(one: Array, other: Array) -> Any:  # noqa: ANN401 - of whichever type
    """The largest absolute difference of some elements; None where there is no such thing.

    Where one is NaN and the other is not, it is NaN if there are no others.

    Example:
        >>> largest_distance(np.array([-100, 3], "i1"), np.array([100, 3], "i1"))
        200
        >>> largest_distance(np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-03"], "M8[D]"))
        np.timedelta64(2,'D')
    """
    if not one.size:
        return None
    if one.dtype == other.dtype and one.dtype.kind in "iu":
        # The difference of two whole numbers always fits their type without a sign.
        word = np.dtype(f"u{one.dtype.itemsize}")
        high, low = np.maximum(one, other), np.minimum(one, other)
        return int((high.view(word) - low.view(word)).max())
    if _is_number(one.dtype) and _is_number(other.dtype):
        wide = _wide(one.dtype, other.dtype)
        with np.errstate(all="ignore"):
            return float(np.fmax.reduce(np.abs(one.astype(wide) - other.astype(wide))))
    if one.dtype == other.dtype and one.dtype.kind in "mM":
        apart = np.abs(one - other)
        there = apart[~np.isnat(apart)]
        return there.max() if there.size else None
    return None
