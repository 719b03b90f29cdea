"""How version 2 metadata states the encoding: one compressor or null, and filters.

Both are codecs of the family "zarr", and any of them may be either: a compressor is the filter that
comes last. As filters, null and an empty array mean the same.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, ClassVar

from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import (
    CodecModel,
    JsonForm,
    describe,
    dtype,
)
from tensorstore_py.plugin.driver import (
    CodecSpecModel,
    Unset,
    codec_spec,
    codec_to_json,
    codecs_to_json,
    parse_codec_json,
    parse_codec_list,
)
from tensorstore_py.plugin.kvstore import PlainValidator

__all__ = [
    "CompressorMember",
    "Filters",
    "FiltersMember",
    "ZarrCodecSpec",
    "add_codec_json",
    "compressor_json",
    "default_compressor",
    "default_filters",
    "filters_json",
    "merged_member",
    "object_type",
]

_FAMILY = "zarr"


#: No filters, or some.
Filters = tuple[CodecModel, ...] | None


def parse_compressor(json: object) -> object:
    """The compressor for its JSON; None for null.

    Raises:
        SpecError: no such compressor, or a wrong member.
    """
    if json is None or json is Unset.UNSET:
        return json
    return parse_codec_json(_FAMILY, json)


def parse_filters(json: object) -> object:
    """The filters for their JSON; None for null and for an empty array.

    Raises:
        SpecError: no array, no such filter, or a wrong member; the path names its position.
    """
    if json is None or json is Unset.UNSET:
        return json
    if not isinstance(json, list | tuple):
        raise SpecError(f"expected null or an array of filters, but found {describe(json)}")
    return parse_codec_list(_FAMILY, json) or None


CompressorMember = Annotated[
    CodecModel | Unset | None,
    PlainValidator(parse_compressor),
    JsonForm({"anyOf": [{"x-def": "Codec.zarr"}, {"type": "null"}]}),
]
FiltersMember = Annotated[
    tuple[CodecModel, ...] | Unset | None,
    PlainValidator(parse_filters),
    JsonForm({"anyOf": [{"type": "null"}, {"type": "array", "items": {"x-def": "Codec.zarr"}}]}),
]


@cache
def default_compressor() -> CodecModel:
    """What new arrays are compressed with if nothing is asked."""
    return parse_codec_json(_FAMILY, {"id": "blosc"})


def compressor_json(compressor: CodecModel | None) -> dict[str, object] | None:
    """The compressor as metadata writes it, every member explicit."""
    return None if compressor is None else codec_to_json(_FAMILY, compressor)


def filters_json(filters: Filters) -> list[dict[str, object]] | None:
    """The filters as metadata writes them, every member explicit."""
    return codecs_to_json(_FAMILY, filters) if filters else None


def object_type(filters: Filters | Unset, compressor: CodecModel | Unset | None) -> dtype | None:
    """The data type of the Python objects that are stored by these codecs; None if none are.

    Example:
        >>> object_type(parse_codec_list("zarr", [{"id": "vlen-utf8"}]), None)
        dtype("ustring")
    """
    codecs = () if isinstance(filters, Unset) else filters or ()
    for codec in (*codecs, compressor):
        if isinstance(codec, CodecModel) and codec.object_type is not None:
            return dtype(codec.object_type)
    return None


#: How Python objects of a data type are stored if nothing is asked.
_OBJECT_CODECS = {"ustring": "vlen-utf8", "string": "vlen-bytes", "json": "json2"}


def default_filters(data_type: dtype) -> Filters:
    """What new arrays of a data type are filtered with if nothing is asked.

    Raises:
        SpecError: there are several ways, none of which goes without saying.
    """
    if data_type.kind != "O":
        return None
    name = _OBJECT_CODECS.get(data_type.name)
    if name is None:
        raise SpecError(
            f'data type {data_type.name} is stored by one of several filters: state "metadata": '
            '{"filters": [{"id": "vlen-array", "dtype": "<f8"}]}, for example',
            ("dtype",),
        )
    return parse_codec_list(_FAMILY, [{"id": name}])


def merged_member(
    name: str, mine: CodecModel | Filters | Unset, theirs: CodecModel | Filters | Unset
) -> CodecModel | Filters | Unset:
    """The value of a member that satisfies both constraints; `Unset.UNSET` is none.

    Raises:
        MismatchError: they differ.
    """
    if mine is Unset.UNSET or mine == theirs:
        return theirs
    if theirs is not Unset.UNSET:
        raise MismatchError(f'"{name}" is both {_text(mine)} and {_text(theirs)}')
    return mine


def _text(member: CodecModel | Filters | Unset) -> str:
    if isinstance(member, CodecModel):
        return describe(compressor_json(member))
    return describe(filters_json(None if isinstance(member, Unset) else member))


def add_codec_json(
    json: dict[str, object], compressor: CodecModel | Unset | None, filters: Filters | Unset
) -> None:
    """Print the members that are stated, every member of their codecs explicit."""
    if not isinstance(compressor, Unset):
        json["compressor"] = compressor_json(compressor)
    if not isinstance(filters, Unset):
        json["filters"] = filters_json(filters)


@codec_spec("zarr", aliases=["zarr2"])
class ZarrCodecSpec(CodecSpecModel):
    """The `codec` member of a schema, for this driver.

    Attributes:
        compressor: the compressor; None is no compression, `Unset.UNSET` any.
        filters: the filters; None is none, `Unset.UNSET` any. Always printed, as null if there
            are none, because the reference does.

    Example:
        >>> ZarrCodecSpec.parse({"compressor": {"id": "zlib"}}).to_json()
        {'compressor': {'id': 'zlib', 'level': 1}, 'driver': 'zarr', 'filters': None}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"compressor", "filters"})

    compressor: CompressorMember = Unset.UNSET
    filters: FiltersMember = Unset.UNSET

    @classmethod
    def of_codec(cls, codec: object) -> dict[str, object]:
        return {"compressor": {"id": codec} if isinstance(codec, str) else codec}

    def merged(self, other: ZarrCodecSpec) -> ZarrCodecSpec:
        return self.replace(
            compressor=merged_member("compressor", self.compressor, other.compressor),
            filters=merged_member("filters", self.filters, other.filters),
        )

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        json["filters"] = None
        add_codec_json(json, self.compressor, self.filters)
