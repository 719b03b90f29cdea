"""Every other codec in numcodecs' registry: those that programs and packages of yours add to it.

Specification: https://numcodecs.readthedocs.io/en/stable/registry.html
Names: whatever `numcodecs.register_codec` was told, and the entry points `numcodecs.codecs` (zarr);
in version 3 behind `numcodecs.`.
Example: `{"id": "imagecodecs_jpegxl", "lossless": true}` or
`{"name": "numcodecs.imagecodecs_jpegxl", "configuration": {"lossless": true}}`.
Limits: a codec gets an array of the chunk's elements and gives bytes, as in zarr-python; behind
another such codec it gets bytes. How much memory it takes for data that lies is its own business.
The codecs that numcodecs brings along have files of their own here; none is run by this one.
"""

from __future__ import annotations

import json as json_module
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, cast

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import (
    OPAQUE,
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    codec_resolver,
    describe,
    freeze,
    size_error,
    thaw,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["NumcodecsSpec", "from_registry", "from_registry_v3"]

_PREFIX = "numcodecs."


class NumcodecsCodec(Protocol):
    """What is used of a codec of that library."""

    def encode(self, buf: object) -> object:
        """The stored form of an array or buffer."""

    def decode(self, buf: object) -> object:
        """The inverse."""


@codec_resolver(family="zarr")
def from_registry(name: str) -> type[NumcodecsSpec] | None:
    """The spec class for a codec of numcodecs' registry; None if it has none of that name.

    Example:
        >>> from_registry("no such codec") is None
        True
    """
    return _spec_class(name) if _is_registered(name) else None


@codec_resolver(family="zarr3")
def from_registry_v3(name: str) -> type[NumcodecsSpec] | None:
    """The same for version 3, whose names have `numcodecs.` in front.

    Example:
        >>> from_registry_v3("numcodecs.no such codec") is None
        True
    """
    if not name.startswith(_PREFIX) or not _is_registered(name.removeprefix(_PREFIX)):
        return None
    # What the library brings along has a class of its own here, unless it is not for version 3:
    # pickles, which run whatever program they contain, must not come in by the back door.
    return None if _is_built_in(name.removeprefix(_PREFIX)) else _spec_class(name)


def _is_built_in(name: str) -> bool:
    registry = _registry()
    cls = registry.codec_registry.get(name)
    module: str = registry.entries[name].value if cls is None else cls.__module__
    return module.partition(".")[0] == "numcodecs"


def _is_registered(name: str) -> bool:
    registry = _registry()
    return name in registry.codec_registry or name in registry.entries


@cache
def _spec_class(name: str) -> type[NumcodecsSpec]:
    return type(name, (NumcodecsSpec,), {"codec_id": name, "__doc__": NumcodecsSpec.__doc__})


class NumcodecsSpec(ArrayToBytesSpec):
    """Asked: a codec of that library; its members are its own.

    Attributes:
        configuration: the members, as JSON text.
    """

    any_size: ClassVar[bool] = True

    configuration: str = "{}"

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if isinstance(json, cls):
            return json
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        spec = super().parse_frozen(
            {"configuration": json_module.dumps(thaw(freeze(json)), sort_keys=True)}
        )
        spec.codec()
        return spec

    @property
    def object_type(self) -> str:
        return "object"

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        members: dict[str, object] = json_module.loads(self.configuration)
        return members

    def codec(self) -> NumcodecsCodec:
        """The library's codec.

        Raises:
            SpecError: it refuses the members.
        """
        try:
            name = self.codec_id.removeprefix(_PREFIX)
            codec: NumcodecsCodec = _registry().get_codec({**self.to_json(), "id": name})
        except Exception as error:
            raise SpecError(f'codec "{self.codec_id}" refuses its members: {error}') from error
        return codec

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        return Numcodecs(self.codec_id, self.codec(), chunk)


class Numcodecs(ArrayToBytes):
    """The bound codec.

    Args:
        name: for error messages.
        codec: the library's.
        chunk: what is stored.
    """

    def __init__(self, name: str, codec: NumcodecsCodec, chunk: ChunkType) -> None:
        self._name = name
        self._codec = codec
        self._chunk = chunk

    def encode(self, array: Array) -> Buffer:
        encoded = self._codec.encode(np.ascontiguousarray(array))
        if isinstance(encoded, bytes | bytearray):
            return encoded
        return np.ascontiguousarray(encoded).reshape(-1).view(np.uint8).data

    def decode(self, data: Buffer) -> Array:
        chunk = self._chunk
        try:
            decoded = self._codec.decode(data)
        except Exception as error:
            raise DataLossError(f'codec "{self._name}": {error}') from error
        if isinstance(decoded, np.ndarray):
            found: Array = decoded
        else:
            found = np.frombuffer(cast("Buffer", decoded), np.uint8)
        if chunk is OPAQUE and not found.dtype.hasobject:
            return found.reshape(-1, order="A").view(np.uint8)
        if found.dtype.hasobject or chunk.dtype.hasobject:
            if found.dtype != chunk.dtype or found.size != np.prod(chunk.shape):
                raise DataLossError(f'codec "{self._name}" gave no chunk of {chunk.dtype}')
            return found.reshape(-1, order="A").reshape(chunk.shape)
        if found.nbytes != chunk.size_bytes:
            raise size_error(found.nbytes, chunk.size_bytes)
        return found.reshape(-1, order="A").view(chunk.dtype).reshape(chunk.shape)


@cache
def _registry() -> ModuleType:
    from numcodecs import registry  # noqa: PLC0415 - takes 60 ms

    library: ModuleType = registry
    return library
