"""What was asked of a chunk grid: the members of its configuration, and what follows from them.

Registered by `chunk_grid`; bound to an array's shape it becomes one `ChunkAxis` a dimension. A grid
is the product of its dimensions: the shape of a chunk is one size of each. What is said here holds
for all chunks of the document, those beyond the array's bounds included.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, ClassVar, Self

from tensorstore_py._interface.named_configuration import NamedConfiguration
from tensorstore_py._spec.registry import chunk_grids
from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._interface.chunk_grid import ChunkAxis

__all__ = ["ChunkGridModel"]


class ChunkGridModel(NamedConfiguration):
    """See the head of this file. A grid has `sizes` and `axes`; the rest may stay as it is.

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
