"""How an array of an image is stored in another version of Zarr: JSON to JSON.

Where the other version has words for how chunks are encoded, chunks stay what they are; whether
that is so is looked at when they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tensorstore_py._conversion.new_form import Wanted, new_form
from tensorstore_py._conversion.version2 import codec_in_version2
from tensorstore_py._conversion.version3 import array_in_version3, plain_attributes
from tensorstore_py._index import d
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._conversion.member import SourceArray
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject

__all__ = ["encoded_anew", "with_same_chunks"]

#: Codecs of version 3 whose bytes are those of version 2's codec of that name.
_SAME: Final = frozenset({"gzip", "zstd", "blosc"})


def with_same_chunks(source: SourceArray, to: int, names: tuple[str, ...]) -> JsonObject | None:
    """The metadata of a copy that has the source's chunks; None: there is none.

    Args:
        source: the array.
        to: the version of Zarr.
        names: of its dimensions; none if they are not known.
    """
    document = source.document
    if document is None:
        return None
    if to == 3:
        try:
            found = array_in_version3(document, source.attributes)
        except SpecError:
            return None
        if names and not found.get("dimension_names"):
            found["dimension_names"] = list(names)
        return {name: value for name, value in found.items() if name != "attributes"}
    return _in_version2(source, document)


def _in_version2(source: SourceArray, document: JsonObject) -> JsonObject | None:
    codecs, grid = document.get("codecs"), document.get("chunk_grid")
    if not isinstance(codecs, list) or not isinstance(grid, Mapping):
        return None
    named = [each if isinstance(each, Mapping) else {"name": each} for each in codecs]
    first, rest = named[:1], named[1:]
    plain = bool(first) and first[0].get("name") == "bytes" and len(rest) <= 1
    endian = (first[0].get("configuration") or {}).get("endian") if first else None
    dtype = source.array.dtype.array_dtype
    if (
        not plain
        or grid.get("name") != "regular"
        or dtype.kind not in "biuf"
        or dtype.isbuiltin != 1
        or endian == "big"
        or any(each.get("name") not in _SAME for each in rest)
    ):
        return None
    chunks = grid["configuration"]["chunk_shape"]
    return {
        "zarr_format": 2,
        "shape": list(source.shape),
        "chunks": list(chunks),
        "dtype": dtype.newbyteorder("<").str,
        "fill_value": document.get("fill_value"),
        "filters": None,
        "order": "C",
        "dimension_separator": "/",
        **codec_in_version2(rest),
    }


def encoded_anew(
    source: SourceArray, form: HierarchyFormat, names: tuple[str, ...]
) -> tuple[dict[str, object], JsonObject]:
    """The options of a new array, and its attributes, whose chunks are encoded anew."""
    if names and source.array.domain.labels != names and form.zarr_format == 3:
        source = source._replace(array=source.array[d[:].label[names]])
    found = new_form(source, form, Wanted())
    options = dict(found.options)
    if form.zarr_format == 2:
        metadata = options.get("metadata")
        stated = dict(metadata) if isinstance(metadata, Mapping) else {}
        options["metadata"] = {**stated, "dimension_separator": "/"}
        options.pop("dimension_units", None)
        labels = source.array.domain.labels
        if any(labels):
            options["domain"] = source.array.domain.label[("",) * len(labels)]
    return options, found.attributes


def attributes_in(source: SourceArray, to: int) -> JsonObject:
    """The attributes of a copy."""
    if to == 3:
        return plain_attributes(source.attributes, len(source.shape))
    return {name: value for name, value in source.attributes.items() if name != "dimension_units"}
