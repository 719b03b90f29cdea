"""What is asked of a Zarr version 2 array, and the format's part in opening it.

The `metadata` member constrains the `.zarray` document; the rest of the members are those of
every chunked driver. Nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from tensorstore_py.drivers.zarr.array_dimensions import known_labels, read_labels, write_labels
from tensorstore_py.drivers.zarr.chain import bound_chain, inner_order
from tensorstore_py.drivers.zarr.compression import (
    Filters,
    ZarrCodecSpec,
    default_compressor,
    default_filters,
    merged_member,
    object_type,
)
from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.drivers.zarr.fill_value import (
    field_fill_value,
    fill_value_json,
    fill_value_of,
    parse_fill_value,
)
from tensorstore_py.drivers.zarr.metadata import FillValue, Separator, ZarrConstraints, ZarrMetadata
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import (
    BeforeValidator,
    CodecModel,
    Field,
    JsonForm,
    describe,
)
from tensorstore_py.plugin.driver import (
    ArrayInfo,
    ArrayLayout,
    ChunkLayout,
    CodecSpec,
    Driver,
    ElementView,
    FieldSpec,
    ParsedOnce,
    Schema,
    SeparatedKeys,
    Transaction,
    Unset,
    driver,
)
from tensorstore_py.plugin.kvstore import (
    PlainValidator,
    ReadResult,
    model_validator,
)

__all__ = ["ZarrSpec"]

_SEPARATORS = (".", "/")
_DEFAULT_SEPARATOR: Separator = "."
_NOTHING = ZarrConstraints()
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


@driver("zarr", aliases=["zarr2"], schemes=["zarr2"])
class ZarrSpec(FieldSpec[ZarrMetadata]):
    """A Zarr version 2 array.

    Attributes:
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

    data_members: ClassVar[frozenset[str] | None] = frozenset({"metadata", "array_dimensions"})

    detected_by: ClassVar[tuple[str, ...]] = (".zarray",)
    metadata_type = ZarrMetadata
    unconstrained = _NOTHING

    metadata: Annotated[
        ZarrConstraints, BeforeValidator(ParsedOnce(ZarrConstraints.parse_frozen))
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
        spec.check_asked()
        return spec

    def may_contradict(self, asked: Schema, metadata: ZarrMetadata) -> bool:
        return False

    async def open_within(self, transaction: Transaction | None) -> Driver:
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
    ) -> Driver:
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
        labels = filter(None, self._labels() or ())
        return (*super().layout_variant, str(self.allow_pickle), self._separator, *labels)

    @property
    def _separator(self) -> Separator:
        """What stands between chunk indices if the document does not say."""
        return self.metadata.dimension_separator or _DEFAULT_SEPARATOR

    def info(self, asked: Schema) -> ArrayInfo:
        stated, view = self.metadata, self._known_view()
        if view is not None:
            return _info(stated, view, asked)
        # It is not known whether elements have dimensions of their own, behind the array's.
        shape = stated.shape if asked.rank == stated.rank else None
        codec = CodecSpec(ZarrCodecSpec(compressor=stated.compressor, filters=stated.filters))
        return ArrayInfo(codec=codec, shape=shape, one_grid=True)

    def new_document(self, asked: Schema) -> ZarrMetadata:
        stated = self.metadata
        stored_type = stated.dtype
        if stored_type is None:
            self.require_no_view("dtype")
            stored_type = StoredType.of(self.info(asked).chosen_type(asked))
        codec = _codec(asked)
        compressor = merged_member("compressor", stated.compressor, codec.compressor)
        if isinstance(compressor, Unset):
            compressor = default_compressor()
        filters = merged_member("filters", stated.filters, codec.filters)
        assert not isinstance(compressor, tuple)
        assert not isinstance(filters, CodecModel)
        view, filters = self._new_view(asked, stored_type, compressor, filters)
        info = _info(stated, view, asked)
        schema = self.known_schema() if view == self._known_view() else info.constrain(asked)
        _refuse_units(schema)
        whole = info.complete(schema)
        order = stated.order or _order(schema.chunk_layout, len(whole.shape or ()), len(info.inner))
        return ZarrMetadata.model_construct(
            zarr_format=2,
            shape=tuple(whole.shape or ()),
            chunks=whole.chunk_shapes[1],
            dtype=stored_type,
            fill_value=_new_fill_value(asked, stated, stored_type, view),
            order=order,
            compressor=compressor,
            filters=filters,
            dimension_separator=self._separator,
        )

    def _new_view(
        self,
        asked: Schema,
        stored_type: StoredType,
        compressor: CodecModel | None,
        filters: Filters | Unset,
    ) -> tuple[ElementView, Filters]:
        """What is opened of each element of a new array, and its filters."""
        objects = asked.dtype
        if stored_type.holds_objects:
            if isinstance(filters, Unset) and object_type(None, compressor) is None:
                filters = default_filters(self.info(asked).chosen_type(asked))
            objects = object_type(filters, compressor) or objects
        view = stored_type.view(self.field, asked=objects, as_void=self.open_as_void)
        return view, None if isinstance(filters, Unset) else filters

    def check_metadata(self, metadata: ZarrMetadata) -> None:
        if self.schema_ is not None:
            asked = self.asked_schema()
            _refuse_units(asked)
            _check_fill_value(asked, self.view_of(metadata), metadata.fill_value.data)
        super().check_metadata(metadata)

    def info_of(self, metadata: ZarrMetadata) -> ArrayInfo:
        view = self.view_of(metadata)
        return _whole_info(metadata, view, self._labels_of(metadata, view))

    def _labels_of(self, metadata: ZarrMetadata, view: ElementView) -> tuple[str, ...] | None:
        labels, rank = self._labels(), len(metadata.shape)
        if labels is not None and len(labels) not in (rank, rank + len(view.inner_shape)):
            raise SpecError(
                f"there are {len(labels)} dimension labels, {list(labels)}, but {rank} dimensions",
                ("shape",),
            )
        return labels

    def layout(self, metadata: ZarrMetadata) -> ArrayLayout:
        view = self.view_of(metadata)
        labels = self._labels_of(metadata, view)
        fill = field_fill_value(view, metadata.fill_value.data)
        chain = bound_chain(metadata, view, fill, run_code=self.allow_pickle)
        keys = SeparatedKeys(len(metadata.shape), metadata.dimension_separator or self._separator)
        # All that most who open an array look at.
        form = ArrayInfo(
            data_type=view.data_type,
            shape=metadata.shape,
            labels=labels,
            inner=view.inner_shape,
            write_chunk=metadata.chunks,
        )
        return ArrayLayout.of(
            form,
            chain,
            keys,
            always_store=metadata.fill_value.data is None,
            describe=lambda: _whole_info(metadata, view, labels).schema(),
        )

    def with_metadata(self, metadata: ZarrMetadata) -> Self:
        separator = metadata.dimension_separator or self._separator
        spec = super().with_metadata(metadata)
        return spec.replace(metadata=spec.metadata.replace(dimension_separator=separator))

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

    def stored_view(self, metadata: ZarrMetadata) -> ElementView:
        return metadata.stored_view(self.field, asked=self.asked_type, as_void=self.open_as_void)

    def _known_view(self) -> ElementView | None:
        """What is opened of each element, as far as the constraints tell."""
        asked = self.asked_type
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


