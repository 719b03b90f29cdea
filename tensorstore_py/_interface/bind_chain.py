"""From a list of codec specs to a chain that runs: order, resolution, binding.

The order is fixed by what goes in and out: array to array codecs, one array to bytes codec,
bytes to bytes codecs. A list without an array to bytes codec gets `bytes`, or the one for text or
byte strings of any length. Each codec is bound to the chunk as it arrives there: a compressor
learns the element size only if it comes directly behind a serializer of plain elements.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._interface.codec import (
    OPAQUE,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    CodecModel,
    size_error,
)
from tensorstore_py._interface.codec_chain import CodecChain
from tensorstore_py._interface.codec_json import parse_codec_json
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py._interface.codec import ArrayToArray, ChunkType
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["bind_chain", "resolve_chain", "split_chain"]

_CONFIGURATION = "configuration"


class Stages(NamedTuple):
    """A list of codec specs by kind.

    Attributes:
        to_array: those of arrays.
        to_bytes: the serializer; None where the list has none.
        compressors: those of bytes, and serializers that take any number of bytes, too.
    """

    to_array: tuple[ArrayToArraySpec, ...]
    to_bytes: ArrayToBytesSpec | None
    compressors: tuple[BytesToBytesSpec | ArrayToBytesSpec, ...]


def split_chain(specs: Sequence[CodecModel], member: str = "codecs") -> Stages:
    """The three stages of a list of codecs.

    Args:
        specs: in encoding order.
        member: the JSON member that holds the list, for error paths.

    Raises:
        SpecError: a codec stands where its kind cannot; the path is `(member, position)`.
    """
    to_array: list[ArrayToArraySpec] = []
    to_bytes: ArrayToBytesSpec | None = None
    compressors: list[BytesToBytesSpec | ArrayToBytesSpec] = []
    for position, spec in enumerate(specs):
        if isinstance(spec, BytesToBytesSpec) or (
            to_bytes is not None and isinstance(spec, ArrayToBytesSpec) and spec.any_size
        ):
            compressors.append(spec)
        elif compressors or to_bytes is not None:
            raise SpecError(
                f'codec "{spec.codec_id}" takes an array, but stands behind a codec that gives '
                "bytes; move it forward (there can be only one array to bytes codec)",
                (member, position),
            )
        elif isinstance(spec, ArrayToArraySpec):
            to_array.append(spec)
        elif isinstance(spec, ArrayToBytesSpec):
            to_bytes = spec
        else:
            raise SpecError(f'codec "{spec.codec_id}" is of no known kind', (member, position))
    return Stages(tuple(to_array), to_bytes, tuple(compressors))


def bind_chain(
    specs: Sequence[CodecModel], chunk: ChunkType, *, member: str = "codecs"
) -> CodecChain:
    """Check a list of codecs against a chunk and prepare it to run.

    Args:
        specs: in encoding order; without an array to bytes codec, the usual one is put in.
        chunk: what the chain will encode.
        member: the JSON member that holds the list, for error paths.

    Raises:
        SpecError: a codec stands in the wrong place or does not fit the chunk. The path starts
            with `(member, position)`.

    Example:
        >>> import numpy as np
        >>> from tensorstore_py._interface.codec import ChunkType
        >>> from tensorstore_py._interface.codec_json import parse_codec_list
        >>> chunk = ChunkType((2, 3), np.dtype("uint16"), np.zeros((), "uint16"))
        >>> chain = bind_chain(parse_codec_list("zarr3", ["crc32c"]), chunk)
        >>> len(chain.encode(np.ones((2, 3), "uint16")))
        16
    """
    return _bind(specs, chunk, member)[1]


def resolve_chain(
    specs: Sequence[CodecModel], chunk: ChunkType, *, member: str = "codecs"
) -> tuple[CodecModel, ...]:
    """The list as new metadata states it: array to bytes put in, every member explicit.

    Args and errors are those of `bind_chain`.
    """
    return _bind(specs, chunk, member)[0]


def _bind(
    specs: Sequence[CodecModel], chunk: ChunkType, member: str
) -> tuple[tuple[CodecModel, ...], CodecChain]:
    stages = split_chain(specs, member)
    resolved: list[CodecModel] = []
    seen = chunk
    to_array: list[ArrayToArray] = []
    for position, to_array_spec in enumerate(stages.to_array):
        with _errors_at(member, position):
            resolved.append(to_array_spec.resolved(seen))
            to_array.append(to_array_spec.bind(seen))
        seen = to_array[-1].encoded
    serializer = stages.to_bytes or _default_serializer(seen)
    with _errors_at(member, len(to_array)):
        resolved.append(serializer.resolved(seen))
        to_bytes = serializer.bind(seen)
    # Behind a serializer of another form than elements side by side there are no elements.
    if to_bytes.encoded_size is None:
        seen = OPAQUE
    compressors: list[BytesToBytes] = []
    start = len(specs) - len(stages.compressors)
    for position, compressor_spec in enumerate(stages.compressors, start):
        with _errors_at(member, position):
            resolved.append(compressor_spec.resolved(seen))
            bound = compressor_spec.bind(OPAQUE if compressor_spec.any_size else seen)
            compressors.append(_OverBytes(bound) if isinstance(bound, ArrayToBytes) else bound)
        seen = OPAQUE
    return tuple(resolved), CodecChain(chunk, tuple(to_array), to_bytes, tuple(compressors))


class _OverBytes(BytesToBytes):
    """A serializer of any number of bytes, where bytes come.

    Args:
        codec: bound to `OPAQUE`.
    """

    exact = False  # it may be one that rounds

    def __init__(self, codec: ArrayToBytes) -> None:
        self._codec = codec

    def encode(self, data: Buffer) -> Buffer:
        return self._codec.encode(np.frombuffer(data, np.uint8))

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        decoded = np.ascontiguousarray(self._codec.decode(data)).reshape(-1).view(np.uint8)
        if size is not None and decoded.size != size:
            raise size_error(decoded.size, size)
        return decoded.data


@contextmanager
def _errors_at(member: str, position: int) -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        # A codec may serve several families, so it names its members as they are named in all.
        if error.path and error.path[0] != _CONFIGURATION:
            error = error.inside(_CONFIGURATION)
        raise error.inside(member, position) from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{member}[{position}]: {error}") from None


def _default_serializer(chunk: ChunkType) -> ArrayToBytesSpec:
    name = "bytes"
    if chunk.dtype.hasobject:
        # Objects do not say of which type they are; the one that stands for missing ones does.
        missing = chunk.fill_value.item()
        if isinstance(missing, str):
            name = "vlen-utf8"
        elif isinstance(missing, bytes):
            name = "vlen-bytes"
    serializer = parse_codec_json("zarr3", name)
    assert isinstance(serializer, ArrayToBytesSpec)
    return serializer
