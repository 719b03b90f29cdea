"""Parts of a level in physical coordinates: which pixels have their centres there."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from typing import TYPE_CHECKING

from tensorstore_py._index import d
from tensorstore_py.errors import OutOfRangeError

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["physical_region"]

#: Centres that lie as near to a bound as this, in pixels, lie on it.
_NEAR = 1e-6


def physical_region(
    store: TensorStore,
    scale: Mapping[str, float],
    translation: Mapping[str, float],
    ranges: Mapping[str, slice | float],
) -> TensorStore:
    """The view of a level.

    Args:
        store: the level, its dimensions labelled.
        scale: size of a pixel along each axis.
        translation: where the first pixel's centre is.
        ranges: what is wanted, by axis.

    Raises:
        OutOfRangeError: no pixel lies there; names the axis.
    """
    for name, wanted in ranges.items():
        size, start = scale[name], translation[name]
        interval = store.domain[name]
        if not isinstance(wanted, slice):
            at = round((wanted - start) / size)
            if not interval.inclusive_min <= at < interval.exclusive_max:
                raise _outside(name, wanted)
            store = store[d[name][at]]
            continue
        low, high = interval.inclusive_min, interval.exclusive_max
        if wanted.start is not None:
            low = max(low, ceil((wanted.start - start) / size - _NEAR))
        if wanted.stop is not None:
            high = min(high, floor((wanted.stop - start) / size + _NEAR) + 1)
        if low >= high:
            raise _outside(name, wanted)
        store = store[d[name][low:high]]
    return store


def _outside(name: str, wanted: object) -> OutOfRangeError:
    return OutOfRangeError(f"no pixel of the level lies at {name}={wanted!r}")
