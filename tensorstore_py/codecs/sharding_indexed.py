"""Sharding: one stored value holds a grid of inner chunks and an index of where each one is.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/
Names: `sharding_indexed` (zarr3).
Example: `{"name": "sharding_indexed", "configuration": {"chunk_shape": [32, 32], "codecs":
["bytes", "zstd"], "index_codecs": ["bytes", "crc32c"], "index_location": "end"}}`.
Limits: the index must have the same size in every shard, so it cannot be compressed. It is an array
of `(offset, size)` in bytes from the value's start, for every inner chunk in C order, encoded by
codecs of its own. `MISSING` in both marks an inner chunk that is not stored because it holds
nothing but the fill value. Inner chunks are written in C order, but read from wherever it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    Buffer,
    ChunkType,
    CodecChain,
    CodecList,
    CodecModel,
    Sharded,
    ShardedSpec,
    codec,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ShardingIndexed", "ShardingIndexedSpec"]


@codec("sharding_indexed", family="zarr3")
class ShardingIndexedSpec(ShardedSpec):
    """Asked: `sharding_indexed`.

    Attributes:
        chunk_shape: shape of the inner chunks; it divides the shard's, which is the default.
        codecs: how an inner chunk is encoded; `bytes` if nothing is asked.
        index_codecs: how the index is encoded; little-endian `bytes` and `crc32c` if nothing
            is asked. The encoded size must not depend on the values.
        index_location: `"end"` or `"start"`; the end if nothing is asked.

    Example:
        >>> spec = ShardingIndexedSpec.parse({"chunk_shape": [2, 3], "codecs": ["gzip"]})
        >>> spec.to_json()
        {'chunk_shape': [2, 3], 'codecs': [{'name': 'gzip'}]}
    """

    list_members: ClassVar[tuple[str, ...]] = ("codecs", "index_codecs")

    index_codecs: CodecList | None = None
    index_location: Literal["end", "start"] | None = None

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        if include_defaults:
            json["index_location"] = self.index_location or "end"

    def resolved(self, chunk: ChunkType) -> ShardingIndexedSpec:
        inner, index, _ = self._inner(chunk)
        return self.replace(
            chunk_shape=inner.shape,
            codecs=self.resolved_list("codecs", self.codecs or (), inner),
            index_codecs=self.resolved_list("index_codecs", self._index_codecs(), index),
        )

    def bind(self, chunk: ChunkType) -> ShardingIndexed:
        inner, index, grid_shape = self._inner(chunk)
        chain = self.bound_list("codecs", self.codecs or (), inner)
        index_chain = self.bound_list("index_codecs", self._index_codecs(), index)
        index_size = index_chain.encoded_size()
        if index_size is None:
            raise SpecError(
                "an index must have the same size in every shard: leave out compressors",
                ("configuration", "index_codecs"),
            )
        return ShardingIndexed(
            chunk,
            chain,
            grid_shape,
            index_chain=index_chain,
            index_size=index_size,
            index_at_end=self.index_location != "start",
        )

    def _index_codecs(self) -> tuple[CodecModel, ...]:
        if self.index_codecs is not None:
            return self.index_codecs
        return type(self).parse({"index_codecs": ["bytes", "crc32c"]}).index_codecs or ()

    def _inner(self, chunk: ChunkType) -> tuple[ChunkType, ChunkType, tuple[int, ...]]:
        """What an inner chunk is, what the index is, and the number of chunks in each dimension."""
        shape = chunk.shape if self.chunk_shape is None else self.chunk_shape
        path = ("configuration", "chunk_shape")
        if len(shape) != len(chunk.shape):
            raise SpecError(
                f"{list(shape)} has {len(shape)} dimensions, but the shard has {len(chunk.shape)}",
                path,
            )
        for dimension, (inner, outer) in enumerate(zip(shape, chunk.shape, strict=True)):
            if outer % inner:
                raise SpecError(f"{inner} does not divide the shard's {outer}", (*path, dimension))
        grid_shape = tuple(outer // inner for inner, outer in zip(shape, chunk.shape, strict=True))
        inner_chunk = ChunkType(shape, chunk.dtype, chunk.fill_value)
        return inner_chunk, Sharded.index_type(grid_shape), grid_shape


class ShardingIndexed(Sharded):
    """The bound codec, whose index is encoded by a chain of its own."""

    def __init__(
        self,
        chunk: ChunkType,
        inner: CodecChain,
        grid_shape: tuple[int, ...],
        *,
        index_chain: CodecChain,
        index_size: int,
        index_at_end: bool,
    ) -> None:
        super().__init__(chunk, inner, grid_shape, index_size=index_size, index_at_end=index_at_end)
        self._index_chain = index_chain

    def decode_index(self, data: Buffer) -> NDArray[np.uint64]:
        if len(data) != self.index_size:
            raise DataLossError(
                f"the shard's index needs {self.index_size} bytes, but there are {len(data)}"
            )
        try:
            entries = self._index_chain.decode(data)
        except DataLossError as error:
            raise DataLossError(f"the shard's index is corrupt: {error}") from error
        return np.ascontiguousarray(entries, np.uint64).reshape(-1, 2)

    def encode_index(self, index: NDArray[np.uint64]) -> Buffer:
        return self._index_chain.encode(index)
