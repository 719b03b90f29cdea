"""Metadata and schema against each other: what metadata says in a schema's terms, and conflicts.

`known_schema` joins what a spec says in both ways before anything is open; `metadata_schema` is
all of an array; `check_metadata` compares a document with what a spec's `metadata` says of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tensorstore_py.drivers.zarr3.chain import (
    chain_layout,
    check_codecs,
    is_sharded,
    stored_endian,
)
from tensorstore_py.drivers.zarr3.codec_spec import Zarr3CodecSpec
from tensorstore_py.drivers.zarr3.fill_value import same_bits, seen_fill_value
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    ChunkLayout,
    CodecSpec,
    IndexDomain,
    Schema,
    array_schema,
    check_schema,
    chosen_fill_value,
    describe,
    known_domain,
    layout_constraints,
    same_json,
)
from tensorstore_py.plugin import inf as INFINITY  # noqa: N812 - a constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tensorstore_py.drivers.zarr3.metadata import Metadata, MetadataConstraints
    from tensorstore_py.plugin import CodecModel, ElementView

__all__ = [
    "array_domain",
    "asked_fill_value",
    "check_asked",
    "check_metadata",
    "dimension_labels",
    "fixed_inside",
    "known_schema",
    "metadata_schema",
    "stated_labels",
    "stated_layout",
]

T = TypeVar("T")


def known_schema(asked: Schema, stated: MetadataConstraints, view: ElementView | None) -> Schema:
    """Everything that a spec says, as one schema.

    Args:
        asked: its schema constraints.
        stated: its metadata constraints.
        view: what is opened of each element; None while that is unknown.

    Raises:
        MismatchError: they contradict each other; names the part.
    """
    inner = () if view is None else view.inner_shape
    schema = asked.copy()
    schema.update(
        dtype=None if view is None else view.data_type,
        rank=None if stated.rank is None else stated.rank + len(inner),
        codec=codec_of(stated.codecs),
        dimension_units=_with_inner(stated.units, (None,) * len(inner)),
    )
    if stated.fill_value is not None and stated.data_type is not None and view is not None:
        # A schema compares values, and NaN is not itself; `new_metadata` compares bits.
        schema = Schema.of(replace(schema.constraints, fill_value=None))
        endian = stored_endian(stated.codecs or ())
        schema.update(fill_value=seen_fill_value(stated.data_type, view, stated.fill_value, endian))
    rank = schema.rank
    if rank is None:
        return schema
    if rank < len(inner):
        raise MismatchError(
            f"rank: the schema says {rank}, but the data type alone has {len(inner)} dimensions"
        )
    layout = stated_layout(schema, stated, rank, inner)
    domain = known_domain(
        schema, _with_inner(stated.shape, inner), stated_labels(stated, len(inner))
    )
    if domain is not None and inner:
        domain = fixed_inside(domain, inner)
    return Schema.of(replace(schema.constraints, chunk_layout=layout.constraints, domain=domain))


def stated_layout(
    schema: Schema,
    stated: MetadataConstraints,
    rank: int,
    inner: tuple[int, ...],
    *,
    one_grid: bool = False,
) -> ChunkLayout:
    """The schema's layout and what the metadata says of it.

    Args:
        schema: the schema.
        stated: the metadata constraints.
        rank: of the array, with the dimensions inside an element.
        inner: extents inside an element, which no chunk cuts.
        one_grid: as for `layout_constraints`.
    """
    outer = rank - len(inner)
    order: tuple[int, ...] | None = None
    read: Sequence[int | None] | None = None
    write = None if stated.chunk_grid is None else stated.chunk_grid.shape
    if stated.codecs is not None:
        order, read = chain_layout(stated.codecs, outer)
        if not is_sharded(stated.codecs):
            read = write
    check_sizes(schema.chunk_layout, read, write)
    anything = (None,) * outer if inner else None
    return layout_constraints(
        schema,
        rank,
        read_chunk=_with_inner(read or anything, inner),
        write_chunk=_with_inner(write or anything, inner),
        inner_order=_with_inner(order, range(outer, rank)),
        one_grid=one_grid,
    )


def metadata_schema(metadata: Metadata, view: ElementView) -> Schema:
    """The complete schema of an array, as far as its elements are opened.

    Raises:
        SpecError: a codec stands in the wrong place, or is for another rank.
    """
    rank, inner = metadata.rank, view.inner_shape
    order, read = chain_layout(metadata.codecs, rank)
    order = tuple(range(rank)) if order is None else order
    endian = stored_endian(metadata.codecs)
    return array_schema(
        data_type=view.data_type,
        domain=array_domain(metadata, inner),
        read_chunk=(*(metadata.chunk_shape if read is None else read), *inner),
        write_chunk=(*metadata.chunk_shape, *inner),
        inner_order=(*order, *range(rank, rank + len(inner))),
        codec=codec_of(metadata.codecs),
        fill_value=seen_fill_value(metadata.data_type, view, metadata.fill_value, endian),
        units=_with_inner(metadata.constraints.units, (None,) * len(inner)),
    )


def array_domain(metadata: Metadata, inner: tuple[int, ...] = ()) -> IndexDomain:
    """The domain of an array: zero origin, resizable upper bounds, labels where usable.

    Args:
        metadata: the document.
        inner: extents inside an element, which cannot be resized.
    """
    labels = dimension_labels(metadata.dimension_names)
    return IndexDomain(
        inclusive_min=[0] * (metadata.rank + len(inner)),
        exclusive_max=(*metadata.shape, *inner),
        implicit_upper_bounds=[True] * metadata.rank + [False] * len(inner),
        labels=_with_inner(labels, ("",) * len(inner)),
    )


def fixed_inside(domain: IndexDomain, inner: tuple[int, ...]) -> IndexDomain:
    """The domain with the dimensions inside an element, which cannot be resized.

    Raises:
        MismatchError: it has other extents there.
    """
    outer = domain.rank - len(inner)
    for dimension, extent in enumerate(inner, outer):
        stop = domain.exclusive_max[dimension]
        if stop not in (extent, INFINITY + 1):
            raise MismatchError(
                f"domain: dimension {dimension} ends at {stop}, but is inside an element of the "
                f"data type, where it has {extent} positions"
            )
    return IndexDomain(
        inclusive_min=domain.inclusive_min,
        exclusive_max=(*domain.exclusive_max[:outer], *inner),
        implicit_upper_bounds=[True] * outer + [False] * len(inner),
        labels=domain.labels,
    )


def stated_labels(stated: MetadataConstraints, inner_rank: int) -> tuple[str, ...] | None:
    """The labels that metadata constraints state, with those of dimensions inside an element."""
    return _with_inner(dimension_labels(stated.dimension_names), ("",) * inner_rank)


def check_asked(asked: Schema, metadata: Metadata, view: ElementView) -> None:
    """Whether an array is what a schema asks for.

    Raises:
        MismatchError: it is not.
    """
    found = metadata_schema(metadata, view)
    if view.inner_shape and asked.fill_value is not None:
        wanted = asked_fill_value(asked, view)
        stored = found.fill_value
        assert wanted is not None
        assert stored is not None
        if (
            np.broadcast_to(wanted, view.inner_shape).tolist()
            != np.broadcast_to(stored, view.inner_shape).tolist()
        ):
            raise MismatchError(
                f"fill_value: stored is {stored.tolist()!r}, asked for was {wanted.tolist()!r}"
            )
        asked = Schema.of(replace(asked.constraints, fill_value=None))
    check_schema(asked, found)
    layout = found.chunk_layout
    check_sizes(asked.chunk_layout, layout.read_chunk.shape, layout.write_chunk.shape)


def asked_fill_value(asked: Schema, view: ElementView) -> NDArray[np.generic] | None:
    """The schema's fill value in the array's type; it may vary over an element's dimensions.

    Raises:
        SpecError: it is not representable, or varies over the array.
    """
    wanted = asked.fill_value
    if wanted is None or not wanted.ndim or not view.inner_shape:
        return chosen_fill_value(asked, view.data_type)
    converted = np.empty(wanted.shape, view.native)
    for place in np.ndindex(wanted.shape):
        converted[place] = chosen_fill_value(Schema(fill_value=wanted[place]), view.data_type)
    return converted


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


def check_sizes(
    asked: ChunkLayout, read: Sequence[int | None] | None, write: Sequence[int | None] | None
) -> None:
    """Whether sizes of chunks are asked for only where there is one size.

    Args:
        asked: constraints of a schema.
        read: sizes of the read chunks, None where there is not one; None if all is open.
        write: likewise.

    Raises:
        MismatchError: names the kind of chunk, the dimension and the size.
    """
    for name, sizes in (("write_chunk", write), ("read_chunk", read)):
        wanted = getattr(asked, name).shape or ()
        for dim, (size, present) in enumerate(zip(wanted, sizes or (), strict=False)):
            if size is not None and present is None:
                raise MismatchError(
                    f"chunk_layout.{name}: chunks of {size} are asked for in dimension {dim}, "
                    "but the grid is rectilinear and has chunks of several sizes there"
                )


def check_metadata(stated: MetadataConstraints, found: Metadata) -> None:
    """Whether a document satisfies a spec's `metadata` member.

    Raises:
        MismatchError: it does not; names the member, what is stored and what was asked.
    """
    asked, stored = stated.to_json(), found.constraints.to_json()
    same = _same_elements(stated, found)
    if stated.chunk_grid is not None and stated.chunk_grid.cuts_like(found.chunk_grid):
        del asked["chunk_grid"]  # whatever it is called
    for name in asked:
        if name not in ("attributes", "codecs", *same) and asked[name] != stored.get(name):
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
        elif name not in found.attributes or not same_json(present, value):
            raise _mismatch(f"attributes.{name}", present, value)


def _with_inner(outer: Sequence[T] | None, inner: Iterable[T]) -> tuple[T, ...] | None:
    """What is said of the array's own dimensions and of those behind; None if nothing is said."""
    return None if outer is None else (*outer, *inner)


def _same_elements(stated: MetadataConstraints, found: Metadata) -> list[str]:
    """Members of which the same is said in another form, as by another name of a data type."""
    wanted, stored = stated.data_type, found.data_type
    if wanted is None or wanted.stored != stored.stored or wanted.view() != stored.view():
        return []
    fill_value = stated.fill_value
    same = fill_value is not None and same_bits(fill_value, found.fill_value)
    return ["data_type", "fill_value"] if same else ["data_type"]


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
