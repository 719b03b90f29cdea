"""The `zarr.json` document of an array: as constraints that may leave any member open, and whole.

`MetadataConstraints` is what a spec's `metadata` member may say; `Metadata` is one array's
document. Neither knows how chunks are read. A document written again loses nothing that was in
it: attributes and members that may be ignored are carried along.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr3.chain import parse_codecs, require_complete, stored_endian
from tensorstore_py.drivers.zarr3.chunk_grid import chunk_grid_to_json, parse_chunk_grid
from tensorstore_py.drivers.zarr3.chunk_key_encoding import ChunkKeyEncoding
from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.fill_value import (
    default_fill_value,
    fill_value_to_json,
    parse_fill_value,
)
from tensorstore_py.drivers.zarr3.foreign import standard
from tensorstore_py.drivers.zarr3.members import (
    parse_attributes,
    parse_dimension_names,
    parse_shape,
    parse_units,
    require,
    without_empty_units,
)
from tensorstore_py.errors import DataLossError, MismatchError, SpecError, did_you_mean
from tensorstore_py.plugin import (
    ChunkGridModel,
    CodecModel,
    Unit,
    codecs_to_json,
    describe,
    freeze,
    parse_codec_list,
    parse_stored_json,
    thaw,
)

__all__ = ["Metadata", "MetadataConstraints"]

FAMILY = "zarr3"
_CONSTANT = {"zarr_format": 3, "node_type": "array"}
_REQUIRED = (
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
)
#: Members of the same meaning in version 2 of the format, and names that are near them.
_WORDS = {
    "chunks": 'say "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [64, 64]}}',
    "compressor": 'say it in "codecs": ["bytes", "zstd"]',
    "compressors": 'say it in "codecs": ["bytes", "zstd"]',
    "filters": 'say them in "codecs", before "bytes"',
    "dtype": 'say "data_type": "uint16"',
    "order": 'say it in "codecs": {"name": "transpose", "configuration": {"order": [1, 0]}}',
    "dimension_separator": 'say "chunk_key_encoding": {"name": "default", '
    '"configuration": {"separator": "."}}',
}


@dataclass(frozen=True, slots=True, eq=False)
class MetadataConstraints:
    """What is said of a document; None and empty are unsaid.

    Attributes:
        zarr_format: 3, or None.
        shape: extent of each dimension.
        data_type: element type.
        chunk_grid: sizes of the chunks (of the shards, where there are any).
        chunk_key_encoding: the rule for chunk keys.
        fill_value: one element of the data type, an array of rank 0.
        codecs: the codecs of a chunk, parsed; members of theirs may be unsaid, too.
        dimension_names: a name or None for each dimension.
        attributes: user attributes; `dimension_units` among them means something here.
        extra: members that readers may ignore.

    Example:
        >>> MetadataConstraints.parse({"shape": [4, 6], "codecs": ["gzip"]}).to_json()
        {'codecs': [{'name': 'gzip'}], 'node_type': 'array', 'shape': [4, 6]}
    """

    zarr_format: int | None = None
    shape: tuple[int, ...] | None = None
    data_type: StoredType | None = None
    chunk_grid: ChunkGridModel | None = None
    chunk_key_encoding: ChunkKeyEncoding | None = None
    fill_value: NDArray[np.generic] | None = None
    codecs: tuple[CodecModel, ...] | None = None
    dimension_names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, json: object) -> MetadataConstraints:
        """The constraints for a `metadata` member.

        Raises:
            SpecError: a member is unknown or not possible; has the path to it.
        """
        if isinstance(json, cls):
            return json
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        members: dict[str, object] = {}
        extra: dict[str, object] = {}
        for name in sorted(json):
            try:
                _take(name, json[name], members, extra)
            except SpecError as error:
                raise error.inside(name) from None
        _take_fill_value(json, members)
        stated = cls(**members, extra=extra)  # type: ignore[arg-type]
        stated.check_rank()
        if stated.shape is not None and stated.chunk_grid is not None:
            try:
                stated.chunk_grid.check_reaches(stated.shape)
            except SpecError as error:
                raise error.inside("chunk_grid", "configuration") from None
        return stated

    def check_rank(self) -> None:
        """Raise `SpecError` unless all members have the same number of dimensions."""
        first: tuple[str, int] | None = None
        for name, rank in self._ranks():
            if first is not None and rank != first[1]:
                path: tuple[str, ...] = (name,)
                if self.chunk_grid is not None and name == "chunk_grid":
                    path = (name, "configuration", self.chunk_grid.sizes_member)
                raise SpecError(f"{rank} dimensions, but {first[0]} has {first[1]}", path)
            first = first or (name, rank)

    @property
    def rank(self) -> int | None:
        """Number of dimensions, if a member tells."""
        return next((rank for _, rank in self._ranks()), None)

    @property
    def units(self) -> tuple[Unit | None, ...] | None:
        """The unit of each dimension, if the attributes tell."""
        return parse_units(self.attributes)

    @property
    def is_spec_default(self) -> bool:
        """Whether nothing is said, so that a spec need not print it."""
        return self.to_json() == {"node_type": "array"}

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object, members sorted.

        Args:
            include_defaults: write what equals a default, too.
        """
        json: dict[str, object] = {"node_type": "array"}
        if self.zarr_format is not None:
            json["zarr_format"] = self.zarr_format
        if self.shape is not None:
            json["shape"] = list(self.shape)
        if self.data_type is not None:
            json["data_type"] = self.data_type.to_json()
        if self.chunk_grid is not None:
            json["chunk_grid"] = chunk_grid_to_json(self.chunk_grid)
        if self.chunk_key_encoding is not None:
            json["chunk_key_encoding"] = self.chunk_key_encoding.to_json(include_defaults)
        if self.fill_value is not None:
            assert self.data_type is not None
            endian = stored_endian(self.codecs or ())
            json["fill_value"] = fill_value_to_json(self.fill_value, self.data_type, endian)
        if self.codecs is not None:
            json["codecs"] = codecs_to_json(FAMILY, self.codecs)
        names = self.dimension_names
        if names is not None and any(name is not None for name in names):
            json["dimension_names"] = list(names)
        if self.attributes:
            json["attributes"] = thaw(self.attributes)
        json.update({name: thaw(value) for name, value in self.extra.items()})
        return {name: json[name] for name in sorted(json)}

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`, where this is a member of a spec."""
        return self.to_json(include_defaults)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetadataConstraints):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json_module.dumps(self.to_json()))

    def _ranks(self) -> list[tuple[str, int]]:
        sources = {
            "shape": self.shape,
            "dimension_names": self.dimension_names,
            "chunk_grid": None if self.chunk_grid is None else self.chunk_grid.sizes,
            "attributes": self.units,
        }
        return [(name, len(value)) for name, value in sources.items() if value is not None]


class Metadata(NamedTuple):
    """One array's whole document; attributes as for `MetadataConstraints`.

    Attributes:
        kept: what is no member of the format, and stays in the document; attributes, too.
    """

    shape: tuple[int, ...]
    data_type: StoredType
    chunk_grid: ChunkGridModel
    chunk_key_encoding: ChunkKeyEncoding
    fill_value: NDArray[np.generic]
    codecs: tuple[CodecModel, ...]
    dimension_names: tuple[str | None, ...]
    attributes: Mapping[str, object]
    extra: Mapping[str, object]
    kept: Mapping[str, object] = MappingProxyType({})

    @classmethod
    def parse(cls, data: bytes) -> Metadata:
        """The metadata for a stored document.

        Raises:
            MismatchError: the document of a group.
            DataLossError: not JSON, or with text that is none.
            SpecError: a member is missing, unknown or not possible; has the path to it.
        """
        try:
            json = parse_stored_json(data)
        except SpecError as error:
            raise DataLossError(f"not a JSON document: {error}") from error
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        if json.get("node_type") == "group":
            raise MismatchError(
                "this is a group, not an array; open it with ts.Group.open, or one of its arrays "
                "by its path"
            )
        try:
            return cls._of(json)
        except SpecError:
            put_right, kept = standard(json)
            return cls._of(put_right)._replace(kept=kept)

    @classmethod
    def _of(cls, json: Mapping[str, object]) -> Metadata:
        for name in _REQUIRED:
            if name not in json:
                raise SpecError("this member is required", (name,))
        stated = MetadataConstraints.parse(json)
        data_type = require(stated.data_type)
        require_complete(require(stated.codecs), has_byte_order=data_type.has_byte_order)
        fill_value = stated.fill_value
        return cls(
            shape=require(stated.shape),
            data_type=data_type,
            chunk_grid=require(stated.chunk_grid),
            chunk_key_encoding=require(stated.chunk_key_encoding),
            fill_value=default_fill_value(data_type) if fill_value is None else fill_value,
            codecs=explicit_codecs(require(stated.codecs)),
            dimension_names=stated.dimension_names or (None,) * len(require(stated.shape)),
            attributes=without_empty_units(stated.attributes),
            extra=stated.extra,
        )

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def chunk_shape(self) -> tuple[int | None, ...]:
        """Shape of the chunks; None where they are of different sizes."""
        return self.chunk_grid.shape

    @property
    def constraints(self) -> MetadataConstraints:
        """The constraints that only this document satisfies."""
        members = self._asdict()
        del members["kept"]
        return MetadataConstraints(zarr_format=3, **members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metadata) and self.serialize() == other.serialize()

    def __hash__(self) -> int:
        return hash(self.serialize())

    def serialize(self) -> bytes:
        """The document to store."""
        json = {**self.kept, **self.constraints.to_json()}
        if "attributes" in self.kept:
            json["attributes"] = {**thaw(self.attributes), **self.kept["attributes"]}  # type: ignore[dict-item]
        json["codecs"] = _as_stored(json["codecs"])
        return json_module.dumps(json, separators=(",", ":")).encode()


def explicit_codecs(codecs: tuple[CodecModel, ...]) -> tuple[CodecModel, ...]:
    """The codecs with the defaults of their members said, the way a spec shows them."""
    return parse_codec_list(FAMILY, codecs_to_json(FAMILY, codecs, include_defaults=True))


def _as_stored(json: object) -> object:
    """Codec JSON without the usual place of a shard's index, which documents leave unsaid."""
    if isinstance(json, list):
        return [_as_stored(inner) for inner in json]
    if not isinstance(json, dict):
        return json
    return {
        name: _as_stored(value)
        for name, value in json.items()
        if (name, value) != ("index_location", "end")
    }


def _parse_data_type(json: object) -> StoredType:
    try:
        # Frozen first, which bounds how deep records are nested.
        return StoredType.parse(freeze(json))
    except OverflowError as error:
        raise SpecError(str(error)) from None


_PARSERS: dict[str, tuple[str, Callable[[object], object]]] = {
    "attributes": ("attributes", parse_attributes),
    "chunk_grid": ("chunk_grid", parse_chunk_grid),
    "chunk_key_encoding": ("chunk_key_encoding", ChunkKeyEncoding.parse),
    "codecs": ("codecs", parse_codecs),
    "data_type": ("data_type", _parse_data_type),
    "dimension_names": ("dimension_names", parse_dimension_names),
    "shape": ("shape", parse_shape),
}


def _take(name: str, value: object, members: dict[str, object], extra: dict[str, object]) -> None:
    """Put one member of the JSON where it belongs; the fill value comes later."""
    if name in _PARSERS:
        target, parse = _PARSERS[name]
        members[target] = parse(value)
    elif name in _CONSTANT:
        wanted = _CONSTANT[name]
        if type(value) is bool or value != wanted:
            raise SpecError(f"expected {describe(wanted)}, but found {describe(value)}")
        if name == "zarr_format":
            members[name] = wanted
    elif name == "storage_transformers":
        if value not in ([], ()):
            raise SpecError(f"no storage transformer is supported, but found {describe(value)}")
    elif name == "consolidated_metadata" or (
        isinstance(value, Mapping) and value.get("must_understand") is False
    ):
        extra[name] = value
    elif name != "fill_value":
        known = (*_PARSERS, *_CONSTANT, "fill_value")
        hint = did_you_mean(name, known, _WORDS)
        if name in _WORDS:
            raise SpecError(f"no such member{hint}")
        raise SpecError(f'no such member{hint}, and not marked {{"must_understand": false}}')


def _take_fill_value(json: Mapping[str, object], members: dict[str, object]) -> None:
    if "fill_value" not in json:
        return
    data_type = members.get("data_type")
    if not isinstance(data_type, StoredType):
        raise SpecError('can be given only together with "data_type"', ("fill_value",))
    codecs = members.get("codecs")
    endian = stored_endian(codecs) if isinstance(codecs, tuple) else "little"
    try:
        members["fill_value"] = parse_fill_value(json["fill_value"], data_type, endian)
    except SpecError as error:
        raise error.inside("fill_value") from None
