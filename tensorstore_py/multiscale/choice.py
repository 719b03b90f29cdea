"""Which level of an image is wanted: the smallest that is good enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorstore_py.errors import SpecError
from tensorstore_py.multiscale.axes import by_axis

if TYPE_CHECKING:
    from tensorstore_py.multiscale.metadata import ImageMetadata

__all__ = ["wanted_level"]


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
