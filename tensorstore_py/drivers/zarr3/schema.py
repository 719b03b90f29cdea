"""Metadata and schema against each other: what metadata says in a schema's terms, and conflicts.

`known_schema` joins what a spec says in both ways before anything is open; `metadata_schema` is
all of an array; `check_metadata` compares a document with what a spec's `metadata` says of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tensorstore_py.drivers.zarr3.chain import chain_layout, check_codecs, is_sharded
from tensorstore_py.drivers.zarr3.codec_spec import Zarr3CodecSpec
from tensorstore_py.drivers.zarr3.data_type import check_data_type
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ChunkLayout,
    CodecSpec,
    IndexDomain,
    Schema,
    array_schema,
    describe,
    known_domain,
    layout_constraints,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py.drivers.zarr3.metadata import Metadata, MetadataConstraints
    from tensorstore_py.plugin import CodecModel

__all__ = ["check_metadata", "dimension_labels", "known_schema", "metadata_schema"]


def known_schema(asked: Schema, stated: MetadataConstraints) -> Schema:
    """Everything that a spec says, as one schema.

    Args:
        asked: its schema constraints.
        stated: its metadata constraints.

    Raises:
        MismatchError: they contradict each other; names the part.
        SpecError: the format has no such data type.
    """
    schema = asked.copy()
    schema.update(
        dtype=stated.data_type,
        rank=stated.rank,
        codec=codec_of(stated.codecs),
        dimension_units=stated.units,
    )
    if stated.fill_value is not None:
        # A schema compares values, and NaN is not itself; `new_metadata` compares bits.
        schema = Schema.of(replace(schema.constraints, fill_value=None))
        schema.update(fill_value=stated.fill_value)
    if schema.dtype is not None:
        check_data_type(schema.dtype)
    rank = schema.rank
    if rank is None:
        return schema
    layout = stated_layout(schema, stated, rank)
    domain = known_domain(schema, stated.shape, dimension_labels(stated.dimension_names))
    return Schema.of(replace(schema.constraints, chunk_layout=layout.constraints, domain=domain))


def stated_layout(
    schema: Schema, stated: MetadataConstraints, rank: int, *, one_grid: bool = False
) -> ChunkLayout:
    """The schema's layout and what the metadata says of it; `one_grid` as `layout_constraints`."""
    order: tuple[int, ...] | None = None
    read: tuple[int, ...] | None = None
    if stated.codecs is not None:
        order, read = chain_layout(stated.codecs, rank)
        if not is_sharded(stated.codecs):
            read = stated.chunk_shape
    return layout_constraints(
        schema,
        rank,
        read_chunk=read,
        write_chunk=stated.chunk_shape,
        inner_order=order,
        one_grid=one_grid,
    )


def metadata_schema(metadata: Metadata) -> Schema:
    """The complete schema of an array.

    Raises:
        SpecError: a codec stands in the wrong place, or is for another rank.
    """
    rank = metadata.rank
    order, read = chain_layout(metadata.codecs, rank)
    return array_schema(
        data_type=metadata.data_type,
        domain=array_domain(metadata),
        read_chunk=metadata.chunk_shape if read is None else read,
        write_chunk=metadata.chunk_shape,
        inner_order=tuple(range(rank)) if order is None else order,
        codec=codec_of(metadata.codecs),
        fill_value=metadata.fill_value,
        units=metadata.constraints.units,
    )


def array_domain(metadata: Metadata) -> IndexDomain:
    """The domain of an array: zero origin, resizable upper bounds, labels where usable."""
    return IndexDomain(
        inclusive_min=[0] * metadata.rank,
        exclusive_max=metadata.shape,
        implicit_upper_bounds=[True] * metadata.rank,
        labels=dimension_labels(metadata.dimension_names),
    )


def dimension_labels(names: Sequence[str | None] | None) -> list[str] | None:
    """Names as labels; None if there are none, or one name stands for two dimensions."""
    if names is None:
        return None
    labels = [name or "" for name in names]
    given = [label for label in labels if label]
    return labels if len(set(given)) == len(given) else None


def codec_of(codecs: Sequence[CodecModel] | None) -> CodecSpec:
    """Codecs in a schema's terms; None is a codec of this format of which nothing is known."""
    return CodecSpec(Zarr3CodecSpec().replace(codecs=None if codecs is None else tuple(codecs)))


def check_metadata(stated: MetadataConstraints, found: Metadata) -> None:
    """Whether a document satisfies a spec's `metadata` member.

    Raises:
        MismatchError: it does not; names the member, what is stored and what was asked.
    """
    asked, stored = stated.to_json(), found.constraints.to_json()
    for name in asked:
        if name not in ("attributes", "codecs") and asked[name] != stored.get(name):
            raise _mismatch(name, stored.get(name), asked[name])
    if stated.codecs is not None:
        try:
            check_codecs(found.codecs, stated.codecs)
        except (MismatchError, SpecError) as error:
            raise MismatchError(
                f"{_mismatch('codecs', stored['codecs'], asked['codecs'])}: {error}"
            ) from None
    for name, value in stated.attributes.items():
        present = found.attributes.get(name)
        if name == "dimension_units":
            _check_units(stated, found)
        elif name not in found.attributes or present != value:
            raise _mismatch(f"attributes.{name}", present, value)


def _check_units(stated: MetadataConstraints, found: Metadata) -> None:
    asked, stored = stated.units, found.constraints.units
    assert asked is not None
    for dimension, unit in enumerate(asked):
        present = None if stored is None else stored[dimension]
        if unit is not None and unit != present:
            path = f"attributes.dimension_units[{dimension}]"
            raise _mismatch(path, None if present is None else str(present), str(unit))


def _mismatch(name: str, stored: object, asked: object) -> MismatchError:
    return MismatchError(
        f'metadata member "{name}": stored is {describe(stored)}, asked for was {describe(asked)}'
    )
