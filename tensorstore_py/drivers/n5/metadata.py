"""The `attributes.json` document: as constraints of which any part may be open, and as a whole.

Members that the format does not know are attributes of the user's. They are kept as they are, and
those that a spec states must be there with the same values. The format has no place for a fill
value, so that no schema may ask for one, and none states one.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping, Sequence
from math import prod
from typing import Annotated, ClassVar, Final, Self

from tensorstore_py.drivers.n5.codec_spec import CompressionMember, N5CodecSpec, compression_json
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import (
    AfterValidator,
    Field,
    JsonForm,
    Level,
    describe,
    dtype,
)
from tensorstore_py.plugin.driver import (
    ArrayInfo,
    ArrayMetadata,
    CodecSpec,
    MetadataConstraints,
    Unit,
    same_rank,
    thaw,
)
from tensorstore_py.plugin.kvstore import (
    PlainValidator,
    model_validator,
)

__all__ = ["METADATA_FORM", "N5Constraints", "N5Metadata", "check_data_type"]

#: All that the format has.
_DATA_TYPES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
)  # fmt: skip
_LARGEST = 2**63 - 2
_MAX_RANK = 32
_LARGEST_BLOCK = 2**31
_REQUIRED = ("dimensions", "blockSize", "dataType", "compression")


def check_data_type(data_type: dtype) -> None:
    """Raise `SpecError` unless the format has the data type."""
    if data_type.name not in _DATA_TYPES:
        raise SpecError(f"n5 has no data type {data_type.name}, only {', '.join(_DATA_TYPES)}")


def _parse_data_type(json: object) -> dtype:
    if isinstance(json, dtype):
        return json
    if not isinstance(json, str) or json not in _DATA_TYPES:
        raise SpecError(f"expected one of {', '.join(_DATA_TYPES)}, but found {describe(json)}")
    return dtype(json)


def _few(values: tuple[object, ...]) -> tuple[object, ...]:
    if len(values) > _MAX_RANK:
        raise SpecError(f"expected at most {_MAX_RANK} dimensions, but found {len(values)}")
    return values


def _labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    given = [label for label in labels if label]
    for label in given:
        if given.count(label) > 1:
            raise SpecError(f'names two dimensions "{label}"')
    return labels


_Sizes = Annotated[tuple[Annotated[int, Level(1, _LARGEST)], ...], AfterValidator(_few)]
_Extents = Annotated[tuple[Annotated[int, Level(0, _LARGEST)], ...], AfterValidator(_few)]
_Labels = Annotated[tuple[str, ...], AfterValidator(_few), AfterValidator(_labels)]
_Steps = Annotated[tuple[Annotated[float, Field(allow_inf_nan=False)], ...], AfterValidator(_few)]
_DataType = Annotated[
    dtype, PlainValidator(_parse_data_type), JsonForm({"enum": list(_DATA_TYPES)})
]


class N5Constraints(MetadataConstraints):
    """What a spec says of the metadata; members left out are unconstrained.

    Attributes:
        dimensions: extent of each dimension.
        block_size: extents of a chunk.
        data_type: element type.
        compression: how blocks are compressed.
        axes: label of each dimension, empty for none.
        units: base unit of each dimension.
        resolution: how many of those a step along the dimension is.
        extra: attributes of the user's.

    Example:
        >>> N5Constraints.parse({"dataType": "int8", "note": [1]}).to_json()
        {'dataType': 'int8', 'note': [1]}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "dimensions", "block_size", "data_type", "compression", "axes", "units", "resolution",
        "extra",
    })  # fmt: skip

    dimensions: _Extents | None = None
    block_size: _Sizes | None = Field(default=None, alias="blockSize")
    data_type: _DataType | None = Field(default=None, alias="dataType")
    compression: CompressionMember | None = None
    axes: _Labels | None = None
    units: Annotated[tuple[str, ...], AfterValidator(_few)] | None = None
    resolution: _Steps | None = None
    extra: Mapping[str, object] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _set_extra_apart(cls, json: object) -> object:
        if not isinstance(json, Mapping):
            return json
        members: dict[str, object] = {name: json[name] for name in json if name in _MEMBERS}
        members["extra"] = {name: json[name] for name in json if name not in _MEMBERS}
        return members

    @model_validator(mode="after")
    def _check(self) -> Self:
        same_rank({name: getattr(self, member) for name, member in _DIMENSIONAL.items()})
        return self

    @property
    def rank(self) -> int | None:
        """Number of dimensions, if a member tells; all that do agree."""
        members = (self.dimensions, self.block_size, self.axes, self.units, self.resolution)
        return next((len(each) for each in members if each is not None), None)

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        json.pop("extra", None)
        if self.compression is not None:
            json["compression"] = compression_json(self.compression)
        if not any(self.axes or ()):
            json.pop("axes", None)
        json.update({name: thaw(value) for name, value in self.extra.items()})

    def check(self, document: ArrayMetadata) -> None:
        asked, stored = self.to_json(), document.to_json()
        if self.axes is not None:  # which are not printed where all are empty
            assert isinstance(document, N5Metadata)
            asked["axes"], stored["axes"] = list(self.axes), list(document.axes or ())
        self.check_members(asked, stored)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, N5Constraints):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.dimensions, self.block_size, self.data_type, self.compression))

    @property
    def info(self) -> ArrayInfo:
        """What it says of the array; blocks are what is read and what is written."""
        rank = self.rank
        return ArrayInfo(
            codec=CodecSpec(N5CodecSpec().replace(compression=self.compression)),
            data_type=self.data_type,
            rank=rank,
            shape=self.dimensions,
            labels=self.axes,
            read_chunk=self.block_size,
            write_chunk=self.block_size,
            inner_order=None if rank is None else tuple(reversed(range(rank))),
            units=_units(self.units, self.resolution),
            one_grid=True,
            lenient=True,
        )


