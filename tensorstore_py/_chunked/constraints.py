"""What a new array comes to when several members ask for parts of it, and whether a found one fits.

Every chunked format gets its data type, domain, chunk shapes and fill value from the same two
sources: the schema (with `dtype` and `rank`), and the format's own metadata member. Here is what
does not depend on the format, as pure functions in the array's own coordinates (zero origin).
Invariant: what a function returns satisfies every hard constraint that it was given; what cannot
be satisfied is an error that names the part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._index import IndexDomain
from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.choose_chunks import (
    common_chunks,
    nested_chunks,
)
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.domain_merge import merge_domains
from tensorstore_py._spec.fill_value import fill_value_from_json
from tensorstore_py._spec.json_value import freeze
from tensorstore_py._spec.schema import Schema
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tensorstore_py._spec.codec_spec import CodecSpec
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.units import Unit

__all__ = [
    "array_schema",
    "check_schema",
    "chosen_chunks",
    "chosen_dtype",
    "chosen_fill_value",
    "chosen_inner_order",
    "chosen_read_chunk",
    "known_domain",
    "layout_constraints",
    "new_domain",
]


def chosen_dtype(schema: Schema, stated: dtype | None = None) -> dtype:
    """The data type of a new array.

    Args:
        schema: the schema constraints.
        stated: the metadata's data type, if it states one.

    Raises:
        SpecError: none is given.
        MismatchError: two are given.
    """
    asked = schema.dtype
    if asked is not None and stated is not None and asked != stated:
        raise MismatchError(f"dtype: the schema says {asked.name}, the metadata {stated.name}")
    chosen = stated if asked is None else asked
    if chosen is None:
        raise SpecError('dtype must be specified, e.g. dtype="uint16"')
    return chosen


def known_domain(
    schema: Schema, shape: Sequence[int] | None, labels: Sequence[str] | None = None
) -> IndexDomain | None:
    """The domain as far as it is known before anything is opened.

    Args:
        schema: the schema constraints.
        shape: the metadata's shape, if it states one.
        labels: the metadata's labels, if it states them.

    Returns:
        Zero lower bounds; upper bounds implicit, infinite where unknown. None if not even a part
        of a domain is given.

    Raises:
        MismatchError: ranks, bounds or labels contradict each other.
    """
    rank = _rank(schema, shape, labels)
    if rank is None or (schema.domain is None and shape is None and labels is None):
        return None
    stated = IndexDomain(
        inclusive_min=[0] * rank,
        exclusive_max=[INFINITY + 1] * rank if shape is None else shape,
        implicit_upper_bounds=[True] * rank,
        labels=labels,
    )
    merged = merge_domains(schema.domain, stated)
    assert merged is not None
    return merged.mark_bounds_implicit[False:True]


def new_domain(
    schema: Schema, shape: Sequence[int] | None, labels: Sequence[str] | None = None
) -> IndexDomain:
    """The domain of a new array; arguments as for `known_domain`.

    Raises:
        SpecError: it is not given, or not in every dimension.
        MismatchError: ranks, bounds or labels contradict each other.
    """
    domain = known_domain(schema, shape, labels)
    if domain is None or any(high > INFINITY for high in domain.exclusive_max):
        raise SpecError("domain must be specified, e.g. shape=[100, 200]")
    return domain


def layout_constraints(
    schema: Schema,
    rank: int,
    *,
    read_chunk: Sequence[int | None] | None = None,
    write_chunk: Sequence[int | None] | None = None,
    inner_order: Sequence[int] | None = None,
    one_grid: bool = False,
) -> ChunkLayout:
    """The schema's chunk layout together with what the metadata says, as hard constraints.

    Args:
        schema: the schema constraints.
        rank: of the array.
        read_chunk: the metadata's read chunk shape, if it states one.
        write_chunk: the metadata's write chunk shape, if it states one.
        inner_order: the metadata's order of dimensions inside a chunk, if it states one.
        one_grid: read and write chunks are the same thing, so each constraint holds for both.

    Raises:
        MismatchError: hard constraints contradict each other.
        SpecError: the codec's blocks are constrained, which no format here has.
    """
    layout = ChunkLayout(schema.chunk_layout)
    layout.update(
        rank=rank,
        write_chunk_shape=write_chunk,
        grid_origin=[0] * rank,
        read_chunk_shape=read_chunk,
        inner_order=inner_order,
    )
    codec_shape = layout.codec_chunk.shape
    if codec_shape is not None and any(codec_shape):
        raise SpecError("codec_chunk: a shape is asked for, but the format has no such chunks")
    if not one_grid:
        return layout
    constraints = layout.constraints
    try:
        both = constraints.write_chunk.merged(constraints.read_chunk)
    except MismatchError as error:
        raise MismatchError(
            f"read and write chunks are the same here, but differ as asked: {error}"
        ) from None
    return ChunkLayout.of(replace(constraints, read_chunk=both, write_chunk=both))


def chosen_chunks(
    layout: ChunkLayout, domain: IndexDomain
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of the read and the write chunks of a new array.

    Args:
        layout: from `layout_constraints`.
        domain: from `new_domain`.

    Raises:
        MismatchError: the read chunk cannot divide the write chunk.
        SpecError: a constraint is of another rank.
    """
    constraints = layout.constraints
    if constraints.read_chunk == constraints.write_chunk:
        shape = common_chunks(constraints, domain)[1]
        return shape, shape
    return nested_chunks(constraints.read_chunk, constraints.write_chunk, domain)


