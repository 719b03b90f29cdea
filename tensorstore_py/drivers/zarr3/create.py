"""Metadata for a new array, from the schema and metadata constraints and the format's defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.drivers.zarr3.chain import (
    completed,
    inside_shards,
    is_sharded,
)
from tensorstore_py.drivers.zarr3.chunk_grid import RegularGrid
from tensorstore_py.drivers.zarr3.chunk_key_encoding import ChunkKeyEncoding
from tensorstore_py.drivers.zarr3.codec_spec import Zarr3CodecSpec
from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.fill_value import (
    default_fill_value,
    same_bits,
    seen_fill_value,
)
from tensorstore_py.drivers.zarr3.members import with_units, without_empty_units
from tensorstore_py.drivers.zarr3.metadata import Metadata, explicit_codecs
from tensorstore_py.drivers.zarr3.schema import (
    asked_fill_value,
    check_asked,
    check_metadata,
    fixed_inside,
    stated_labels,
    stated_layout,
)
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ChunkType,
    Schema,
    chosen_chunks,
    chosen_dtype,
    chosen_inner_order,
    chosen_read_chunk,
    new_domain,
    resolve_chain,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tensorstore_py.drivers.zarr3.metadata import MetadataConstraints
    from tensorstore_py.plugin import (
        ChunkGridModel,
        ChunkLayout,
        CodecModel,
        ElementView,
        IndexDomain,
    )

__all__ = ["new_metadata"]

_UNCONSTRAINED = Schema()


def new_metadata(
    schema: Schema,
    asked: Schema,
    stated: MetadataConstraints,
    field: str | None = None,
    *,
    as_void: bool = False,
) -> Metadata:
    """The whole document that satisfies the constraints.

    Args:
        schema: everything that the spec says, from `known_schema`.
        asked: the spec's schema constraints.
        stated: the spec's metadata constraints.
        field: the field that is opened, see `StoredType.view`.
        as_void: the elements' bytes are opened.

    Raises:
        SpecError: the data type or the domain is missing, or a value is not possible.
        MismatchError: the constraints contradict each other.
    """
    stored, view = _data_type(schema, asked, stated, field, as_void)
    inner = view.inner_shape
    fill_value = _fill_value(asked, stated, stored, view)
    shape = None if stated.shape is None else (*stated.shape, *inner)
    domain = new_domain(asked, shape, stated_labels(stated, len(inner)))
    if inner:
        domain = fixed_inside(domain, inner)
    rank = domain.rank - len(inner)
    if stated.chunk_grid is not None:
        try:
            stated.chunk_grid.check_reaches(domain.shape[:rank])
        except SpecError as error:
            raise error.inside("metadata", "chunk_grid", "configuration") from None
    codecs, grid = _encoding(schema, stated, domain, inner)
    chunk = ChunkType(grid.largest, stored.stored, fill_value)
    metadata = Metadata(
        shape=domain.shape[:rank],
        data_type=stored,
        chunk_grid=grid,
        chunk_key_encoding=stated.chunk_key_encoding or ChunkKeyEncoding(),
        fill_value=fill_value,
        codecs=explicit_codecs(resolve_chain(codecs, chunk)),
        dimension_names=_names(stated, domain, rank),
        attributes=_attributes(schema, stated, rank),
        extra=stated.extra,
    )
    # What was put in must not contradict what was asked, or the array could not be opened again.
    check_metadata(stated, metadata)
    if asked != _UNCONSTRAINED:
        check_asked(asked, metadata, view)
    return metadata


def _data_type(
    schema: Schema,
    asked: Schema,
    stated: MetadataConstraints,
    field: str | None,
    as_void: bool,
) -> tuple[StoredType, ElementView]:
    """The data type, and what is opened of each element."""
    stored = stated.data_type
    if stored is None:
        for name, given in (("field", field is not None), ("open_as_void", as_void)):
            if given:
                raise SpecError(
                    f'this member is required if "{name}" is specified', ("metadata", "data_type")
                )
        stored = StoredType.of(chosen_dtype(schema))
    view = stored.view(field, asked=asked.dtype, as_void=as_void)
    chosen_dtype(schema, view.data_type)
    return stored, view


def _encoding(
    schema: Schema, stated: MetadataConstraints, domain: IndexDomain, inner: tuple[int, ...]
) -> tuple[tuple[CodecModel, ...], ChunkGridModel]:
    """The codecs and the chunk grid, both in the array's own dimensions."""
    assert schema.codec is not None
    model = schema.codec.model
    assert isinstance(model, Zarr3CodecSpec)
    codecs = model.codecs or ()
    shards = is_sharded(codecs)
    layout = stated_layout(
        schema, stated, domain.rank, inner, one_grid=stated.codecs is not None and not shards
    )
    rank = domain.rank - len(inner)
    grid = stated.chunk_grid
    if grid is None or isinstance(grid, RegularGrid):
        read_chunk, chunk_shape = (shape[:rank] for shape in chosen_chunks(layout, domain))
        grid = grid or RegularGrid(chunk_shape=chunk_shape)
    else:
        read_chunk = chunk_shape = grid.common
        if shards or (stated.codecs is None and _asks_for_read_chunks(layout, rank)):
            read_chunk = chosen_read_chunk(layout, domain, (*chunk_shape, *inner))[:rank]
    if read_chunk != chunk_shape and not shards:
        codecs = inside_shards(codecs)
    order = chosen_inner_order(layout)
    if order is not None and inner:
        order = _outer_order(order, rank, hard=layout.inner_order is not None)
    return completed(codecs, read_chunk, order), grid


