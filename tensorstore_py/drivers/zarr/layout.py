"""From a complete `.zarray` document to what the engine runs: grid, codec chain, chunk names.

A chunk is seen with the inner dimensions of the field that is open behind its own. They are
always whole: one cell of the grid, and no part of a chunk's name.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr.compression import ZarrCodecSpec
from tensorstore_py.drivers.zarr.data_type import StoredField
from tensorstore_py.drivers.zarr.field_bytes import FieldBytes
from tensorstore_py.drivers.zarr.fill_value import field_fill_value
from tensorstore_py.drivers.zarr.metadata import ZarrMetadata
from tensorstore_py.plugin import (
    ArrayLayout,
    ArrayToArray,
    ArrayToArraySpec,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkKeys,
    ChunkType,
    CodecChain,
    CodecSpec,
    IndexDomain,
    RegularAxis,
    SeparatedKeys,
    array_schema,
    parse_codec_json,
)

__all__ = ["array_layout", "inner_order"]

DEFAULT_SEPARATOR: Literal["."] = "."


def array_layout(
    metadata: ZarrMetadata,
    field: StoredField,
    *,
    separator: str | None = None,
    labels: tuple[str, ...] | None = None,
) -> ArrayLayout:
    """The bound array.

    Args:
        metadata: the document.
        field: the field to open, one of the document's data type.
        separator: between chunk indices if the document does not say.
        labels: of the dimensions; the document has none.

    Raises:
        SpecError, UnsupportedError: a compressor cannot be bound.
    """
    rank, inner = len(metadata.shape), field.inner_shape
    shape = (*metadata.shape, *inner)
    chunk_shape = (*metadata.chunks, *inner)
    domain = IndexDomain(
        shape=shape,
        implicit_upper_bounds=[True] * rank + [False] * len(inner),
        labels=labels,
    )
    fill = None
    if metadata.fill_value is not None:
        fill = field_fill_value(field, metadata.fill_value)
    chain = _chain(metadata, field, fill)
    keys = SeparatedKeys(rank, metadata.separator or separator or DEFAULT_SEPARATOR)
    return ArrayLayout(
        data_type=field.data_type,
        domain=domain,
        grid=tuple(
            RegularAxis(extent, max(chunk, 1))
            for extent, chunk in zip(shape, chunk_shape, strict=True)
        ),
        chain=chain,
        keys=OuterKeys(keys, rank, len(inner)) if inner else keys,
        schema=array_schema(
            data_type=field.data_type,
            domain=domain,
            read_chunk=chunk_shape,
            write_chunk=chunk_shape,
            inner_order=inner_order(metadata.order, rank, len(inner)),
            codec=CodecSpec(ZarrCodecSpec(compressor=metadata.compressor)),
            fill_value=fill,
            units=None,
        ),
        always_store=fill is None,
    )


def inner_order(order: str, rank: int, inner_rank: int) -> tuple[int, ...]:
    """Dimensions from the slowest to the fastest in a chunk.

    Example:
        >>> inner_order("F", 3, 2)
        (2, 1, 0, 3, 4)
    """
    outer = range(rank) if order == "C" else reversed(range(rank))
    return (*outer, *range(rank, rank + inner_rank))


class OuterKeys(ChunkKeys):
    """Names by the chunked dimensions only.

    Args:
        base: names of cells of the chunked dimensions.
        rank: how many there are.
        inner_rank: how many dimensions come behind them.
    """

    def __init__(self, base: ChunkKeys, rank: int, inner_rank: int) -> None:
        self._base = base
        self._rank = rank
        self._zeros = (0,) * inner_rank

    def encode(self, cell: tuple[int, ...]) -> str:
        return self._base.encode(cell[: self._rank])

    def decode(self, name: str) -> tuple[int, ...] | None:
        cell = self._base.decode(name)
        return None if cell is None else (*cell, *self._zeros)


def _chain(
    metadata: ZarrMetadata, field: StoredField, fill: NDArray[np.generic] | None
) -> CodecChain:
    stored_type = metadata.stored_type
    if fill is None:
        fill = np.zeros((), field.native)
    chunk = ChunkType((*metadata.chunks, *field.inner_shape), field.native, fill)
    # A compressor regroups the bytes of whole elements, all their fields together.
    size = stored_type.size_bytes
    elements = ChunkType((), np.dtype(f"V{size}"), np.zeros((), f"V{size}"))
    compressors: tuple[BytesToBytes, ...] = ()
    if metadata.compressor is not None:
        assert isinstance(metadata.compressor, BytesToBytesSpec)
        compressors = (metadata.compressor.bind(elements),)
    if len(stored_type.fields) > 1:
        blank = metadata.fill_value or bytes(size)
        to_bytes = FieldBytes(field, metadata.chunks, metadata.order, blank)
        return CodecChain(chunk, (), to_bytes, compressors)
    to_array: tuple[ArrayToArray, ...] = ()
    serialized = chunk
    if metadata.order == "F" and len(metadata.chunks) > 1:
        order = inner_order("F", len(metadata.chunks), len(field.inner_shape))
        transpose = parse_codec_json(
            "zarr3", {"name": "transpose", "configuration": {"order": order}}
        )
        assert isinstance(transpose, ArrayToArraySpec)
        to_array = (transpose.bind(chunk),)
        serialized = to_array[0].encoded
    serializer = parse_codec_json(
        "zarr3", {"name": "bytes", "configuration": {"endian": field.endian}}
    )
    assert isinstance(serializer, ArrayToBytesSpec)
    return CodecChain(chunk, to_array, serializer.bind(serialized), compressors)
