"""The numeric filters of numcodecs, most of them run by it, and whatever else its registry has.

Specification: https://numcodecs.readthedocs.io/en/stable/registry.html
Example: `{"id": "delta", "dtype": "<i4", "astype": "<i2"}`, `{"id": "astype", "encode_dtype":
"<f4", "decode_dtype": "<f8"}`, `{"id": "quantize", "digits": 3, "dtype": "<f8"}`, `{"id":
"fixedscaleoffset", "dtype": "<f8", "astype": "<u2", "offset": 1000, "scale": 10}`, `{"id":
"packbits"}`.
Limits: the filters lose what the stored type cannot hold, without a word. A codec that a program or
a package added (`numcodecs.register_codec`, the entry points `numcodecs.codecs`) stands in `zarr`
by its id and in `zarr3` behind `numcodecs.`. It gets an array of the chunk's elements and gives
bytes, as in zarr-python; behind another such codec it gets bytes. How much memory it takes for data
that lies is its own business.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    BeforeValidator,
    Buffer,
    ChunkType,
    ElementType,
    Field,
    ForeignCodecModel,
    Level,
    codec,
    codec_resolver,
    element_type,
    size_error,
)

__all__ = [
    "AsTypeSpec",
    "DeltaSpec",
    "FixedScaleOffsetSpec",
    "LibraryFilter",
    "NumcodecsSpec",
    "PackBitsSpec",
    "QuantizeSpec",
    "from_registry",
    "from_registry_v3",
]

_PREFIX = "numcodecs."
_BYTE = np.dtype(np.uint8)
_BOOL = np.dtype(np.bool_)

# Any: numcodecs has no types.
_Codec = Any


class LibraryFilter(ArrayToArray):
    """A bound filter of numcodecs.

    `json` says which, in the library's terms; `decoded` is the chunk in the filter's element type.
    """

    def __init__(self, json: Mapping[str, object], decoded: ChunkType, encoded: ChunkType) -> None:
        self._codec: _Codec = _registry().get_codec(json)
        self._name = json["id"]
        self._decoded = decoded
        self.encoded = encoded

    def encode(self, array: Array) -> Array:
        with np.errstate(all="ignore"):
            found: Array = self._codec.encode(self._decoded.flat(array))
        return found.reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        # The library looks at bytes: they must lie in C order, and in the stated byte order.
        flat = np.ascontiguousarray(array, self.encoded.dtype).reshape(-1)
        try:
            with np.errstate(all="ignore"):
                found: Array = self._codec.decode(flat)
        except ValueError as error:  # text that is no number
            raise DataLossError(f"{self._name}: {error}") from error
        return found.reshape(self._decoded.shape)


def _own_type(chunk: ChunkType) -> str:
    """What a type stands for that is left out."""
    return element_type(chunk.dtype.newbyteorder("=").str)


class _TypedFilterSpec(ArrayToArraySpec):
    """Asked: a filter whose members name the type of its elements, and the type that it stores.

    In version 3, where arrays are in memory when a filter sees them, types are in native byte order
    and may be left out.

    Attributes:
        dtype: the elements as they are in the array; in version 3 the array's own type by default.
        astype: the elements as they are stored; `dtype` by default.
    """

    dtype: ElementType | None = None
    astype: ElementType | None = None

    def completed(self) -> _TypedFilterSpec:
        # Specs that mean the same must be equal; in version 3, dtype may not be known yet.
        if self.codec_family == "zarr" and self.astype is None:
            return self.replace(astype=self.dtype)
        return self

    def resolved(self, chunk: ChunkType) -> _TypedFilterSpec:
        return self.replace(dtype=self.dtype or _own_type(chunk))

    def types(self, chunk: ChunkType) -> tuple[np.dtype[np.generic], np.dtype[np.generic]]:
        """The type of the elements, and the one that is stored."""
        spec = self.resolved(chunk)
        dtype, stored = np.dtype(spec.dtype), np.dtype(spec.astype or spec.dtype)
        if self.codec_family == "zarr":
            return dtype, stored
        return dtype.newbyteorder("="), stored.newbyteorder("=")

    def bound(
        self,
        decoded: ChunkType,
        stored: np.dtype[np.generic],
        **members: object,
    ) -> LibraryFilter:
        """The library's filter."""
        json = {
            "id": self.codec_id.removeprefix(_PREFIX),
            "dtype": decoded.dtype.str,
            "astype": stored.str,
            **members,
        }
        return LibraryFilter(json, decoded, decoded.recast(stored))


@codec("delta", family="zarr", dtype=Field())
@codec("numcodecs.delta", family="zarr3")
class DeltaSpec(_TypedFilterSpec):
    """Asked: `delta`: each element as its difference from the one before."""

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        dtype, stored = self.types(chunk)
        for member, named in (("dtype", dtype), ("astype", stored)):
            if named.kind not in "biufcm":
                raise SpecError("expected a type of numbers", (member,))
        return _Delta(chunk.viewed_as(dtype), stored)


class _Delta(ArrayToArray):
    """The bound codec `delta`.

    The library fails to encode where the first element does not fit, and only there.
    """

    def __init__(self, decoded: ChunkType, stored: np.dtype[np.generic]) -> None:
        self._decoded = decoded
        self.encoded = decoded.recast(stored)

    def encode(self, array: Array) -> Array:
        flat = self._decoded.flat(array)
        out = np.empty(flat.shape, self.encoded.dtype)
        with np.errstate(all="ignore"):
            out[:1] = flat[:1]
            out[1:] = np.diff(flat)
        return out.reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        out = np.empty(array.size, self._decoded.dtype)
        with np.errstate(all="ignore"):
            np.cumsum(array.reshape(-1), out=out)
        return out.reshape(self._decoded.shape)


