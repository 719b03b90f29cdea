"""Per-dimension values passed through an index transform, in either direction.

Only output dimensions that follow one input dimension with a non-zero stride carry anything. On
the way to the input, an input dimension that several output dimensions follow (a diagonal) gets
nothing. On the way to the output, a hard constraint must not get lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, TypeVar

from tensorstore_py._spec.constraints import PerDim
from tensorstore_py.errors import MismatchError, OutOfRangeError

if TYPE_CHECKING:
    from tensorstore_py._index import IndexTransform

__all__ = ["DimMapping"]

T = TypeVar("T", int, float)

_FARTHEST = 2**62 - 1


@dataclass(frozen=True, slots=True)
class DimMapping:
    """Where each dimension's value comes from.

    Attributes:
        transform: the index transform.
        inverse: False from output to input, True from input to output.
        sources: for each resulting dimension: (source dimension, offset, stride), or None.
    """

    transform: IndexTransform
    inverse: bool
    sources: tuple[tuple[int, int, int] | None, ...]

    @classmethod
    def to_input(cls, transform: IndexTransform) -> DimMapping:
        """From the transform's output to its input."""
        sources: list[tuple[int, int, int] | None] = [None] * transform.input_rank
        used = Counter(each.input_dimension for each in transform.maps)
        for dim, each in enumerate(transform.maps):
            source = each.input_dimension
            if source is not None and each.stride and used[source] == 1:
                sources[source] = (dim, each.offset, each.stride)
        return cls(transform, inverse=False, sources=tuple(sources))

    @classmethod
    def to_output(cls, transform: IndexTransform) -> DimMapping:
        """From the transform's input to its output."""
        sources = tuple(
            (each.input_dimension, each.offset, each.stride)
            if each.input_dimension is not None and each.stride
            else None
            for each in transform.maps
        )
        return cls(transform, inverse=True, sources=sources)

    @property
    def from_rank(self) -> int:
        """Number of dimensions of what is passed."""
        return self.transform.input_rank if self.inverse else self.transform.output_rank

    @property
    def to_rank(self) -> int:
        """Number of dimensions of the result."""
        return len(self.sources)

    def apply(
        self, constraint: PerDim[T], change: Callable[[T, int, int], T], what: str
    ) -> PerDim[T]:
        """The constraint on the other side.

        Args:
            constraint: one value per dimension of this side.
            change: the new value for (value, offset, stride).
            what: name of the constraint, for errors.

        Raises:
            MismatchError: a hard constraint has no output dimension.
            OutOfRangeError: the changed value overflows.
        """
        if self.inverse:
            kept = {source[0] for source in self.sources if source is not None}
            for dim, hard in enumerate(constraint.hard):
                if hard and dim not in kept:
                    raise MismatchError(
                        f"{what}: No output dimension corresponds to input dimension {dim}"
                    )
        taken = constraint.taken([None if source is None else source[0] for source in self.sources])

        def moved(dim: int, value: T) -> T:
            source = self.sources[dim]
            assert source is not None
            _, offset, stride = source
            result = change(value, offset, stride)
            if abs(result) > _FARTHEST:
                raise OutOfRangeError(f"{what}: {result} in dimension {dim} is no finite index")
            return result

        return taken.mapped(moved)

    def origin(self, value: int, offset: int, stride: int) -> int:
        """A grid origin on the other side."""
        if self.inverse:
            return stride * (value - 1 if stride < 0 else value) + offset
        moved = value - offset
        return -(-(moved if stride > 0 else moved - 1) // stride)

    def extent(self, value: int, offset: int, stride: int) -> int:
        """A chunk extent on the other side; -1, the full extent, stays."""
        if self.inverse:
            return value * abs(stride)
        return value // gcd(stride, value)

    def ratio(self, value: float, offset: int, stride: int) -> float:
        """An aspect ratio on the other side."""
        return value * abs(stride) if self.inverse else value / abs(stride)
