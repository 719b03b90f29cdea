"""What is asked of an N5 array, and the format's part in opening it.

The `metadata` member constrains the `attributes.json` document; the rest of the members are those
of every chunked driver. Nothing is read or written here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from tensorstore_py.drivers.n5.block import BlockCodec
from tensorstore_py.drivers.n5.codec_spec import N5CodecSpec, compression_json
from tensorstore_py.drivers.n5.metadata import (
    METADATA_FORM,
    N5Constraints,
    N5Metadata,
    check_data_type,
)
from tensorstore_py.errors import MismatchError, SpecError, UnsupportedError
from tensorstore_py.plugin.codec import ArrayToBytes, ChunkType, CodecChain, JsonForm
from tensorstore_py.plugin.driver import (
    ArrayInfo,
    ArrayLayout,
    ChunkedSpec,
    ParsedOnce,
    Schema,
    SeparatedKeys,
    driver,
)
from tensorstore_py.plugin.kvstore import PlainValidator

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["N5Spec"]

_NOTHING = N5Constraints()


@driver("n5", schemes=["n5"])
class N5Spec(ChunkedSpec[N5Metadata]):
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
    metadata_type = N5Metadata
    unconstrained = _NOTHING

    metadata: Annotated[
        N5Constraints, PlainValidator(ParsedOnce(N5Constraints.parse)), JsonForm(METADATA_FORM)
    ] = _NOTHING

    def checked(self) -> Self:
        spec = super().checked()
        spec.known_schema()
        if spec.dtype is None and spec.metadata.data_type is not None:
            # It is printed, so that what is printed is the same spec.
            return spec.replace(dtype=spec.metadata.data_type)
        return spec

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        known = self.known_schema()
        if known.domain is None and known.rank is not None and "transform" not in json:
            json.setdefault("rank", known.rank)

    @property
    def metadata_key(self) -> str:
        return "attributes.json"

    def known_schema(self) -> Schema:
        known = super().known_schema()
        # Refused when an array is made or found; no document states one.
        return Schema.of(replace(known.constraints, fill_value=None))

    def info(self, asked: Schema) -> ArrayInfo:
        stated = self.metadata
        data_type = stated.data_type or asked.dtype
        if data_type is not None:
            check_data_type(data_type)
        if stated.units is None:
            _check_resolution(asked, stated.resolution or ())
        info = stated.info
        rank = asked.rank if info.rank is None else info.rank
        if rank is None:
            return info
        # There is but one domain without dimensions.
        shape = info.shape if rank else ()
        return replace(info, shape=shape, rank=rank, inner_order=tuple(reversed(range(rank))))

    def new_document(self, asked: Schema) -> N5Metadata:
        _refuse_fill_value(asked)
        known = self.known_schema()
        whole = self.info(asked).complete(known)
        assert whole.data_type is not None
        json = {
            **self.metadata.to_json(),
            "dimensions": list(whole.shape or ()),
            "blockSize": list(whole.write_chunk or ()),
            "dataType": whole.data_type.name,
            "compression": _compression(known),
            "axes": list(whole.labels or ()),
            **_new_units(whole, self.metadata),
        }
        try:
            return N5Metadata.of(json, {})
        except SpecError as error:
            raise error.inside("metadata") from None

    def may_contradict(self, asked: Schema, metadata: N5Metadata) -> bool:
        return self.metadata is not _NOTHING

    def check_metadata(self, metadata: N5Metadata) -> None:
        super().check_metadata(metadata)
        if self.schema_ is None:
            return  # and so nothing is asked of fill value and units
        asked = self.asked_schema()
        _refuse_fill_value(asked)
        units = metadata.info.units or (None,) * len(metadata.dimensions)
        for dimension, unit in enumerate(asked.dimension_units or ()):
            if unit is not None and unit != units[dimension]:
                raise MismatchError(
                    f"dimension_units: the stored unit of dimension {dimension} is "
                    f'{units[dimension] or "not stated"}, asked for was "{unit}"'
                )

    def info_of(self, metadata: N5Metadata) -> ArrayInfo:
        return metadata.info

    def layout(self, metadata: N5Metadata) -> ArrayLayout:
        native = metadata.data_type.numpy_dtype
        chunk = ChunkType(metadata.block_size, native, np.zeros((), native))
        chain = CodecChain(chunk, (), _block_codec(metadata, chunk), ())
        keys = SeparatedKeys(len(metadata.dimensions), "/")
        return ArrayLayout.of(metadata.info, chain, keys)


def _compression(schema: Schema) -> dict[str, object]:
    assert schema.codec is not None
    assert schema.dtype is not None
    model = schema.codec.model
    assert isinstance(model, N5CodecSpec)
    if model.compression is not None:
        return compression_json(model.compression)
    shuffle = 2 if schema.dtype.numpy_dtype.itemsize == 1 else 1
    return {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": shuffle}


def _new_units(whole: ArrayInfo, stated: N5Constraints) -> dict[str, object]:
    """Base units and multipliers: with a unit in one dimension, all dimensions have both."""
    asked = whole.units or ()
    if not any(unit is not None for unit in asked):
        return {}
    units = list(stated.units or ("",) * len(asked))
    resolution = list(stated.resolution or (1.0,) * len(asked))
    for dimension, unit in enumerate(asked):
        if unit is not None:
            units[dimension], resolution[dimension] = unit.base_unit, unit.multiplier
    return {"units": units, "resolution": resolution}


def _refuse_fill_value(asked: Schema) -> None:
    if asked.fill_value is not None:
        raise SpecError(
            "fill_value: n5 cannot store one, chunks that are missing read as 0: leave it out, "
            "or use driver zarr3"
        )


def _check_resolution(asked: Schema, resolution: Sequence[float]) -> None:
    """Without base units the metadata has no units, but its multipliers hold all the same."""
    units = asked.dimension_units or ()
    for dimension, (unit, step) in enumerate(zip(units, resolution, strict=False)):
        if unit is not None and unit.multiplier != step:
            raise MismatchError(
                f'dimension_units: the schema asks for "{unit}" in dimension {dimension}, but '
                f'the metadata\'s "resolution" is {step:g}'
            )


def _block_codec(metadata: N5Metadata, chunk: ChunkType) -> ArrayToBytes:
    try:
        return BlockCodec(chunk, metadata.compression)
    except SpecError as error:
        raise error.inside("compression") from None
    except UnsupportedError as error:
        raise UnsupportedError(f"compression: {error}") from None
