"""The `attributes.json` document: as constraints of which any part may be open, and as a whole.

Members that the format does not know are attributes of the user's. They are kept as they are, and
those that a spec states must be there with the same values.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Annotated, ClassVar

from tensorstore_py.drivers.n5.codec_spec import CompressionMember, compression_json
from tensorstore_py.drivers.n5.foreign import standard
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import (
    AfterValidator,
    CodecModel,
    Field,
    JsonForm,
    Level,
    Model,
    PlainValidator,
    Unit,
    describe,
    dtype,
    freeze,
    model_validator,
    parse_stored_json,
    thaw,
)

__all__ = ["DATA_TYPES", "Metadata", "MetadataConstraints", "check_data_type", "units_of"]

#: All that the format has.
DATA_TYPES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
)  # fmt: skip
_LARGEST = 2**63 - 2
_MAX_RANK = 32
_LARGEST_BLOCK = 2**31
_REQUIRED = ("dimensions", "blockSize", "dataType", "compression")
_MEMBERS = (*_REQUIRED, "axes", "units", "resolution")


def check_data_type(data_type: dtype) -> dtype:
    """The data type, if the format has it.

    Raises:
        SpecError: it does not.
    """
    if data_type.name not in DATA_TYPES:
        raise SpecError(f"n5 has no data type {data_type.name}, only {', '.join(DATA_TYPES)}")
    return data_type


def _parse_data_type(json: object) -> dtype | None:
    if json is None or isinstance(json, dtype):
        return json
    if not isinstance(json, str) or json not in DATA_TYPES:
        raise SpecError(f"expected one of {', '.join(DATA_TYPES)}, but found {describe(json)}")
    return dtype(json)


def _few(values: tuple[object, ...]) -> tuple[object, ...]:
    if len(values) > _MAX_RANK:
        raise SpecError(f"expected at most {_MAX_RANK} dimensions, but found {len(values)}")
    return values


def _labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    given = [label for label in labels if label]
    for label in given:
        if given.count(label) > 1:
            raise SpecError(f'names two dimensions "{label}"')
    return labels


class MetadataConstraints(Model):
    """What a spec says of the metadata; members left out are unconstrained.

    Attributes:
        dimensions: extent of each dimension.
        block_size: extents of a chunk.
        data_type: element type.
        compression: how blocks are compressed.
        axes: label of each dimension, empty for none.
        units: base unit of each dimension.
        resolution: how many of those a step along the dimension is.
        extra: attributes of the user's.

    Example:
        >>> MetadataConstraints.parse({"dataType": "int8", "note": [1]}).to_json()
        {'dataType': 'int8', 'note': [1]}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "dimensions", "block_size", "data_type", "compression", "axes", "units", "resolution",
        "extra",
    })  # fmt: skip

    dimensions: (
        Annotated[tuple[Annotated[int, Level(0, _LARGEST)], ...], AfterValidator(_few)] | None
    ) = None
    block_size: (
        Annotated[tuple[Annotated[int, Level(1, _LARGEST)], ...], AfterValidator(_few)] | None
    ) = Field(default=None, alias="blockSize")
    data_type: Annotated[
        dtype | None, PlainValidator(_parse_data_type), JsonForm({"enum": list(DATA_TYPES)})
    ] = Field(default=None, alias="dataType")
    compression: CompressionMember | None = None
    axes: Annotated[tuple[str, ...], AfterValidator(_few), AfterValidator(_labels)] | None = None
    units: Annotated[tuple[str, ...], AfterValidator(_few)] | None = None
    resolution: (
        Annotated[tuple[Annotated[float, Field(allow_inf_nan=False)], ...], AfterValidator(_few)]
        | None
    ) = None
    extra: Mapping[str, object] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _set_extra_apart(cls, json: object) -> object:
        if not isinstance(json, Mapping):
            return json
        members: dict[str, object] = {name: json[name] for name in json if name in _MEMBERS}
        members["extra"] = {name: json[name] for name in json if name not in _MEMBERS}
        return members

    @model_validator(mode="after")
    def _check(self) -> MetadataConstraints:
        first: tuple[str, int] | None = None
        for name, rank in self._ranks():
            if first is not None and rank != first[1]:
                raise SpecError(f"{rank} dimensions, but {first[0]} has {first[1]}", (name,))
            first = first or (name, rank)
        return self

    @property
    def rank(self) -> int | None:
        """Number of dimensions, if a member tells."""
        return next((rank for _, rank in self._ranks()), None)

    @property
    def is_spec_default(self) -> bool:
        """Whether nothing is said, so that a spec need not print it."""
        return not self.to_json()

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        del include_defaults
        json.pop("extra", None)
        if self.compression is not None:
            json["compression"] = compression_json(self.compression)
        if not any(self.axes or ()):
            json.pop("axes", None)
        json.update({name: thaw(value) for name, value in self.extra.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetadataConstraints):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.dimensions, self.block_size, self.data_type, self.compression))

    def check(self, stored: Metadata) -> None:
        """Compare with what is stored.

        Raises:
            MismatchError: names the first member that differs, what is stored and what is asked.
        """
        asked, found = self.to_json(), stored.to_json()
        if self.axes is not None:
            asked["axes"], found["axes"] = list(self.axes), list(stored.axes)
        for name, value in asked.items():
            if name not in found:
                raise MismatchError(
                    f'"{name}" is not in the stored metadata, but the spec asks for '
                    f"{describe(value)}"
                )
            if value != found[name]:
                raise MismatchError(
                    f'"{name}" is {describe(found[name])} in the stored metadata, but the spec '
                    f"asks for {describe(value)}"
                )

    def _ranks(self) -> list[tuple[str, int]]:
        sources = {
            "dimensions": self.dimensions,
            "blockSize": self.block_size,
            "axes": self.axes,
            "units": self.units,
            "resolution": self.resolution,
        }
        return [(name, len(value)) for name, value in sources.items() if value is not None]


