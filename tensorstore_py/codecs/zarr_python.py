"""Codecs that other packages publish for zarr-python: its `Codec` classes, adapted.

Specification: https://zarr.readthedocs.io/en/stable/user-guide/extending.html
Names: the entry points `zarr.codecs`; once the program imported zarr, also whatever it registered
by `zarr.registry.register_codec`.
Example: `{"name": "package.codec", "configuration": {"level": 1}}`.
Limits: zarr-python 3.1 or later; no Python objects. Codecs with `_encode_sync` and `_decode_sync`,
or whose coroutines never wait, run as fast as they are; those that wait (for a thread, as a rule)
get an event loop for each chunk. How much memory a codec takes for data that lies is its own
business. Only public names of zarr-python are used. What codecs are told of their chunks has types
without a public name: so a codec of ours asks zarr-python to make an array, and keeps what it is
told.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
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
    ForeignCodecModel,
    codec_resolver,
    size_error,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "Library",
    "Runner",
    "ZarrArrayToArraySpec",
    "ZarrArrayToBytesSpec",
    "ZarrBytesToBytesSpec",
    "from_zarr",
]

_GROUP = "zarr.codecs"
# Any: the library need not be installed, so that its types cannot be named.
Foreign = Any


def published(name: str) -> type[Foreign] | None:
    """The class that a package or the program published for zarr-python; None if there is none.

    Raises:
        SpecError: the package that publishes it cannot be imported, or zarr-python knows the name
            and cannot give the class.
    """
    for entry in (*entry_points(group=_GROUP, name=name), *entry_points(group=f"{_GROUP}.{name}")):
        try:
            found: type[Foreign] = entry.load()
        except Exception as error:
            raise SpecError(
                f'codec "{name}" is published as {entry.value}, which cannot be imported: '
                f"{type(error).__name__}: {error}"
            ) from error
        return found
    return _registered(name) if "zarr" in sys.modules else None


def _registered(name: str) -> type[Foreign] | None:
    """What the program registered with zarr-python, whose versions differ in what they raise."""
    try:
        registry = import_module("zarr.registry")
    except ModuleNotFoundError:
        return None  # zarr-python 2
    unknown = getattr(import_module("zarr.errors"), "UnknownCodecError", KeyError)
    try:
        found: type[Foreign] = registry.get_codec_class(name)
    except (KeyError, unknown):
        return None
    except Exception as error:
        raise SpecError(f'zarr-python gives no codec "{name}": {error}') from error
    return found


class Library:
    """What codecs need of zarr-python.

    Raises:
        SpecError: the installed version has not what is used.
    """

    def __init__(self) -> None:
        try:
            self.kinds: ModuleType = import_module("zarr.abc.codec")
            self.parse_dtype: Foreign = import_module("zarr.dtype").parse_dtype
            told, self._chunk_grid = _told_by_zarr(self.kinds.ArrayArrayCodec)
            config = replace(told.config, order="C", write_empty_chunks=True)
            self._array_spec: Foreign = replace(told, config=config)
        except Exception as error:
            raise SpecError(
                "codecs of zarr-python need version 3.1 of it or a later one that this package "
                f"knows: {type(error).__name__}: {error}"
            ) from error

    def array_spec(self, shape: tuple[int, ...], data_type: Foreign, fill_value: object) -> Foreign:
        """What it says of a chunk."""
        return replace(self._array_spec, shape=shape, dtype=data_type, fill_value=fill_value)

    def chunk_grid(self, shape: tuple[int, ...]) -> Foreign:
        """What it says of an array that is a single chunk."""
        json = {"name": "regular", "configuration": {"chunk_shape": shape}}
        return type(self._chunk_grid).from_dict(json)


def _told_by_zarr(codec: type[Foreign]) -> tuple[Foreign, Foreign]:
    """The array spec and the chunk grid that zarr-python hands the codecs of an array."""
    told: list[Foreign] = []

    class Listener(codec):  # type: ignore[misc]
        """A codec that is asked whether the array suits it, and has heard enough then."""

        is_fixed_size = True

        def to_dict(self) -> dict[str, object]:
            return {"name": "tensorstore_py.listener"}

        def compute_encoded_size(self, input_byte_length: int, chunk_spec: Foreign) -> int:
            return input_byte_length

        def evolve_from_array_spec(self, array_spec: Foreign) -> Self:
            told[:] = [array_spec]
            return self

        def validate(self, *, shape: Foreign, dtype: Foreign, chunk_grid: Foreign) -> None:
            told[1:] = [chunk_grid]
            raise _HeardError

    create_array = import_module("zarr.api.asynchronous").create_array
    array: dict[str, Foreign] = {"shape": (1,), "chunks": (1,), "dtype": "uint8"}
    with suppress(_HeardError):
        ForeignCodecModel.run(lambda: create_array({}, **array, filters=[Listener()]))
    array_spec, chunk_grid = told
    return array_spec, chunk_grid


class _HeardError(Exception):
    """Ends the creation of an array before anything is stored."""


@cache
def library() -> Library:
    """What is used of zarr-python, which is asked once."""
    return Library()


def array_spec_of(chunk: ChunkType) -> Foreign:
    """The library's array spec of a chunk; for bytes of unknown meaning, of a single byte."""
    if chunk.is_opaque:
        chunk = ChunkType((), np.dtype(np.uint8), np.zeros((), np.uint8))
    if chunk.dtype.hasobject:
        raise SpecError("codecs of zarr-python get no Python objects here")
    zarr = library()
    try:
        data_type = zarr.parse_dtype(chunk.dtype, zarr_format=3)
    except Exception as error:
        raise SpecError(f"zarr-python has no data type for {chunk.dtype}: {error}") from error
    return zarr.array_spec(chunk.shape, data_type, chunk.fill_value[()])


