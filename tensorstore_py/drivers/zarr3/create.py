"""Metadata for a new array, from the schema and metadata constraints and the format's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.drivers.zarr3.chain import (
    completed,
    inside_shards,
    is_sharded,
)
from tensorstore_py.drivers.zarr3.chunk_key_encoding import ChunkKeyEncoding
from tensorstore_py.drivers.zarr3.codec_spec import Zarr3CodecSpec
from tensorstore_py.drivers.zarr3.members import with_units, without_empty_units
from tensorstore_py.drivers.zarr3.metadata import Metadata, explicit_codecs
from tensorstore_py.drivers.zarr3.schema import (
    check_metadata,
    dimension_labels,
    metadata_schema,
    stated_layout,
)
from tensorstore_py.errors import MismatchError
from tensorstore_py.plugin import (
    ChunkType,
    Schema,
    check_schema,
    chosen_chunks,
    chosen_dtype,
    chosen_fill_value,
    chosen_inner_order,
    new_domain,
    resolve_chain,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tensorstore_py.drivers.zarr3.metadata import MetadataConstraints
    from tensorstore_py.plugin import CodecModel, IndexDomain, dtype

__all__ = ["new_metadata"]

_UNCONSTRAINED = Schema()


def new_metadata(schema: Schema, asked: Schema, stated: MetadataConstraints) -> Metadata:
    """The whole document that satisfies the constraints.

    Args:
        schema: everything that the spec says, from `known_schema`.
        asked: the spec's schema constraints.
        stated: the spec's metadata constraints.

    Raises:
        SpecError: the data type or the domain is missing, or a value is not possible.
        MismatchError: the constraints contradict each other.
    """
    data_type = chosen_dtype(schema)
    fill_value = _fill_value(asked, stated, data_type)
    domain = new_domain(asked, stated.shape, dimension_labels(stated.dimension_names))
    codecs, chunk_shape = _encoding(schema, stated, domain)
    chunk = ChunkType(chunk_shape, data_type.array_dtype, fill_value)
    metadata = Metadata(
        shape=domain.shape,
        data_type=data_type,
        chunk_shape=chunk_shape,
        chunk_key_encoding=stated.chunk_key_encoding or ChunkKeyEncoding(),
        fill_value=fill_value,
        codecs=explicit_codecs(resolve_chain(codecs, chunk)),
        dimension_names=_names(stated, domain),
        attributes=_attributes(schema, stated),
        extra=stated.extra,
    )
    # What was put in must not contradict what was asked, or the array could not be opened again.
    check_metadata(stated, metadata)
    if asked != _UNCONSTRAINED:
        check_schema(asked, metadata_schema(metadata))
    return metadata


def _encoding(
    schema: Schema, stated: MetadataConstraints, domain: IndexDomain
) -> tuple[tuple[CodecModel, ...], tuple[int, ...]]:
    """The codecs and the chunk shape."""
    assert schema.codec is not None
    model = schema.codec.model
    assert isinstance(model, Zarr3CodecSpec)
    codecs = model.codecs or ()
    shards = is_sharded(codecs)
    layout = stated_layout(
        schema, stated, domain.rank, one_grid=stated.codecs is not None and not shards
    )
    read_chunk, chunk_shape = chosen_chunks(layout, domain)
    if read_chunk != chunk_shape and not shards:
        codecs = inside_shards(codecs)
    return completed(codecs, read_chunk, chosen_inner_order(layout)), chunk_shape


def _fill_value(
    asked: Schema, stated: MetadataConstraints, data_type: dtype
) -> NDArray[np.generic]:
    wanted = chosen_fill_value(asked, data_type)
    if stated.fill_value is None:
        return np.zeros((), data_type.array_dtype) if wanted is None else wanted
    if wanted is not None and wanted.tobytes() != stated.fill_value.tobytes():
        raise MismatchError(
            f"fill_value: the schema says {wanted.item()!r}, the metadata "
            f"{stated.fill_value.item()!r}"
        )
    return stated.fill_value


def _names(stated: MetadataConstraints, domain: IndexDomain) -> tuple[str | None, ...]:
    if stated.dimension_names is None:
        return tuple(label or None for label in domain.labels)
    for dimension, label in enumerate(domain.labels):
        if label and label != stated.dimension_names[dimension]:
            raise MismatchError(
                f'dimension {dimension}: the schema names it "{label}", the metadata '
                "leaves it unnamed"
            )
    return stated.dimension_names


def _attributes(schema: Schema, stated: MetadataConstraints) -> Mapping[str, object]:
    units = schema.dimension_units or ()
    if not any(unit is not None for unit in units):
        return without_empty_units(stated.attributes)
    return with_units(stated.attributes, units)
