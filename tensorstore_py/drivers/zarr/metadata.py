"""The `.zarray` document: as constraints of which any part may be left open, and as a whole.

`MetadataConstraints` is what a spec's `metadata` member may say. `ZarrMetadata` is a complete
document, which also carries the members that this driver does not know, so that rewriting an
array's metadata loses nothing.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, NamedTuple

from tensorstore_py.drivers.zarr.compression import (
    CompressorMember,
    Filters,
    FiltersMember,
    add_codec_json,
    compressor_json,
    filters_json,
    object_type,
    parse_compressor,
    parse_filters,
)
from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.drivers.zarr.fill_value import fill_value_json, parse_fill_value
from tensorstore_py.drivers.zarr.foreign import standard
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    CodecModel,
    ElementView,
    JsonForm,
    Level,
    Model,
    PlainValidator,
    Unset,
    describe,
    freeze,
    model_validator,
    parse_stored_json,
)
from tensorstore_py.plugin import dtype as DataType  # noqa: N812 - a member is named dtype

__all__ = ["FillValue", "MetadataConstraints", "ZarrMetadata"]

_LARGEST = 2**63 - 2
_MAX_RANK = 32
_REQUIRED = (
    "zarr_format",
    "shape",
    "chunks",
    "dtype",
    "compressor",
    "fill_value",
    "order",
    "filters",
)
#: Members of the same meaning in version 3 of the format.
_WORDS = {
    "chunk_grid": 'say "chunks": [64, 64]',
    "chunk_shape": 'say "chunks": [64, 64]',
    "codecs": 'say "filters" and "compressor": {"id": "zstd"}',
    "compressors": 'say "compressor": {"id": "zstd"}',
    "compression": 'say "compressor": {"id": "zstd"}',
    "data_type": 'say "dtype": "<u2"',
    "chunk_key_encoding": 'say "dimension_separator": "/"',
    "dimension_names": "version 2 of the format has none; zarr3 has",
    "attributes": "version 2 keeps them apart: set store.attrs when the array is open",
}

Separator = Literal[".", "/"]


class FillValue(NamedTuple):
    """A fill value as metadata states it; `data` is None for null."""

    stored_type: StoredType
    data: bytes | None

    def spec_json(self, include_defaults: bool) -> object:
        """Its JSON."""
        return fill_value_json(self.stored_type, self.data)


def _zarr_format(json: object) -> int | None:
    if json is None:
        return None
    if isinstance(json, bool) or json != 2:
        hint = "; use driver zarr3" if json == 3 else ""
        raise SpecError(f"expected 2, the version of the format, but found {describe(json)}{hint}")
    return 2


def _stored_type(json: object) -> StoredType | None:
    return None if json is None else StoredType.parse(json)


#: A scalar type, or a list of fields `[name, type]` or `[name, type, shape]`.
_DTYPE_FORM: dict[str, object] = {
    "anyOf": [
        {"type": "string", "examples": ["|u1", "<u2", "<f4", "<f8", "|b1", "|S8", "<M8[ns]", "|O"]},
        {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "array",
                "prefixItems": [
                    {"type": "string"},
                    {"anyOf": [{"type": "string"}, {"type": "array"}]},
                    {"type": "array", "items": {"type": "integer", "minimum": 0}},
                ],
                "minItems": 2,
                "maxItems": 3,
            },
        },
    ]
}


def _object_type(json: dict[str, object]) -> DataType | None:
    """The data type of the Python objects that the codecs of a document store."""
    parsed: list[object] = []
    for name, parse in (("filters", parse_filters), ("compressor", parse_compressor)):
        try:
            parsed.append(parse(json.get(name)))
        except SpecError as error:
            raise error.inside(name) from None
    filters, compressor = parsed
    return object_type(filters, compressor)  # type: ignore[arg-type]


def _frozen(name: str, json: object) -> object:
    try:
        return freeze(json)
    except (SpecError, OverflowError) as error:
        raise SpecError(str(error), (name,)) from None


def _as_it_is(value: object) -> object:
    """The fill value was read before, together with the data type."""
    return value


class MetadataConstraints(Model):
    """What a spec says of the metadata; members left out are unconstrained.

    Example:
        >>> MetadataConstraints.parse({"dtype": "<f4", "fill_value": 1}).to_json()
        {'dtype': '<f4', 'fill_value': 1.0}
    """

    words: ClassVar[Mapping[str, str]] = _WORDS
    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "zarr_format", "shape", "chunks", "dtype", "fill_value", "order", "compressor", "filters",
        "dimension_separator",
    })  # fmt: skip

    zarr_format: Annotated[int | None, PlainValidator(_zarr_format), JsonForm({"const": 2})] = None
    shape: tuple[Annotated[int, Level(0, _LARGEST)], ...] | None = None
    chunks: tuple[Annotated[int, Level(1, _LARGEST)], ...] | None = None
    dtype: Annotated[StoredType | None, PlainValidator(_stored_type), JsonForm(_DTYPE_FORM)] = None
    fill_value: Annotated[FillValue | Unset, PlainValidator(_as_it_is), JsonForm({})] = Unset.UNSET
    order: Literal["C", "F"] | None = None
    compressor: CompressorMember = Unset.UNSET
    filters: FiltersMember = Unset.UNSET
    dimension_separator: Separator | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_fill_value(cls, json: object) -> object:
        """The fill value can only be read together with the data type."""
        if not isinstance(json, dict):
            return json
        stated = json.get("fill_value", Unset.UNSET)
        if stated is Unset.UNSET or isinstance(stated, FillValue):
            return json
        if "dtype" not in json:
            raise SpecError('this member can only be stated together with "dtype"', ("fill_value",))
        try:
            stored_type = StoredType.parse(json["dtype"])
        except SpecError as error:
            raise error.inside("dtype") from None
        objects = _object_type(json) if stored_type.holds_objects else None
        try:
            data = parse_fill_value(stored_type, stated, objects)
        except SpecError as error:
            raise error.inside("fill_value") from None
        return {**json, "dtype": stored_type, "fill_value": FillValue(stored_type, data)}

    @model_validator(mode="after")
    def _check_ranks(self) -> MetadataConstraints:
        for name in ("shape", "chunks"):
            extents = getattr(self, name)
            if extents is not None and len(extents) > _MAX_RANK:
                raise SpecError(f"expected at most {_MAX_RANK} dimensions", (name,))
        shape, chunks = self.shape, self.chunks
        if shape is not None and chunks is not None and len(shape) != len(chunks):
            raise SpecError(
                f"has {len(chunks)} dimensions, but the shape has {len(shape)}", ("chunks",)
            )
        return self

    @property
    def rank(self) -> int | None:
        """Number of chunked dimensions, where it is known."""
        known = self.shape if self.shape is not None else self.chunks
        return None if known is None else len(known)

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        add_codec_json(json, self.compressor, self.filters)

    def view(
        self, name: str | None, *, asked: DataType | None = None, as_void: bool = False
    ) -> ElementView | None:
        """What is opened of each element, as far as the constraints tell.

        Args and errors are those of `StoredType.view`.
        """
        if self.dtype is None:
            return None
        if self.dtype.holds_objects and not as_void:
            asked = object_type(self.filters, self.compressor) or asked
            if asked is None:
                return None
        return self.dtype.view(name, asked=asked, as_void=as_void)

    def check(self, stored: ZarrMetadata) -> None:
        """Compare with what is stored.

        Raises:
            MismatchError: names the first member that differs, what is stored and what is asked.
        """
        asked = self.to_json()
        found = stored.to_json()
        # Without a separator of its own an array takes the one that is asked for.
        found.setdefault("dimension_separator", asked.get("dimension_separator"))
        for name, value in asked.items():
            if value != found[name]:
                raise MismatchError(
                    f'"{name}" is {describe(found[name])} in the stored metadata, but the spec '
                    f"asks for {describe(value)}"
                )


@dataclass(frozen=True, slots=True)
class ZarrMetadata:
    """A complete document.

    Attributes:
        shape: extents of the chunked dimensions.
        chunks: chunk extents.
        stored_type: the data type.
        fill_value: bytes of one stored element; None for null.
        order: memory order of the elements in a chunk.
        compressor: None for none.
        filters: None for none.
        separator: between the indices in chunk keys; None if the document does not say.
        unknown: members that this driver does not know, as JSON.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    stored_type: StoredType
    fill_value: bytes | None
    order: Literal["C", "F"]
    compressor: CodecModel | None
    filters: Filters
    separator: Separator | None
    unknown: Mapping[str, object] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, data: bytes) -> ZarrMetadata:
        """The stored document.

        Raises:
            SpecError: this is not JSON, or a member is missing or wrong; the path names it.
        """
        json = parse_stored_json(data)
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        try:
            return cls._of(json)
        except SpecError:
            return cls._of(standard(json))

    @classmethod
    def _of(cls, json: Mapping[str, object]) -> ZarrMetadata:
        for name in _REQUIRED:
            if name not in json:
                raise SpecError("this member is required", (name,))
        names = MetadataConstraints.member_names()
        known = MetadataConstraints.parse(
            {name: _frozen(name, json[name]) for name in names if name in json}
        )
        assert known.shape is not None
        assert known.chunks is not None
        assert known.dtype is not None
        assert known.order is not None
        assert isinstance(known.fill_value, FillValue)
        assert not isinstance(known.compressor, Unset)
        assert not isinstance(known.filters, Unset)
        return cls(
            shape=known.shape,
            chunks=known.chunks,
            stored_type=known.dtype,
            fill_value=known.fill_value.data,
            order=known.order,
            compressor=known.compressor,
            filters=known.filters,
            separator=known.dimension_separator,
            unknown={name: json[name] for name in json if name not in names},
        )

    def to_json(self) -> dict[str, object]:
        """The members that this driver knows, sorted."""
        json: dict[str, object] = {
            "chunks": list(self.chunks),
            "compressor": compressor_json(self.compressor),
        }
        if self.separator is not None:
            json["dimension_separator"] = self.separator
        json["dtype"] = self.stored_type.to_json()
        json["fill_value"] = fill_value_json(self.stored_type, self.fill_value)
        json["filters"] = filters_json(self.filters)
        json["order"] = self.order
        json["shape"] = list(self.shape)
        json["zarr_format"] = 2
        return json

    def serialize(self) -> bytes:
        """The document to store, unknown members included."""
        json = {**self.unknown, **self.to_json()}
        # NaN is no JSON, but what others wrote goes back as it came.
        return json_module.dumps(json, separators=(",", ":"), sort_keys=True).encode()

    def view(
        self, name: str | None = None, *, asked: DataType | None = None, as_void: bool = False
    ) -> ElementView:
        """What is opened of each element; args and errors are those of `StoredType.view`."""
        if self.stored_type.holds_objects:
            asked = object_type(self.filters, self.compressor)
        return self.stored_type.view(name, asked=asked, as_void=as_void)

    def constraints(self, separator: Separator) -> MetadataConstraints:
        """All that this document says, as constraints.

        Args:
            separator: the one in use, if the document does not say.
        """
        return MetadataConstraints(
            zarr_format=2,
            shape=self.shape,
            chunks=self.chunks,
            dtype=self.stored_type,
            fill_value=FillValue(self.stored_type, self.fill_value),
            order=self.order,
            compressor=self.compressor,
            filters=self.filters,
            dimension_separator=self.separator or separator,
        )
