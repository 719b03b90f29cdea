"""The `zarr.json` document of an array: as constraints that may leave any member open, and whole.

`Zarr3Constraints` is what a spec's `metadata` member may say; `Zarr3Metadata` is one array's
document. Neither knows how chunks are read. A document written again loses nothing that was in
it: attributes and members that may be ignored are carried along.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.drivers.zarr3.chain import (
    Zarr3CodecSpec,
    chain_layout,
    check_codecs,
    inner_shape,
    is_sharded,
    parse_codecs,
    require_complete,
    stored_endian,
)
from tensorstore_py.drivers.zarr3.chunk_grid import RegularGrid
from tensorstore_py.drivers.zarr3.data_type import PLAIN, StoredType
from tensorstore_py.drivers.zarr3.fill_value import (
    default_fill_value,
    fill_value_to_json,
    parse_fill_value,
    same_bits,
    seen_fill_value,
)
from tensorstore_py.drivers.zarr3.foreign import standard
from tensorstore_py.drivers.zarr3.members import (
    parse_attributes,
    parse_dimension_names,
    parse_shape,
    parse_units,
    plain_shape,
    without_empty_units,
)
from tensorstore_py.errors import MismatchError, SpecError, did_you_mean
from tensorstore_py.plugin.codec import CodecModel, describe
from tensorstore_py.plugin.driver import (
    ArrayInfo,
    ArrayMetadata,
    ChunkGridModel,
    ChunkKeyEncodingModel,
    CodecSpec,
    ElementView,
    Unit,
    codecs_to_json,
    freeze,
    parse_codec_list,
    same_json,
    same_rank,
    thaw,
)

__all__ = ["Zarr3Constraints", "Zarr3Metadata"]

FAMILY = "zarr3"
_CONSTANT = {"zarr_format": 3, "node_type": "array"}
_REQUIRED = (
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
)
#: Members of the same meaning in version 2 of the format, and names that are near them.
_WORDS = {
    "chunks": 'say "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [64, 64]}}',
    "compressor": 'say it in "codecs": ["bytes", "zstd"]',
    "compressors": 'say it in "codecs": ["bytes", "zstd"]',
    "filters": 'say them in "codecs", before "bytes"',
    "dtype": 'say "data_type": "uint16"',
    "order": 'say it in "codecs": {"name": "transpose", "configuration": {"order": [1, 0]}}',
    "dimension_separator": 'say "chunk_key_encoding": {"name": "default", '
    '"configuration": {"separator": "."}}',
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Zarr3Constraints:
    """What is said of a document; None and empty are unsaid.

    Attributes:
        zarr_format: 3, or None.
        shape: extent of each dimension.
        data_type: element type.
        chunk_grid: sizes of the chunks (of the shards, where there are any).
        chunk_key_encoding: the rule for chunk keys.
        fill_value: one element of the data type, an array of rank 0.
        codecs: the codecs of a chunk, parsed; members of theirs may be unsaid, too.
        dimension_names: a name or None for each dimension.
        attributes: user attributes; `dimension_units` among them means something here.
        extra: members that readers may ignore.

    Example:
        >>> Zarr3Constraints.parse({"shape": [4, 6], "codecs": ["gzip"]}).to_json()
        {'codecs': [{'name': 'gzip'}], 'node_type': 'array', 'shape': [4, 6]}
    """

    zarr_format: int | None = None
    shape: tuple[int, ...] | None = None
    data_type: StoredType | None = None
    chunk_grid: ChunkGridModel | None = None
    chunk_key_encoding: ChunkKeyEncodingModel | None = None
    fill_value: NDArray[np.generic] | None = None
    codecs: tuple[CodecModel, ...] | None = None
    dimension_names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, json: object) -> Self:
        """The constraints for a `metadata` member.

        Raises:
            SpecError: a member is unknown or not possible; has the path to it.
        """
        if isinstance(json, cls):
            return json
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        members: dict[str, object] = {}
        extra: dict[str, object] = {}
        for name in sorted(json):
            try:
                _take(name, json[name], members, extra)
            except SpecError as error:
                raise error.inside(name) from None
        _take_fill_value(json, members)
        stated = cls(**members, extra=extra)  # type: ignore[arg-type]
        stated._check_rank()
        if stated.shape is not None and stated.chunk_grid is not None:
            try:
                stated.chunk_grid.check_reaches(stated.shape)
            except SpecError as error:
                raise error.inside("chunk_grid", "configuration") from None
        return stated

    @property
    def rank(self) -> int | None:
        """The number of dimensions, if a member tells; all that do agree."""
        if self.shape is not None:
            return len(self.shape)
        return next((len(each) for each in self._dimensional().values() if each is not None), None)

    def _dimensional(self) -> dict[str, Sequence[object] | None]:
        """The members with an entry for each dimension."""
        return {
            "shape": self.shape,
            "dimension_names": self.dimension_names,
            "chunk_grid": None if self.chunk_grid is None else self.chunk_grid.sizes,
            "attributes": self.units,
        }

    def _check_rank(self) -> None:
        try:
            same_rank(self._dimensional())
        except SpecError as error:
            if self.chunk_grid is None or error.path != ("chunk_grid",):
                raise
            path = ("chunk_grid", "configuration", self.chunk_grid.sizes_member)
            raise SpecError(error.problem, path) from None

    @property
    def units(self) -> tuple[Unit | None, ...] | None:
        """The unit of each dimension, if the attributes tell."""
        return parse_units(self.attributes)

    @property
    def is_spec_default(self) -> bool:
        """Whether nothing is said, so that a spec need not print it."""
        return self.to_json() == {"node_type": "array"}

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object, members sorted."""
        json: dict[str, object] = {"node_type": "array"}
        if self.zarr_format is not None:
            json["zarr_format"] = self.zarr_format
        if self.shape is not None:
            json["shape"] = list(self.shape)
        if self.data_type is not None:
            json["data_type"] = self.data_type.to_json()
        if self.chunk_grid is not None:
            json["chunk_grid"] = self.chunk_grid.named_json()
        if self.chunk_key_encoding is not None:
            json["chunk_key_encoding"] = self.chunk_key_encoding.named_json(include_defaults)
        if self.fill_value is not None:
            assert self.data_type is not None
            endian = stored_endian(self.codecs or ())
            json["fill_value"] = fill_value_to_json(self.fill_value, self.data_type, endian)
        if self.codecs is not None:
            json["codecs"] = codecs_to_json(FAMILY, self.codecs)
        names = self.dimension_names
        if names is not None and any(name is not None for name in names):
            json["dimension_names"] = list(names)
        if self.attributes:
            json["attributes"] = thaw(self.attributes)
        json.update({name: thaw(value) for name, value in self.extra.items()})
        return {name: json[name] for name in sorted(json)}

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`, where this is a member of a spec."""
        return self.to_json(include_defaults)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Zarr3Constraints):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json_module.dumps(self.to_json()))

    def info(self, view: ElementView | None, rank: int | None = None) -> ArrayInfo:
        """What it says of the array.

        Args:
            view: what is opened of each element; None while that is unknown.
            rank: number of dimensions, where no member tells; with those inside an element.

        Raises:
            SpecError: a codec stands in the wrong place, or is for another rank.
        """
        inner = () if view is None else view.inner_shape
        outer = self.rank
        if outer is None and rank is not None:
            outer = max(rank - len(inner), 0)
        order = None
        read: Sequence[int | None] | None = None
        write = None if self.chunk_grid is None else self.chunk_grid.shape
        if self.codecs is not None and outer is not None:
            order, read = chain_layout(self.codecs, outer)
            if not is_sharded(self.codecs):
                read = write
        fill_value = None
        if self.fill_value is not None and self.data_type is not None and view is not None:
            endian = stored_endian(self.codecs or ())
            fill_value = seen_fill_value(self.data_type, view, self.fill_value, endian)
        return ArrayInfo(
            codec=_codec_spec(self.codecs),
            data_type=None if view is None else view.data_type,
            rank=self.rank,
            shape=self.shape,
            labels=_labels(self.dimension_names),
            inner=inner,
            read_chunk=read,
            write_chunk=write,
            inner_order=order,
            fill_value=fill_value,
            units=self.units,
        )

    def check(self, found: Zarr3Metadata) -> None:
        """Whether a document satisfies the constraints.

        Raises:
            MismatchError: it does not; names the member, what is stored and what was asked.
        """
        asked, stored = self.to_json(), found.to_json()
        same = self._same_elements(found)
        if self.chunk_grid is not None and self.chunk_grid.cuts_like(found.chunk_grid):
            del asked["chunk_grid"]  # whatever it is called
        for name in asked:
            if name not in ("attributes", "codecs", *same) and asked[name] != stored.get(name):
                raise _mismatch(name, stored.get(name), asked[name])
        if self.codecs is not None:
            try:
                check_codecs(found.codecs, self.codecs)
            except (MismatchError, SpecError) as error:
                raise MismatchError(
                    f"{_mismatch('codecs', stored['codecs'], asked['codecs'])}: {error}"
                ) from None
        for name, value in self.attributes.items():
            present = found.attributes.get(name)
            if name == "dimension_units":
                self._check_units(found)
            elif name not in found.attributes or not same_json(present, value):
                raise _mismatch(f"attributes.{name}", present, value)

    def _same_elements(self, found: Zarr3Metadata) -> list[str]:
        """Members of which the same is said in another form, as by another name of a type."""
        wanted, stored = self.data_type, found.data_type
        if wanted is None or wanted.stored != stored.stored or wanted.view() != stored.view():
            return []
        same = self.fill_value is not None and same_bits(self.fill_value, found.fill_value)
        return ["data_type", "fill_value"] if same else ["data_type"]

    def _check_units(self, found: Zarr3Metadata) -> None:
        stored = found.units
        for dimension, unit in enumerate(self.units or ()):
            present = None if stored is None else stored[dimension]
            if unit is not None and unit != present:
                path = f"attributes.dimension_units[{dimension}]"
                raise _mismatch(path, None if present is None else str(present), str(unit))


@dataclass(frozen=True, eq=False, kw_only=True)
class Zarr3Metadata(Zarr3Constraints, ArrayMetadata):
    """One array's whole document.

    Attributes:
        kept: what is no member of the format, and stays in the document; attributes, too.
    """

    zarr_format: int = 3
    shape: tuple[int, ...]
    data_type: StoredType
    chunk_grid: ChunkGridModel
    chunk_key_encoding: ChunkKeyEncodingModel
    fill_value: NDArray[np.generic]
    codecs: tuple[CodecModel, ...]
    dimension_names: tuple[str | None, ...]
    kept: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, json: Mapping[str, object], kept: Mapping[str, object]) -> Self:
        if json.get("node_type") == "group":
            raise MismatchError(
                "this is a group, not an array; open it with ts.Group.open, or one of its arrays "
                "by its path"
            )
        for name in _REQUIRED:
            if name not in json:
                raise SpecError("this member is required", (name,))
        plain: dict[str, Any] | None = _plain_members(json)
        if plain is not None:
            return cls(**plain, kept=kept)
        stated = Zarr3Constraints.parse(json)
        data_type, codecs, shape = stated.data_type, stated.codecs, stated.shape
        assert data_type is not None
        assert codecs is not None
        assert shape is not None
        require_complete(codecs, has_byte_order=data_type.has_byte_order)
        members = {each.name: getattr(stated, each.name) for each in fields(stated)}
        if stated.fill_value is None:
            members["fill_value"] = default_fill_value(data_type)
        members["codecs"] = explicit_codecs(codecs)
        members["dimension_names"] = stated.dimension_names or (None,) * len(shape)
        members["attributes"] = without_empty_units(stated.attributes)
        return cls(**members, kept=kept)

    @classmethod
    def standard(
        cls, json: Mapping[str, object]
    ) -> tuple[Mapping[str, object], Mapping[str, object]]:
        return standard(json)

    @property
    def constraints(self) -> Zarr3Constraints:
        return Zarr3Constraints(
            **{each.name: getattr(self, each.name) for each in fields(Zarr3Constraints)}
        )

    def form(self, view: ElementView) -> ArrayInfo:
        """What `info` says of data type and domain: all that most who open an array look at."""
        labels = _labels(self.dimension_names)
        inner = view.inner_shape
        return ArrayInfo(data_type=view.data_type, shape=self.shape, labels=labels, inner=inner)

    def info(self, view: ElementView | None, rank: int | None = None) -> ArrayInfo:
        info = super().info(view, rank)
        return info if info.read_chunk is not None else replace(info, read_chunk=info.write_chunk)

    def serialize(self) -> bytes:
        json = {**self.kept, **self.to_json()}
        if "attributes" in self.kept:
            json["attributes"] = {**thaw(self.attributes), **self.kept["attributes"]}  # type: ignore[dict-item]
        json["codecs"] = _as_stored(json["codecs"])
        return json_module.dumps(json, separators=(",", ":")).encode()

    @property
    def rank(self) -> int:
        return len(self.shape)

    def resized(self, shape: tuple[int, ...]) -> Self:
        shape = shape[: len(self.shape)]
        grid = self.chunk_grid
        if not isinstance(grid, RegularGrid):
            # What is known to fit the codecs is what there is.
            grid = grid.resized(shape, inner_shape(self.codecs, len(shape)) or grid.common)
        return replace(self, shape=shape, chunk_grid=grid)


def _codec_spec(codecs: tuple[CodecModel, ...] | None) -> CodecSpec:
    return _any_codecs() if codecs is None else CodecSpec(Zarr3CodecSpec().replace(codecs=codecs))


@cache
def _any_codecs() -> CodecSpec:
    """The codecs of an array of which nothing is said of them."""
    return CodecSpec(Zarr3CodecSpec())


def _labels(names: Sequence[str | None] | None) -> list[str] | None:
    """Names as labels; None if there are none, or one name stands for two dimensions."""
    if names is None:
        return None
    labels = [name or "" for name in names]
    given = [label for label in labels if label]
    return labels if len(set(given)) == len(given) else None


def _mismatch(name: str, stored: object, asked: object) -> MismatchError:
    return MismatchError(
        f'metadata member "{name}": stored is {describe(stored)}, asked for was {describe(asked)}'
    )


def explicit_codecs(codecs: tuple[CodecModel, ...]) -> tuple[CodecModel, ...]:
    """The codecs with the defaults of their members said, the way a spec shows them."""
    return parse_codec_list(FAMILY, codecs_to_json(FAMILY, codecs, include_defaults=True))


def _as_stored(json: object) -> object:
    """Codec JSON without the usual place of a shard's index, which documents leave unsaid."""
    if isinstance(json, list):
        return [_as_stored(inner) for inner in json]
    if not isinstance(json, dict):
        return json
    return {
        name: _as_stored(value)
        for name, value in json.items()
        if (name, value) != ("index_location", "end")
    }


def _parse_data_type(json: object) -> StoredType:
    try:
        # Frozen first, which bounds how deep records are nested.
        return StoredType.parse(freeze(json))
    except OverflowError as error:
        raise SpecError(str(error)) from None


_PARSERS: dict[str, Callable[[object], object]] = {
    "attributes": parse_attributes,
    "chunk_grid": ChunkGridModel.parse_named,
    "chunk_key_encoding": ChunkKeyEncodingModel.parse_named,
    "codecs": parse_codecs,
    "data_type": _parse_data_type,
    "dimension_names": parse_dimension_names,
    "shape": parse_shape,
}


def _take(name: str, value: object, members: dict[str, object], extra: dict[str, object]) -> None:
    """Put one member of the JSON where it belongs; the fill value comes later."""
    if name in _PARSERS:
        members[name] = _PARSERS[name](value)
    elif name in _CONSTANT:
        wanted = _CONSTANT[name]
        if type(value) is bool or value != wanted:
            raise SpecError(f"expected {describe(wanted)}, but found {describe(value)}")
        if name == "zarr_format":
            members[name] = wanted
    elif name == "storage_transformers":
        if value not in ([], ()):
            raise SpecError(f"no storage transformer is supported, but found {describe(value)}")
    elif name == "consolidated_metadata" or (
        isinstance(value, Mapping) and value.get("must_understand") is False
    ):
        extra[name] = value
    elif name != "fill_value":
        known = (*_PARSERS, *_CONSTANT, "fill_value")
        hint = did_you_mean(name, known, _WORDS)
        if name in _WORDS:
            raise SpecError(f"no such member{hint}")
        raise SpecError(f'no such member{hint}, and not marked {{"must_understand": false}}')


def _plain_members(json: Mapping[str, object]) -> dict[str, object] | None:
    """The members of a whole document in the form that most have; None: the long way is theirs.

    The long way gives the same, and says what is wrong with any other document.
    """
    shape, names = plain_shape(json["shape"]), json.get("dimension_names")
    if shape is None or not json.keys() <= _PLAIN_MEMBERS:
        return None
    stored, version, attributes = json["data_type"], json["zarr_format"], json.get("attributes", {})
    if type(version) is not int or version != 3 or json["node_type"] != "array":
        return None
    if type(attributes) is not dict or "dimension_units" in attributes:
        return None
    if type(stored) is not str or stored not in PLAIN:
        return None
    if "dimension_names" in json and not _are_names(names, len(shape)):
        return None
    grid = RegularGrid.plain(json["chunk_grid"], len(shape))
    if grid is None or json.get("storage_transformers", []) != []:
        return None
    data_type = StoredType.parse(stored)
    try:
        codecs = _stored_codecs(json["codecs"], has_byte_order=data_type.has_byte_order)
        return {
            "shape": shape,
            "data_type": data_type,
            "chunk_grid": grid,
            "chunk_key_encoding": ChunkKeyEncodingModel.parse_named(json["chunk_key_encoding"]),
            "fill_value": _plain_fill_value(json, data_type),
            "codecs": codecs,
            "dimension_names": (None,) * len(shape) if names is None else tuple(names),  # type: ignore[arg-type]
            "attributes": parse_attributes(attributes) if attributes else {},
        }
    except SpecError:
        return None


_PLAIN_MEMBERS = frozenset({*_PARSERS, *_CONSTANT, "fill_value", "storage_transformers"})


#: By the id of a parsed list that is kept, and whether elements have a byte order.
_stored: dict[tuple[int, bool], tuple[tuple[CodecModel, ...], tuple[CodecModel, ...]]] = {}
_REMEMBERED = 256


def _stored_codecs(json: object, *, has_byte_order: bool) -> tuple[CodecModel, ...]:
    """The codecs of a stored document; most arrays of a program have the same few lists.

    Raises:
        SpecError: a list of codecs is wrong, or leaves open how to read it.
    """
    parsed = parse_codec_list(FAMILY, json)
    key = (id(parsed), has_byte_order)
    known = _stored.get(key)
    if known is not None and known[0] is parsed:
        return known[1]
    codecs = parse_codecs(parsed)
    require_complete(codecs, has_byte_order=has_byte_order)
    found = explicit_codecs(codecs)
    if len(_stored) >= _REMEMBERED:
        _stored.clear()
    _stored[key] = (parsed, found)
    return found


def _are_names(names: object, rank: int) -> bool:
    if type(names) is not list or len(names) != rank:
        return False
    return all(name is None or (type(name) is str and name.isascii()) for name in names)


def _plain_fill_value(json: Mapping[str, object], data_type: StoredType) -> NDArray[np.generic]:
    if "fill_value" not in json:
        return default_fill_value(data_type)
    value, stored = json["fill_value"], data_type.stored
    if type(value) is int and not value and stored.isbuiltin == 1 and stored.kind in "iuf":
        return np.zeros((), stored)  # as most have it
    return parse_fill_value(value, data_type)


def _take_fill_value(json: Mapping[str, object], members: dict[str, object]) -> None:
    if "fill_value" not in json:
        return
    data_type = members.get("data_type")
    if not isinstance(data_type, StoredType):
        raise SpecError('can be given only together with "data_type"', ("fill_value",))
    codecs = members.get("codecs")
    endian = stored_endian(codecs) if isinstance(codecs, tuple) else "little"
    try:
        members["fill_value"] = parse_fill_value(json["fill_value"], data_type, endian)
    except SpecError as error:
        raise error.inside("fill_value") from None
