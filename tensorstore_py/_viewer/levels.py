"""`Picture`: an array as it is drawn: one array, or the levels of an image in several sizes.

Positions of the outside world are offsets from the first element of level 0, whatever its domain's
origin. Invariant: level 0 has the factor 1 along each dimension, and later levels are no finer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any, NamedTuple

import numpy as np

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.errors import MismatchError, OutOfRangeError

__all__ = ["Level", "Picture", "PictureAxis"]

Offsets = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class PictureAxis(NamedTuple):
    """What is known of a dimension.

    Attributes:
        label: its name, `""` if it has none.
        size: how many elements level 0 has along it.
        origin: the position of the first of them.
        step: the size of an element in units.
        unit: its unit; `""`: not known.
    """

    label: str
    size: int
    origin: int
    step: float
    unit: str


class Level(NamedTuple):
    """One size of a picture.

    Attributes:
        name: its path in the image; `""` for an array by itself.
        store: the array.
        factors: how many elements of level 0 an element stands for, along each dimension.
    """

    name: str
    store: TensorStore
    factors: tuple[float, ...]

    def positions(self, dim: int, offsets: Offsets) -> Offsets:
        """The positions of this level's elements that stand for offsets of level 0."""
        low, size = self.store.origin[dim], self.store.shape[dim]
        factor = self.factors[dim]
        found = offsets if factor == 1 else np.floor(offsets / factor).astype(np.int64)
        # Rounding up of extents differs between writers of images.
        return low + np.minimum(found, size - 1)

    def grid(self, dim: int, *, shards: bool) -> tuple[int, int]:
        """The extent of chunks along a dimension and where one begins; `(0, 0)`: there are none."""
        layout = self.store.chunk_layout
        shape = (layout.write_chunk if shards else layout.read_chunk).shape
        size = shape[dim] if shape else 0
        origin = layout.grid_origin[dim] if layout.grid_origin else 0
        return (size or 0, origin or 0)


class Picture:
    """What can be drawn.

    Args:
        path: below what is shown.
        levels: of an image; of an array itself.
        axes: its dimensions, as far as an image says them; else those of the array.
        attributes: as they are stored.
    """

    def __init__(
        self,
        path: str,
        levels: Sequence[Level],
        attributes: Mapping[str, object],
        axes: Sequence[tuple[float, str]] | None = None,
        image: str = "",
    ) -> None:
        self.path = path
        self.levels = tuple(levels)
        self.attributes = attributes
        self.image = image
        store = self.levels[0].store
        domain = store.domain
        if any(isinf(low) or isinf(high) for low, high in _bounds(store)):
            raise MismatchError(
                f"an array without bounds cannot be drawn, and the domain is {domain}; "
                "choose a part of it first"
            )
        scales = list(axes or _scales(store))
        self.axes = tuple(
            PictureAxis(dim.label, dim.size, dim.inclusive_min, step, unit)
            for dim, (step, unit) in zip(domain, scales, strict=True)
        )

    @property
    def rank(self) -> int:
        """Its number of dimensions."""
        return len(self.axes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of its elements."""
        return self.levels[0].store.dtype.array_dtype

    def coarsest(self, steps: Mapping[int, int]) -> tuple[int, Level]:
        """The number of the smallest level that still has an element for each step."""
        for number in range(len(self.levels) - 1, -1, -1):
            level = self.levels[number]
            if all(level.factors[dim] <= step * 1.001 for dim, step in steps.items()):
                return number, level
        return 0, self.levels[0]

    def check_offset(self, dim: int, offset: int) -> None:
        """Refuse an offset that is not there.

        Raises:
            OutOfRangeError: names the dimension.
        """
        size = self.axes[dim].size
        if not 0 <= offset < size:
            name = self.axes[dim].label or dim
            raise OutOfRangeError(f"dimension {name} has {size} elements, none at {offset}")


def _bounds(store: TensorStore) -> list[tuple[float, float]]:
    return [
        (dim.inclusive_min, dim.exclusive_max) if dim.finite else (0, float("inf"))
        for dim in store.domain
    ]


def _scales(store: TensorStore) -> list[tuple[float, str]]:
    return [
        (1.0, "") if unit is None else (float(unit.multiplier) or 1.0, unit.base_unit)
        for unit in store.dimension_units
    ]