def chunk_type_of(array_spec: Foreign) -> ChunkType:
    """The chunk that an array spec of the library describes."""
    dtype = array_spec.dtype.to_native_dtype().newbyteorder("=")
    fill_value = np.array(array_spec.fill_value).astype(dtype)
    return ChunkType(tuple(array_spec.shape), dtype, fill_value)


@codec_resolver(family="zarr3")
def from_zarr(name: str) -> type[CodecModel] | None:
    """The spec class for a codec that is published for zarr-python; None if there is none.

    Raises:
        SpecError: the package that publishes it cannot be imported, zarr-python has it and cannot
            give it, or the installed zarr-python is too old for it.

    Example:
        >>> from_zarr("no such codec") is None
        True
    """
    foreign: Foreign = published(name)
    return None if foreign is None else _spec_class(name, foreign)


@cache
def _spec_class(name: str, foreign: Foreign) -> type[CodecModel] | None:
    kinds = library().kinds
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


class _ZarrMembers(ForeignCodecModel):
    """What the three kinds have in common."""

    foreign: ClassVar[type[Foreign]]

    def resolved(self, chunk: ChunkType) -> Self:
        json = self.fitted(array_spec_of(chunk)).to_dict()
        return self.with_members(json.get("configuration", {}) if isinstance(json, dict) else {})

    def merged(self, other: Self) -> Self:
        # The codec itself adds what it takes from the array; null is how it says that it will.
        mine, theirs = self.to_json(), other.to_json()
        members = {
            name: self.agreed(name, mine.get(name), theirs.get(name)) for name in {**mine, **theirs}
        }
        return self.with_members(members)

    def made(self) -> Foreign:
        json: dict[str, object] = {"name": self.codec_id}
        members = self.to_json()
        if members:
            json["configuration"] = members
        return self.foreign.from_dict(json)

    def fitted(self, array_spec: Foreign) -> Foreign:
        """The codec of that library, for chunks of a kind.

        Raises:
            SpecError: it refuses these chunks.
        """
        try:
            chunk_grid = library().chunk_grid(array_spec.shape)
            codec = self.made().evolve_from_array_spec(array_spec)
            codec.validate(shape=array_spec.shape, dtype=array_spec.dtype, chunk_grid=chunk_grid)
        except SpecError:
            raise
        except Exception as error:
            raise SpecError(f'codec "{self.codec_id}" refuses these chunks: {error}') from error
        return codec


