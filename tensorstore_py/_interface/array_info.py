"""What a format says of an array, in the terms that all formats share, and a schema against it.

The metadata document of an array and the schema of a spec speak of the same things. `ArrayInfo` is
what the document says of them, whole or with parts left open:

    constraints on the document --> ArrayInfo, partly open --constrain--> all that a spec says
                                        | complete
                                        v
    a new document <------------- ArrayInfo, whole ---------> schema, domain, check
                                        ^
    a stored document ------------------+

Coordinates are the array's own, with zero origin. What is chosen satisfies every hard constraint;
what cannot be satisfied is an error that names the part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tensorstore_py._index import IndexDomain, array_domain, domain_of
from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.choose_chunks import common_chunks, nested_chunks
from tensorstore_py._spec.chunk_layout import ChunkLayout, with_array_layout
from tensorstore_py._spec.fill_value import fill_value_from_json
from tensorstore_py._spec.json_value import freeze
from tensorstore_py._spec.layout_constraints import NO_LAYOUT
from tensorstore_py._spec.schema import Schema, constrained
from tensorstore_py._spec.schema_constraints import NO_SCHEMA, SchemaConstraints, merge_domains
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tensorstore_py._spec.codec_spec import CodecSpec
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.units import Unit

__all__ = ["ArrayInfo", "asked_fill_value", "check_schema", "says_type_and_rank"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ArrayInfo:
    """See the head of this file. None is what is left open.

    Sequences are of the array's own dimensions, which chunks divide; those inside an element come
    behind them, are never divided, and cannot be resized.

    Attributes:
        codec: how a chunk is encoded, as a schema says it.
        data_type: element type as users see it.
        shape: extents.
        labels: labels, "" for none; those of dimensions inside an element may be among them.
        rank: number of dimensions, where no other member tells it.
        inner: extents of the dimensions inside an element.
        read_chunk: shape of what is read at least; None in a dimension where there is not one size.
        write_chunk: shape of what is written at least; likewise.
        inner_order: dimensions from outermost to innermost in a chunk.
        fill_value: what missing chunks hold.
        units: units of the dimensions.
        one_grid: read and write chunks are the same thing, so each constraint holds for both.
        resizable: whether its upper bounds can be changed.
        lenient: what a schema asks of chunks that cannot be had is refused by `complete` only.
    """

    codec: CodecSpec | None = None
    data_type: dtype | None = None
    shape: Sequence[int] | None = None
    labels: Sequence[str] | None = None
    rank: int | None = None
    inner: tuple[int, ...] = ()
    read_chunk: Sequence[int | None] | None = None
    write_chunk: Sequence[int | None] | None = None
    inner_order: tuple[int, ...] | None = None
    fill_value: NDArray[np.generic] | None = None
    units: Sequence[Unit | None] | None = None
    one_grid: bool = False
    resizable: bool = True
    lenient: bool = False

    def constrain(self, asked: Schema) -> Schema:
        """The constraints of a schema together with what is said here.

        Raises:
            MismatchError: they contradict each other; names the part.
            SpecError: the schema asks for what no format has.
        """
        inner = len(self.inner)
        known = constrained(asked.constraints, dtype=self.data_type, codec=self.codec)
        self._check_rank(known.rank)
        outer = self._rank
        known = constrained(
            known,
            rank=None if outer is None else outer + inner,
            dimension_units=_extended(self.units, [None] * inner),
        )
        if self.fill_value is not None:
            # A schema compares values, and NaN is not itself: compared by bits in `check`.
            known = constrained(replace(known, fill_value=None), fill_value=self.fill_value)
        if known.rank is None:
            return Schema.of(known)
        schema = Schema.of(known)
        layout, domain = self.layout(schema), self._known_domain(schema)
        return Schema.of(replace(known, chunk_layout=layout.constraints, domain=domain))

    def agrees_with(self, asked: Schema) -> bool:
        """Whether `constrain` is sure to accept a schema of data type and rank.

        So it is with what most specs say. Where it is not sure, `constrain` itself tells.
        """
        fill_value, rank = self.fill_value, self._rank
        if self.inner or not says_type_and_rank(asked.constraints):
            return False
        for wanted, stated in ((asked.dtype, self.data_type), (asked.rank, rank)):
            if wanted is not None and stated is not None and wanted != stated:
                return False
        if fill_value is not None and (fill_value.ndim or fill_value.dtype.kind not in "biuf"):
            return False
        if any(each is not None and len(each) != rank for each in (self.labels, self.units)):
            return False
        return not any(self.labels or ()) and all(
            sizes is None
            or (len(sizes) == rank and all(size is not None and size <= INFINITY for size in sizes))
            for sizes in (self.shape, self.read_chunk, self.write_chunk)
        )

    def layout(self, schema: Schema) -> ChunkLayout:
        """The chunk layout of a schema of known rank together with what is said here.

        Raises:
            MismatchError: hard constraints contradict each other.
            SpecError: the codec's blocks are constrained, which no format has.
        """
        rank = schema.rank
        assert rank is not None
        outer = rank - len(self.inner)
        asked = schema.chunk_layout
        read, write = self.read_chunk, self.write_chunk
        _check_sizes(asked, read, write)
        open_sizes = (None,) * outer if self.inner else None
        constraints = with_array_layout(
            asked.constraints,
            rank,
            write_chunk=_extended(write or open_sizes, self.inner),
            read_chunk=_extended(read or open_sizes, self.inner),
            inner_order=_extended(self.inner_order, range(outer, rank)),
        )
        if self.lenient:
            return ChunkLayout.of(constraints)
        codec_shape = constraints.codec_chunk.shape
        if codec_shape is not None and any(codec_shape.part(hard=True)):
            raise SpecError("codec_chunk: a shape is asked for, but the format has no such chunks")
        if not self.one_grid:
            return ChunkLayout.of(constraints)
        try:
            both = constraints.write_chunk.merged(constraints.read_chunk)
        except MismatchError as error:
            raise MismatchError(
                f"read and write chunks are the same here, but differ as asked: {error}"
            ) from None
        return ChunkLayout.of(replace(constraints, read_chunk=both, write_chunk=both))

    def complete(self, schema: Schema) -> ArrayInfo:
        """What is said of a new array, with what is left open chosen; the fill value stays as is.

        Args:
            schema: from `constrain`.

        Raises:
            SpecError: data type or domain is missing, or a constraint is not possible.
            MismatchError: constraints contradict each other.
        """
        data_type = self.chosen_type(schema)
        domain = schema.domain  # `constrain` has merged what is said here into it
        if domain is None or any(high > INFINITY for high in domain.exclusive_max):
            raise SpecError("domain must be specified, e.g. shape=[100, 200]")
        rank = domain.rank - len(self.inner)
        layout = (replace(self, lenient=False) if self.lenient else self).layout(schema)
        constraints = layout.constraints
        if constraints.read_chunk == constraints.write_chunk:
            read = write = common_chunks(constraints, domain)[1]
        else:
            read, write = nested_chunks(constraints.read_chunk, constraints.write_chunk, domain)
        units = schema.dimension_units
        return replace(
            self,
            data_type=data_type,
            shape=domain.shape[:rank],
            labels=domain.labels[:rank],
            read_chunk=read[:rank],
            write_chunk=write[:rank],
            inner_order=self._chosen_order(layout, rank),
            units=None if units is None else units[:rank],
        )

    def chosen_type(self, schema: Schema) -> dtype:
        """The data type of a new array.

        Raises:
            SpecError: none is given.
            MismatchError: two are given.
        """
        asked, stated = schema.dtype, self.data_type
        if asked is not None and stated is not None and asked != stated:
            raise MismatchError(f"dtype: the schema says {asked.name}, the metadata {stated.name}")
        chosen = stated if asked is None else asked
        if chosen is None:
            raise SpecError('dtype must be specified, e.g. dtype="uint16"')
        return chosen

    @property
    def domain(self) -> IndexDomain:
        """The domain of a whole array: resizable upper bounds are implicit."""
        assert self.shape is not None
        outer, inner = len(self.shape), len(self.inner)
        resizable = (self.resizable,) * outer + (False,) * inner
        return array_domain((*self.shape, *self.inner), resizable, self._labels(outer + inner))

    @property
    def chunk_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Read and write chunks of an array that has one size of each; 1 where it has several."""
        read, write = self.read_chunk or (), self.write_chunk or ()
        return tuple(size or 1 for size in read), tuple(size or 1 for size in write)

    def schema(self) -> Schema:
        """The schema of a whole array."""
        return self._schema(self.domain, self._whole_layout())

    def _whole_layout(self) -> ChunkLayout:
        """The chunk layout of a whole array."""
        assert self.shape is not None
        outer = len(self.shape)
        rank = outer + len(self.inner)
        order = range(outer) if self.inner_order is None else self.inner_order
        return ChunkLayout.of(
            with_array_layout(
                NO_LAYOUT,
                rank,
                write_chunk=_extended(self.write_chunk, self.inner),
                read_chunk=_extended(self.read_chunk, self.inner),
                inner_order=_extended(order, range(outer, rank)),
            )
        )

    def _schema(self, domain: IndexDomain, layout: ChunkLayout | None) -> Schema:
        """The schema of a whole array, with this of its layout."""
        units = _extended(self.units, [None] * len(self.inner))
        return Schema(
            dtype=self.data_type,
            rank=domain.rank,
            domain=domain,
            chunk_layout=layout,
            codec=self.codec,
            fill_value=self.fill_value,
            dimension_units=units if units and any(unit is not None for unit in units) else None,
        )

    def check(self, asked: Schema) -> None:
        """Whether a whole array is what a schema asks for; soft constraints never fail.

        Raises:
            MismatchError: it is not; names the part, what is stored and what was asked.
            SpecError: the fill value that is asked for is not representable.
        """
        # Most specs say nothing of chunks, and a layout takes long to make.
        plain = asked.constraints.chunk_layout.is_empty
        layout = None if plain else self._whole_layout()
        check_schema(asked, self._schema(self.domain, layout), self.inner)
        if layout is not None:
            _check_sizes(asked.chunk_layout, layout.read_chunk.shape, layout.write_chunk.shape)

    @property
    def _rank(self) -> int | None:
        """Number of the array's own dimensions, if a member tells."""
        members = (self.shape, self.write_chunk, self.labels, self.units)
        return next((len(each) for each in members if each is not None), self.rank)

    def _check_rank(self, asked: int | None) -> None:
        outer, inner = self._rank, len(self.inner)
        if asked is None:
            return
        if outer is not None and asked != outer + inner:
            raise MismatchError(
                f"rank: the schema says {asked}, but the metadata makes {outer + inner} dimensions "
                f"({outer} chunked, {inner} of the data type)"
            )
        if asked < inner:
            raise MismatchError(
                f"rank: the schema says {asked}, but the data type alone has {inner} dimensions"
            )

    def _known_domain(self, schema: Schema) -> IndexDomain | None:
        """The domain as far as it is known: zero lower bounds, upper ones infinite where unknown.

        Raises:
            MismatchError: bounds or labels contradict each other.
        """
        rank, inner = schema.rank, len(self.inner)
        if rank is None or (schema.domain is None and self.shape is None and self.labels is None):
            return None
        shape = _extended(self.shape, self.inner)
        ends = (INFINITY + 1,) * rank if shape is None else shape
        labels = self._labels(rank) or ("",) * rank
        merged = merge_domains(
            schema.domain, domain_of([(0, end, False, True) for end in ends], labels)
        )
        assert merged is not None
        stops = merged.exclusive_max
        for dimension, extent in enumerate(self.inner, rank - inner):
            if stops[dimension] not in (extent, INFINITY + 1):
                raise MismatchError(
                    f"domain: dimension {dimension} ends at {stops[dimension]}, but is inside an "
                    f"element of the data type, where it has {extent} positions"
                )
        outer = [(0, stop, False, self.resizable) for stop in stops[: rank - inner]]
        fixed = [(0, extent, False, False) for extent in self.inner]
        return domain_of([*outer, *fixed], merged.labels)

    def _labels(self, rank: int) -> tuple[str, ...] | None:
        """The labels of all dimensions."""
        labels = self.labels
        if labels is None or len(labels) == rank:
            return None if labels is None else tuple(labels)
        return (*labels, *[""] * len(self.inner))

    def _chosen_order(self, layout: ChunkLayout, rank: int) -> tuple[int, ...] | None:
        """The order of the array's own dimensions, hard or wished for; None if nothing is said."""
        hard = layout.inner_order
        order = layout.inner_order_soft_constraint if hard is None else hard
        if order is None:
            return None
        behind = tuple(range(rank, len(order)))
        if order[rank:] == behind:
            return order[:rank]
        if hard is None:
            return None
        raise SpecError(
            f"chunk_layout.inner_order: {list(order)} is not possible: the dimensions inside an "
            f"element, {list(behind)}, come last"
        )


