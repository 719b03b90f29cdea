"""From constraints to a complete document: what a new array's metadata is.

The `metadata` member and the schema speak of the same things. What both leave open gets the
format's defaults: native byte order, C order, blosc, no fill value, "." between chunk indices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr.compression import (
    ZarrCodecSpec,
    default_compressor,
    merged_compressor,
)
from tensorstore_py.drivers.zarr.data_type import StoredField, StoredType
from tensorstore_py.drivers.zarr.fill_value import field_fill_value, fill_value_of
from tensorstore_py.drivers.zarr.layout import DEFAULT_SEPARATOR, inner_order
from tensorstore_py.drivers.zarr.metadata import FillValue, MetadataConstraints, ZarrMetadata
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ChunkLayout,
    CodecModel,
    CodecSpec,
    IndexDomain,
    Schema,
    Unset,
    chosen_chunks,
    chosen_dtype,
    chosen_fill_value,
    chosen_inner_order,
    dtype,
    known_domain,
    layout_constraints,
    new_domain,
)

__all__ = ["check_fill_value", "check_units", "implied_schema", "new_metadata"]


def implied_schema(
    asked: Schema, constraints: MetadataConstraints, field: StoredField | None
) -> Schema:
    """The schema constraints, and what the metadata constraints imply.

    Args:
        asked: the schema constraints alone.
        constraints: the `metadata` member.
        field: the field to open; None while the data type is unknown.

    Raises:
        MismatchError: they contradict each other.
    """
    schema = asked.copy()
    codec = ZarrCodecSpec(compressor=constraints.compressor)
    schema.update(codec=CodecSpec(codec))
    if field is None:
        return _implied_without_type(schema, constraints)
    schema.update(dtype=field.data_type)
    rank = _rank(schema, constraints, field)
    if rank is None:
        return schema
    schema.update(rank=rank, chunk_layout=_layout(schema, constraints, field, rank))
    domain = _known_domain(schema, constraints, field)
    if domain is not None:
        schema = _with_domain(schema, domain, len(field.inner_shape))
    stated = constraints.fill_value
    if isinstance(stated, FillValue) and stated.data is not None:
        check_fill_value(schema, field, stated.data)
        if schema.fill_value is None:
            schema.update(fill_value=field_fill_value(field, stated.data))
    return schema


def new_metadata(
    asked: Schema, constraints: MetadataConstraints, field_name: str | None
) -> ZarrMetadata:
    """The metadata of a new array.

    Args:
        asked: the schema constraints alone.
        constraints: the `metadata` member.
        field_name: the field to open; None if there is only one.

    Raises:
        SpecError: something without a default is missing, or cannot be had in this format.
        MismatchError: constraints contradict each other.
    """
    stored_type = constraints.dtype
    if stored_type is None:
        if field_name is not None:
            raise SpecError(
                'this member is required if "field" is specified', ("metadata", "dtype")
            )
        stored_type = StoredType.of(chosen_dtype(asked))
    field = stored_type.field(field_name)
    chosen_dtype(asked, field.data_type)
    schema = implied_schema(asked, constraints, field)
    check_units(schema)
    domain = new_domain(schema, None)
    rank = domain.rank - len(field.inner_shape)
    layout = _layout(asked, constraints, field, domain.rank)
    return ZarrMetadata(
        shape=domain.shape[:rank],
        chunks=chosen_chunks(layout, domain)[1][:rank],
        stored_type=stored_type,
        fill_value=_fill_value(asked, constraints, stored_type, field),
        order=constraints.order or _order(layout, rank, len(field.inner_shape)),
        compressor=_compressor(asked, constraints),
        separator=constraints.dimension_separator or DEFAULT_SEPARATOR,
    )


def check_fill_value(asked: Schema, field: StoredField, data: bytes | None) -> None:
    """Whether a fill value is the one that the schema asks for.

    Args:
        asked: the schema constraints.
        field: the field that they are about.
        data: the fill value of whole elements; None for null.

    Raises:
        MismatchError: it is not.
    """
    wanted = _asked_fill_value(asked, field.data_type)
    if wanted is None:
        return
    if data is None:
        raise MismatchError(
            f"fill_value: the schema asks for {wanted.tolist()!r}, but the metadata has none (null)"
        )
    found = field_fill_value(field, data)
    if np.broadcast_to(wanted, found.shape).tobytes() != found.tobytes():
        raise MismatchError(
            f"fill_value: the schema asks for {wanted.tolist()!r}, but the metadata has "
            f"{found.tolist()!r}"
        )


def _implied_without_type(schema: Schema, constraints: MetadataConstraints) -> Schema:
    """What is implied while it is unknown whether elements have dimensions of their own."""
    if schema.rank is None:
        return schema
    schema.update(chunk_layout=layout_constraints(schema, schema.rank, one_grid=True))
    if constraints.shape is not None and len(constraints.shape) != schema.rank:
        return schema
    domain = known_domain(schema, constraints.shape)
    return schema if domain is None else _with_domain(schema, domain, 0)


def check_units(asked: Schema) -> None:
    """Whether units are asked for, which this format has no place for.

    Raises:
        SpecError: they are.
    """
    if any(unit is not None for unit in asked.dimension_units or ()):
        raise SpecError("dimension_units: zarr version 2 cannot store units; use driver zarr3")


def _rank(schema: Schema, constraints: MetadataConstraints, field: StoredField) -> int | None:
    """Number of dimensions with the inner ones, if known."""
    inner = len(field.inner_shape)
    if constraints.rank is not None:
        rank = constraints.rank + inner
        if schema.rank not in (None, rank):
            raise MismatchError(
                f"rank: the schema says {schema.rank}, but the metadata makes {rank} dimensions "
                f"({constraints.rank} chunked, {inner} of the data type)"
            )
        return rank
    if schema.rank is not None and schema.rank < inner:
        raise MismatchError(
            f"rank: the schema says {schema.rank}, but the data type alone has {inner} dimensions"
        )
    return schema.rank


def _known_domain(
    schema: Schema, constraints: MetadataConstraints, field: StoredField
) -> IndexDomain | None:
    if constraints.shape is not None:
        return known_domain(schema, (*constraints.shape, *field.inner_shape))
    domain = known_domain(schema, None)
    if domain is None:
        return None
    # Bounds of the chunked dimensions are the schema's; those inside the element are not.
    outer = domain.shape[: domain.rank - len(field.inner_shape)]
    return known_domain(schema, (*outer, *field.inner_shape))


def _with_domain(schema: Schema, domain: IndexDomain, inner_rank: int) -> Schema:
    """The schema with that domain in place of its own, which went into it."""
    rank = domain.rank
    resizable = [True] * (rank - inner_rank) + [False] * inner_rank
    fixed = IndexDomain(
        inclusive_min=domain.inclusive_min,
        exclusive_max=domain.exclusive_max,
        implicit_upper_bounds=resizable,
        labels=domain.labels,
    )
    return Schema.of(replace(schema.constraints, rank=rank, domain=fixed))


def _layout(
    schema: Schema, constraints: MetadataConstraints, field: StoredField, rank: int
) -> ChunkLayout:
    inner = field.inner_shape
    outer: tuple[int | None, ...] = (None,) * (rank - len(inner))
    if constraints.chunks is not None:
        outer = constraints.chunks
    chunk = (*outer, *inner)
    order = None
    if constraints.order is not None:
        order = inner_order(constraints.order, rank - len(inner), len(inner))
    return layout_constraints(schema, rank, write_chunk=chunk, inner_order=order, one_grid=True)


def _order(layout: ChunkLayout, rank: int, inner_rank: int) -> Literal["C", "F"]:
    wanted = chosen_inner_order(layout)
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


def _compressor(asked: Schema, constraints: MetadataConstraints) -> CodecModel | None:
    wanted: CodecModel | Unset | None = Unset.UNSET
    if asked.codec is not None:
        merged = CodecSpec(ZarrCodecSpec()).merged(asked.codec).model
        assert isinstance(merged, ZarrCodecSpec)
        wanted = merged.compressor
    compressor = merged_compressor(constraints.compressor, wanted)
    return default_compressor() if isinstance(compressor, Unset) else compressor


def _fill_value(
    asked: Schema, constraints: MetadataConstraints, stored_type: StoredType, field: StoredField
) -> bytes | None:
    stated = constraints.fill_value
    if isinstance(stated, FillValue):
        check_fill_value(asked, field, stated.data)
        return stated.data
    wanted = _asked_fill_value(asked, field.data_type)
    return None if wanted is None else fill_value_of(stored_type, wanted)


def _asked_fill_value(asked: Schema, data_type: dtype) -> NDArray[np.generic] | None:
    """The schema's fill value in the array's type; it may vary over the inner dimensions."""
    wanted = asked.fill_value
    if wanted is None or not wanted.ndim:
        return chosen_fill_value(asked, data_type)
    converted = np.empty(wanted.shape, data_type.array_dtype)
    for place in np.ndindex(wanted.shape):
        converted[place] = chosen_fill_value(Schema(fill_value=wanted[place]), data_type)
    return converted
