"""What is asked of an N5 array, and the format's part in opening it.

The `metadata` member constrains the `attributes.json` document; the rest of the members are those
of every chunked driver. Nothing is read or written here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Self

import numpy as np

from tensorstore_py.drivers.n5.block import BlockCodec
from tensorstore_py.drivers.n5.create import new_metadata
from tensorstore_py.drivers.n5.json_form import METADATA_FORM
from tensorstore_py.drivers.n5.metadata import Metadata, MetadataConstraints
from tensorstore_py.drivers.n5.schema import (
    array_domain,
    check_asked,
    known_schema,
    metadata_schema,
)
from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.plugin import (
    ArrayLayout,
    ArrayToBytes,
    ChunkedSpec,
    ChunkType,
    CodecChain,
    JsonForm,
    ParsedOnce,
    PlainValidator,
    RegularAxis,
    Remembered,
    Schema,
    SeparatedKeys,
    driver,
)

__all__ = ["N5Spec"]

_NOTHING = MetadataConstraints()
_schemas: Remembered[tuple[object, Schema]] = Remembered(64)


@driver("n5", schemes=["n5"])
class N5Spec(ChunkedSpec[Metadata]):
    """An array in N5 format.

    Attributes:
        metadata: constraints on the `attributes.json` document: what a new array gets, and what
            an existing one must have.

    Example:
        >>> spec = N5Spec.parse({"kvstore": "memory://", "metadata": {"dataType": "uint16"}})
        >>> spec.known_schema().dtype
        dtype("uint16")
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"metadata"})

    detected_by: ClassVar[tuple[str, ...]] = ("attributes.json",)

    metadata: Annotated[
        MetadataConstraints,
        PlainValidator(ParsedOnce(MetadataConstraints.parse)),
        JsonForm(METADATA_FORM),
    ] = _NOTHING

    def checked(self) -> Self:
        spec = super().checked()
        spec.known_schema()
        if spec.dtype is None and spec.metadata.data_type is not None:
            # It is printed, so that what is printed is the same spec.
            return spec.replace(dtype=spec.metadata.data_type)
        return spec

    def known_schema(self) -> Schema:
        # Asked for several times while a spec is checked and an array made of it. The parts are
        # kept with the result, so that their ids stay theirs.
        asked = super().known_schema()
        parts = (self.metadata, self.schema_, self.dtype, asked.rank)

        def make() -> tuple[object, Schema]:
            return parts, known_schema(asked, self.metadata)

        return _schemas.get(tuple(map(id, parts)), make)[1].copy()

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        known = self.known_schema()
        if known.domain is None and known.rank is not None and "transform" not in json:
            json.setdefault("rank", known.rank)

    def minimal(self) -> Self:
        return self.replace(metadata=_NOTHING)

    @property
    def metadata_key(self) -> str:
        return "attributes.json"

    def parse_metadata(self, data: bytes) -> Metadata:
        return Metadata.parse(data)

    def serialize_metadata(self, metadata: Metadata) -> bytes:
        return metadata.serialize()

    def new_metadata(self) -> Metadata:
        return new_metadata(self.known_schema(), super().known_schema(), self.metadata)

    def check_metadata(self, metadata: Metadata) -> None:
        self.metadata.check(metadata)
        if self.schema_ is not None or self.dtype is not None or self.rank is not None:
            check_asked(super().known_schema(), metadata)

    def layout(self, metadata: Metadata) -> ArrayLayout:
        native = metadata.data_type.numpy_dtype
        chunk = ChunkType(metadata.block_size, native, np.zeros((), native))
        return ArrayLayout(
            data_type=metadata.data_type,
            domain=array_domain(metadata),
            grid=tuple(map(RegularAxis, metadata.dimensions, metadata.block_size)),
            chain=CodecChain(chunk, (), _block_codec(metadata, chunk), ()),
            keys=SeparatedKeys(len(metadata.dimensions), "/"),
            describe=partial(metadata_schema, metadata),
        )

    def resized(self, metadata: Metadata, shape: tuple[int, ...]) -> Metadata:
        return replace(metadata, dimensions=shape)

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


def _block_codec(metadata: Metadata, chunk: ChunkType) -> ArrayToBytes:
    try:
        return BlockCodec(chunk, metadata.compression)
    except SpecError as error:
        raise error.inside("compression") from None
    except UnsupportedError as error:
        raise UnsupportedError(f"compression: {error}") from None
