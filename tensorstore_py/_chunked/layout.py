"""What an array's metadata comes to, bound and checked once: everything the engine needs of it.

A zarr driver is a metadata parser that returns one of these. Parsing and binding the same bytes
again is free: `remembered` keeps the last results by content.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from tensorstore_py._runtime.gate import Mutex
from tensorstore_py.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tensorstore_py._chunked.uneven import ChainsByShape
    from tensorstore_py._index import IndexDomain
    from tensorstore_py._interface.chunk_grid import ChunkAxis
    from tensorstore_py._interface.chunk_keys import ChunkKeys
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.schema import Schema

__all__ = ["ArrayLayout", "Remembered"]

T = TypeVar("T")


@dataclass(frozen=True)
class ArrayLayout:
    """A bound array format.

    Attributes:
        data_type: element type as users see it.
        domain: zero origin; upper bounds implicit where they can be resized; labels.
        grid: how each dimension is cut.
        chain: how a chunk is encoded, with the fill value that stands for what is not stored.
            Where chunks differ in shape, it is for those of the largest one.
        keys: names of the chunks, relative to the array's path.
        describe: makes its schema, which most who open an array never look at.
        always_store: chunks equal to the fill value are stored, whatever the spec says
            (zarr version 2 with no fill value of its own).
        chains: the chain of each shape where chunks differ in shape; None where they don't.
    """

    data_type: dtype
    domain: IndexDomain
    grid: tuple[ChunkAxis, ...]
    chain: CodecChain
    keys: ChunkKeys
    describe: Callable[[], Schema] = field(compare=False)
    always_store: bool = False
    chains: ChainsByShape | None = None

    @cached_property
    def schema(self) -> Schema:
        """The array's whole schema."""
        return self.describe()

    @property
    def fill_value(self) -> NDArray[np.generic]:
        """What missing chunks read as."""
        return self.chain.chunk.fill_value

    def chunk_starts(self, dim: int, low: int, high: int) -> Sequence[int]:
        """Where chunks begin in between, if they are not of one size."""
        if self.chains is None or dim >= len(self.grid):
            return ()
        axis = self.grid[dim]
        high = min(high, axis.extent)
        if low + 1 >= high:
            return ()
        return [axis.start(cell) for cell in range(axis.cell(low) + 1, axis.cell(high - 1) + 1)]

    def check_same_array(self, now: ArrayLayout, where: str) -> None:
        """Refuse to go on if the array was replaced by one of another form under our hands.

        Args:
            now: what is there now.
            where: names the metadata.

        Raises:
            FailedPreconditionError: it was replaced; names the key, what was there and what is.
        """
        if self.data_type != now.data_type or self.domain.rank != now.domain.rank:
            raise FailedPreconditionError(
                f"metadata at {where} was replaced: it was {self.data_type.name} of rank "
                f"{self.domain.rank} and is {now.data_type.name} of rank {now.domain.rank} now; "
                "open the array again"
            )


class Remembered(Generic[T]):
    """The last results of a pure function of hashable content, least recently used dropped first.

    Example:
        >>> seen = Remembered(2)
        >>> seen.get("a", lambda: 1), seen.get("a", lambda: 2)
        (1, 1)
    """

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._results: OrderedDict[Hashable, T] = OrderedDict()
        self._mutex = Mutex()

    def get(self, content: Hashable, make: Callable[[], T]) -> T:
        """The result for `content`, made now if it is not remembered."""
        with self._mutex:
            if content in self._results:
                self._results.move_to_end(content)
                return self._results[content]
        made = make()
        with self._mutex:
            self._results[content] = made
            while len(self._results) > self._limit:
                self._results.popitem(last=False)
        return made
