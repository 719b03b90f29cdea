"""Metadata and schema against each other: what metadata says in a schema's terms, and conflicts.

`known_schema` joins what a spec says in both ways before anything is open; `metadata_schema` is
all of an array; `check_asked` compares the two. The format has no place for a fill value, so that
no schema may ask for one, and none states one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorstore_py.drivers.n5.codec_spec import N5CodecSpec
from tensorstore_py.drivers.n5.metadata import (
    Metadata,
    MetadataConstraints,
    check_data_type,
    units_of,
)
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ChunkLayout,
    CodecModel,
    CodecSpec,
    IndexDomain,
    Schema,
    Unit,
    array_schema,
    check_schema,
    known_domain,
    layout_constraints,
)

__all__ = [
    "array_domain",
    "block_layout",
    "check_asked",
    "check_fill_value",
    "known_schema",
    "metadata_schema",
]


def known_schema(asked: Schema, stated: MetadataConstraints) -> Schema:
    """Everything that a spec says, as one schema.

    Args:
        asked: its schema constraints.
        stated: its metadata constraints.

    Raises:
        SpecError: the format has no such data type.
        MismatchError: they contradict each other; names the part.
    """
    schema = Schema.of(replace(asked.constraints, fill_value=None))
    schema.update(
        dtype=stated.data_type,
        rank=stated.rank,
        codec=_codec(stated.compression),
        dimension_units=units_of(stated.units, stated.resolution),
    )
    if schema.dtype is not None:
        check_data_type(schema.dtype)
    _check_resolution(schema.dimension_units, stated)
    rank = schema.rank
    if rank is None:
        return schema
    layout = ChunkLayout(schema.chunk_layout)
    layout.update(
        rank=rank,
        grid_origin=[0] * rank,
        inner_order=_inner_order(rank),
        read_chunk_shape=stated.block_size,
        write_chunk_shape=stated.block_size,
    )
    # There is but one domain without dimensions.
    domain = known_domain(schema, stated.dimensions if rank else (), stated.axes)
    return Schema.of(replace(schema.constraints, chunk_layout=layout.constraints, domain=domain))


def block_layout(schema: Schema, rank: int) -> ChunkLayout:
    """What a schema asks of the blocks, which are what is read and what is written.

    Raises:
        MismatchError: it asks for other chunks to read than to write.
        SpecError: it asks for chunks inside the blocks.
    """
    return layout_constraints(schema, rank, one_grid=True)


def metadata_schema(metadata: Metadata) -> Schema:
    """The complete schema of an array."""
    return array_schema(
        data_type=metadata.data_type,
        domain=array_domain(metadata),
        read_chunk=metadata.block_size,
        write_chunk=metadata.block_size,
        inner_order=_inner_order(len(metadata.dimensions)),
        codec=_codec(metadata.compression),
        fill_value=None,
        units=units_of(metadata.units, metadata.resolution),
    )


def array_domain(metadata: Metadata) -> IndexDomain:
    """The domain of an array: zero origin, resizable upper bounds, labels."""
    return IndexDomain(
        shape=metadata.dimensions,
        implicit_upper_bounds=[True] * len(metadata.dimensions),
        labels=metadata.axes,
    )


def check_asked(asked: Schema, metadata: Metadata) -> None:
    """Whether an array is what a schema asks for.

    Raises:
        SpecError: it asks for a fill value.
        MismatchError: the array is not; names the part.
    """
    check_fill_value(asked)
    found = metadata_schema(metadata)
    check_schema(asked, found)
    stored = found.dimension_units or (None,) * len(metadata.dimensions)
    for dimension, unit in enumerate(asked.dimension_units or ()):
        if unit is not None and unit != stored[dimension]:
            raise MismatchError(
                f"dimension_units: the stored unit of dimension {dimension} is "
                f'{stored[dimension] or "not stated"}, asked for was "{unit}"'
            )


def check_fill_value(asked: Schema) -> None:
    """Whether a fill value is asked for.

    Raises:
        SpecError: it is.
    """
    if asked.fill_value is not None:
        raise SpecError(
            "fill_value: n5 cannot store one, chunks that are missing read as 0: leave it out, "
            "or use driver zarr3"
        )


def _check_resolution(units: Sequence[Unit | None] | None, stated: MetadataConstraints) -> None:
    """Without base units the metadata has no units, but its multipliers hold all the same."""
    if units is None or stated.resolution is None:
        return
    for dimension, (unit, step) in enumerate(zip(units, stated.resolution, strict=True)):
        if unit is not None and unit.multiplier != step:
            raise MismatchError(
                f'dimension_units: the schema asks for "{unit}" in dimension {dimension}, but '
                f'the metadata\'s "resolution" is {step:g}'
            )


def _inner_order(rank: int) -> tuple[int, ...]:
    return tuple(reversed(range(rank)))


def _codec(compression: CodecModel | None) -> CodecSpec:
    return CodecSpec(N5CodecSpec().replace(compression=compression))
