"""Chunk grids, one dimension at a time.

A grid is a tuple of `ChunkAxis`: each cuts one dimension into cells. The engine combines them;
no axis knows of another. Coordinates are those of the whole array, zero-based.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ChunkAxis", "RegularAxis"]


class ChunkAxis(ABC):
    """How one dimension is cut.

    Attributes:
        extent: size of the dimension; chunks may reach beyond it.
    """

    extent: int

    @abstractmethod
    def cell(self, index: int) -> int:
        """The cell that holds coordinate `index`."""

    @abstractmethod
    def cells(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """`cell` for many coordinates at once; same shape."""

    @abstractmethod
    def start(self, cell: int) -> int:
        """First coordinate of `cell`."""

    @abstractmethod
    def starts(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """`start` for many cells at once; same shape."""

    @abstractmethod
    def size(self, cell: int) -> int:
        """Size of the stored chunk at `cell`, including what lies beyond the extent."""

    @property
    def count(self) -> int:
        """How many cells intersect the extent."""
        return self.cell(self.extent - 1) + 1 if self.extent else 0


class RegularAxis(ChunkAxis):
    """Chunks of one size.

    Args:
        extent: size of the dimension.
        chunk: size of every chunk, positive.

    Example:
        >>> axis = RegularAxis(10, 4)
        >>> axis.count, axis.cell(9), axis.start(2)
        (3, 2, 8)
    """

    __slots__ = ("chunk", "extent")

    def __init__(self, extent: int, chunk: int) -> None:
        self.extent = extent
        self.chunk = chunk

    def cell(self, index: int) -> int:
        return index // self.chunk

    def cells(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return indices // self.chunk

    def start(self, cell: int) -> int:
        return cell * self.chunk

    def starts(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        return cells * self.chunk

    def size(self, cell: int) -> int:
        return self.chunk
