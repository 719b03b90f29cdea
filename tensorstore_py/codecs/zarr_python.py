"""Codecs that other packages publish for zarr-python: its `Codec` classes, adapted.

Specification: https://zarr.readthedocs.io/en/stable/user-guide/extending.html
Names: the entry points `zarr.codecs`; once the program imported zarr, also whatever it registered
by `zarr.registry.register_codec`.
Example: `{"name": "package.codec", "configuration": {"level": 1}}`.
Limits: no Python objects. Codecs with `_encode_sync` and `_decode_sync`, or whose coroutines never
wait, run as fast as they are; those that wait (for a thread, as a rule) get an event loop for each
chunk. How much memory a codec takes for data that lies is its own business.
"""

from __future__ import annotations

import json as json_module
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from tensorstore_py.errors import DataLossError, MismatchError, SpecError
from tensorstore_py.plugin import (
    OPAQUE,
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    CodecModel,
    codec_resolver,
    describe,
    freeze,
    run_coroutine,
    size_error,
    thaw,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "ZarrArrayToArraySpec",
    "ZarrArrayToBytesSpec",
    "ZarrBytesToBytesSpec",
    "from_zarr",
]

_GROUP = "zarr.codecs"
# Any: the library need not be installed, so that its types cannot be named.
_Foreign = Any


@codec_resolver(family="zarr3")
def from_zarr(name: str) -> type[CodecModel] | None:
    """The spec class for a codec that is published for zarr-python; None if there is none.

    Example:
        >>> from_zarr("no such codec") is None
        True
    """
    foreign: _Foreign = _published(name)
    return None if foreign is None else _spec_class(name, foreign)


@cache
def _spec_class(name: str, foreign: _Foreign) -> type[CodecModel] | None:
    kinds = import_module("zarr.abc.codec")
    for kind, cls in (
        (kinds.ArrayArrayCodec, ZarrArrayToArraySpec),
        (kinds.ArrayBytesCodec, ZarrArrayToBytesSpec),
        (kinds.BytesBytesCodec, ZarrBytesToBytesSpec),
    ):
        if issubclass(foreign, kind):
            members = {
                "codec_id": name,
                "foreign": foreign,
                "__doc__": cls.__doc__,
                "__module__": __name__,
            }
            return cast("type[CodecModel]", type(name, (cls,), members))
    return None


def _published(name: str) -> type[_Foreign] | None:
    for entry in (*entry_points(group=_GROUP, name=name), *entry_points(group=f"{_GROUP}.{name}")):
        found: type[_Foreign] = entry.load()
        return found
    if "zarr" not in sys.modules:
        return None
    try:
        found = import_module("zarr.registry").get_codec_class(name)
    except KeyError:
        return None
    return found


class _ZarrMembers(CodecModel):
    """What the three kinds have in common: the members, which are the codec's own.

    Attributes:
        configuration: the members, as JSON text.
    """

    foreign: ClassVar[type[_Foreign]]

    configuration: str = "{}"

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if isinstance(json, cls):
            return json
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        text = json_module.dumps(thaw(freeze(json)), sort_keys=True)
        spec = super().parse_frozen({"configuration": text})
        spec.made()
        return spec

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        members: dict[str, object] = json_module.loads(self.configuration)
        return members

    def resolved(self, chunk: ChunkType) -> Self:
        json = self.fitted(_array_spec(chunk)).to_dict()
        members = json.get("configuration", {}) if isinstance(json, dict) else {}
        return self.replace(configuration=json_module.dumps(members, sort_keys=True))

    def merged(self, other: Self) -> Self:
        # The codec itself adds what it takes from the array; null is how it says that it will.
        members = self.to_json()
        for name, value in other.to_json().items():
            mine = members.get(name)
            if mine is not None and value is not None and mine != value:
                raise MismatchError(
                    f'codec "{self.codec_id}": "{name}" is both {mine!r} and {value!r}'
                )
            members[name] = value if mine is None else mine
        return self.replace(configuration=json_module.dumps(members, sort_keys=True))

    def made(self) -> _Foreign:
        """The codec of that library.

        Raises:
            SpecError: it refuses the members.
        """
        json: dict[str, object] = {"name": self.codec_id}
        members = self.to_json()
        if members:
            json["configuration"] = members
        try:
            return self.foreign.from_dict(json)
        except Exception as error:
            raise SpecError(f'codec "{self.codec_id}" refuses its members: {error}') from error

    def fitted(self, array_spec: _Foreign) -> _Foreign:
        """The codec of that library, for chunks of a kind.

        Raises:
            SpecError: it refuses these chunks.
        """
        grids = import_module("zarr.core.chunk_grids")
        try:
            codec = self.made().evolve_from_array_spec(array_spec)
            codec.validate(
                shape=array_spec.shape,
                dtype=array_spec.dtype,
                chunk_grid=grids.RegularChunkGrid(chunk_shape=array_spec.shape),
            )
        except SpecError:
            raise
        except Exception as error:
            raise SpecError(f'codec "{self.codec_id}" refuses these chunks: {error}') from error
        return codec


