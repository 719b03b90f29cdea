"""What is wanted of an image: which level, and which part of it in physical coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import TYPE_CHECKING

from tensorstore_py._index import d
from tensorstore_py.errors import OutOfRangeError, SpecError
from tensorstore_py.multiscale.axes import by_axis

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py.multiscale.metadata import ImageMetadata

__all__ = ["physical_region", "wanted_level"]


def wanted_level(
    image: ImageMetadata,
    pixel_size: object,
    shape: Sequence[int] | None,
    whole: Sequence[int] | None,
) -> int:
    """The number of the smallest level that is good enough; 0 if none is.

    Args:
        image: what is said of the image.
        pixel_size: how large pixels may be, along the axes of space, or by axis name.
        shape: how large the level has to be at least, if no pixel size is given.
        whole: extents of the largest level, for that.

    Raises:
        SpecError: an axis that there is not, or not one extent for each.
    """
    sizes = [dataset.scale for dataset in image.datasets]
    if shape is None:
        most = by_axis(pixel_size, image.axes, "pixel_size", (float("inf"),) * len(image.axes))
    else:
        if len(shape) != len(image.axes):
            raise SpecError(f"{len(shape)} extents for {len(image.axes)} axes", ("shape",))
        assert whole is not None
        most = tuple(
            size * max(1, extent) / max(1, wanted)
            for size, extent, wanted in zip(sizes[0], whole, shape, strict=True)
        )
    for size in most:
        if not isinstance(size, int | float):
            raise SpecError(f"expected a number, but found {size!r:.60}", ("pixel_size",))
    fit = [
        number
        for number, size in enumerate(sizes)
        if all(one <= limit * (1 + 1e-9) for one, limit in zip(size, most, strict=True))  # type: ignore[operator]
    ]
    return fit[-1] if fit else 0


#: Centres that lie as near to a bound as this, in pixels, lie on it.
_NEAR = 1e-6


def physical_region(
    store: TensorStore,
    scale: Mapping[str, float],
    translation: Mapping[str, float],
    ranges: Mapping[str, slice | float],
) -> TensorStore:
    """The view of a level.

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
