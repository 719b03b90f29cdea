"""Chunk grids, one dimension at a time.

What metadata says of a grid is a `ChunkGridModel`, registered by `chunk_grid`. Bound to an array's
shape it is a tuple of `ChunkAxis`: each cuts one dimension into cells, and the shape of a chunk is
one size of each. The engine combines them; no axis knows of another. Coordinates are those of the
whole array, zero-based.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from math import gcd
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from tensorstore_py._interface.named_configuration import NamedConfiguration
from tensorstore_py._spec.registry import chunk_grids
from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

#: So many cells are looked at together.
_TOGETHER: Final = 2**12

__all__ = ["ChunkAxis", "ChunkGridModel", "IrregularAxis", "RegularAxis"]


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

    def touched(self, start: int, step: int, count: int) -> int:
        """How many cells hold at least one of the coordinates `start + step * k`.

        Args:
            start: the first coordinate.
            step: positive.
            count: how many coordinates, at least one.
        """
        first, beyond = self.cell(start), self.cell(start + (count - 1) * step) + 1
        found = 1
        for low in range(first + 1, beyond, _TOGETHER):
            begins = self.starts(np.arange(low - 1, min(low + _TOGETHER, beyond), dtype=np.int64))
            # How many coordinates lie before each cell: more before the next if it holds any.
            before = np.maximum(-((start - begins) // step), 0)
            found += int(np.count_nonzero(before[1:] != before[:-1]))
        return found


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

    def touched(self, start: int, step: int, count: int) -> int:
        if step >= self.chunk:
            return count
        return self.cell(start + (count - 1) * step) - self.cell(start) + 1


class IrregularAxis(ChunkAxis):
    """Rectilinear chunks, given as runs of equal sizes: time and memory go by runs, not by cells.

    Args:
        extent: size of the dimension.
        runs: `(size, how many)` of one run of chunks after the other, positive numbers. Together
            they reach the extent; chunks that begin beyond it don't matter.

    Example:
        >>> axis = IrregularAxis(10, [(2, 3), (7, 1)])
        >>> axis.count, axis.cell(6), axis.start(3), axis.size(3)
        (4, 3, 6, 7)
    """

    __slots__ = ("_begins", "_firsts", "_runs", "_sizes", "extent")

    def __init__(self, extent: int, runs: Iterable[tuple[int, int]]) -> None:
        self.extent = extent
        begins: list[int] = []
        firsts: list[int] = []
        sizes: list[int] = []
        begin = first = 0
        for size, count in runs:
            if begin >= extent:
                break  # nor could the numbers below be larger than the extent
            begins.append(begin)
            firsts.append(first)
            sizes.append(size)
            begin += size * count
            first += count
        if begin < extent:
            raise ValueError(f"chunks of {begin} elements in all do not reach the extent {extent}")
        # One coordinate at a time is looked up in the lists, many are in the arrays.
        self._begins = begins
        self._firsts = firsts
        self._sizes = sizes
        self._runs = np.array([begins, firsts, sizes], np.int64)

    def cell(self, index: int) -> int:
        run = bisect_right(self._begins, index) - 1
        return self._firsts[run] + (index - self._begins[run]) // self._sizes[run]

    def cells(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        begins, firsts, sizes = self._runs
        run = np.searchsorted(begins, indices, "right") - 1
        found: NDArray[np.int64] = firsts[run] + (indices - begins[run]) // sizes[run]
        return found

    def start(self, cell: int) -> int:
        run = bisect_right(self._firsts, cell) - 1
        return self._begins[run] + (cell - self._firsts[run]) * self._sizes[run]

    def starts(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        begins, firsts, sizes = self._runs
        run = np.searchsorted(firsts, cells, "right") - 1
        found: NDArray[np.int64] = begins[run] + (cells - firsts[run]) * sizes[run]
        return found

    def size(self, cell: int) -> int:
        return self._sizes[bisect_right(self._firsts, cell) - 1]

    def touched(self, start: int, step: int, count: int) -> int:
        if step == 1:
            return self.cell(start + count - 1) - self.cell(start) + 1
        return super().touched(start, step, count)


class ChunkGridModel(NamedConfiguration):
    """What was asked of a chunk grid: the members of its configuration, and what follows from them.

    What is said here holds for all chunks of the document, also those beyond the array's bounds. A
    grid defines `sizes` and `axes`; the rest may stay as it is.

    Attributes:
        grid_id: the registered name, as written in metadata.
        sizes_member: the member that is wrong if the grid is of another rank than the array.
    """

    registry = chunk_grids
    examples = ("regular", "rectilinear")
    grid_id: ClassVar[str]
    sizes_member: ClassVar[str] = "chunk_shape"

    @property
    def sizes(self) -> tuple[frozenset[int], ...]:
        """The sizes that chunks have in each dimension."""
        raise UnsupportedError(f'chunk grid "{self.grid_id}" only exists as a name')

    def axes(self, shape: Sequence[int]) -> tuple[ChunkAxis, ...]:
        """How each dimension of an array of that shape is cut."""
        raise UnsupportedError(f'chunk grid "{self.grid_id}" only exists as a name')

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Size of the chunks in each dimension, None where they have several; for layouts."""
        return tuple(next(iter(each)) if len(each) == 1 else None for each in self.sizes)

    def check_reaches(self, shape: Sequence[int]) -> None:
        """Raise `SpecError`, its path inside the configuration, unless chunks cover that shape."""

    def resized(self, shape: Sequence[int], unit: Sequence[int]) -> Self:
        """The grid of the array resized, whose present chunks stay as they are.

        Args:
            shape: the new one.
            unit: sizes of which those of new chunks are to be multiples.
        """
        return self

    def cuts_like(self, other: ChunkGridModel) -> bool:
        """Whether it is the same grid, however it is written."""
        return self == other

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    @property
    def is_even(self) -> bool:
        """Whether all chunks are of one shape."""
        return all(len(each) <= 1 for each in self.sizes)

    @property
    def largest(self) -> tuple[int, ...]:
        """Shape of the largest chunk."""
        return tuple(max(each, default=1) for each in self.sizes)

    @property
    def common(self) -> tuple[int, ...]:
        """The largest shape that divides every chunk's."""
        return tuple(gcd(*each) or 1 for each in self.sizes)
