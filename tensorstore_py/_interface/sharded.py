"""The sharding promise: a serializer whose bytes hold many independently stored inner chunks.

The engine reads and writes inner chunks by their position in the shard's index, so it needs to
see inside; every other serializer is opaque to it. Index entries are `(offset, size)` in bytes
from the shard's start; `MISSING` in both marks an inner chunk that is not stored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sized
from typing import TYPE_CHECKING, Final, Self, TypeVar

from tensorstore_py._interface.codec import ArrayToBytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tensorstore_py._interface.byte_range import ByteRange
    from tensorstore_py._interface.codec_chain import CodecChain
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["MISSING", "Sharded"]

MISSING: Final = 2**64 - 1

B = TypeVar("B", bound=Sized)


class Sharded(ArrayToBytes):
    """A bound sharding codec.

    Attributes:
        inner: the chain of one inner chunk; `inner.chunk.shape` is the inner chunk's shape.
        grid_shape: how many inner chunks a shard has along each dimension.
        index_size: encoded size of the index in bytes.
    """

    inner: CodecChain
    grid_shape: tuple[int, ...]
    index_size: int

    def unpacking(self, unpacked_bytes: int) -> Self:
        inner = self.inner.unpacking(unpacked_bytes)
        if inner is self.inner:
            return self
        # `copy.copy` imports, which fails when the interpreter ends.
        codec = object.__new__(type(self))
        codec.__dict__.update(self.__dict__)
        codec.inner = inner
        return codec

    @abstractmethod
    def index_range(self) -> ByteRange:
        """Where the index is: a prefix or a suffix of the shard."""

    @abstractmethod
    def decode_index(self, data: Buffer) -> NDArray[np.uint64]:
        """The index as `[number of inner chunks in C order, 2]` of `(offset, size)`.

        Raises:
            DataLossError: truncated, or its checksum fails.
        """

    @abstractmethod
    def assemble(self, chunks: Mapping[int, B]) -> Sequence[Buffer | B] | None:
        """The parts of a shard from encoded inner chunks by C-order number; None without any.

        Args:
            chunks: the inner chunks, or what stands for them: all that counts is their length.
        """
