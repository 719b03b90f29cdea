"""The `zarr3` driver's spec: JSON members, and the format's rules for the chunked engine.

Everything here is a short call into the modules that hold the rules; opening, reading, writing
and resizing are the engine's.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Self

from tensorstore_py.drivers.zarr3.chain import inner_shape
from tensorstore_py.drivers.zarr3.chunk_grid import RegularGrid, bound_chains
from tensorstore_py.drivers.zarr3.create import new_metadata
from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.element_chain import element_chain
from tensorstore_py.drivers.zarr3.json_form import METADATA_FORM
from tensorstore_py.drivers.zarr3.metadata import Metadata, MetadataConstraints
from tensorstore_py.drivers.zarr3.schema import (
    array_domain,
    check_asked,
    check_metadata,
    known_schema,
    metadata_schema,
)
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ArrayLayout,
    BeforeValidator,
    ChunkedSpec,
    CodecChain,
    ElementView,
    IndexDomain,
    JsonForm,
    OuterKeys,
    ParsedOnce,
    PlainValidator,
    RegularAxis,
    Remembered,
    Schema,
    check_schema,
    driver,
)
from tensorstore_py.plugin import dtype as DataType  # noqa: N812 - a member is named dtype

__all__ = ["Zarr3Spec"]

_NOTHING = MetadataConstraints()
_schemas: Remembered[tuple[object, Schema]] = Remembered(64)
_created: Remembered[tuple[object, Metadata]] = Remembered(64)


@driver("zarr3", schemes=["zarr3"])
class Zarr3Spec(ChunkedSpec[Metadata]):
    """An array in Zarr version 3 format.

    Attributes:
        field: the field to open, `"a.b"` for one inside another; None for the only one, or all of
            them as records.
        open_as_void: open the bytes of each element, as one more dimension.
        metadata: constraints on the `zarr.json` document: what a new array gets, and what an
            existing one must have.

    Example:
        >>> spec = Zarr3Spec.parse(
        ...     {
        ...         "driver": "zarr3",
        ...         "kvstore": "memory://a/",
        ...         "metadata": {"shape": [1000, 2000], "data_type": "uint16"},
        ...     }
        ... )
        >>> spec.new_metadata().chunk_shape
        (1000, 1048)
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"field", "open_as_void", "metadata"})

    detected_by: ClassVar[tuple[str, ...]] = ("zarr.json",)

    field: Annotated[str | None, BeforeValidator(lambda name: name or None)] = None
    open_as_void: bool = False
    metadata: (
        Annotated[
            MetadataConstraints,
            PlainValidator(ParsedOnce(MetadataConstraints.parse)),
            JsonForm(METADATA_FORM),
        ]
        | None
    ) = None

    def checked(self) -> Self:
        spec = super().checked()
        if spec.field is not None and spec.open_as_void:
            raise SpecError(
                '"field" and "open_as_void" exclude each other: a field is a part of the bytes',
                ("field",),
            )
        stated = (self.metadata, self.schema_, self.dtype, self.rank)
        if any(part is not None for part in stated):
            self.known_schema()
        return spec

    def known_schema(self) -> Schema:
        # Asked for several times while a spec is checked and an array made of it. The parts are
        # kept with the result, so that their ids stay theirs.
        asked = super().known_schema()
        if self.open_as_void:
            asked.update(dtype=DataType("byte"))
        parts = self._parts(asked)

        def make() -> tuple[object, Schema]:
            stated = self.metadata or _NOTHING
            return parts, known_schema(asked, stated, self._known_view(asked))

        return _schemas.get(tuple(map(id, parts)), make)[1].copy()

    def _parts(self, asked: Schema) -> tuple[object, ...]:
        """All that schema and metadata follow from; of the transform that is the rank."""
        return self.metadata, self.schema_, self.dtype, asked.rank, self.field, self.open_as_void

    def known_domain(self) -> IndexDomain | None:
        return self.known_schema().domain

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        data_type = self.known_schema().dtype
        if data_type is not None:
            json["dtype"] = data_type.to_json()
        if include_defaults and self.metadata is None:
            json["metadata"] = _NOTHING.to_json(include_defaults=True)
        super().add_json(json, include_defaults)
        if not self.open_as_void:
            json.pop("open_as_void", None)

    @property
    def metadata_key(self) -> str:
        return "zarr.json"

    def parse_metadata(self, data: bytes) -> Metadata:
        return Metadata.parse(data)

    def serialize_metadata(self, metadata: Metadata) -> bytes:
        return metadata.serialize()

    def new_metadata(self) -> Metadata:
        asked = super().known_schema()
        parts = self._parts(asked)

        def make() -> tuple[object, Metadata]:
            stated = self.metadata or _NOTHING
            schema, as_void = self.known_schema(), self.open_as_void
            return parts, new_metadata(schema, asked, stated, self.field, as_void=as_void)

        return _created.get(tuple(map(id, parts)), make)[1]

    def check_metadata(self, metadata: Metadata) -> None:
        if self.metadata is not None:
            check_metadata(self.metadata, metadata)
        view = self._view_of(metadata)
        if self.schema_ is not None:
            check_asked(super().known_schema(), metadata, view)
        elif self.dtype is not None or self.rank is not None:
            found = Schema(dtype=view.data_type, rank=metadata.rank + len(view.inner_shape))
            check_schema(super().known_schema(), found)

    def layout(self, metadata: Metadata) -> ArrayLayout:
        view = self._view_of(metadata)
        inner = view.inner_shape
        grid = metadata.chunk_grid

        def bind(shape: tuple[int, ...]) -> CodecChain:
            outer = shape[: metadata.rank]
            stored, fill_value = metadata.data_type, metadata.fill_value
            return element_chain(metadata.codecs, outer, stored, fill_value, view)

        keys = metadata.chunk_key_encoding.bind(metadata.rank)
        return ArrayLayout(
            data_type=view.data_type,
            domain=array_domain(metadata, inner),
            grid=(*grid.axes(metadata.shape), *(RegularAxis(size, size) for size in inner)),
            chain=bind(grid.largest),
            keys=OuterKeys(keys, metadata.rank, len(inner)) if inner else keys,
            describe=partial(metadata_schema, metadata, view),
            chains=bound_chains(grid, bind),
        )

    def resized(self, metadata: Metadata, shape: tuple[int, ...]) -> Metadata:
        shape = shape[: metadata.rank]
        grid = metadata.chunk_grid
        if not isinstance(grid, RegularGrid):
            # What is known to fit the codecs is what there is.
            unit = inner_shape(metadata.codecs, metadata.rank) or grid.common
            grid = grid.resized(shape, unit)
        return metadata._replace(shape=shape, chunk_grid=grid)

    def with_metadata(self, metadata: Metadata) -> Self:
        view = self._view_of(metadata)
        return self.replace(
            metadata=metadata.constraints,
            dtype=view.data_type,
            field=view.name or None,
            rank=None,
            schema_=None,
            transform=None,
            open_=None,
            create=False,
            delete_existing=False,
        )

    @property
    def layout_variant(self) -> tuple[str, ...]:
        asked = self._asked_dtype()
        reading = asked.name if asked is not None and asked.has_readings else ""
        return (self.field or "", str(self.open_as_void), reading)

    def _asked_dtype(self) -> DataType | None:
        if self.dtype is not None:
            return self.dtype
        return None if self.schema_ is None else self.schema_.dtype

    def _view_of(self, metadata: Metadata) -> ElementView:
        try:
            return metadata.data_type.view(
                self.field, asked=self._asked_dtype(), as_void=self.open_as_void
            )
        except SpecError as error:
            raise MismatchError(str(error)) from None

    def _known_view(self, asked: Schema) -> ElementView | None:
        """What is opened of each element, as far as the constraints tell."""
        stored = None if self.metadata is None else self.metadata.data_type
        if stored is not None:
            return stored.view(self.field, asked=asked.dtype, as_void=self.open_as_void)
        if asked.dtype is None or self.field is not None or self.open_as_void:
            return None
        if asked.dtype.name in ("char", "byte"):
            # Bytes of a fixed number add a dimension whose extent only the metadata can say.
            return None
        return StoredType.of(asked.dtype).view(asked=asked.dtype)
