"""Metadata for a new array, from the schema and metadata constraints and the format's defaults."""

from __future__ import annotations

from tensorstore_py.drivers.n5.codec_spec import N5CodecSpec, parse_compression
from tensorstore_py.drivers.n5.metadata import Metadata, MetadataConstraints
from tensorstore_py.drivers.n5.schema import block_layout, check_asked, check_fill_value
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import CodecModel, Schema, chosen_chunks, chosen_dtype, dtype, new_domain

__all__ = ["new_metadata"]


def new_metadata(schema: Schema, asked: Schema, stated: MetadataConstraints) -> Metadata:
    """The whole document that satisfies the constraints.

    Args:
        schema: everything that the spec says, from `known_schema`.
        asked: its schema constraints.
        stated: its metadata constraints.

    Raises:
        SpecError: something without a default is missing, or cannot be had in this format.
        MismatchError: constraints contradict each other.
    """
    check_fill_value(asked)
    domain = new_domain(schema, None)
    data_type = chosen_dtype(schema)
    layout = block_layout(schema, domain.rank)
    units, resolution = _units(schema, stated, domain.rank)
    try:
        metadata = Metadata(
            dimensions=domain.shape,
            block_size=chosen_chunks(layout, domain)[1],
            data_type=data_type,
            compression=_compression(schema, data_type),
            axes=domain.labels,
            units=units,
            resolution=resolution,
            extra=stated.extra,
        )
    except SpecError as error:
        raise error.inside("metadata") from None
    check_asked(asked, metadata)
    return metadata


def _compression(schema: Schema, data_type: dtype) -> CodecModel:
    assert schema.codec is not None
    model = schema.codec.model
    assert isinstance(model, N5CodecSpec)
    if model.compression is not None:
        return model.compression
    shuffle = 2 if data_type.numpy_dtype.itemsize == 1 else 1
    return parse_compression({"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": shuffle})


def _units(
    schema: Schema, stated: MetadataConstraints, rank: int
) -> tuple[tuple[str, ...] | None, tuple[float, ...] | None]:
    """Base units and multipliers: with a unit in one dimension, all dimensions have both."""
    asked = schema.dimension_units or ()
    if not any(unit is not None for unit in asked):
        return stated.units, stated.resolution
    units = list(stated.units or ("",) * rank)
    resolution = list(stated.resolution or (1.0,) * rank)
    for dimension, unit in enumerate(asked):
        if unit is not None:
            units[dimension] = unit.base_unit
            resolution[dimension] = unit.multiplier
    return tuple(units), tuple(resolution)