class ZarrArrayToArraySpec(_ZarrMembers, ArrayToArraySpec):
    """Asked: an array to array codec of zarr-python; its members are its own."""

    keeps_dimensions: ClassVar[bool] = False

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        array_spec = _array_spec(chunk)
        return ZarrArrayToArray(_Runner(self.codec_id, self.fitted(array_spec), array_spec))


class ZarrArrayToBytesSpec(_ZarrMembers, ArrayToBytesSpec):
    """Asked: an array to bytes codec of zarr-python; its members are its own."""

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        array_spec = _array_spec(chunk)
        runner = _Runner(self.codec_id, self.fitted(array_spec), array_spec)
        return ZarrArrayToBytes(runner, chunk)


class ZarrBytesToBytesSpec(_ZarrMembers, BytesToBytesSpec):
    """Asked: a bytes to bytes codec of zarr-python; its members are its own."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        array_spec = _array_spec(chunk)
        return ZarrBytesToBytes(_Runner(self.codec_id, self.fitted(array_spec), array_spec))


class _Runner:
    """A codec of that library, run to its end on the calling thread.

    Args:
        name: for error messages.
        codec: the library's.
        array_spec: the library's word for what the chunk is.
    """

    def __init__(self, name: str, codec: _Foreign, array_spec: _Foreign) -> None:
        self.name = name
        self.codec = codec
        self.array_spec = array_spec
        self._buffer = array_spec.prototype.buffer
        self._nd_buffer = array_spec.prototype.nd_buffer

    def encode(self, data: _Foreign) -> _Foreign:
        """Encode one of the library's buffers."""
        return self._run("_encode", data)

    def decode(self, data: _Foreign) -> _Foreign:
        """Decode one of the library's buffers.

        Raises:
            DataLossError: whatever the codec says of the data.
        """
        try:
            return self._run("_decode", data)
        except Exception as error:
            raise DataLossError(f'codec "{self.name}": {error}') from error

    def of_bytes(self, data: Buffer) -> _Foreign:
        """Bytes as the library has them."""
        return self._buffer.from_bytes(bytes(data))

    def of_array(self, array: Array) -> _Foreign:
        """An array as the library has it."""
        return self._nd_buffer.from_ndarray_like(np.ascontiguousarray(array).reshape(array.shape))

    def _run(self, method: str, data: _Foreign) -> _Foreign:
        plain = getattr(self.codec, f"{method}_sync", None)
        if plain is not None:
            return plain(data, self.array_spec)
        return run_coroutine(lambda: getattr(self.codec, f"{method}_single")(data, self.array_spec))


class ZarrArrayToArray(ArrayToArray):
    """The bound codec.

    Args:
        runner: runs it.
    """

    def __init__(self, runner: _Runner) -> None:
        self._runner = runner
        self._decoded = _chunk_type(runner.array_spec)
        self.encoded = _chunk_type(runner.codec.resolve_metadata(runner.array_spec))

    def encode(self, array: Array) -> Array:
        encoded = self._runner.encode(self._runner.of_array(array))
        return _checked(self._runner.name, encoded.as_numpy_array(), self.encoded)

    def decode(self, array: Array) -> Array:
        decoded = self._runner.decode(self._runner.of_array(array))
        return _checked(self._runner.name, decoded.as_numpy_array(), self._decoded)


