"""The `.zarray` document: as constraints of which any part may be left open, and as a whole.

`ZarrConstraints` is what a spec's `metadata` member may say. `ZarrMetadata` is a complete document,
which also carries the members that this driver does not know, so that rewriting an array's metadata
loses nothing.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from tensorstore_py.drivers.zarr.compression import (
    CompressorMember,
    Filters,
    FiltersMember,
    add_codec_json,
    object_type,
    parse_compressor,
    parse_filters,
)
from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.drivers.zarr.fill_value import fill_value_json, parse_fill_value
from tensorstore_py.drivers.zarr.foreign import standard
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    CodecModel,
    Field,
    JsonForm,
    Level,
    describe,
)
from tensorstore_py.plugin.codec import dtype as DataType  # noqa: N812
from tensorstore_py.plugin.driver import (
    ArrayMetadata,
    ElementView,
    MetadataConstraints,
    Unset,
    freeze,
)
from tensorstore_py.plugin.kvstore import (
    PlainValidator,
    model_validator,
)

__all__ = ["FillValue", "Separator", "ZarrConstraints", "ZarrMetadata"]

_LARGEST = 2**63 - 2
_MAX_RANK = 32
_REQUIRED = (
    "zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters",
)  # fmt: skip
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


def _zarr_format(json: object) -> int:
    if isinstance(json, bool) or json != 2:
        hint = "; use driver zarr3" if json == 3 else ""
        raise SpecError(f"expected 2, the version of the format, but found {describe(json)}{hint}")
    return 2


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


def _as_it_is(value: object) -> object:
    """The fill value was read before, together with the data type."""
    return value


_StoredType = Annotated[StoredType, PlainValidator(StoredType.parse), JsonForm(_DTYPE_FORM)]
_EXTENT, _SIZE = Level(0, _LARGEST), Level(1, _LARGEST)
_Extents = tuple[Annotated[int, _EXTENT], ...]
_Sizes = tuple[Annotated[int, _SIZE], ...]
_Version = Annotated[int, PlainValidator(_zarr_format), JsonForm({"const": 2})]


class ZarrConstraints(MetadataConstraints):
    """What a spec says of the metadata; members left out are unconstrained.

    Example:
        >>> ZarrConstraints.parse({"dtype": "<f4", "fill_value": 1}).to_json()
        {'dtype': '<f4', 'fill_value': 1.0}
    """

    words: ClassVar[Mapping[str, str]] = _WORDS
    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "zarr_format", "shape", "chunks", "dtype", "fill_value", "order", "compressor", "filters",
        "dimension_separator",
    })  # fmt: skip

    zarr_format: _Version | None = None
    shape: _Extents | None = None
    chunks: _Sizes | None = None
    dtype: _StoredType | None = None
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
    def _check_ranks(self) -> Self:
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

    def check(self, document: ArrayMetadata) -> None:
        asked = self.to_json()
        if asked:
            stored = document.to_json()
            # Without a separator of its own an array takes the one that is asked for.
            stored.setdefault("dimension_separator", asked.get("dimension_separator"))
            self.check_members(asked, stored)

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


class ZarrMetadata(ZarrConstraints, ArrayMetadata):
    """A complete document.

    Attributes:
        kept: members that this driver does not know, as JSON.
    """

    zarr_format: _Version
    shape: _Extents
    chunks: _Sizes
    dtype: _StoredType
    fill_value: Annotated[FillValue, PlainValidator(_as_it_is)]
    order: Literal["C", "F"]
    compressor: Annotated[CodecModel | None, PlainValidator(parse_compressor)]
    filters: Annotated[Filters, PlainValidator(parse_filters)]
    kept: Mapping[str, object] = Field(default={}, repr=False)

    @classmethod
    def of(cls, json: Mapping[str, object], kept: Mapping[str, object]) -> Self:
        plain: dict[str, Any] | None = _plain_members(json)
        if plain is not None:
            return cls.model_construct(**plain, kept=dict(kept))  # type: ignore[return-value]
        names = ZarrConstraints.member_names()
        known = {name: json[name] for name in names if name in json}
        found = cls.parse_document(known, _REQUIRED)
        others = {name: json[name] for name in json if name not in names}
        return found.replace(kept={**kept, **others})

    @classmethod
    def standard(
        cls, json: Mapping[str, object]
    ) -> tuple[Mapping[str, object], Mapping[str, object]]:
        return standard(json), {}

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        json.pop("kept", None)
        super().add_json(json, include_defaults)

    def serialize(self) -> bytes:
        json = {**self.kept, **self.to_json()}
        # NaN is no JSON, but what others wrote goes back as it came.
        return json_module.dumps(json, separators=(",", ":"), sort_keys=True).encode()

    def resized(self, shape: tuple[int, ...]) -> Self:
        return self.replace(shape=shape[: len(self.shape)])

    def stored_view(
        self, name: str | None = None, *, asked: DataType | None = None, as_void: bool = False
    ) -> ElementView:
        """What is opened of each element; args and errors are those of `StoredType.view`."""
        if self.dtype.holds_objects:
            asked = object_type(self.filters, self.compressor)
        return self.dtype.view(name, asked=asked, as_void=as_void)


_PLAIN_MEMBERS = frozenset({*_REQUIRED, "dimension_separator"})


def _plain_members(json: Mapping[str, object]) -> dict[str, object] | None:
    """The members of a whole document in the form that most have; None: the long way is theirs.

    The long way gives the same, and says what is wrong with any other document.
    """
    if not _PLAIN_MEMBERS >= json.keys() >= set(_REQUIRED):
        return None
    shape, chunks = _EXTENT.plain(json["shape"]), _SIZE.plain(json["chunks"])
    if shape is None or chunks is None or not len(shape) == len(chunks) <= _MAX_RANK:
        return None
    version, order, encoded = json["zarr_format"], json["order"], json["dtype"]
    separator = json.get("dimension_separator", ".")
    if type(version) is not int or version != 2 or order not in ("C", "F"):
        return None
    if type(encoded) is not str or separator not in (".", "/"):
        return None
    try:
        stored_type = StoredType.parse(encoded)
        if stored_type.holds_objects:
            return None
        return {
            "zarr_format": 2,
            "shape": shape,
            "chunks": chunks,
            "dtype": stored_type,
            "fill_value": FillValue(stored_type, _plain_fill_value(stored_type, json)),
            "order": order,
            "compressor": parse_compressor(json["compressor"]),
            "filters": parse_filters(json["filters"]),
            "dimension_separator": json.get("dimension_separator"),
        }
    except (SpecError, OverflowError):
        return None


def _plain_fill_value(stored_type: StoredType, json: Mapping[str, object]) -> bytes | None:
    value, stored = json["fill_value"], stored_type.fields[0].stored
    if type(value) is int and not value and stored.isbuiltin != 2 and stored.kind in "iuf":
        return bytes(stored.itemsize)  # as most have it
    return parse_fill_value(stored_type, freeze(value))