def _float(json: object) -> str:
    text = element_type(json)
    if np.dtype(text).kind != "f":
        raise SpecError(f'expected a floating-point type such as "<f4", but found "{text}"')
    return text


_FloatType = Annotated[ElementType, BeforeValidator(_float)]


@codec("quantize", family="zarr", dtype=Field())
@codec("numcodecs.quantize", family="zarr3")
class QuantizeSpec(_TypedFilterSpec):
    """Asked: `quantize`: floats rounded, by a power of two for compression's sake.

    Attributes:
        digits: decimal digits behind the point that are kept; negative ones stand before it.
    """

    digits: Annotated[int, Level(-300, 300)]
    dtype: _FloatType | None = None
    astype: _FloatType | None = None

    def resolved(self, chunk: ChunkType) -> QuantizeSpec:
        return self.replace(dtype=self.dtype or _float(_own_type(chunk)))

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        dtype, stored = self.types(chunk)
        return self.bound(chunk.viewed_as(dtype), stored, digits=self.digits)


@codec("fixedscaleoffset", family="zarr", dtype=Field())
@codec("numcodecs.fixedscaleoffset", family="zarr3")
class FixedScaleOffsetSpec(_TypedFilterSpec):
    """Asked: `fixedscaleoffset`: `round((x - offset) * scale)`, so that floats become integers.

    Attributes:
        offset: is subtracted first.
        scale: multiplies what is left; not 0.
    """

    offset: int | float
    scale: int | float

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        dtype, stored = self.types(chunk)
        decoded = chunk.viewed_as(dtype)
        if not self.scale:
            raise SpecError("expected a number other than 0", ("scale",))
        one = ChunkType((1,), dtype, decoded.fill_value)
        members: dict[str, Any] = {"offset": self.offset, "scale": self.scale}
        probe = self.bound(one, stored, **members)
        try:
            probe.decode(probe.encode(np.zeros(1, dtype)))
        except (TypeError, OverflowError) as error:
            raise SpecError(
                f"offset {self.offset} and scale {self.scale} are not possible for {dtype} "
                f"elements: {error}"
            ) from None
        return self.bound(decoded, stored, **members)


@codec("astype", family="zarr", decode_dtype=Field())
@codec("numcodecs.astype", family="zarr3")
class AsTypeSpec(ArrayToArraySpec):
    """Asked: `astype`: elements stored as another type.

    Attributes:
        encode_dtype: the elements as they are stored.
        decode_dtype: the elements as they are in the array; in version 3 the array's own type by
            default.
    """

    encode_dtype: ElementType
    decode_dtype: ElementType | None = None

    def resolved(self, chunk: ChunkType) -> AsTypeSpec:
        return self.replace(decode_dtype=self.decode_dtype or _own_type(chunk))

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        spec = self.resolved(chunk)
        stored, dtype = np.dtype(spec.encode_dtype), np.dtype(spec.decode_dtype)
        if self.codec_family != "zarr":
            stored, dtype = stored.newbyteorder("="), dtype.newbyteorder("=")
        decoded = chunk.viewed_as(dtype)
        for member, named in (("encode_dtype", stored), ("decode_dtype", dtype)):
            if named.kind == "V":
                raise SpecError(f"expected a type that can be converted, not {named}", (member,))
        json = {"id": "astype", "encode_dtype": stored.str, "decode_dtype": dtype.str}
        return LibraryFilter(json, decoded, decoded.recast(stored))


@codec("packbits", family="zarr")
@codec("numcodecs.packbits", family="zarr3")
class PackBitsSpec(ArrayToArraySpec):
    """Asked: `packbits`: eight booleans in a byte. It has no members."""

    keeps_dimensions: ClassVar[bool] = False

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        return _PackBits(chunk.viewed_as(_BOOL))


class _PackBits(ArrayToArray):
    """The bound codec `packbits`: the first byte counts the bits that fill up the last one.

    The library does not check that byte, and takes twice the time for a small chunk.
    """

    def __init__(self, decoded: ChunkType) -> None:
        self._decoded = decoded
        self._count = decoded.size_bytes
        self._filling = -self._count % 8
        self.encoded = ChunkType((1 + (self._count + 7) // 8,), _BYTE, np.zeros((), _BYTE))

    def encode(self, array: Array) -> Array:
        out = np.empty(self.encoded.shape, _BYTE)
        out[0] = self._filling
        out[1:] = np.packbits(self._decoded.flat(array).view(np.bool_))
        return out

    def decode(self, array: Array) -> Array:
        bits = array.view(_BYTE)
        if bits[0] != self._filling:
            raise DataLossError(
                f"packbits: the chunk's {self._count} bits leave {self._filling} bits of the last "
                f"byte, but the first byte says {bits[0]}"
            )
        unpacked = np.unpackbits(bits[1:], count=self._count)
        return unpacked.view(_BOOL).reshape(self._decoded.shape)


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


class NumcodecsSpec(ForeignCodecModel, ArrayToBytesSpec):
    """Asked: a codec of that library; its members are its own."""

    any_size: ClassVar[bool] = True

    @property
    def object_type(self) -> str:
        return "object"

    def made(self) -> _Codec:
        return _registry().get_codec({**self.to_json(), "id": self.codec_id.removeprefix(_PREFIX)})

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        return Numcodecs(self.codec_id, self.made(), chunk)


class Numcodecs(ArrayToBytes):
    """The bound codec, run by the library's."""

    def __init__(self, name: str, codec: _Codec, chunk: ChunkType) -> None:
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
        if chunk.is_opaque and not found.dtype.hasobject:
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