def _asks_for_read_chunks(layout: ChunkLayout, rank: int) -> bool:
    """Whether anything is asked of read chunks in the array's own dimensions."""
    asked = layout.constraints.read_chunk
    sizes = () if asked.shape is None else asked.shape.values[:rank]
    return any(sizes) or not replace(asked, shape=None).is_empty


def _outer_order(order: tuple[int, ...], rank: int, *, hard: bool) -> tuple[int, ...] | None:
    """The order of the array's own dimensions; those inside an element come behind, in order."""
    behind = tuple(range(rank, len(order)))
    if order[rank:] == behind:
        return order[:rank]
    if not hard:
        return None
    raise SpecError(
        f"chunk_layout.inner_order: {list(order)} is not possible: the dimensions inside an "
        f"element, {list(behind)}, come last"
    )


def _fill_value(
    asked: Schema, stated: MetadataConstraints, stored: StoredType, view: ElementView
) -> NDArray[np.generic]:
    """One whole element."""
    wanted = asked_fill_value(asked, view)
    if stated.fill_value is None:
        return default_fill_value(stored) if wanted is None else _element(stored, view, wanted)
    if wanted is not None and not view.inner_shape:
        seen = seen_fill_value(stored, view, stated.fill_value)
        if not same_bits(wanted, seen):
            raise MismatchError(
                f"fill_value: the schema says {wanted.item()!r}, the metadata {seen.item()!r}"
            )
    return stated.fill_value


def _element(
    stored: StoredType, view: ElementView, wanted: NDArray[np.generic]
) -> NDArray[np.generic]:
    """The element of which a value is seen."""
    if stored.stored.hasobject:
        return wanted
    if view.size_bytes != stored.size_bytes:
        raise SpecError(
            "a schema speaks of one field, but the fill value is of all of them: state it in "
            '"metadata": {"fill_value": {…}}'
        )
    while wanted.ndim > len(view.inner_shape) and wanted.shape[0] == 1:
        wanted = wanted[0]
    try:
        full = np.broadcast_to(wanted, view.inner_shape)
    except ValueError:
        raise SpecError(
            f"a fill value of shape {list(wanted.shape)} does not broadcast to the data type's "
            f"inner shape {list(view.inner_shape)}"
        ) from None
    return np.frombuffer(np.ascontiguousarray(full).tobytes(), stored.stored).reshape(()).copy()


def _names(stated: MetadataConstraints, domain: IndexDomain, rank: int) -> tuple[str | None, ...]:
    labels = domain.labels[:rank]
    if stated.dimension_names is None:
        return tuple(label or None for label in labels)
    for dimension, label in enumerate(labels):
        if label and label != stated.dimension_names[dimension]:
            raise MismatchError(
                f'dimension {dimension}: the schema names it "{label}", the metadata '
                "leaves it unnamed"
            )
    return stated.dimension_names


def _attributes(schema: Schema, stated: MetadataConstraints, rank: int) -> Mapping[str, object]:
    units = (schema.dimension_units or ())[:rank]
    if not any(unit is not None for unit in units):
        return without_empty_units(stated.attributes)
    return with_units(stated.attributes, units)
