"""The spec classes of codecs that are published for zarr-python, made when a name is asked for."""

from __future__ import annotations

import json as json_module
from functools import cache
from typing import ClassVar, Self, cast

from tensorstore_py.codecs.zarr_python.bound import (
    Runner,
    ZarrArrayToArray,
    ZarrArrayToBytes,
    ZarrBytesToBytes,
)
from tensorstore_py.codecs.zarr_python.library import Foreign, array_spec_of, library, published
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ArrayToArray,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    CodecModel,
    codec_resolver,
    describe,
    freeze,
    thaw,
)

__all__ = [
    "ZarrArrayToArraySpec",
    "ZarrArrayToBytesSpec",
    "ZarrBytesToBytesSpec",
    "from_zarr",
]


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


class _ZarrMembers(CodecModel):
    """What the three kinds have in common: the members, which are the codec's own.

    Attributes:
        configuration: the members, as JSON text.
    """

    foreign: ClassVar[type[Foreign]]

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
        json = self.fitted(array_spec_of(chunk)).to_dict()
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

    def made(self) -> Foreign:
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