class N5Metadata(N5Constraints, ArrayMetadata):
    """One array's whole document.

    Attributes:
        kept: what is called like a member of the format and is none; it stays in the document.
    """

    dimensions: _Extents
    block_size: _Sizes = Field(alias="blockSize")
    data_type: _DataType = Field(alias="dataType")
    compression: CompressionMember
    kept: Mapping[str, object] = Field(default={}, repr=False)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        size = prod(self.block_size) * self.data_type.numpy_dtype.itemsize
        if size > _LARGEST_BLOCK:
            raise SpecError(
                f"blocks of {size} bytes are too large: the format has up to {_LARGEST_BLOCK}",
                ("blockSize",),
            )
        return self

    @classmethod
    def of(cls, json: Mapping[str, object], kept: Mapping[str, object]) -> Self:
        if not any(name in json for name in _REQUIRED):
            raise MismatchError(
                "this is a group, not an array, or its attributes; open one of its arrays by its "
                "path"
            )
        found = cls.parse_document(json, _REQUIRED)
        axes = found.axes or ("",) * len(found.dimensions)
        return found.replace(axes=axes, kept=kept)

    @classmethod
    def standard(
        cls, json: Mapping[str, object]
    ) -> tuple[Mapping[str, object], Mapping[str, object]]:
        return _standard(json)

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        json.pop("kept", None)
        super().add_json(json, include_defaults)

    def serialize(self) -> bytes:
        json = {**self.kept, **self.to_json()}
        return json_module.dumps(json, separators=(",", ":")).encode()

    def resized(self, shape: tuple[int, ...]) -> Self:
        return self.replace(dimensions=shape)


def _units(
    units: Sequence[str] | None, resolution: Sequence[float] | None
) -> tuple[Unit, ...] | None:
    """The units of the dimensions; None without base units, whatever the resolution is."""
    if units is None:
        return None
    steps = [1.0] * len(units) if resolution is None else resolution
    return tuple(Unit(step, unit) for step, unit in zip(steps, units, strict=True))


#: Members with an entry for each dimension, by attribute.
_DIMENSIONAL: Final = {
    "dimensions": "dimensions",
    "blockSize": "block_size",
    "axes": "axes",
    "units": "units",
    "resolution": "resolution",
}
_MEMBERS: Final = frozenset({*_REQUIRED, *_DIMENSIONAL})


# What other writers left in documents. The first version of the format named its compression by a
# member; libraries write members that only a writer needs, or names of their own. Attributes called
# `axes`, `units` or `resolution` that are not what the format has under these names are attributes
# of the user's, which are kept.

_OLD = "compressionType"
#: Members that say how to compress, not what was made of it.
_TUNING = ("nbWorkers", "nthreads")
#: Members of compressors in the words of z5.
_WORDS: Final[dict[str, dict[str, str]]] = {
    "blosc": {"codec": "cname", "level": "clevel"},
    "bzip2": {"level": "blockSize"},
}
_BLOSC: Final[dict[str, object]] = {"cname": "lz4", "clevel": 5, "shuffle": 1}


def _standard(document: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """A document in the words of the format, and what is of the user's by a name of the format."""
    found: dict[str, object] = {}
    kept: dict[str, object] = {}
    dimensions = document.get("dimensions")
    rank = len(dimensions) if isinstance(dimensions, list) else None
    for name, value in document.items():
        if name == _OLD or (name in _FORMS and not _is_form(value, _FORMS[name], rank)):
            kept[name] = value
        else:
            found[name] = value
    compression = found.get("compression", document.get(_OLD))
    if isinstance(compression, str):
        compression = {"type": compression}
    if isinstance(compression, Mapping):
        found["compression"] = _compression(compression)
    return found, kept


_FORMS: Final[dict[str, tuple[type, ...]]] = {
    "axes": (str,),
    "units": (str,),
    "resolution": (int, float),
}


def _is_form(value: object, types: tuple[type, ...], rank: int | None) -> bool:
    """Whether a member is what the format has under its name: one value for each dimension."""
    return (
        isinstance(value, list)
        and len(value) == rank
        and all(isinstance(each, types) and not isinstance(each, bool) for each in value)
    )


def _compression(json: Mapping[str, object]) -> dict[str, object]:
    name = json.get("type")
    words = _WORDS.get(name, {}) if isinstance(name, str) else {}
    found = {
        words.get(key, key): value
        for key, value in json.items()
        if value is not None and key not in _TUNING
    }
    return {**_BLOSC, **found} if name == "blosc" else found


def _each(description: str, item: dict[str, object]) -> dict[str, object]:
    return {"type": "array", "items": item, "maxItems": 32, "description": description}


#: What a spec may say, in JSON Schema: for editors, which check while one types.
METADATA_FORM: dict[str, object] = {
    "type": "object",
    "description": "Constraints on attributes.json: what a new array gets, what one must have. "
    "Members other than these are attributes of your own.",
    "properties": {
        "dimensions": _each("Extent of each dimension.", {"type": "integer", "minimum": 0}),
        "blockSize": _each("Extents of a chunk.", {"type": "integer", "minimum": 1}),
        "dataType": {"enum": list(_DATA_TYPES), "description": "Element type."},
        "compression": {"x-def": "Codec.n5"},
        "axes": _each("Label of each dimension, empty for none.", {"type": "string"}),
        "units": _each("Base unit of each dimension.", {"type": "string"}),
        "resolution": _each(
            "How many base units a step along each dimension is.", {"type": "number"}
        ),
    },
}