def chosen_read_chunk(
    layout: ChunkLayout, domain: IndexDomain, write_chunk: Sequence[int]
) -> tuple[int, ...]:
    """Shape of the read chunks where the write chunks are given.

    Args:
        layout: from `layout_constraints`; what it says of write chunks is of no account.
        domain: from `new_domain`.
        write_chunk: what they must divide.

    Raises:
        MismatchError: they cannot.
        SpecError: a constraint is of another rank.
    """
    given = ChunkLayout(write_chunk_shape=write_chunk).constraints.write_chunk
    return nested_chunks(layout.constraints.read_chunk, given, domain)[0]


def chosen_inner_order(layout: ChunkLayout) -> tuple[int, ...] | None:
    """The order of dimensions inside a chunk, hard or wished for; None if nothing is said."""
    if layout.inner_order is not None:
        return layout.inner_order
    return layout.inner_order_soft_constraint


_TEXT: dict[str, type] = {"ustring": str, "string": bytes}


def chosen_fill_value(schema: Schema, data_type: dtype) -> NDArray[np.generic] | None:
    """The schema's fill value as a scalar of the array's type; None if there is none.

    Raises:
        SpecError: it is not representable, or varies over the array.
    """
    asked = schema.fill_value
    if asked is None:
        return None
    if asked.ndim:
        raise SpecError(
            f"fill_value: one scalar is possible, but an array of shape {list(asked.shape)} "
            "is asked for"
        )
    target = data_type.array_dtype
    if asked.dtype == target and isinstance(asked.item(), _TEXT.get(data_type.name, object)):
        return asked
    if asked.dtype == object:
        # It was given as JSON, before the data type was known.
        try:
            return fill_value_from_json(freeze(asked.item()), data_type)
        except SpecError as error:
            raise error.inside("fill_value") from None
    if _loses(asked, data_type):
        raise SpecError(f"fill_value: {asked.item()!r} is not a value of type {data_type.name}")
    with np.errstate(over="ignore"):
        return asked.astype(target)


