"""A chunked array: a source of chunks, a grid, a codec chain and a fill value.

The one idea of the engine: a zarr array is this, a shard is this with another source, and
reading or writing either is the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._interface.sharded import Sharded
from tensorstore_py._runtime.admission import Bytes, Places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py._chunked.source import Cell, ChunkSource
    from tensorstore_py._chunked.uneven import ArraysByShape
    from tensorstore_py._interface.chunk_grid import ChunkAxis
    from tensorstore_py._interface.codec_chain import CodecChain

__all__ = ["UNLIMITED", "ChunkedArray", "Limits"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class Limits(NamedTuple):
    """What all operations that name the same context resources share.

    Attributes:
        copying: places for threads that encode, decode or copy a chunk.
        memory: bytes of chunks in flight.
    """

    copying: Places
    memory: Bytes

    def in_flight(self, chunk_bytes: int) -> int:
        """What one chunk of that size counts: there may be it and its encoded form."""
        return 2 * chunk_bytes


UNLIMITED: Final = Limits(Places(2**12), Bytes(2**62))


@dataclass(frozen=True, slots=True)
class ChunkedArray:
    """See the head of this file.

    Attributes:
        source: where the chunks' bytes are.
        grid: how each dimension is cut.
        chain: how a chunk is encoded; its fill value stands for what is not stored. Where chunks
            differ in shape, it is for those of the largest one.
        fill_missing: a missing chunk reads as the fill value; else it is an error.
        store_fill: chunks equal to the fill value are stored like any other.
        limits: what its reads and writes share with others.
        growing: its bounds were seen to change, so others may know of further ones by now.
        shapes: the array as chunks of each shape see it, where they differ; None where they don't.
    """

    source: ChunkSource
    grid: tuple[ChunkAxis, ...]
    chain: CodecChain
    fill_missing: bool = True
    store_fill: bool = False
    limits: Limits = UNLIMITED
    growing: bool = False
    shapes: ArraysByShape | None = None

    def at(self, cell: Cell) -> ChunkedArray:
        """The array for whoever reads or writes just that chunk: all are of its shape."""
        return self if self.shapes is None else self.shapes.of(self, self.chunk_shape(cell))

    def chunk_shape(self, cell: Cell) -> tuple[int, ...]:
        """Shape of a stored chunk, including what lies beyond the bounds."""
        return tuple([axis.size(index) for axis, index in zip(self.grid, cell, strict=True)])

    def cells(self, box: Sequence[tuple[int, int]]) -> Iterator[Cell]:
        """The cells that a box touches, in order.

        Args:
            box: lower and upper bound along each dimension, within the array's.
        """
        return product(
            *(
                range(axis.cell(low), axis.cell(high - 1) + 1 if high > low else axis.cell(low))
                for axis, (low, high) in zip(self.grid, box, strict=True)
            )
        )

    @property
    def sharded(self) -> Sharded | None:
        """The sharding codec, if inner chunks can be addressed without decoding the whole shard."""
        codec = self.chain.to_bytes
        if isinstance(codec, Sharded) and not self.chain.compressors and not self.chain.to_array:
            return codec
        return None

    def filled_chunk(self) -> Array:
        """A fresh chunk of fill values."""
        chunk = self.chain.chunk
        return np.full(chunk.shape, chunk.fill_value, dtype=chunk.dtype)

    def is_fill(self, array: Array) -> bool:
        """Whether every element is the fill value bit for bit: NaN equals NaN, 0.0 not -0.0."""
        if not array.size:
            return True
        if array.dtype.hasobject:
            fills = np.broadcast_to(self.chain.chunk.fill_value, array.shape)
            return all(
                type(element) is type(other) and _same(element, other)
                for element, other in zip(array.flat, fills.flat, strict=True)
            )
        if self.chain.chunk.fill_value.ndim:
            return np.ascontiguousarray(array).tobytes() == self.filled_chunk().tobytes()
        fill = self.chain.chunk.fill_value.tobytes()
        corners = (array[(0,) * array.ndim], array[(-1,) * array.ndim])
        if any(corner.tobytes() != fill for corner in corners):
            return False
        word = _WORDS.get(array.dtype.itemsize)
        if word is None:
            return np.ascontiguousarray(array).tobytes() == fill * array.size
        bits = np.frombuffer(fill, word)
        return bool((np.ascontiguousarray(array).reshape(-1).view(word) == bits[0]).all())


def _same(element: object, fill: object) -> bool:
    """Whether two Python objects are equal; arrays never are, for all that it costs is space."""
    return element is fill or (not isinstance(element, np.ndarray) and bool(element == fill))


#: Element sizes that NumPy compares as one integer.
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
