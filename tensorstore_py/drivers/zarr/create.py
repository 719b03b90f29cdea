"""From constraints to a complete document: what a new array's metadata is.

The `metadata` member and the schema speak of the same things. What both leave open gets the
format's defaults: native byte order, C order, blosc, no fill value, "." between chunk indices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr.chain import inner_order
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
from tensorstore_py.drivers.zarr.layout import DEFAULT_SEPARATOR
from tensorstore_py.drivers.zarr.metadata import FillValue, MetadataConstraints, ZarrMetadata
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ChunkLayout,
    CodecModel,
    CodecSpec,
    ElementView,
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
    asked: Schema, constraints: MetadataConstraints, view: ElementView | None
) -> Schema:
    """The schema constraints, and what the metadata constraints imply.

    Args:
        asked: the schema constraints alone.
        constraints: the `metadata` member.
        view: what is opened of each element; None while the data type is unknown.

    Raises:
        MismatchError: they contradict each other.
    """
    schema = asked.copy()
    codec = ZarrCodecSpec(compressor=constraints.compressor, filters=constraints.filters)
    schema.update(codec=CodecSpec(codec))
    if view is None:
        return _implied_without_type(schema, constraints)
    schema.update(dtype=view.data_type)
    rank = _rank(schema, constraints, view)
    if rank is None:
        return schema
    schema.update(rank=rank, chunk_layout=_layout(schema, constraints, view, rank))
    domain = _known_domain(schema, constraints, view)
    if domain is not None:
        schema = _with_domain(schema, domain, len(view.inner_shape))
    stated = constraints.fill_value
    if isinstance(stated, FillValue) and stated.data is not None:
        check_fill_value(schema, view, stated.data)
        if schema.fill_value is None:
            schema.update(fill_value=field_fill_value(view, stated.data))
    return schema


def new_metadata(
    asked: Schema,
    constraints: MetadataConstraints,
    field_name: str | None,
    *,
    as_void: bool = False,
) -> ZarrMetadata:
    """The metadata of a new array.

    Args:
        asked: the schema constraints alone.
        constraints: the `metadata` member.
        field_name: the field to open; None for the only one, or all of them together.
        as_void: open the elements' bytes.

    Raises:
        SpecError: something without a default is missing, or cannot be had in this format.
        MismatchError: constraints contradict each other.
    """
    stored_type = constraints.dtype
    if stored_type is None:
        for name, stated in (("field", field_name is not None), ("open_as_void", as_void)):
            if stated:
                raise SpecError(
                    f'this member is required if "{name}" is specified', ("metadata", "dtype")
                )
        stored_type = StoredType.of(chosen_dtype(asked))
    compressor = _compressor(asked, constraints)
    objects = asked.dtype
    filters = _filters(asked, constraints)
    if stored_type.holds_objects:
        if isinstance(filters, Unset) and object_type(None, compressor) is None:
            filters = default_filters(chosen_dtype(asked))
        objects = object_type(filters, compressor) or objects
    view = stored_type.view(field_name, asked=objects, as_void=as_void)
    chosen_dtype(asked, view.data_type)
    schema = implied_schema(asked, constraints, view)
    check_units(schema)
    domain = new_domain(schema, None)
    rank = domain.rank - len(view.inner_shape)
    layout = _layout(asked, constraints, view, domain.rank)
    return ZarrMetadata(
        shape=domain.shape[:rank],
        chunks=chosen_chunks(layout, domain)[1][:rank],
        stored_type=stored_type,
        fill_value=_fill_value(asked, constraints, stored_type, view),
        order=constraints.order or _order(layout, rank, len(view.inner_shape)),
        compressor=compressor,
        filters=None if isinstance(filters, Unset) else filters,
        separator=constraints.dimension_separator or DEFAULT_SEPARATOR,
    )


def check_fill_value(asked: Schema, view: ElementView, data: bytes | None) -> None:
    """Whether a fill value is the one that the schema asks for.

    Args:
        asked: the schema constraints.
        view: what of each element they are about.
        data: the fill value of whole elements; None for null.

    Raises:
        MismatchError: it is not.
    """
    wanted = _asked_fill_value(asked, view.data_type)
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


def _rank(schema: Schema, constraints: MetadataConstraints, view: ElementView) -> int | None:
    """Number of dimensions with the inner ones, if known."""
    inner = len(view.inner_shape)
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
    schema: Schema, constraints: MetadataConstraints, view: ElementView
) -> IndexDomain | None:
    if constraints.shape is not None:
        return known_domain(schema, (*constraints.shape, *view.inner_shape))
    domain = known_domain(schema, None)
    if domain is None:
        return None
    # Bounds of the chunked dimensions are the schema's; those inside the element are not.
    outer = domain.shape[: domain.rank - len(view.inner_shape)]
    return known_domain(schema, (*outer, *view.inner_shape))


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
    schema: Schema, constraints: MetadataConstraints, view: ElementView, rank: int
) -> ChunkLayout:
    inner = view.inner_shape
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
    compressor = merged_member("compressor", constraints.compressor, _codec(asked).compressor)
    assert not isinstance(compressor, tuple)
    return default_compressor() if isinstance(compressor, Unset) else compressor


def _filters(asked: Schema, constraints: MetadataConstraints) -> Filters | Unset:
    filters = merged_member("filters", constraints.filters, _codec(asked).filters)
    assert not isinstance(filters, CodecModel)
    return filters


def _codec(asked: Schema) -> ZarrCodecSpec:
    """The schema's codec constraints, of this driver."""
    codec = ZarrCodecSpec()
    if asked.codec is not None:
        merged = CodecSpec(codec).merged(asked.codec).model
        assert isinstance(merged, ZarrCodecSpec)
        codec = merged
    return codec


def _fill_value(
    asked: Schema, constraints: MetadataConstraints, stored_type: StoredType, view: ElementView
) -> bytes | None:
    stated = constraints.fill_value
    if isinstance(stated, FillValue):
        data = stated.data
        if stored_type.holds_objects:
            # Only now it is known which objects they are.
            json = fill_value_json(stored_type, data)
            try:
                data = parse_fill_value(stored_type, json, view.data_type)
            except SpecError as error:
                raise error.inside("metadata", "fill_value") from None
        check_fill_value(asked, view, data)
        return data
    wanted = _asked_fill_value(asked, view.data_type)
    return None if wanted is None else fill_value_of(stored_type, view, wanted)


def _asked_fill_value(asked: Schema, data_type: dtype) -> NDArray[np.generic] | None:
    """The schema's fill value in the array's type; it may vary over the inner dimensions."""
    wanted = asked.fill_value
    if wanted is None or not wanted.ndim:
        return chosen_fill_value(asked, data_type)
    converted = np.empty(wanted.shape, data_type.array_dtype)
    for place in np.ndindex(wanted.shape):
        converted[place] = chosen_fill_value(Schema(fill_value=wanted[place]), data_type)
    return converted