def array_schema(
    *,
    data_type: dtype,
    domain: IndexDomain,
    read_chunk: Sequence[int | None],
    write_chunk: Sequence[int | None],
    inner_order: Sequence[int],
    codec: CodecSpec,
    fill_value: NDArray[np.generic] | None,
    units: Sequence[Unit | None] | None = None,
) -> Schema:
    """The complete schema of an open array.

    Args:
        data_type: element type as users see it.
        domain: zero origin, resizable bounds implicit.
        read_chunk: shape of what is read at least; None where there is not one size.
        write_chunk: shape of what is written at least; likewise.
        inner_order: dimensions from outermost to innermost in a chunk.
        codec: how a chunk is encoded.
        fill_value: what missing chunks hold; None if the format does not say.
        units: units of the dimensions, if any is known.
    """
    rank = domain.rank
    layout = ChunkLayout(
        rank=rank,
        grid_origin=[0] * rank,
        write_chunk_shape=write_chunk,
        read_chunk_shape=read_chunk,
        inner_order=inner_order,
    )
    return Schema(
        dtype=data_type,
        rank=rank,
        domain=domain,
        chunk_layout=layout,
        codec=codec,
        fill_value=fill_value,
        dimension_units=units if units and any(unit is not None for unit in units) else None,
    )


def check_schema(asked: Schema, found: Schema) -> None:
    """Whether an existing array satisfies the constraints; soft ones never fail.

    Args:
        asked: the schema constraints.
        found: the array's schema.

    Raises:
        MismatchError: it does not; names the part, what is stored and what was asked.
    """
    assert found.dtype is not None
    if asked.dtype is not None and asked.dtype != found.dtype:
        raise MismatchError(
            f"dtype: the stored data type is {found.dtype.name}, asked for was {asked.dtype.name}"
        )
    if asked.rank is not None and asked.rank != found.rank:
        raise MismatchError(f"rank: the stored array has {found.rank}, asked for was {asked.rank}")
    for part in ("domain", "chunk_layout", "codec", "dimension_units"):
        wanted, stored = getattr(asked, part), getattr(found, part)
        if wanted is None or stored is None:
            continue
        both = Schema(**{part: stored})
        _merge(both, part, wanted)
    fill_value = chosen_fill_value(asked, found.dtype)
    stored_fill = found.fill_value
    if fill_value is None or stored_fill is None:
        return
    if not _same_values(fill_value, stored_fill.astype(fill_value.dtype)):
        raise MismatchError(
            f"fill_value: stored is {stored_fill.item()!r}, asked for was {fill_value.item()!r}"
        )


def _merge(schema: Schema, part: str, value: object) -> None:
    """Add a constraint to the schema, with an error that names the part and both values."""
    present = getattr(schema, part)
    try:
        schema.update(**{part: value})  # type: ignore[arg-type]
    except ValueError as error:
        raise MismatchError(f"{part}: {present!r} and {value!r} contradict: {error}") from None


def _rank(schema: Schema, shape: Sequence[int] | None, labels: Sequence[str] | None) -> int | None:
    """The rank that all sources agree on.

    Raises:
        MismatchError: they do not.
    """
    rank = schema.rank
    for name, stated in (("shape", shape), ("dimension names", labels)):
        if stated is None:
            continue
        if rank is not None and rank != len(stated):
            raise MismatchError(
                f"rank: the schema says {rank}, but the metadata has {name} {list(stated)}"
            )
        rank = len(stated)
    return rank


def _same_values(mine: NDArray[np.generic], theirs: NDArray[np.generic]) -> bool:
    """Bit for bit; Python objects by value, since their bits are addresses."""
    if mine.dtype.hasobject:
        return bool(np.array_equal(mine, theirs))
    return mine.tobytes() == theirs.tobytes()


def _loses(value: NDArray[np.generic], data_type: dtype) -> bool:
    """Whether the value has no counterpart in the type, rounding to its precision aside."""
    source, kind = value.dtype.kind, data_type.kind
    if value.dtype == data_type.array_dtype:
        return False
    if kind in "mMUSVO" or (source == "b") != (kind == "b"):
        return True
    if source == "c":
        return kind != "c"
    if kind in "iu":
        number = value.item()
        if isinstance(number, float) and not number.is_integer():
            return True
        converted = np.array(number).astype(data_type.array_dtype)
        return bool(converted.astype(object) != number)
    return False
