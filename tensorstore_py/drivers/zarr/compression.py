"""How version 2 metadata states the encoding: one compressor or null, and filters.

The compressors themselves are codecs of the family "zarr". Filters are accepted only where there
are none: null and an empty array mean the same.
"""

from __future__ import annotations

from typing import Annotated

from tensorstore_py.errors import MismatchError, SpecError, UnsupportedError
from tensorstore_py.plugin import (
    BytesToBytesSpec,
    CodecModel,
    CodecSpecModel,
    JsonForm,
    PlainValidator,
    Unset,
    codec_spec,
    codec_to_json,
    describe,
    parse_codec_json,
)

__all__ = [
    "CompressorMember",
    "FiltersMember",
    "ZarrCodecSpec",
    "compressor_json",
    "default_compressor",
    "merged_compressor",
]

_FAMILY = "zarr"


def parse_compressor(json: object) -> object:
    """The compressor for its JSON; None for null.

    Raises:
        SpecError: no such compressor, or a wrong member.
    """
    if json is None or json is Unset.UNSET:
        return json
    codec = parse_codec_json(_FAMILY, json)
    if not isinstance(codec, BytesToBytesSpec):
        raise SpecError(f'"{codec.codec_id}" is no compressor', ("id",))
    return codec


def check_filters(json: object) -> object:
    """None for null and for an empty array.

    Raises:
        UnsupportedError: there are filters; names them.
        SpecError: something else.
    """
    if json is None or json is Unset.UNSET:
        return json
    if not isinstance(json, list | tuple):
        raise SpecError(f"expected null or an array of filters, but found {describe(json)}")
    if json:
        names = ", ".join(
            describe(item.get("id") if isinstance(item, dict) else item) for item in json
        )
        raise UnsupportedError(
            f"filters: {names} found, but filters are not supported; write the array without"
        )
    return None


CompressorMember = Annotated[
    CodecModel | Unset | None,
    PlainValidator(parse_compressor),
    JsonForm({"anyOf": [{"x-def": "Codec.zarr"}, {"type": "null"}]}),
]
FiltersMember = Annotated[
    Unset | None,
    PlainValidator(check_filters),
    JsonForm({"anyOf": [{"type": "null"}, {"type": "array", "maxItems": 0}]}),
]


def default_compressor() -> CodecModel:
    """What new arrays are compressed with if nothing is asked."""
    return parse_codec_json(_FAMILY, {"id": "blosc"})


def compressor_json(compressor: CodecModel | None) -> dict[str, object] | None:
    """The compressor as metadata writes it, every member explicit."""
    return None if compressor is None else codec_to_json(_FAMILY, compressor)


def merged_compressor(
    mine: CodecModel | Unset | None, theirs: CodecModel | Unset | None
) -> CodecModel | Unset | None:
    """The compressor that satisfies both constraints; `Unset.UNSET` is none.

    Raises:
        MismatchError: they differ.
    """
    if mine is Unset.UNSET or mine == theirs:
        return theirs
    if theirs is not Unset.UNSET:
        raise MismatchError(f'"compressor" is both {_text(mine)} and {_text(theirs)}')
    return mine


def _text(compressor: CodecModel | Unset | None) -> str:
    return describe(compressor_json(compressor) if isinstance(compressor, CodecModel) else None)


@codec_spec("zarr", aliases=["zarr2"])
class ZarrCodecSpec(CodecSpecModel):
    """The `codec` member of a schema, for this driver.

    Attributes:
        compressor: the compressor; None is no compression, `Unset.UNSET` any.
        filters: always printed, as null: it is the only possibility.

    Example:
        >>> ZarrCodecSpec.parse({"compressor": {"id": "zlib"}}).to_json()
        {'compressor': {'id': 'zlib', 'level': 1}, 'driver': 'zarr', 'filters': None}
    """

    compressor: CompressorMember = Unset.UNSET
    filters: FiltersMember = Unset.UNSET

    def merged(self, other: ZarrCodecSpec) -> ZarrCodecSpec:
        return self.replace(compressor=merged_compressor(self.compressor, other.compressor))

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        json["filters"] = None
        if self.compressor is not Unset.UNSET:
            assert self.compressor is None or isinstance(self.compressor, CodecModel)
            json["compressor"] = compressor_json(self.compressor)