@dataclass(frozen=True, slots=True)
class Metadata:
    """One array's whole document; attributes as for `MetadataConstraints`.

    Attributes:
        kept: what is called like a member of the format and is none; it stays in the document.
    """

    dimensions: tuple[int, ...]
    block_size: tuple[int, ...]
    data_type: dtype
    compression: CodecModel
    axes: tuple[str, ...]
    units: tuple[str, ...] | None
    resolution: tuple[float, ...] | None
    extra: Mapping[str, object] = field(hash=False)
    kept: Mapping[str, object] = field(hash=False, default_factory=dict)

    def __post_init__(self) -> None:
        size = prod(self.block_size) * self.data_type.numpy_dtype.itemsize
        if size > _LARGEST_BLOCK:
            raise SpecError(
                f"blocks of {size} bytes are too large: the format has up to {_LARGEST_BLOCK}",
                ("blockSize",),
            )

    @classmethod
    def parse(cls, data: bytes) -> Metadata:
        """The metadata for a stored document.

        Raises:
            MismatchError: this is of a group.
            SpecError: this is not JSON, or a member is missing or wrong; the path names it.
        """
        json = parse_stored_json(data)
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        if not any(name in json for name in _REQUIRED):
            raise MismatchError(
                "this is a group, not an array, or its attributes; open one of its arrays by its "
                "path"
            )
        try:
            return cls._of(json)
        except SpecError:
            put_right, kept = standard(json)
            return replace(cls._of(put_right), kept=kept)

    @classmethod
    def _of(cls, json: Mapping[str, object]) -> Metadata:
        for name in _REQUIRED:
            if name not in json:
                raise SpecError("this member is required", (name,))
        known = MetadataConstraints.parse({name: _frozen(name, json[name]) for name in json})
        assert known.dimensions is not None
        assert known.block_size is not None
        assert known.data_type is not None
        assert known.compression is not None
        return cls(
            dimensions=known.dimensions,
            block_size=known.block_size,
            data_type=known.data_type,
            compression=known.compression,
            axes=known.axes or ("",) * len(known.dimensions),
            units=known.units,
            resolution=known.resolution,
            extra=known.extra,
        )

    @property
    def constraints(self) -> MetadataConstraints:
        """The constraints that only this document satisfies."""
        return MetadataConstraints().replace(
            dimensions=self.dimensions,
            block_size=self.block_size,
            data_type=self.data_type,
            compression=self.compression,
            axes=self.axes,
            units=self.units,
            resolution=self.resolution,
            extra=self.extra,
        )

    def to_json(self) -> dict[str, object]:
        """The document, members sorted."""
        return self.constraints.to_json()

    def serialize(self) -> bytes:
        """The document to store."""
        json = {**self.kept, **self.to_json()}
        return json_module.dumps(json, separators=(",", ":")).encode()


def _frozen(name: str, json: object) -> object:
    try:
        return freeze(json)
    except (SpecError, OverflowError) as error:
        raise SpecError(str(error), (name,)) from None


def units_of(
    units: Sequence[str] | None, resolution: Sequence[float] | None
) -> tuple[Unit, ...] | None:
    """The units of the dimensions; None without base units, whatever the resolution is.

    Example:
        >>> units_of(["nm", "s"], [4, 0.5]), units_of(["nm"], None), units_of(None, [4])
        ((Unit(4, "nm"), Unit(0.5, "s")), (Unit(1, "nm"),), None)
    """
    if units is None:
        return None
    steps = [1.0] * len(units) if resolution is None else resolution
    return tuple(Unit(step, unit) for step, unit in zip(steps, units, strict=True))