class ZarrArrayToArraySpec(_ZarrMembers, ArrayToArraySpec):
    """Asked: an array to array codec of zarr-python; its members are its own."""

    keeps_dimensions: ClassVar[bool] = False

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        array_spec = array_spec_of(chunk)
        return ZarrArrayToArray(Runner(self.codec_id, self.fitted(array_spec), array_spec))


class ZarrArrayToBytesSpec(_ZarrMembers, ArrayToBytesSpec):
    """Asked: an array to bytes codec of zarr-python; its members are its own."""

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        array_spec = array_spec_of(chunk)
        runner = Runner(self.codec_id, self.fitted(array_spec), array_spec)
        return ZarrArrayToBytes(runner, chunk)


class ZarrBytesToBytesSpec(_ZarrMembers, BytesToBytesSpec):
    """Asked: a bytes to bytes codec of zarr-python; its members are its own."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        array_spec = array_spec_of(chunk)
        return ZarrBytesToBytes(Runner(self.codec_id, self.fitted(array_spec), array_spec))


class Runner:
    """A codec of that library, run to its end on the calling thread."""

    def __init__(self, name: str, codec: Foreign, array_spec: Foreign) -> None:
        self.name = name
        self.codec = codec
        self.array_spec = array_spec
        self._buffer = array_spec.prototype.buffer
        self._nd_buffer = array_spec.prototype.nd_buffer

    def encode(self, data: Foreign) -> Foreign:
        """Encode one of the library's buffers."""
        return self._run("_encode", data)

    def decode(self, data: Foreign) -> Foreign:
        """Decode one of the library's buffers.

        Raises:
            DataLossError: whatever the codec says of the data.
        """
        try:
            return self._run("_decode", data)
        except Exception as error:
            raise DataLossError(f'codec "{self.name}": {error}') from error

    def of_bytes(self, data: Buffer) -> Foreign:
        """Bytes as the library has them."""
        return self._buffer.from_bytes(bytes(data))

    def of_array(self, array: Array) -> Foreign:
        """An array as the library has it."""
        return self._nd_buffer.from_ndarray_like(np.ascontiguousarray(array).reshape(array.shape))

    def _run(self, method: str, data: Foreign) -> Foreign:
        plain = getattr(self.codec, f"{method}_sync", None)
        if plain is not None:
            return plain(data, self.array_spec)
        return ForeignCodecModel.run(
            lambda: getattr(self.codec, f"{method}_single")(data, self.array_spec)
        )


class ZarrArrayToArray(ArrayToArray):
    """The bound codec."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._decoded = chunk_type_of(runner.array_spec)
        self.encoded = chunk_type_of(runner.codec.resolve_metadata(runner.array_spec))

    def encode(self, array: Array) -> Array:
        encoded = self._runner.encode(self._runner.of_array(array))
        return _checked(self._runner.name, encoded.as_numpy_array(), self.encoded)

    def decode(self, array: Array) -> Array:
        decoded = self._runner.decode(self._runner.of_array(array))
        return _checked(self._runner.name, decoded.as_numpy_array(), self._decoded)


class ZarrArrayToBytes(ArrayToBytes):
    """The bound codec."""

    def __init__(self, runner: Runner, chunk: ChunkType) -> None:
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
    """The bound codec."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def encode(self, data: Buffer) -> bytes:
        encoded: bytes = self._runner.encode(self._runner.of_bytes(data)).to_bytes()
        return encoded

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        decoded: bytes = self._runner.decode(self._runner.of_bytes(data)).to_bytes()
        return self.checked(decoded, size)

    def encoded_size(self, size: int | None) -> int | None:
        return None if size is None else _fixed_size(self._runner, size)


def _checked(name: str, found: Array, expected: ChunkType) -> Array:
    if found.dtype != expected.dtype or found.nbytes != expected.size_bytes:
        raise DataLossError(
            f'codec "{name}" gave {found.dtype} of shape {list(found.shape)}, expected '
            f"{expected.dtype} of shape {list(expected.shape)}"
        )
    return found.reshape(expected.shape)


def _fixed_size(runner: Runner, size: int) -> int | None:
    if not runner.codec.is_fixed_size:
        return None
    try:
        encoded: int = runner.codec.compute_encoded_size(size, runner.array_spec)
    except NotImplementedError:
        return None
    return encoded
