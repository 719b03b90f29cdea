"""What an array's metadata comes to, bound and checked once: everything the engine needs of it.

A zarr driver is a metadata parser that returns one of these. Parsing and binding the same bytes
again is free: the last results are kept by content (`metadata`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.chunk_keys import OuterKeys
from tensorstore_py.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tensorstore_py._chunked.array import ChainsByShape
    from tensorstore_py._index import IndexDomain
    from tensorstore_py._interface.array_info import ArrayInfo
    from tensorstore_py._interface.chunk_grid import ChunkAxis
    from tensorstore_py._interface.chunk_keys import ChunkKeys
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.schema import Schema

__all__ = ["ArrayLayout"]

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

    @classmethod
    def of(
        cls,
        info: ArrayInfo,
        chain: CodecChain,
        keys: ChunkKeys,
        *,
        grid: Sequence[ChunkAxis] | None = None,
        chains: ChainsByShape | None = None,
        describe: Callable[[], Schema] | None = None,
        always_store: bool = False,
    ) -> ArrayLayout:
        """The layout of an array.

        Args:
            info: what is known of it: data type, shape, labels, and with `grid` no more.
            chain: see above.
            keys: names by the array's own dimensions.
            grid: how its own dimensions are cut; None: all chunks are of the write chunk's shape.
            chains: see above.
            describe: see above; None: `info` is of all of it.
            always_store: see above.
        """
        assert info.data_type is not None
        shape, inner = info.shape or (), info.inner
        if grid is None:
            sizes = [1 if size is None else size for size in info.write_chunk or ()]
            grid = [*map(RegularAxis, shape, sizes)]
        return cls(
            data_type=info.data_type,
            domain=info.domain,
            grid=(*grid, *(RegularAxis(size, max(size, 1)) for size in inner)),
            chain=chain,
            keys=OuterKeys(keys, len(shape), len(inner)) if inner else keys,
            describe=describe or info.schema,
            always_store=always_store,
            chains=chains,
        )

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
