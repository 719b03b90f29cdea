"""The codecs of chunks for what is opened of their elements: all of each, one field, or its bytes.

The codecs in metadata speak of whole elements in the array's own dimensions. What is opened may be
a part of an element, with dimensions of its own behind the array's: they take part in no transpose
and are never cut. So the list is bound with these dimensions told to the codecs that move elements
about, and with a serializer in the innermost place that finds the part in the stored bytes. Where
another codec needs whole elements, they are decoded whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tensorstore_py.drivers.zarr3.chain import moves_elements_only, stored_endian
from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.fill_value import byte_permutation, seen_fill_value, shows_bytes
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    CodecChain,
    CodecModel,
    ShardedSpec,
    size_error,
)
from tensorstore_py.plugin.driver import ElementView, FieldBytes, bind_chain, split_chain

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["element_chain"]


def element_chain(
    codecs: Sequence[CodecModel],
    chunk_shape: tuple[int, ...],
    stored: StoredType,
    fill_value: NDArray[np.generic],
    view: ElementView,
) -> CodecChain:
    """The chain that encodes what is opened.

    Raises:
        SpecError: a codec does not fit; the path starts with `codecs`.
    """
    whole = bind_chain(codecs, ChunkType(chunk_shape, stored.stored, fill_value))
    if view.stored == stored.stored and not view.inner_shape and not stored.is_record:
        return whole
    endian = stored_endian(codecs)
    fill = seen_fill_value(stored, view, fill_value, endian)
    seen = ChunkType((*chunk_shape, *view.inner_shape), view.native, fill)
    if not moves_elements_only(codecs):
        return CodecChain(seen, (), WholeElements(whole, view), ())
    permutation = byte_permutation(stored, endian)
    blank = fill_value.tobytes()
    if shows_bytes(stored, view) and permutation is not None:
        blank = np.frombuffer(blank, np.uint8)[permutation].tobytes()
        permutation = None
    part = Part(view, blank, permutation)
    return bind_chain(_seen(codecs, len(chunk_shape), PartSpec(part=part)), seen)


class Part:
    """What is opened of each element.

    Args:
        view: where it is.
        blank: the bytes of one element of new chunks, in this machine's byte order.
        permutation: where each byte of an element is stored, if in the other byte order.
    """

    __slots__ = ("blank", "permutation", "view")

    def __init__(
        self, view: ElementView, blank: bytes, permutation: NDArray[np.intp] | None
    ) -> None:
        self.view = view
        self.blank = blank
        self.permutation = permutation


class PartSpec(ArrayToBytesSpec):
    """The `bytes` codec for a part of each element; no metadata says it."""

    codec_id: ClassVar[str] = "bytes"

    part: Part

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        view, blank, permutation = self.part.view, self.part.blank, self.part.permutation
        outer = chunk.shape[: len(chunk.shape) - len(view.inner_shape)]
        if permutation is None:
            return FieldBytes(view, outer, "C", blank)
        return TurnedFieldBytes(view, outer, blank, permutation)


class TurnedFieldBytes(FieldBytes):
    """`FieldBytes` of elements that are stored in the other byte order."""

    def __init__(
        self,
        view: ElementView,
        chunks: tuple[int, ...],
        fill_value: bytes,
        permutation: NDArray[np.intp],
    ) -> None:
        super().__init__(view, chunks, "C", fill_value)
        self._permutation = permutation

    def encode(self, array: Array) -> Buffer:
        return self._turned(super().encode(array))

    def encode_over(self, array: Array, stored: Buffer | None, *, keep_fill: bool) -> Buffer | None:
        if stored is not None:
            stored = self._turned(stored)
        data = super().encode_over(array, stored, keep_fill=keep_fill)
        return None if data is None else self._turned(data)

    def decode(self, data: Buffer) -> Array:
        return super().decode(self._turned(data))

    def direct(self, out: Array) -> memoryview | None:
        return None

    def _turned(self, data: Buffer) -> Buffer:
        if len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        elements = np.frombuffer(data, np.uint8).reshape(-1, len(self._permutation))
        return np.ascontiguousarray(elements[:, self._permutation]).reshape(-1).data


class WholeElements(ArrayToBytes):
    """A serializer that decodes whole elements and shows a part of each."""

    def __init__(self, chain: CodecChain, view: ElementView) -> None:
        chunk = chain.chunk
        self.encoded_size = chain.encoded_size()
        self.partial = view.size_bytes != chunk.dtype.itemsize
        self._chain = chain
        self._fields = FieldBytes(view, chunk.shape, "C", chunk.fill_value.tobytes())
        self._shape = chunk.shape
        self._dtype = chunk.dtype

    def encode(self, array: Array) -> Buffer:
        return self._chain.encode(self._elements(self._fields.encode(array)))

    def encode_over(self, array: Array, stored: Buffer | None, *, keep_fill: bool) -> Buffer | None:
        data = None if stored is None else self._bytes(stored)
        data = self._fields.encode_over(array, data, keep_fill=keep_fill)
        return None if data is None else self._chain.encode(self._elements(data))

    def decode(self, data: Buffer) -> Array:
        return self._fields.decode(self._bytes(data))

    def _bytes(self, data: Buffer) -> Buffer:
        elements = np.ascontiguousarray(self._chain.decode(data))
        return elements.reshape(-1).view(np.uint8).data

    def _elements(self, data: Buffer) -> Array:
        count = prod(self._shape)
        return np.frombuffer(data, self._dtype, count).reshape(self._shape)


def _seen(codecs: Sequence[CodecModel], rank: int, serializer: PartSpec) -> tuple[CodecModel, ...]:
    """The list for chunks with the view's dimensions behind the array's."""
    inner = serializer.part.view.inner_shape
    stages = split_chain(codecs)
    to_array: list[ArrayToArraySpec] = []
    for transpose in stages.to_array:
        behind = range(rank, rank + len(inner))
        to_array.append(transpose.replace(order=(*transpose.permutation(rank), *behind)))
    to_bytes: ArrayToBytesSpec = serializer
    if isinstance(stages.to_bytes, ShardedSpec):
        shard = stages.to_bytes
        assert shard.chunk_shape is not None
        to_bytes = shard.replace(
            chunk_shape=(*shard.chunk_shape, *inner),
            codecs=_seen(shard.codecs or (), rank, serializer),
        )
    return (*to_array, to_bytes, *stages.compressors)
