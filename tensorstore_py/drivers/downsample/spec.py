"""What is asked of a downsampled view: of which array, by which factors, how.

    {"driver": "downsample", "base": "file:///data/a/|zarr3:",
     "downsample_factors": [1, 2, 2], "downsample_method": "mean"}

The data type is the base's, and may be given here or there. Constraints on units and on the codec
are the base's business, too; all others are compared with what is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from tensorstore_py.drivers.downsample.blocks import downsampled_domain
from tensorstore_py.drivers.downsample.driver import Downsample, smaller_schema
from tensorstore_py.drivers.downsample.methods import check_method
from tensorstore_py.errors import PermissionDeniedError, SpecError
from tensorstore_py.plugin import (
    AdapterSpec,
    Driver,
    IndexTransform,
    Level,
    Opened,
    Schema,
    check_schema,
    driver,
    identity,
    model_validator,
    resolved_view,
)

if TYPE_CHECKING:
    from tensorstore_py.plugin import DriverSpec, IndexDomain

__all__ = ["DownsampleSpec"]

Method = Literal["stride", "mean", "median", "mode", "min", "max"]
Factor = Annotated[int, Level(1, 2**63 - 1)]


@driver("downsample")
class DownsampleSpec(AdapterSpec):
    """A smaller view of an array.

    Attributes:
        downsample_factors: for each dimension how many positions of the base one element stands
            for, along it; counted from position 0.
        downsample_method: how it is made of them: the first ("stride"), their mean, median,
            mode, least or greatest.

    Example:
        >>> base = {"driver": "array", "dtype": "int8", "array": [1, 3, 5]}
        >>> spec = DownsampleSpec.parse(
        ...     {"base": base, "downsample_factors": [2], "downsample_method": "mean"}
        ... )
        >>> spec.known_domain()
        { [0, 2) }
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "downsample_factors", "downsample_method",
    })  # fmt: skip

    downsample_factors: tuple[Factor, ...]
    downsample_method: Method

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        """The data type may stand here alone."""
        if isinstance(json, dict):
            base, data_type = json.get("base"), json.get("dtype")
            if isinstance(base, dict) and data_type is not None and "dtype" not in base:
                json = {**json, "base": {**base, "dtype": data_type}}
        return super().parse_frozen(json)

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        asked = super().known_schema()
        if asked.fill_value is not None:
            raise SpecError(
                "give the fill value to the base; here the member must be left out",
                ("schema", "fill_value"),
            )
        base, left = self._split(asked)
        rank = len(self.downsample_factors)
        for other in (_rank_of(base), asked.rank):
            if other not in (None, rank):
                raise SpecError(f"{rank} factors, but {other} dimensions", ("downsample_factors",))
        data_type = base.known_schema().dtype or base.dtype
        if data_type is not None:
            check_method(self.downsample_method, data_type)
        domain = base.known_domain()
        if base.transform is None and domain is not None:
            base = base.replace(transform=identity(domain))
        stated = set(left.to_json()) - {"rank"}
        return self.replace(base=base, dtype=data_type, rank=rank, schema_=left if stated else None)

    def _split(self, asked: Schema) -> tuple[DriverSpec, Schema]:
        """The base with the constraints that are its business, and those left to be compared."""
        base = self.base
        known = base.known_schema().dtype or base.dtype
        if None not in (asked.dtype, known) and known is not asked.dtype:
            raise SpecError(f"the base holds {known}, not {asked.dtype}; cast it", ("dtype",))
        left = Schema(domain=asked.domain, chunk_layout=asked.chunk_layout)
        changes: dict[str, object] = {}
        if known is None and asked.dtype is not None:
            changes["dtype"] = asked.dtype
        domain, units = base.known_domain(), asked.dimension_units
        whole = base.transform is None or (domain and base.transform == identity(domain))
        if isinstance(base, Opened) or not whole:
            left.update(dimension_units=units, codec=asked.codec)
        else:
            if asked.codec is not None:
                changes["codec"] = asked.codec
            if units is not None and any(units) and len(units) == len(self.downsample_factors):
                changes["dimension_units"] = [
                    None if unit is None else unit * (1 / factor)
                    for unit, factor in zip(units, self.downsample_factors, strict=True)
                ]
        if not changes:
            return base, left
        schema = Schema() if base.schema_ is None else base.schema_.copy()
        schema.update(**changes)  # type: ignore[arg-type]
        return base.replace(schema_=schema, dtype=schema.dtype or base.dtype).checked(), left

    def known_domain(self) -> IndexDomain | None:
        base = super().known_domain()
        if base is None:
            return None
        return downsampled_domain(base, self.downsample_factors, self.downsample_method)

    def known_schema(self) -> Schema:
        below = self.base.known_schema()
        if self.base.transform is not None:
            below = below[self.base.transform]
        schema = smaller_schema(below, self.downsample_factors, self.known_domain(), fill=False)
        if self.transform is not None:
            schema.update(rank=self.transform.output_rank)
        return schema

    @property
    def view_transform(self) -> IndexTransform | None:
        # The open driver has the coordinates of what is seen here, not of what is underneath.
        return self.transform

    def minimal(self) -> Self:
        return self

    def over(self, base: Driver) -> Driver:
        if not base.readable or (isinstance(self.base, Opened) and not self.base.readable):
            raise PermissionDeniedError("an array that cannot be read cannot be downsampled")
        rank = _rank_of(self.base)
        if rank is None:
            rank = base.domain.rank
        if len(self.downsample_factors) != rank:
            raise SpecError(
                f"{len(self.downsample_factors)} factors, but {rank} dimensions",
                ("downsample_factors",),
            )
        check_method(self.downsample_method, base.data_type)
        view = self.base.view_transform
        if view is None:
            view = identity(base.domain)
        elif not isinstance(self.base, Opened):  # whose bounds are as it was opened
            view = resolved_view(base.domain, view)
        made = Downsample(self, base, view, self.downsample_factors, self.downsample_method)
        if self.schema_ is not None:
            check_schema(self.schema_, made.schema)
        return made

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        base = json.get("base")
        if isinstance(base, dict) and not include_defaults:
            told = {"rank", "dtype"} if "dtype" in json else {"rank"}
            json["base"] = {name: base[name] for name in base if name not in told}


def _rank_of(base: DriverSpec) -> int | None:
    if base.transform is not None:
        return base.transform.input_rank
    return base.known_schema().rank