_TEXT: dict[str, type] = {"ustring": str, "string": bytes}


def asked_fill_value(
    asked: Schema, data_type: dtype, inner: Sequence[int] = ()
) -> NDArray[np.generic] | None:
    """A schema's fill value in an array's type; None if it asks for none.

    Args:
        asked: the schema constraints.
        data_type: of the array.
        inner: extents inside an element, over which it may vary.

    Raises:
        SpecError: it is not representable, or varies over the array.
    """
    wanted = asked.fill_value
    if wanted is None:
        return None
    if not wanted.ndim:
        return _converted(wanted, data_type)
    if not inner:
        raise SpecError(
            f"fill_value: one scalar is possible, but an array of shape {list(wanted.shape)} "
            "is asked for"
        )
    converted = np.empty(wanted.shape, data_type.array_dtype)
    for place in np.ndindex(wanted.shape):
        # Through a schema, which makes an array of any element, also of one that is a list.
        element = Schema(fill_value=wanted[place]).fill_value
        assert element is not None
        converted[place] = _converted(element, data_type)
    return converted


def _converted(value: NDArray[np.generic], data_type: dtype) -> NDArray[np.generic]:
    """A fill value of rank 0 in a type."""
    target = data_type.array_dtype
    if value.dtype == target and isinstance(value.item(), _TEXT.get(data_type.name, object)):
        return value
    if value.dtype == object:
        # It was given as JSON, before the data type was known.
        try:
            return fill_value_from_json(freeze(value.item()), data_type)
        except SpecError as error:
            raise error.inside("fill_value") from None
    if _loses(value, data_type):
        raise SpecError(f"fill_value: {value.item()!r} is not a value of type {data_type.name}")
    with np.errstate(over="ignore"):
        return value.astype(target)


