"""Metadata for a new array, from the schema and metadata constraints and the format's defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.drivers.zarr3.chain import Zarr3CodecSpec, completed, inside_shards, is_sharded
from tensorstore_py.drivers.zarr3.chunk_grid import RegularGrid
from tensorstore_py.drivers.zarr3.chunk_key_encoding import DefaultKeyEncoding
from tensorstore_py.drivers.zarr3.fill_value import default_fill_value, same_bits, seen_fill_value
from tensorstore_py.drivers.zarr3.members import with_units, without_empty_units
from tensorstore_py.drivers.zarr3.metadata import Zarr3Metadata, explicit_codecs
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import ChunkType
from tensorstore_py.plugin.driver import (
    ChunkLayout,
    Schema,
    resolve_chain,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tensorstore_py.drivers.zarr3.data_type import StoredType
    from tensorstore_py.drivers.zarr3.metadata import Zarr3Constraints
    from tensorstore_py.plugin.codec import CodecModel
    from tensorstore_py.plugin.driver import ArrayInfo, ChunkGridModel, ElementView

__all__ = ["new_document"]

_ANY_SIZE = ChunkLayout().constraints.read_chunk


def new_document(
    asked: Schema,
    schema: Schema,
    stated: Zarr3Constraints,
    stored: StoredType,
    view: ElementView,
) -> Zarr3Metadata:
    """The whole document that satisfies the constraints.

    Raises:
        SpecError: the domain is missing, or a value is not possible.
        MismatchError: the constraints contradict each other.
    """
    info = stated.info(view, schema.rank)
    info.chosen_type(asked)
    fill_value = _fill_value(asked, stated, stored, view)
    whole, codecs, grid = _encoding(schema, stated, info)
    shape = tuple(whole.shape or ())
    try:
        grid.check_reaches(shape)
    except SpecError as error:
        raise error.inside("metadata", "chunk_grid", "configuration") from None
    chunk = ChunkType(grid.largest, stored.stored, fill_value)
    return Zarr3Metadata(
        shape=shape,
        data_type=stored,
        chunk_grid=grid,
        chunk_key_encoding=stated.chunk_key_encoding or DefaultKeyEncoding(),
        fill_value=fill_value,
        codecs=explicit_codecs(resolve_chain(codecs, chunk)),
        dimension_names=_names(stated, whole),
        attributes=_attributes(whole, stated),
        extra=stated.extra,
    )


def _encoding(
    schema: Schema, stated: Zarr3Constraints, info: ArrayInfo
) -> tuple[ArrayInfo, tuple[CodecModel, ...], ChunkGridModel]:
    """The whole array, its codecs, and the chunk grid, both in the array's own dimensions."""
    assert schema.codec is not None
    model = schema.codec.model
    assert isinstance(model, Zarr3CodecSpec)
    codecs = model.codecs or ()
    shards, grid = is_sharded(codecs), stated.chunk_grid
    one_grid = stated.codecs is not None and not shards
    if grid is not None and not isinstance(grid, RegularGrid):
        # What is inside shards has to divide all of them.
        one_grid = not shards and (one_grid or not _asks_for_read_chunks(schema, info))
        layout = schema.chunk_layout.constraints
        asked = _ANY_SIZE if one_grid else layout.read_chunk
        layout = replace(layout, read_chunk=asked, write_chunk=_ANY_SIZE)
        schema = Schema.of(replace(schema.constraints, chunk_layout=layout))
        info = replace(info, read_chunk=None, write_chunk=grid.common)
    whole = replace(info, one_grid=one_grid).complete(schema)
    read, write = whole.chunk_shapes
    if read != write and not shards:
        codecs = inside_shards(codecs)
    codecs = completed(codecs, read, whole.inner_order)
    return whole, codecs, grid or RegularGrid(chunk_shape=write)


def _asks_for_read_chunks(schema: Schema, info: ArrayInfo) -> bool:
    """Whether anything is asked of read chunks in the array's own dimensions."""
    assert schema.rank is not None
    asked = info.layout(schema).constraints.read_chunk
    outer = schema.rank - len(info.inner)
    sizes = () if asked.shape is None else asked.shape.values[:outer]
    return any(sizes) or not replace(asked, shape=None).is_empty


def _fill_value(
    asked: Schema, stated: Zarr3Constraints, stored: StoredType, view: ElementView
) -> NDArray[np.generic]:
    """One whole element."""
    wanted = view.asked_fill_value(asked)
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
    data = np.ascontiguousarray(view.broadcast(wanted)).tobytes()
    return np.frombuffer(data, stored.stored).reshape(()).copy()


def _names(stated: Zarr3Constraints, whole: ArrayInfo) -> tuple[str | None, ...]:
    if stated.dimension_names is None:
        return tuple(label or None for label in whole.labels or ())
    for dimension, label in enumerate(whole.labels or ()):
        if label and label != stated.dimension_names[dimension]:
            raise MismatchError(
                f'dimension {dimension}: the schema names it "{label}", the metadata '
                "leaves it unnamed"
            )
    return stated.dimension_names


def _attributes(whole: ArrayInfo, stated: Zarr3Constraints) -> Mapping[str, object]:
    units = whole.units or ()
    if not any(unit is not None for unit in units):
        return without_empty_units(stated.attributes)
    return with_units(stated.attributes, units)
