"""Making one element of many: plain functions on arrays of groups.

Groups come as an array with every dimension split in two, groups and members: `[n0, f0, n1, f1]`.
The result has the groups' dimensions. Means of integers are exact and rounded to the nearest, a
half to the even one. The median of an even number is the lower one of the two in the middle, the
mode of several that are as frequent the least. Least and greatest pass over NaN.

Small floating-point types, and the means of `float32`, are computed in a wider type.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py.plugin.codec import Array, dtype

__all__ = ["METHODS", "check_method", "reduced"]

#: By method, the kinds of data types that have it; "stride" takes elements as they are.
METHODS: Final = {
    "stride": "biufcmMOUSV",
    "mean": "biufc",
    "median": "biufmM",
    "mode": "biufcmMOUS",
    "min": "biufmM",
    "max": "biufmM",
}
#: Types whose elements can be told apart, but mean no number or text.
_BYTES: Final = frozenset({"char", "byte"})


def check_method(method: str, data_type: dtype) -> None:
    """Refuse what makes no sense.

    Raises:
        SpecError: the method is not for that data type.
    """
    able = [name for name in METHODS if _has(name, data_type)]
    if method not in able:
        raise SpecError(
            f"{method} is not for {data_type.name}; use one of {', '.join(able)}",
            ("downsample_method",),
        )


def _has(method: str, data_type: dtype) -> bool:
    if data_type.name in _BYTES:
        return method in ("stride", "mode")
    return data_type.kind in METHODS[method]


def reduced(groups: Array, method: str) -> Array:
    """One element for each group.

    Args:
        groups: `[n0, f0, n1, f1, ...]`; no dimension is empty.
        method: one of `METHODS`, but "stride".

    Example:
        >>> reduced(np.array([[1, 2], [3, 8]]), "mean")
        array([2, 6])
    """
    if groups.dtype.kind == "V" and groups.dtype.isbuiltin != 2:
        return reduced(groups.view(np.uint8), method).view(groups.dtype)
    wide = _widened(groups)
    return _REDUCE[method](wide).astype(groups.dtype, copy=False)


def _widened(groups: Array) -> Array:
    """In a type that NumPy calculates with."""
    if groups.dtype.isbuiltin == 1 or (groups.dtype.kind in "OUSV" and groups.dtype.isbuiltin != 2):
        return groups
    integral = groups.dtype.name.startswith(("int", "uint"))
    return groups.astype(np.int8 if integral else np.float32)


def _members(groups: Array) -> tuple[int, ...]:
    return tuple(range(1, groups.ndim, 2))


def _mean(groups: Array) -> Array:
    axes = _members(groups)
    kind, itemsize = groups.dtype.kind, groups.dtype.itemsize
    count = prod(groups.shape[axis] for axis in axes)
    if kind in "biu":
        return _integral_mean(groups, axes, count)
    with np.errstate(all="ignore"):
        if itemsize < (8 if kind == "f" else 16):
            wide = np.float64 if kind == "f" else np.complex128
            return np.asarray(np.true_divide(_folded(groups, partial(np.add, dtype=wide)), count))
        # in no wider type, so that the order of additions matters
        return np.asarray(groups.mean(axes))


def _integral_mean(groups: Array, axes: tuple[int, ...], count: int) -> Array:
    if groups.dtype.itemsize < 8:
        narrow = groups.dtype.itemsize < 3 and count <= 2**15
        total = _folded(groups, partial(np.add, dtype=np.int32 if narrow else np.int64))
        if count & (count - 1) == 0:
            return _rounded_shift(total, count.bit_length() - 1)
        whole, rest = np.divmod(total, count)
    else:
        # the sum might not fit, but the sum of the quotients does
        quotients, remainders = np.divmod(groups, groups.dtype.type(count))
        carried, rest = np.divmod(remainders.sum(axes), groups.dtype.type(count))
        whole = quotients.sum(axes) + carried
    twice = rest + rest
    up = (twice > count) | ((twice == count) & (whole % 2 == 1))
    return np.asarray(whole + up.astype(whole.dtype))


def _rounded_shift(total: Array, bits: int) -> Array:
    """Sums divided by a power of two, rounded as in `_integral_mean`."""
    if not bits:
        return total
    found = np.bitwise_and(np.right_shift(total, bits), 1)
    found += total
    found += (1 << (bits - 1)) - 1
    found >>= bits
    return np.asarray(found)


def _folded(groups: Array, function: Callable[..., Array]) -> Array:
    """The members of each group, made one by a function of two, dimension after dimension.

    Each call is of a whole member of every group, so it is quick even if groups are small.
    """
    found = groups
    for dim in range(groups.ndim // 2):
        members = np.moveaxis(found, dim + 1, 0)
        found = members[0]
        for place in range(1, len(members)):
            found = function(found, members[place])
    return found


def _sorted(groups: Array) -> Array:
    """The members of each group in order, as the last dimension."""
    moved = np.moveaxis(groups, _members(groups), range(-(groups.ndim // 2), 0))
    shape = groups.shape[::2]
    return np.sort(moved.reshape(*shape, -1), axis=-1)


def _median(groups: Array) -> Array:
    members = _sorted(groups)
    return np.asarray(members[..., (members.shape[-1] - 1) // 2])


def _mode(groups: Array) -> Array:
    if groups.dtype.hasobject:
        return _object_mode(groups)
    members = _sorted(groups)
    best = members[..., 0].copy()
    most = np.ones(best.shape, np.int64)
    run = most.copy()
    with np.errstate(invalid="ignore"):
        for place in range(1, members.shape[-1]):
            here, before = members[..., place], members[..., place - 1]
            # NaN is what differs from itself
            same = (here == before) | ((here != here) & (before != before))  # noqa: PLR0124
            run = np.where(same, run + 1, 1)
            better = run > most
            best[better] = here[better]
            most = np.maximum(most, run)
    return best


def _object_mode(groups: Array) -> Array:
    shape = groups.shape[::2]
    moved = np.moveaxis(groups, _members(groups), range(-(groups.ndim // 2), 0))
    rows = moved.reshape(prod(shape), -1)
    out = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        found = {_order(element): element for element in row}
        counts = Counter(_order(element) for element in row)
        most = max(counts.values())
        out[place] = found[min(each for each, count in counts.items() if count == most)]
    return out.reshape(shape)


def _order(element: object) -> tuple[int, object]:
    """What sorts text, bytes and JSON values: by kind, then by value."""
    if element is None or isinstance(element, bool):
        return int(element is not None), bool(element)
    if isinstance(element, int | float):
        return 2, element
    if isinstance(element, dict | list):
        return 3 + isinstance(element, list), json.dumps(element, sort_keys=True)
    return 5, element


def _least(groups: Array) -> Array:
    return _extreme(groups, np.fmin, np.inf)


def _greatest(groups: Array) -> Array:
    return _extreme(groups, np.fmax, -np.inf)


def _extreme(groups: Array, pick: np.ufunc, nothing: float) -> Array:
    found = np.asarray(_folded(groups, pick))
    if found.dtype.kind == "f":
        # of NaN alone, as the reference: the least of nothing
        found = np.where(np.isnan(found), found.dtype.type(nothing), found)
    return found


_REDUCE: Final[dict[str, Callable[[Array], Array]]] = {
    "mean": _mean,
    "median": _median,
    "mode": _mode,
    "min": _least,
    "max": _greatest,
}