def check_schema(asked: Schema, found: Schema, inner: Sequence[int] = ()) -> None:
    """Whether an array's schema satisfies constraints; soft ones never fail.

    Args:
        asked: the constraints.
        found: the array's schema.
        inner: extents inside an element, over which a fill value may vary.

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
    for part in _compared(asked):
        wanted, stored = getattr(asked, part), getattr(found, part)
        if wanted is None or stored is None:
            continue
        try:
            constrained(constrained(NO_SCHEMA, **{part: stored}), **{part: wanted})
        except ValueError as error:
            raise MismatchError(f"{part}: {stored!r} and {wanted!r} contradict: {error}") from None
    fill_value, stored_fill = asked_fill_value(asked, found.dtype, inner), found.fill_value
    if fill_value is None or stored_fill is None:
        return
    if not _same_elements(fill_value, stored_fill, inner):
        raise MismatchError(
            f"fill_value: stored is {stored_fill.tolist()!r}, asked for was {fill_value.tolist()!r}"
        )


def says_type_and_rank(asked: SchemaConstraints) -> bool:
    """Whether no more is asked for than a data type and a number of dimensions.

    Example:
        >>> says_type_and_rank(Schema(dtype="int8", rank=2).constraints)
        True
    """
    return (
        asked.domain is None
        and asked.codec is None
        and asked.fill_value is None
        and asked.dimension_units is None
        and (asked.chunk_layout is NO_LAYOUT or asked.chunk_layout.is_empty)
    )


def _compared(asked: Schema) -> Iterator[str]:
    """The parts of which more than the number of dimensions is asked, and that are merged."""
    constraints = asked.constraints
    if constraints.domain is not None:
        yield "domain"
    if not constraints.chunk_layout.is_empty:
        yield "chunk_layout"
    if constraints.codec is not None:
        yield "codec"
    if any(unit is not None for unit in constraints.dimension_units or ()):
        yield "dimension_units"


def _extended(outer: Iterable[T] | None, inner: Iterable[T]) -> tuple[T, ...] | None:
    """What is said of the array's own dimensions and of those inside; None if nothing is said."""
    return None if outer is None else (*outer, *inner)


