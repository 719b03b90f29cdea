"""How the chunks of an array are encoded: its data type, filters and compressor as one chain.

First comes what depends on the element type (memory order, byte order, a field among others, or
the codec that stores Python objects), then the filters, then the compressor. A compressor is the
last filter: both may be any codec of the family.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr.element_codecs import FilteredElements, SerializedElements
from tensorstore_py.drivers.zarr.metadata import ZarrMetadata
from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.plugin.codec import (
    ArrayToArray,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    CodecChain,
    CodecModel,
    dtype,
)
from tensorstore_py.plugin.driver import (
    OPAQUE,
    ElementView,
    FieldBytes,
    parse_codec_json,
)

__all__ = ["bound_chain", "inner_order"]

_BYTE = np.dtype(np.uint8)

#: A codec and its place in the metadata.
_Placed = tuple[tuple[str | int, ...], CodecModel]


def inner_order(order: str, rank: int, inner_rank: int = 0) -> tuple[int, ...]:
    """Dimensions from the slowest to the fastest in a chunk.

    Example:
        >>> inner_order("F", 3, 2)
        (2, 1, 0, 3, 4)
    """
    outer = range(rank) if order == "C" else reversed(range(rank))
    return (*outer, *range(rank, rank + inner_rank))


def bound_chain(
    metadata: ZarrMetadata,
    view: ElementView,
    fill: NDArray[np.generic],
    *,
    run_code: bool = False,
) -> CodecChain:
    """The chain for what is opened of each element.

    Raises:
        SpecError: a filter or compressor does not fit; the path names it.
        UnsupportedError: one needs a library that is not installed, or is not allowed.
    """
    codecs = placed_codecs(metadata.filters, metadata.compressor)
    for path, codec in codecs:
        if codec.runs_code and not run_code:
            raise UnsupportedError(
                f'{_text(path)}: reading codec "{codec.codec_id}" runs whatever program the data '
                'contains; if you trust who wrote it, open it with "allow_pickle": true'
            )
    chunk = ChunkType((*metadata.chunks, *view.inner_shape), view.native, fill)
    if metadata.dtype.holds_objects:
        return _objects_chain(metadata, chunk, codecs)
    to_array, to_bytes = _serializer(metadata, view, chunk)
    shape = metadata.chunks
    if metadata.order == "F":
        shape = (int(np.prod(shape, dtype=np.int64)),)
    stored = metadata.dtype.stored
    elements = ChunkType(shape, stored, np.zeros((), stored))
    return CodecChain(chunk, to_array, to_bytes, _bound(codecs, elements))


def placed_codecs(
    filters: Sequence[CodecModel] | None, compressor: CodecModel | None
) -> list[_Placed]:
    """All codecs in the order in which they encode, each with its place in the metadata."""
    codecs: list[_Placed] = [
        (("filters", position), codec) for position, codec in enumerate(filters or ())
    ]
    if compressor is not None:
        codecs.append((("compressor",), compressor))
    return codecs


def _serializer(
    metadata: ZarrMetadata, view: ElementView, chunk: ChunkType
) -> tuple[tuple[ArrayToArray, ...], ArrayToBytes]:
    """From what is opened to the bytes of whole elements."""
    size = metadata.dtype.size_bytes
    if view.stored.names is not None or view.size_bytes != size:
        blank = metadata.fill_value.data or bytes(size)
        return (), FieldBytes(view, metadata.chunks, metadata.order, blank)
    to_array = _transposed(metadata, chunk, len(view.inner_shape))
    serializer = _elements_in("big" if view.stored.str.startswith(">") else "little")
    return to_array, serializer.bind(to_array[-1].encoded if to_array else chunk)


@cache
def _elements_in(endian: str) -> ArrayToBytesSpec:
    serializer = parse_codec_json("zarr3", {"name": "bytes", "configuration": {"endian": endian}})
    assert isinstance(serializer, ArrayToBytesSpec)
    return serializer


def _objects_chain(metadata: ZarrMetadata, chunk: ChunkType, codecs: list[_Placed]) -> CodecChain:
    """The chain for Python objects: a codec that stores them stands where others find bytes."""
    to_array = list(_transposed(metadata, chunk, 0))
    seen = to_array[-1].encoded if to_array else chunk
    for position, (path, codec) in enumerate(codecs):
        with _errors_at(path):
            if isinstance(codec, ArrayToBytesSpec):
                to_bytes = codec.bind(seen)
                bound = _bound(codecs[position + 1 :], None)
                return CodecChain(chunk, tuple(to_array), to_bytes, bound)
            if not isinstance(codec, ArrayToArraySpec):
                raise SpecError(
                    f'codec "{codec.codec_id}" takes bytes, but the elements are Python objects: '
                    "put a codec in front that stores them, such as vlen-utf8"
                )
            to_array.append(codec.bind(seen))
        seen = to_array[-1].encoded
        if not seen.dtype.hasobject:
            view = ElementView("", dtype(seen.dtype), seen.dtype)
            plain = FieldBytes(view, seen.shape, "C", bytes(seen.dtype.itemsize))
            bound = _bound(codecs[position + 1 :], seen)
            return CodecChain(chunk, tuple(to_array), plain, bound)
    raise SpecError(
        'Python objects ("|O") need a codec that stores them, such as {"id": "vlen-utf8"} for '
        'strings, "vlen-bytes", "vlen-array", "json2" or "msgpack2"',
        ("filters",),
    )


def _transposed(
    metadata: ZarrMetadata, chunk: ChunkType, inner_rank: int
) -> tuple[ArrayToArray, ...]:
    rank = len(metadata.chunks)
    if metadata.order == "C" or rank < 2:
        return ()
    order = inner_order("F", rank, inner_rank)
    transpose = parse_codec_json("zarr3", {"name": "transpose", "configuration": {"order": order}})
    assert isinstance(transpose, ArrayToArraySpec)
    return (transpose.bind(chunk),)


def _bound(codecs: Sequence[_Placed], seen: ChunkType | None) -> tuple[BytesToBytes, ...]:
    """Codecs over bytes, bound one behind the other.

    Args:
        codecs: in encoding order.
        seen: the elements that the first one finds; None for bytes of no fixed number.
    """
    bound: list[BytesToBytes] = []
    for path, codec in codecs:
        with _errors_at(path):
            if isinstance(codec, BytesToBytesSpec):
                size = None if seen is None else seen.size_bytes
                bound.append(codec.bind(seen or OPAQUE))
                seen = _bytes(bound[-1].encoded_size(size))
                continue
            if isinstance(codec, ArrayToBytesSpec) and (seen is not None or codec.any_size):
                serialized = codec.bind(seen or OPAQUE)
                bound.append(SerializedElements(serialized, seen or OPAQUE))
                seen = _bytes(serialized.encoded_size)
                continue
            if seen is None:
                raise SpecError(
                    f'codec "{codec.codec_id}" takes elements, but stands behind one whose bytes '
                    "have no fixed number; move it forward"
                )
            assert isinstance(codec, ArrayToArraySpec)
            filtered = codec.bind(seen)
            bound.append(FilteredElements(filtered, seen))
            seen = filtered.encoded
    return tuple(bound)


def _bytes(size: int | None) -> ChunkType | None:
    return None if size is None else ChunkType((size,), _BYTE, np.zeros((), _BYTE))


@contextmanager
def _errors_at(path: tuple[str | int, ...]) -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise error.inside(*path) from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{_text(path)}: {error}") from None


def _text(path: tuple[str | int, ...]) -> str:
    return f"{path[0]}" + "".join(f"[{position}]" for position in path[1:])
