"""What is asked of an array's form, or known of it, as an immutable value; independent of drivers.

Every part may be absent; adding a part checks it against the others, so that no value of this class
contradicts itself. Where two parts say something of the domain nothing is guessed: what they do not
agree on is an error that names the dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorstore_py._index import (
    Dim,
    IndexDomain,
    IndexTransform,
    bounds_of,
    domain_of,
    propagate_bounds,
)
from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.arguments import SCHEMA_MEMBERS
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812 - a class
from tensorstore_py._spec.fill_value import (
    FillValue,
    check_broadcast,
    fill_value_from_json,
    fill_value_to_input,
    fill_value_to_json,
    fill_value_to_output,
    same_fill_value,
)
from tensorstore_py._spec.grid_constraints import json_rank, merge_rank, with_members
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.layout_constraints import NO_LAYOUT, DimMapping, LayoutConstraints
from tensorstore_py._spec.units import Unit
from tensorstore_py.errors import MismatchError, SpecError

__all__ = ["NO_SCHEMA", "SchemaConstraints", "Units", "domain_to_output", "merge_domains"]

#: First position, one past the last, and whether each is implicit.
Bounds: TypeAlias = tuple[int, int, bool, bool]


def merge_domains(mine: IndexDomain | None, theirs: IndexDomain | None) -> IndexDomain | None:
    """The domain that satisfies both; None is unconstrained.

    An implicit infinite bound and an empty label are unconstrained; whatever else both state must
    agree. A bound is implicit if both say so.

    Raises MismatchError: rank, a label or a bound differs.
    """
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    if mine == theirs:
        return mine
    merged = []
    try:
        if mine.rank != theirs.rank:
            raise MismatchError("Ranks do not match")
        for position, (a, b) in enumerate(zip(bounds_of(mine), bounds_of(theirs), strict=True)):
            merged.append(_merge_bounds(a, b, mine.labels[position], theirs.labels[position]))
    except MismatchError as error:
        where = f"Mismatch in dimension {len(merged)}: " if mine.rank == theirs.rank else ""
        raise MismatchError(
            f"Cannot merge index domain {mine} with index domain {theirs}: {where}{error}"
        ) from None
    return domain_of(merged, [a or b for a, b in zip(mine.labels, theirs.labels, strict=True)])


def _merge_bounds(a: Bounds, b: Bounds, label: str, other: str) -> Bounds:
    """The bounds that satisfy both in a dimension, of which both labels are given."""
    if label and other and label != other:
        raise MismatchError("Dimension labels do not match")
    lower, implicit_lower = _merge_bound((a[0], a[2]), (b[0], b[2]), -INFINITY, "Lower")
    upper, implicit_upper = _merge_bound((a[1], a[3]), (b[1], b[3]), INFINITY + 1, "Upper")
    if lower > upper:
        raise ValueError(f"({lower}, {upper - 1}) do not specify a valid closed index interval")
    return lower, upper, implicit_lower, implicit_upper


def _merge_bound(
    a: tuple[int, bool], b: tuple[int, bool], unbounded: int, which: str
) -> tuple[int, bool]:
    if a == (unbounded, True):
        return b
    if b == (unbounded, True):
        return a
    if a[0] != b[0]:
        raise MismatchError(f"{which} bounds do not match")
    return a[0], a[1] and b[1]


def domain_to_output(domain: IndexDomain, transform: IndexTransform) -> IndexDomain:
    """The domain of a transform's output space, given that of its input space.

    Raises MismatchError: an output dimension does not follow one input dimension of its own, or a
    bounded one does so with a stride.
    """
    dims = []
    seen: set[int] = set()
    for each in transform.maps:
        source = each.input_dimension
        if source is None or each.stride is None:
            raise MismatchError(
                f"Cannot specify domain through a transform with a {each.method.name} "
                f"output index map"
            )
        if source in seen:
            raise MismatchError(
                "Cannot specify domain through a transform with multiple output dimensions "
                "mapping to the same input dimension"
            )
        seen.add(source)
        dims.append(_moved(domain[source], each.offset, each.stride))
    return IndexDomain(dims)


def _moved(dim: Dim, offset: int, stride: int) -> Dim:
    bounds = [
        (dim.inclusive_min, dim.implicit_lower, -INFINITY),
        (dim.inclusive_max, dim.implicit_upper, INFINITY),
    ]
    if abs(stride) != 1:
        if any(bound != unbounded for bound, _, unbounded in bounds):
            raise MismatchError(
                "Cannot specify finite domain through a transform with non-unit-stride "
                "output index map"
            )
        stride = 1 if stride > 0 else -1
    moved = [
        (stride * unbounded if bound == unbounded else stride * bound + offset, implicit)
        for bound, implicit, unbounded in bounds
    ]
    (lower, implicit_lower), (upper, implicit_upper) = moved if stride > 0 else moved[::-1]
    return Dim(
        inclusive_min=lower,
        inclusive_max=upper,
        label=dim.label,
        implicit_lower=implicit_lower,
        implicit_upper=implicit_upper,
    )


_MEMBERS = (
    "rank",
    "dtype",
    "domain",
    "chunk_layout",
    "codec",
    "fill_value",
    "dimension_units",
)

Units: TypeAlias = tuple[Unit | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SchemaConstraints:
    """The parts as one immutable value; None where unconstrained.

    The fill value is read-only and broadcasts to the domain; units are one, or None, by dimension.
    """

    rank: int | None = None
    dtype: DType | None = None
    domain: IndexDomain | None = None
    chunk_layout: LayoutConstraints = NO_LAYOUT
    codec: CodecSpec | None = None
    fill_value: FillValue | None = None
    dimension_units: Units | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SchemaConstraints):
            return NotImplemented
        return (
            (self.rank, self.dtype, self.domain, self.codec)
            == (other.rank, other.dtype, other.domain, other.codec)
            and self._ranked_layout().same_as(other._ranked_layout())
            and same_fill_value(self.fill_value, other.fill_value)
            and self._stated_units() == other._stated_units()
        )

    def _ranked_layout(self) -> LayoutConstraints:
        """The layout constraints with the rank that they are known to have."""
        return replace(self.chunk_layout, rank=self.rank)

    def _stated_units(self) -> Units | None:
        """The units; None where all are, which says no more than the rank."""
        units = self.dimension_units
        return units if units is not None and any(unit is not None for unit in units) else None

    __hash__ = None  # type: ignore[assignment]

    def merged(self, other: SchemaConstraints) -> SchemaConstraints:
        """Both constraints. Raises MismatchError: they contradict each other."""
        return (
            self.with_rank(other.rank, "rank")
            .with_dtype(other.dtype)
            .with_domain(other.domain)
            .with_chunk_layout(other.chunk_layout)
            .with_fill_value(other.fill_value)
            .with_codec(other.codec)
            .with_dimension_units(other.dimension_units)
        )

    def with_rank(self, rank: int | None, source: str) -> SchemaConstraints:
        """These and a rank, specified by the part named."""
        if rank is None or rank == self.rank:
            return self
        merge_rank(None, rank)
        if self.rank is not None:
            raise MismatchError(
                f"Rank specified by {source} ({rank}) does not match existing rank specified by "
                f"schema ({self.rank})"
            )
        if self.fill_value is not None and self.fill_value.ndim > rank:
            raise MismatchError(
                f"Rank specified by {source} ({rank}) is incompatible with existing fill_value of "
                f"shape {list(self.fill_value.shape)}"
            )
        return replace(self, rank=rank)

    def with_dtype(self, data_type: DType | None) -> SchemaConstraints:
        """These and a data type."""
        if data_type is None:
            return self
        if self.dtype is not None and self.dtype != data_type:
            raise MismatchError(
                f"Specified dtype ({data_type.name}) does not match existing value "
                f"({self.dtype.name})"
            )
        return replace(self, dtype=data_type)

    def with_domain(self, domain: IndexDomain | None, source: str = "domain") -> SchemaConstraints:
        """These and a domain."""
        if domain is None:
            return self
        ranked = self.with_rank(domain.rank, source)
        merged = merge_domains(self.domain, domain)
        if merged is not None and self.fill_value is not None:
            _check_fill_value(self.fill_value, merged)
        return replace(ranked, domain=merged)

    def with_chunk_layout(self, layout: LayoutConstraints) -> SchemaConstraints:
        """These and layout constraints."""
        ranked = self.with_rank(layout.rank, "chunk_layout")
        return replace(ranked, chunk_layout=self.chunk_layout.merged(layout))

    def with_codec(self, codec: CodecSpec | None) -> SchemaConstraints:
        """These and codec constraints."""
        if codec is None:
            return self
        return replace(self, codec=codec if self.codec is None else self.codec.merged(codec))

    def with_fill_value(self, fill_value: FillValue | None) -> SchemaConstraints:
        """These and a fill value."""
        if fill_value is None:
            return self
        if self.domain is not None:
            _check_fill_value(fill_value, self.domain)
        if self.rank is not None and self.rank < fill_value.ndim:
            raise MismatchError(
                f"Invalid fill_value for rank {self.rank}: its shape is {list(fill_value.shape)}"
            )
        if self.fill_value is not None and not same_fill_value(self.fill_value, fill_value):
            raise MismatchError(
                f"Specified fill_value ({fill_value}) does not match existing value in schema "
                f"({self.fill_value})"
            )
        return replace(self, fill_value=fill_value)

    def with_dimension_units(self, units: Units | None) -> SchemaConstraints:
        """These and units of the dimensions."""
        if not units:
            return self
        ranked = self.with_rank(len(units), "dimension_units")
        known = self.dimension_units or (None,) * len(units)
        for old, new in zip(known, units, strict=True):
            if old is not None and new is not None and old != new:
                raise MismatchError(
                    f"Cannot merge dimension units {_show(units)} and {_show(known)}"
                )
        merged = tuple(new if old is None else old for old, new in zip(known, units, strict=True))
        return replace(ranked, dimension_units=merged)

    def to_input(self, transform: IndexTransform) -> SchemaConstraints:
        """The constraints seen through a transform whose output space they are about.

        Raises:
            MismatchError: the rank is not the transform's output rank.
            OutOfRangeError: the transform leaves the domain.
        """
        self._check_rank(transform.output_rank, transform)
        domain = self.domain
        if domain is not None:
            transform = propagate_bounds(domain, transform)
        units = self.dimension_units
        mapping = DimMapping.to_input(transform)
        fill = self.fill_value
        return replace(
            self,
            rank=transform.input_rank,
            domain=None if domain is None else transform.domain,
            chunk_layout=self.chunk_layout.to_input(transform),
            fill_value=None if fill is None else fill_value_to_input(fill, transform, domain),
            dimension_units=None
            if units is None
            else tuple(
                None
                if source is None or (unit := units[source[0]]) is None
                else unit * abs(source[2])
                for source in mapping.sources
            ),
        )

    def to_output(self, transform: IndexTransform) -> SchemaConstraints:
        """The constraints on a transform's output space, given these on its input space.

        Raises MismatchError: the rank is not the transform's input rank, or a part cannot be
        expressed in the output space.
        """
        self._check_rank(transform.input_rank, transform)
        domain, fill, units = self.domain, self.fill_value, self.dimension_units
        return replace(
            self,
            rank=transform.output_rank,
            domain=None if domain is None else domain_to_output(domain, transform),
            chunk_layout=self.chunk_layout.to_output(transform),
            fill_value=None if fill is None else fill_value_to_output(fill, transform),
            dimension_units=None if units is None else _units_to_output(units, transform),
        )

    def _check_rank(self, expected: int, transform: IndexTransform) -> None:
        if self.rank is not None and self.rank != expected:
            raise MismatchError(
                f"Cannot transform schema of rank {self.rank} by index transform of rank "
                f"{transform.input_rank} -> {transform.output_rank}"
            )

    def to_json(self) -> dict[str, object]:
        """The JSON object, members sorted."""
        json: dict[str, object] = {}
        layout = self.chunk_layout.to_json()
        if layout.get("rank") == self.rank:
            layout.pop("rank", None)
        if layout:
            json["chunk_layout"] = layout
        if self.codec is not None:
            json["codec"] = self.codec.to_json()
        if self.dimension_units is not None and any(self.dimension_units):
            json["dimension_units"] = [unit and unit.to_json() for unit in self.dimension_units]
        if self.domain is not None:
            json["domain"] = self.domain.to_json()
        if self.dtype is not None:
            json["dtype"] = self.dtype.to_json()
        if self.fill_value is not None:
            json["fill_value"] = fill_value_to_json(self.fill_value)
        if self.rank is not None:
            json["rank"] = self.rank
        return json

    @classmethod
    def parse(cls, json: object) -> SchemaConstraints:
        """The constraints for a JSON object, as `freeze` gives it.

        Raises SpecError: unknown member, wrong type, or members that contradict each other.
        """
        return with_members(cls(), json, _MEMBERS, cls._with_member, SCHEMA_MEMBERS)

    def _with_member(self, name: str, json: object) -> SchemaConstraints:
        if name == "rank":
            return self.with_rank(json_rank(json), "rank")
        if name == "dtype":
            return self.with_dtype(DType.parse(json))
        if name == "domain":
            if not isinstance(json, Mapping):
                raise SpecError(f"expected an object, but found {describe(json)}")
            return self.with_domain(IndexDomain(json=json))
        if name == "chunk_layout":
            return self.with_chunk_layout(LayoutConstraints.parse(json))
        if name == "codec":
            return self.with_codec(CodecSpec(json))
        if name == "fill_value":
            return self.with_fill_value(fill_value_from_json(json, self.dtype))
        return self.with_dimension_units(_parse_units(json))


def _check_fill_value(fill_value: FillValue, domain: IndexDomain) -> None:
    try:
        check_broadcast(fill_value, domain)
    except MismatchError as error:
        raise MismatchError(f"fill_value is incompatible with domain: {error}") from None


def _show(units: Sequence[Unit | None]) -> str:
    return "[" + ", ".join("null" if unit is None else f'"{unit}"' for unit in units) + "]"


def _parse_units(json: object) -> Units:
    if not isinstance(json, tuple):
        raise SpecError(f"expected an array of units, but found {describe(json)}")
    units: list[Unit | None] = []
    for position, item in enumerate(json):
        try:
            units.append(None if item is None else Unit(json=item))
        except SpecError as error:
            raise error.inside(position) from None
    return tuple(units)


def _units_to_output(units: Units, transform: IndexTransform) -> Units:
    sources = DimMapping.to_output(transform).sources
    seen = {source[0] for source in sources if source is not None}
    for dim, unit in enumerate(units):
        if unit is not None and dim not in seen:
            raise MismatchError(
                f"No output dimension corresponds to input dimension {dim} with unit {unit}"
            )
    return tuple(
        None if source is None or (unit := units[source[0]]) is None else unit / abs(source[2])
        for source in sources
    )


#: Nothing constrained.
NO_SCHEMA = SchemaConstraints()
