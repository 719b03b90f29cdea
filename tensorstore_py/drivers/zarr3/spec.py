"""The `zarr3` driver's spec: JSON members, and the format's rules for the chunked engine.

Everything here is a short call into the modules that hold the rules; opening, reading, writing
and resizing are the engine's.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from tensorstore_py.drivers.zarr3.create import new_metadata
from tensorstore_py.drivers.zarr3.json_form import METADATA_FORM
from tensorstore_py.drivers.zarr3.metadata import Metadata, MetadataConstraints
from tensorstore_py.drivers.zarr3.schema import (
    array_domain,
    check_metadata,
    known_schema,
    metadata_schema,
)
from tensorstore_py.plugin import (
    ArrayLayout,
    ChunkedSpec,
    ChunkType,
    IndexDomain,
    JsonForm,
    PlainValidator,
    RegularAxis,
    Remembered,
    Schema,
    bind_chain,
    check_schema,
    driver,
)

__all__ = ["Zarr3Spec"]

_NOTHING = MetadataConstraints()
_schemas: Remembered[tuple[object, Schema]] = Remembered(64)


@driver("zarr3", schemes=["zarr3"])
class Zarr3Spec(ChunkedSpec[Metadata]):
    """An array in Zarr version 3 format.

    Attributes:
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

    detected_by: ClassVar[tuple[str, ...]] = ("zarr.json",)

    metadata: (
        Annotated[
            MetadataConstraints,
            PlainValidator(MetadataConstraints.parse),
            JsonForm(METADATA_FORM),
        ]
        | None
    ) = None

    def checked(self) -> Self:
        spec = super().checked()
        stated = (self.metadata, self.schema_, self.dtype, self.rank)
        if any(part is not None for part in stated):
            self.known_schema()
        return spec

    def known_schema(self) -> Schema:
        # Asked for several times while a spec is checked and an array made of it. The parts are
        # kept with the result, so that their ids stay theirs.
        asked = super().known_schema()
        # The transform's part is the rank.
        parts = (self.metadata, self.schema_, self.dtype, asked.rank)

        def make() -> tuple[object, Schema]:
            return parts, known_schema(asked, self.metadata or _NOTHING)

        return _schemas.get(tuple(map(id, parts)), make)[1].copy()

    def known_domain(self) -> IndexDomain | None:
        return self.known_schema().domain

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        data_type = self.known_schema().dtype
        if data_type is not None:
            json["dtype"] = data_type.to_json()
        if include_defaults and self.metadata is None:
            json["metadata"] = _NOTHING.to_json(include_defaults=True)
        super().add_json(json, include_defaults)

    @property
    def metadata_key(self) -> str:
        return "zarr.json"

    def parse_metadata(self, data: bytes) -> Metadata:
        return Metadata.parse(data)

    def serialize_metadata(self, metadata: Metadata) -> bytes:
        return metadata.serialize()

    def new_metadata(self) -> Metadata:
        asked = super().known_schema()
        return new_metadata(self.known_schema(), asked, self.metadata or _NOTHING)

    def check_metadata(self, metadata: Metadata) -> None:
        if self.metadata is not None:
            check_metadata(self.metadata, metadata)
        if self.schema_ is not None:
            check_schema(super().known_schema(), metadata_schema(metadata))
        elif self.dtype is not None or self.rank is not None:
            found = Schema(dtype=metadata.data_type, rank=metadata.rank)
            check_schema(super().known_schema(), found)

    def layout(self, metadata: Metadata) -> ArrayLayout:
        chunk = ChunkType(metadata.chunk_shape, metadata.data_type.array_dtype, metadata.fill_value)
        grid = tuple(
            RegularAxis(extent, size)
            for extent, size in zip(metadata.shape, metadata.chunk_shape, strict=True)
        )
        return ArrayLayout(
            data_type=metadata.data_type,
            domain=array_domain(metadata),
            grid=grid,
            chain=bind_chain(metadata.codecs, chunk),
            keys=metadata.chunk_key_encoding.bind(metadata.rank),
            schema=metadata_schema(metadata),
        )

    def resized(self, metadata: Metadata, shape: tuple[int, ...]) -> Metadata:
        return metadata._replace(shape=shape)

    def with_metadata(self, metadata: Metadata) -> Self:
        return self.replace(
            metadata=metadata.constraints,
            dtype=metadata.data_type,
            rank=None,
            schema_=None,
            transform=None,
            open_=None,
            create=False,
            delete_existing=False,
        )
