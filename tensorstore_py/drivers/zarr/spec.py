"""What is asked of a Zarr version 2 array, and the format's part in opening it.

The `metadata` member constrains the `.zarray` document; the rest of the members are those of
every chunked driver. Nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Self

from tensorstore_py.drivers.zarr.array_dimensions import known_labels, read_labels, write_labels
from tensorstore_py.drivers.zarr.create import (
    check_fill_value,
    check_units,
    implied_schema,
    new_metadata,
)
from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.drivers.zarr.layout import DEFAULT_SEPARATOR, array_layout
from tensorstore_py.drivers.zarr.metadata import MetadataConstraints, ZarrMetadata
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ArrayLayout,
    BeforeValidator,
    ChunkedDriver,
    ChunkedSpec,
    ElementView,
    Field,
    JsonForm,
    ParsedOnce,
    PlainValidator,
    ReadResult,
    Remembered,
    Schema,
    Transaction,
    check_schema,
    describe,
    driver,
    model_validator,
)
from tensorstore_py.plugin import dtype as DataType  # noqa: N812 - a member is named dtype

__all__ = ["ZarrSpec"]

_SEPARATORS = (".", "/")
_NOTHING = MetadataConstraints()
#: Members that not even a spec with all defaults shows, unless they say something else.
_LEFT_OUT = {
    "allow_pickle": False,
    "array_dimensions": False,
    "metadata_key": ".zarray",
    "open_as_void": False,
}


def _flag_or_labels(value: object) -> bool | tuple[str, ...]:
    """Whether labels are asked for; the labels once they are read, which is no JSON."""
    if not isinstance(value, bool):
        raise SpecError(f"expected true or false, but found {describe(value)}")
    return value


_schemas: Remembered[tuple[object, Schema]] = Remembered(64)
_created: Remembered[tuple[object, ZarrMetadata]] = Remembered(64)


@driver("zarr", aliases=["zarr2"], schemes=["zarr2"])
class ZarrSpec(ChunkedSpec[ZarrMetadata]):
    """A Zarr version 2 array.

    Attributes:
        field: the field to open, `"a.b"` for one inside another; None for the only one, or all of
            them as records.
        open_as_void: open the bytes of each element, as one more dimension.
        metadata: constraints on the `.zarray` document.
        metadata_key_: name of that document.
        array_dimensions: take dimension labels from `_ARRAY_DIMENSIONS` in `.zattrs`, where xarray
            keeps them, and put those of a new array there.
        allow_pickle: read chunks that are pickles, which runs whatever program they contain.

    Example:
        >>> spec = ZarrSpec.parse({"kvstore": "memory://", "metadata": {"dtype": "<u2"}})
        >>> spec.known_schema().dtype
        dtype("uint16")
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "field", "open_as_void", "metadata", "array_dimensions",
    })  # fmt: skip

    detected_by: ClassVar[tuple[str, ...]] = (".zarray",)

    field: Annotated[str | None, BeforeValidator(lambda name: name or None)] = None
    open_as_void: bool = False
    metadata: Annotated[
        MetadataConstraints, BeforeValidator(ParsedOnce(MetadataConstraints.parse_frozen))
    ] = _NOTHING
    metadata_key_: str = Field(default=".zarray", alias="metadata_key")
    array_dimensions: Annotated[
        bool | tuple[str, ...], PlainValidator(_flag_or_labels), JsonForm({"type": "boolean"})
    ] = False
    allow_pickle: bool = False

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
        if spec.field is not None and spec.open_as_void:
            raise SpecError(
                '"field" and "open_as_void" exclude each other: a field is a part of the bytes',
                ("field",),
            )
        spec.known_schema()
        return spec

    async def open_within(self, transaction: Transaction | None) -> ChunkedDriver[ZarrMetadata]:
        mode = self.check_open_mode()
        if self.array_dimensions is not True or mode.assume_metadata:
            return await super().open_within(transaction)
        where = self.store_spec()
        store, prefix = where.open(), where.path
        if transaction is not None:
            store = transaction.overlay(where, store)
        labels = None if mode.delete_existing else await read_labels(store, prefix)
        if labels is not None:
            labelled = self.replace(array_dimensions=labels)
            return await super(ZarrSpec, labelled).open_within(transaction)
        wanted = self._labels()
        creates = wanted is not None and mode.create
        if creates and not mode.delete_existing:
            creates = (await store.read(prefix + self.metadata_key)).state == "missing"
        opened = await super().open_within(transaction)
        if creates and wanted is not None:
            # Dimensions inside an element, which cannot be resized, come last.
            rank = sum(opened.domain.implicit_upper_bounds)
            await write_labels(store, prefix, wanted[:rank])
        return opened

    async def open_known(
        self, transaction: Transaction | None, documents: Mapping[str, ReadResult]
    ) -> ChunkedDriver[ZarrMetadata]:
        labels = known_labels(documents.get(self.metadata_key), documents.get(".zattrs"))
        labelled = self if labels is None else self.replace(array_dimensions=labels)
        return await super(ZarrSpec, labelled).open_known(transaction, documents)

    @property
    def url_scheme(self) -> str:
        return "zarr2"

    @property
    def metadata_key(self) -> str:
        return self.metadata_key_

    @property
    def layout_variant(self) -> tuple[str, ...]:
        separator = self.metadata.dimension_separator or DEFAULT_SEPARATOR
        asked = self._asked_dtype()
        return (
            self.field or "",
            str(self.open_as_void),
            asked.name if asked is not None and asked.has_readings else "",
            str(self.allow_pickle),
            separator,
            *filter(None, self._labels() or ()),
        )

    def minimal(self) -> Self:
        return self.replace(metadata=_NOTHING)

    def known_schema(self) -> Schema:
        # Asked for several times while a spec is checked and an array made of it. The parts are
        # kept with the result, so that their ids stay theirs.
        asked = super().known_schema()
        if self.open_as_void:
            asked.update(dtype=DataType("byte"))
        parts = self._parts(asked)

        def make() -> tuple[object, Schema]:
            return parts, implied_schema(asked, self.metadata, self._known_view())

        return _schemas.get(tuple(map(id, parts)), make)[1].copy()

    def _parts(self, asked: Schema) -> tuple[object, ...]:
        """All that schema and metadata follow from; of the transform that is the rank."""
        return self.metadata, self.schema_, self.dtype, asked.rank, self.field, self.open_as_void

    def parse_metadata(self, data: bytes) -> ZarrMetadata:
        return ZarrMetadata.parse(data)

    def serialize_metadata(self, metadata: ZarrMetadata) -> bytes:
        return metadata.serialize()

    def new_metadata(self) -> ZarrMetadata:
        asked = super().known_schema()
        parts = self._parts(asked)

        def make() -> tuple[object, ZarrMetadata]:
            as_void = self.open_as_void
            return parts, new_metadata(asked, self.metadata, self.field, as_void=as_void)

        return _created.get(tuple(map(id, parts)), make)[1]

    def check_metadata(self, metadata: ZarrMetadata) -> None:
        self.metadata.check(metadata)
        if self.schema_ is None and self.dtype is None and self.rank is None:
            return
        asked = super().known_schema()
        check_units(asked)
        check_fill_value(asked, self._view_of(metadata), metadata.fill_value)
        check_schema(asked, self.layout(metadata).schema)

    def layout(self, metadata: ZarrMetadata) -> ArrayLayout:
        return array_layout(
            metadata,
            self._view_of(metadata),
            separator=self.metadata.dimension_separator,
            labels=self._labels(),
            run_code=self.allow_pickle,
        )

    def resized(self, metadata: ZarrMetadata, shape: tuple[int, ...]) -> ZarrMetadata:
        return replace(metadata, shape=shape[: len(metadata.shape)])

    def with_metadata(self, metadata: ZarrMetadata) -> Self:
        view = self._view_of(metadata)
        separator = self.metadata.dimension_separator or DEFAULT_SEPARATOR
        return self.replace(
            kvstore=self.store_spec(),
            path="",
            open_=None,
            create=False,
            delete_existing=False,
            dtype=view.data_type,
            rank=None,
            schema_=None,
            field=view.name or None,
            metadata=metadata.constraints(separator),
        )

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        for name, default in _LEFT_OUT.items():
            if json.get(name, default) == default:
                json.pop(name, None)
        if isinstance(self.array_dimensions, tuple):
            json["array_dimensions"] = True
        if self.open_as_void:
            json.setdefault("dtype", "byte")
            return
        view = self._known_view()
        if view is not None and self.metadata.dtype is not None:
            json.setdefault("dtype", view.data_type.to_json())

    def _asked_dtype(self) -> DataType | None:
        if self.dtype is not None:
            return self.dtype
        return None if self.schema_ is None else self.schema_.dtype

    def _view_of(self, metadata: ZarrMetadata) -> ElementView:
        try:
            return metadata.view(self.field, asked=self._asked_dtype(), as_void=self.open_as_void)
        except SpecError as error:
            raise MismatchError(str(error)) from None

    def _known_view(self) -> ElementView | None:
        """What is opened of each element, as far as the constraints tell."""
        asked = self._asked_dtype()
        if self.metadata.dtype is not None:
            return self.metadata.view(self.field, asked=asked, as_void=self.open_as_void)
        if self.field is not None or self.open_as_void:
            return None
        if asked is None or asked.name in ("char", "byte"):
            # Text of fixed length adds a dimension whose extent only the metadata can say.
            return None
        return StoredType.of(asked).view(asked=asked)

    def _labels(self) -> tuple[str, ...] | None:
        """Labels that are stored beside the metadata, or that the schema gives."""
        if isinstance(self.array_dimensions, tuple):
            return self.array_dimensions
        domain = None if self.schema_ is None else self.schema_.domain
        return None if domain is None else domain.labels
