"""`Schema`: the user's handle of what is asked of an array's form, or known of it.

`update` swaps one immutable `SchemaConstraints` for the next in a single assignment, so that
readers on other threads see either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from operator import index
from typing import (
    ClassVar,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
)

from tensorstore_py._display.codec_words import codec_words
from tensorstore_py._display.drawing import drawing
from tensorstore_py._display.geometry import Axis
from tensorstore_py._display.info import rows
from tensorstore_py._display.markup import element
from tensorstore_py._display.page import page
from tensorstore_py._display.public_name import public
from tensorstore_py._index import (
    Indexable,
    IndexDomain,
    IndexTransform,
    array_domain,
    identity,
)
from tensorstore_py._spec.arguments import ARGUMENTS, check_names, spelled_out
from tensorstore_py._spec.chunk_layout import ChunkLayout, per_dimension
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812 - a class
from tensorstore_py._spec.fill_value import FillValue, fill_value_like
from tensorstore_py._spec.json_value import freeze
from tensorstore_py._spec.model import MemberType
from tensorstore_py._spec.pretty import folded_json, pretty
from tensorstore_py._spec.schema_constraints import NO_SCHEMA, SchemaConstraints, Units
from tensorstore_py._spec.units import Unit, UnitLike
from tensorstore_py.errors import MismatchError, SpecError

__all__ = [
    "CodecLike",
    "DomainLike",
    "LayoutLike",
    "Schema",
    "SchemaArguments",
    "SchemaConstraints",
    "SchemaLike",
    "ShapeLike",
    "UnitsLike",
    "constrained",
    "schema_lines",
]

T = TypeVar("T")


DomainLike: TypeAlias = IndexDomain | Mapping[str, object]
ShapeLike: TypeAlias = Iterable[SupportsIndex]
LayoutLike: TypeAlias = ChunkLayout | Mapping[str, object]
#: A name, a codec or a list of them needs to be told the driver, which `ts.open` knows.
CodecLike: TypeAlias = CodecSpec | Mapping[str, object] | Sequence[object] | str
UnitsLike: TypeAlias = "Iterable[UnitLike | None]"
SchemaLike: TypeAlias = "Schema | Mapping[str, object]"


class SchemaArguments(TypedDict, total=False):
    """The keyword arguments of `Schema`, in the order in which they are applied."""

    rank: int | None
    dtype: DTypeLike | None
    domain: DomainLike | None
    shape: ShapeLike | None
    chunk_layout: LayoutLike | None
    codec: CodecSpec | Mapping[str, object] | None
    fill_value: object
    dimension_units: UnitsLike | None
    schema: SchemaLike | None


def _given(
    *,
    rank: int | None = None,
    dtype: DTypeLike | None = None,
    domain: DomainLike | None = None,
    shape: ShapeLike | None = None,
    chunk_layout: LayoutLike | None = None,
    codec: CodecSpec | Mapping[str, object] | None = None,
    fill_value: object = None,
    dimension_units: UnitsLike | None = None,
    schema: SchemaLike | None = None,
    **unknown: object,
) -> dict[str, object]:
    """The arguments, named one by one for editors (see `spelled_out`)."""
    found = locals()
    check_names("Schema", found.pop("unknown"), SchemaArguments.__annotations__, ARGUMENTS)
    return found


@public
class Schema(Indexable, MemberType):
    """Constraints on an array's form, independent of any driver.

    Args:
        json: the JSON object; alone, or leave it out and give the parts.
        rank: number of dimensions.
        dtype: element type.
        domain: bounds and labels, or their JSON.
        shape: extents of a domain that starts at zero.
        chunk_layout: layout constraints, or their JSON.
        codec: codec constraints, or their JSON with the driver.
        fill_value: a scalar, or an array that broadcasts to the domain.
        dimension_units: a unit (`"4nm"`, `(4, "nm")`, `Unit`) or None for each dimension.
        schema: another schema, or its JSON, whose constraints are added.

    Raises:
        SpecError: wrong JSON, or a value out of range.
        MismatchError: parts that contradict each other.
        TypeError: an argument of a wrong type.

    Example:
        >>> schema = Schema(dtype="uint16", shape=[100, 200], dimension_units=["4nm", None])
        >>> schema[10:20, ::2].domain
        { [10, 20), [0, 100) }
    """

    _schema_name: ClassVar[str] = "Schema"
    __slots__ = ("_constraints",)
    __hash__ = None  # type: ignore[assignment]
    _constraints: SchemaConstraints

    @spelled_out(SchemaArguments)
    def __init__(self, json: object = None, **parts: Unpack[SchemaArguments]) -> None:
        self._constraints = NO_SCHEMA
        if isinstance(json, Schema):
            self._constraints = json._constraints
        elif json is not None:
            self._constraints = SchemaConstraints.parse(freeze(json))
        self.update(**parts)

    @classmethod
    def of(cls, constraints: SchemaConstraints) -> Self:
        """The schema with just these constraints."""
        schema = cls.__new__(cls)
        schema._constraints = constraints
        return schema

    @classmethod
    def parse(cls, json: object) -> Self:
        """The schema for a JSON value; a schema is taken as it is.

        Raises:
            SpecError: wrong JSON.
        """
        if isinstance(json, cls):
            return json
        return cls.of(SchemaConstraints.parse(freeze(json)))

    @spelled_out(SchemaArguments)
    def update(self, **parts: Unpack[SchemaArguments]) -> None:
        """Add constraints; all or, if there is an error, none. Arguments as for the class."""
        if not parts.keys() <= _APPLY.keys():
            _given(**parts)  # which says what is wrong
        self._constraints = constrained(self._constraints, **parts)

    @property
    def constraints(self) -> SchemaConstraints:
        """The constraints as an immutable value."""
        return self._constraints

    @property
    def rank(self) -> int | None:  # type: ignore[override]
        """Number of dimensions; None if unknown."""
        return self._constraints.rank

    @property
    def ndim(self) -> int | None:  # type: ignore[override]
        """Alias of `rank`."""
        return self._constraints.rank

    @property
    def dtype(self) -> DType | None:
        """Element type; None if unconstrained."""
        return self._constraints.dtype

    @property
    def domain(self) -> IndexDomain | None:  # type: ignore[override]
        """Bounds and labels; None if unconstrained."""
        return self._constraints.domain

    @property
    def chunk_layout(self) -> ChunkLayout:
        """Layout constraints."""
        return ChunkLayout.of(self._constraints.chunk_layout)

    @property
    def codec(self) -> CodecSpec | None:
        """Codec constraints; None if there are none."""
        return self._constraints.codec

    @property
    def fill_value(self) -> FillValue | None:
        """Fill value, a read-only array; None if unconstrained."""
        return self._constraints.fill_value

    @property
    def dimension_units(self) -> Units | None:
        """Unit of each dimension, None where unconstrained; None if the rank is unknown."""
        constraints = self._constraints
        if constraints.rank is None:
            return None
        return constraints.dimension_units or (None,) * constraints.rank

    def copy(self) -> Self:
        """An independent copy."""
        return self.of(self._constraints)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self.copy()

    def _get_transform(self) -> IndexTransform:
        constraints = self._constraints
        if constraints.rank is None:
            raise SpecError("Cannot index a schema of unknown rank; give its rank or domain first")
        if constraints.domain is not None:
            return identity(constraints.domain)
        return IndexTransform(input_rank=constraints.rank)

    def _with_transform(self, transform: IndexTransform) -> Self:
        return self.of(self._constraints.to_input(transform))

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object; nothing has a default, so `include_defaults` changes nothing."""
        return self._constraints.to_json()

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`, where this is a member."""
        return self._constraints.to_json()

    def __eq__(self, other: object) -> bool:
        return (
            self._constraints == other._constraints if isinstance(other, Schema) else NotImplemented
        )

    def _repr_html_(self) -> str:
        return _page(self)

    def __repr__(self) -> str:
        try:
            return pretty("Schema", self.to_json())
        except SpecError:
            return "Schema(...)"  # of some fill values there is no JSON

    def __reduce__(self) -> tuple[Callable[..., Schema], tuple[object, ...]]:
        parts = (getattr(self._constraints, field.name) for field in fields(SchemaConstraints))
        return _restore, tuple(parts)

    _from_member = parse


def _restore(*parts: object) -> Schema:
    return Schema.of(SchemaConstraints(*parts))  # type: ignore[arg-type]


def constrained(known: SchemaConstraints, /, **parts: Unpack[SchemaArguments]) -> SchemaConstraints:
    """The constraints with others added, said as the arguments of `Schema`.

    Raises:
        SpecError, MismatchError, TypeError: as for `Schema`.
    """
    for name, apply in _APPLY.items():
        value = parts.get(name)
        if value is None:
            continue
        try:
            known = apply(known, value)
        except SpecError as error:
            raise error.inside(name) from None
        except MismatchError as error:
            raise MismatchError(f"{name}: {error}") from None
    return known


def _apply_rank(schema: SchemaConstraints, value: object) -> SchemaConstraints:
    rank = index(value)  # type: ignore[arg-type]
    return schema if rank == -1 else schema.with_rank(rank, "rank")


def _apply_shape(schema: SchemaConstraints, value: object) -> SchemaConstraints:
    shape = []
    for dim, extent in enumerate(per_dimension("shape", value)):
        try:
            shape.append(index(extent))  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(
                f"shape: expected an integer for dimension {dim}, but found {extent!r}"
            ) from None
        if shape[dim] < 0:
            raise SpecError(f"dimension {dim} has a negative extent, {extent}")
    return schema.with_domain(array_domain(shape), "shape")


def _apply_units(schema: SchemaConstraints, value: object) -> SchemaConstraints:
    units = per_dimension("dimension_units", value)
    return schema.with_dimension_units(
        tuple(None if unit is None else Unit.like(unit) for unit in units)  # type: ignore[arg-type]
    )


def _apply_fill_value(schema: SchemaConstraints, value: object) -> SchemaConstraints:
    try:
        found = fill_value_like(value, schema.dtype)
    except SpecError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        name = "data type" if schema.dtype is None else schema.dtype.name
        problem = f"fill_value: {value!r:.60} is no {name}: {error}"
        for kind in (OverflowError, TypeError):
            if isinstance(error, kind):
                raise kind(problem) from None
        raise ValueError(problem) from None
    return schema.with_fill_value(found)


def _apply_codec(schema: SchemaConstraints, value: object) -> SchemaConstraints:
    if not isinstance(value, CodecSpec) and not (isinstance(value, Mapping) and "driver" in value):
        raise TypeError(
            f'codec: {value!r} needs its driver here: {{"driver": "zarr3", "codecs": ["zstd"]}}'
        )
    return schema.with_codec(CodecSpec(value))


def _apply_typed(
    cls: type[T],
    parse: Callable[[object], T],
    apply: Callable[[SchemaConstraints, T], SchemaConstraints],
    example: str,
) -> Callable[[SchemaConstraints, object], SchemaConstraints]:
    """A part that is an object of a class, or the JSON of one."""

    def checked(schema: SchemaConstraints, value: object) -> SchemaConstraints:
        if isinstance(value, Mapping):
            value = parse(value)
        if not isinstance(value, cls):
            raise TypeError(
                f"expected {cls.__name__} or its JSON, such as {example}, but found {value!r}"
            )
        return apply(schema, value)

    return checked


#: In the order in which they are applied.
_APPLY: dict[str, Callable[[SchemaConstraints, object], SchemaConstraints]] = {
    "rank": _apply_rank,
    "dtype": lambda schema, value: schema.with_dtype(DType(value)),  # type: ignore[arg-type]
    "domain": _apply_typed(
        IndexDomain,
        lambda json: IndexDomain(json=freeze(json)),
        lambda schema, value: schema.with_domain(value),
        '{"shape": [100, 200]}',
    ),
    "shape": _apply_shape,
    "chunk_layout": _apply_typed(
        ChunkLayout,
        ChunkLayout,
        lambda schema, value: schema.with_chunk_layout(value.constraints),
        '{"chunk": {"shape": [64, 64]}}',
    ),
    "codec": _apply_codec,
    "fill_value": _apply_fill_value,
    "dimension_units": _apply_units,
    "schema": _apply_typed(
        Schema,
        Schema,
        lambda schema, value: schema.merged(value.constraints),
        '{"dtype": "uint16"}',
    ),
}


def schema_lines(schema: Schema) -> list[tuple[str, object]]:
    """What a schema says, in a line each; what it leaves open is not shown."""
    units, layout = schema.dimension_units, schema.chunk_layout
    found: list[tuple[str, object]] = [
        ("Data type", None if schema.dtype is None else schema.dtype.name),
        ("Domain", None if schema.domain is None else repr(schema.domain)),
        ("Rank", schema.rank if schema.domain is None else None),
        ("Chunks", _extents(layout.read_chunk.shape)),
        ("Codecs", None if schema.codec is None else codec_words(schema.codec.to_json())),
        ("Fill value", _scalar(schema.fill_value)),
        (
            "Units",
            ", ".join("none" if unit is None else str(unit) for unit in units)
            if units and any(units)
            else None,
        ),
    ]
    if layout.write_chunk.shape != layout.read_chunk.shape:
        found.insert(3, ("Shards", _extents(layout.write_chunk.shape)))
    return [(name, value) for name, value in found if value is not None]


def _page(schema: Schema) -> str:
    """The page of a schema, with a drawing if its domain is known."""
    left = element("div", rows(schema_lines(schema)))
    domain, layout = schema.domain, schema.chunk_layout
    right = None
    if domain is not None:
        sizes = _hard(layout)
        right = drawing(
            [
                Axis(
                    dim.inclusive_min if dim.finite else None,
                    dim.exclusive_max if dim.finite else None,
                    dim.label,
                    *size,
                )
                for dim, size in zip(domain, sizes or [(None, None, 0)] * domain.rank, strict=True)
            ]
        )
    content = element("div", left, right, class_="tsv-row")
    return page("Schema", "", content, folded_json(schema.to_json))


def _hard(layout: ChunkLayout) -> Sequence[tuple[int | None, int | None, int]] | None:
    if layout.rank < 0:
        return None
    nothing: tuple[None, ...] = (None,) * layout.rank
    parts = (layout.read_chunk.shape, layout.write_chunk.shape, layout.grid_origin)
    chunks, shards, origins = (part or nothing for part in parts)
    return [
        (chunk or None, shard or None, origin or 0)
        for chunk, shard, origin in zip(chunks, shards, origins, strict=True)
    ]


def _extents(shape: Sequence[int | None] | None) -> str | None:
    if shape is None or not any(shape):
        return None
    return " × ".join("?" if size is None else f"{size:,}" for size in shape)


def _scalar(value: object) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