def _check_sizes(
    asked: ChunkLayout, read: Sequence[int | None] | None, write: Sequence[int | None] | None
) -> None:
    """Refuse sizes that are asked for where chunks have several, which are None here."""
    for name, sizes in (("write_chunk", write), ("read_chunk", read)):
        if sizes is None or None not in sizes:
            continue
        wanted = getattr(asked, name).shape or ()
        for dim, (size, present) in enumerate(zip(wanted, sizes, strict=False)):
            if size is not None and present is None:
                raise MismatchError(
                    f"chunk_layout.{name}: chunks of {size} are asked for in dimension {dim}, "
                    "but the grid is rectilinear and has chunks of several sizes there"
                )


def _same_elements(
    mine: NDArray[np.generic], theirs: NDArray[np.generic], shape: Sequence[int]
) -> bool:
    """Bit for bit; Python objects by value, since their bits are addresses."""
    shape = tuple(shape) if mine.ndim or theirs.ndim else ()
    try:
        first, second = np.broadcast_to(mine, shape), np.broadcast_to(theirs, shape)
    except ValueError:  # of another shape
        return False
    if mine.dtype.hasobject or theirs.dtype.hasobject:
        return bool(np.array_equal(first, second))
    return first.tobytes() == second.astype(mine.dtype).tobytes()


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