def _whole_info(
    metadata: ZarrMetadata, view: ElementView, labels: tuple[str, ...] | None
) -> ArrayInfo:
    """What a document says of an array of which each element is opened so."""
    data = metadata.fill_value.data
    fill_value = None if data is None else field_fill_value(view, data)
    return replace(_info(metadata, view), labels=labels, fill_value=fill_value)


def _info(stated: ZarrConstraints, view: ElementView, asked: Schema | None = None) -> ArrayInfo:
    """What constraints say of an array of which each element is opened so.

    Args:
        stated: the constraints; a whole document is some.
        view: what is opened.
        asked: the schema constraints, which the fill value that is stated must satisfy.

    Raises:
        MismatchError: it does not.
    """
    rank = stated.rank
    if rank is None and asked is not None and asked.rank is not None:
        rank = max(asked.rank - len(view.inner_shape), 0)
    fill_value = None
    if asked is not None and isinstance(stated.fill_value, FillValue):
        data = stated.fill_value.data
        if data is not None:
            _check_fill_value(asked, view, data)
            fill_value = field_fill_value(view, data) if asked.fill_value is None else None
    ordered = stated.order is not None and rank is not None
    return ArrayInfo(
        codec=CodecSpec(ZarrCodecSpec(compressor=stated.compressor, filters=stated.filters)),
        data_type=view.data_type,
        rank=stated.rank,
        shape=stated.shape,
        inner=view.inner_shape,
        read_chunk=stated.chunks,
        write_chunk=stated.chunks,
        inner_order=inner_order(stated.order or "C", rank or 0) if ordered else None,
        fill_value=fill_value,
        one_grid=True,
    )