class ZarrArrayToBytes(ArrayToBytes):
    """The bound codec.

    Args:
        runner: runs it.
        chunk: what is stored.
    """

    def __init__(self, runner: _Runner, chunk: ChunkType) -> None:
        self._runner = runner
        self._chunk = chunk
        self.encoded_size = _fixed_size(runner, chunk.size_bytes)

    def encode(self, array: Array) -> bytes:
        encoded: bytes = self._runner.encode(self._runner.of_array(array)).to_bytes()
        return encoded

    def decode(self, data: Buffer) -> Array:
        if self.encoded_size is not None and len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        decoded = self._runner.decode(self._runner.of_bytes(data))
        return _checked(self._runner.name, decoded.as_numpy_array(), self._chunk)


class ZarrBytesToBytes(BytesToBytes):
    """The bound codec.

    Args:
        runner: runs it.
    """

    def __init__(self, runner: _Runner) -> None:
        self._runner = runner

    def encode(self, data: Buffer) -> bytes:
        encoded: bytes = self._runner.encode(self._runner.of_bytes(data)).to_bytes()
        return encoded

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        decoded: bytes = self._runner.decode(self._runner.of_bytes(data)).to_bytes()
        if size is not None and len(decoded) != size:
            raise size_error(len(decoded), size)
        return decoded

    def encoded_size(self, size: int | None) -> int | None:
        return None if size is None else _fixed_size(self._runner, size)


def _array_spec(chunk: ChunkType) -> _Foreign:
    """What the library says of a chunk; for bytes of unknown meaning, a single byte."""
    if chunk is OPAQUE:
        chunk = ChunkType((), np.dtype(np.uint8), np.zeros((), np.uint8))
    if chunk.dtype.hasobject:
        raise SpecError("codecs of zarr-python get no Python objects here")
    library = _library()
    try:
        data_type = library.parse_dtype(chunk.dtype, zarr_format=3)
    except Exception as error:
        raise SpecError(f"zarr-python has no data type for {chunk.dtype}: {error}") from error
    return library.ArraySpec(
        shape=chunk.shape,
        dtype=data_type,
        fill_value=chunk.fill_value[()],
        config=library.ArrayConfig(order="C", write_empty_chunks=True),
        prototype=library.default_buffer_prototype(),
    )


def _chunk_type(array_spec: _Foreign) -> ChunkType:
    dtype = array_spec.dtype.to_native_dtype().newbyteorder("=")
    fill_value = np.array(array_spec.fill_value).astype(dtype)
    return ChunkType(tuple(array_spec.shape), dtype, fill_value)


def _checked(name: str, found: Array, expected: ChunkType) -> Array:
    if found.dtype != expected.dtype or found.nbytes != expected.size_bytes:
        raise DataLossError(
            f'codec "{name}" gave {found.dtype} of shape {list(found.shape)}, expected '
            f"{expected.dtype} of shape {list(expected.shape)}"
        )
    return found.reshape(expected.shape)


def _fixed_size(runner: _Runner, size: int) -> int | None:
    if not runner.codec.is_fixed_size:
        return None
    try:
        encoded: int = runner.codec.compute_encoded_size(size, runner.array_spec)
    except NotImplementedError:
        return None
    return encoded


class _Library:
    """What is used of zarr-python."""

    def __init__(self) -> None:
        array_spec = import_module("zarr.core.array_spec")
        self.ArraySpec: _Foreign = array_spec.ArraySpec
        self.ArrayConfig: _Foreign = array_spec.ArrayConfig
        self.parse_dtype: _Foreign = import_module("zarr.dtype").parse_dtype
        buffers: ModuleType = import_module("zarr.core.buffer")
        self.default_buffer_prototype: _Foreign = buffers.default_buffer_prototype


@cache
def _library() -> _Library:
    return _Library()
