"""What is asked of a Zarr version 2 array, and the format's part in opening it.

The `metadata` member constrains the `.zarray` document; the rest of the members are those of
every chunked driver. Nothing is read or written here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Self

from tensorstore_py.drivers.zarr.create import (
    check_fill_value,
    check_units,
    implied_schema,
    new_metadata,
)
from tensorstore_py.drivers.zarr.data_type import StoredField, StoredType
from tensorstore_py.drivers.zarr.layout import DEFAULT_SEPARATOR, array_layout
from tensorstore_py.drivers.zarr.metadata import MetadataConstraints, ZarrMetadata
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ArrayLayout,
    BeforeValidator,
    ChunkedSpec,
    Field,
    Remembered,
    Schema,
    check_schema,
    describe,
    driver,
    model_validator,
)

__all__ = ["ZarrSpec"]

_SEPARATORS = (".", "/")
_NOTHING = MetadataConstraints()


_schemas: Remembered[tuple[object, Schema]] = Remembered(64)


@driver("zarr", aliases=["zarr2"], schemes=["zarr2"])
class ZarrSpec(ChunkedSpec[ZarrMetadata]):
    """A Zarr version 2 array.

    Attributes:
        field: the field to open; None where the data type has only one.
        metadata: constraints on the `.zarray` document.
        metadata_key_: name of that document.

    Example:
        >>> spec = ZarrSpec.parse({"kvstore": "memory://", "metadata": {"dtype": "<u2"}})
        >>> spec.known_schema().dtype
        dtype("uint16")
    """

    detected_by: ClassVar[tuple[str, ...]] = (".zarray",)

    field: Annotated[str | None, BeforeValidator(lambda name: name or None)] = None
    metadata: MetadataConstraints = _NOTHING
    metadata_key_: str = Field(default=".zarray", alias="metadata_key")

    @model_validator(mode="before")
    @classmethod
    def _read_key_encoding(cls, json: object) -> object:
        """`key_encoding` is the old name of the metadata's `dimension_separator`."""
        if not isinstance(json, dict) or "key_encoding" not in json:
            return json
        asked = json["key_encoding"]
        if asked not in _SEPARATORS:
            raise SpecError(f'expected "." or "/", but found {describe(asked)}', ("key_encoding",))
        metadata = json.get("metadata", {})
        if not isinstance(metadata, dict):
            return json
        stated = metadata.get("dimension_separator", asked)
        if stated != asked:
            raise SpecError(
                f'{describe(asked)} contradicts "metadata": {{"dimension_separator": '
                f"{describe(stated)}}}",
                ("key_encoding",),
            )
        rest = {name: json[name] for name in json if name != "key_encoding"}
        return {**rest, "metadata": {**metadata, "dimension_separator": asked}}

    @classmethod
    def adapt_json_schema(cls, properties: dict[str, object]) -> None:
        properties["key_encoding"] = {
            "enum": list(_SEPARATORS),
            "deprecated": True,
            "description": 'Older name of "dimension_separator" in the metadata.',
        }

    def checked(self) -> Self:
        spec = super().checked()
        spec.known_schema()
        return spec

    @property
    def url_scheme(self) -> str:
        return "zarr2"

    @property
    def metadata_key(self) -> str:
        return self.metadata_key_

    @property
    def layout_variant(self) -> tuple[str, ...]:
        separator = self.metadata.dimension_separator or DEFAULT_SEPARATOR
        return (self.field or "", separator, *(self._labels() or ()))

    def minimal(self) -> Self:
        return self.replace(metadata=_NOTHING)

    def known_schema(self) -> Schema:
        # Asked for several times while a spec is checked and an array made of it. The parts are
        # kept with the result, so that their ids stay theirs.
        asked = super().known_schema()
        # The transform's part is the rank.
        parts = (self.metadata, self.schema_, self.dtype, asked.rank, self.field)

        def make() -> tuple[object, Schema]:
            return parts, implied_schema(asked, self.metadata, self._known_field())

        return _schemas.get(tuple(map(id, parts)), make)[1].copy()

    def parse_metadata(self, data: bytes) -> ZarrMetadata:
        return ZarrMetadata.parse(data)

    def serialize_metadata(self, metadata: ZarrMetadata) -> bytes:
        return metadata.serialize()

    def new_metadata(self) -> ZarrMetadata:
        return new_metadata(super().known_schema(), self.metadata, self.field)

    def check_metadata(self, metadata: ZarrMetadata) -> None:
        self.metadata.check(metadata)
        if self.schema_ is None and self.dtype is None and self.rank is None:
            return
        asked = super().known_schema()
        check_units(asked)
        field = self._field_of(metadata.stored_type)
        check_fill_value(asked, field, metadata.fill_value)
        check_schema(asked, self.layout(metadata).schema)

    def layout(self, metadata: ZarrMetadata) -> ArrayLayout:
        return array_layout(
            metadata,
            self._field_of(metadata.stored_type),
            separator=self.metadata.dimension_separator,
            labels=self._labels(),
        )

    def resized(self, metadata: ZarrMetadata, shape: tuple[int, ...]) -> ZarrMetadata:
        return replace(metadata, shape=shape[: len(metadata.shape)])

    def with_metadata(self, metadata: ZarrMetadata) -> Self:
        field = self._field_of(metadata.stored_type)
        separator = self.metadata.dimension_separator or DEFAULT_SEPARATOR
        return self.replace(
            kvstore=self.store_spec(),
            path="",
            open_=None,
            create=False,
            delete_existing=False,
            dtype=field.data_type,
            rank=None,
            schema_=None,
            field=field.name or None,
            metadata=metadata.constraints(separator),
        )

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        if self.metadata_key_ == ".zarray":
            json.pop("metadata_key", None)
        field = self._known_field()
        if field is not None and self.metadata.dtype is not None:
            json.setdefault("dtype", field.data_type.to_json())

    def _field_of(self, stored_type: StoredType) -> StoredField:
        try:
            return stored_type.field(self.field)
        except SpecError as error:
            raise MismatchError(str(error)) from None

    def _known_field(self) -> StoredField | None:
        """The field to open, as far as the constraints tell."""
        if self.metadata.dtype is not None:
            return self.metadata.dtype.field(self.field)
        if self.field is not None:
            return None
        data_type = super().known_schema().dtype
        if data_type is None or data_type.kind in "SVO":
            # Text of fixed length adds a dimension whose extent only the metadata can say.
            return None
        return StoredType.of(data_type).field(None)

    def _labels(self) -> tuple[str, ...] | None:
        """Labels that the schema gives to the dimensions; metadata has none."""
        domain = None if self.schema_ is None else self.schema_.domain
        return None if domain is None else domain.labels