def _check_fill_value(asked: Schema, view: ElementView, data: bytes | None) -> None:
    """Whether the fill value of whole elements is the one that the schema asks for.

    Raises:
        MismatchError: it is not.
    """
    wanted = view.asked_fill_value(asked)
    if wanted is None:
        return
    if data is None:
        raise MismatchError(
            f"fill_value: the schema asks for {wanted.tolist()!r}, but the metadata has none (null)"
        )
    found = field_fill_value(view, data)
    full = np.broadcast_to(wanted, found.shape)
    same = (
        full.tolist() == found.tolist()
        if found.dtype.hasobject
        else full.tobytes() == found.tobytes()
    )
    if not same:
        raise MismatchError(
            f"fill_value: the schema asks for {wanted.tolist()!r}, but the metadata has "
            f"{found.tolist()!r}"
        )


def _refuse_units(asked: Schema) -> None:
    if any(unit is not None for unit in asked.dimension_units or ()):
        raise SpecError("dimension_units: zarr version 2 cannot store units; use driver zarr3")


def _order(layout: ChunkLayout, rank: int, inner_rank: int) -> Literal["C", "F"]:
    hard, soft = layout.inner_order, layout.inner_order_soft_constraint
    wanted = soft if hard is None else hard
    if wanted in (None, inner_order("C", rank, inner_rank)):
        return "C"
    if wanted == inner_order("F", rank, inner_rank):
        return "F"
    if layout.inner_order is not None:
        raise SpecError(
            f"chunk_layout.inner_order: {list(layout.inner_order)} is not possible, only "
            f"{list(inner_order('C', rank, inner_rank))} and "
            f"{list(inner_order('F', rank, inner_rank))}"
        )
    return "C"


def _codec(asked: Schema) -> ZarrCodecSpec:
    """The schema's codec constraints, of this driver."""
    codec = ZarrCodecSpec()
    if asked.codec is not None:
        merged = CodecSpec(codec).merged(asked.codec).model
        assert isinstance(merged, ZarrCodecSpec)
        codec = merged
    return codec


def _new_fill_value(
    asked: Schema, stated: ZarrConstraints, stored_type: StoredType, view: ElementView
) -> FillValue:
    if isinstance(stated.fill_value, FillValue):
        data = stated.fill_value.data
        if stored_type.holds_objects:
            # Only now it is known which objects they are.
            json = fill_value_json(stored_type, data)
            try:
                data = parse_fill_value(stored_type, json, view.data_type)
            except SpecError as error:
                raise error.inside("metadata", "fill_value") from None
        _check_fill_value(asked, view, data)
    else:
        wanted = view.asked_fill_value(asked)
        data = None if wanted is None else fill_value_of(stored_type, view, wanted)
    return FillValue(stored_type, data)
