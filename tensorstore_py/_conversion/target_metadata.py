"""What a copied array is to be like: as the source, but for what was asked for.

Pure: options and a source become the options of a new array. The one invariant: what the caller
does not ask to change stays as it is, as far as the new format can say it; where nothing changes at
all, the metadata document itself is taken, and chunks are copied as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._conversion.versions import (
    codec_in_version2,
    codecs_in_version3,
    data_type_in_version3,
    plain_attributes,
)
from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._conversion.endpoints import SourceArray
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject

__all__ = ["Chunks", "RequestedMetadata", "TargetMetadata", "target_metadata"]


#: An extent for every dimension or for all alike, or by a dimension's name; -1: all of it.
Chunks = int | Sequence[int] | Mapping[str, int]


class RequestedMetadata(NamedTuple):
    """What was asked for; None: as the source."""

    chunks: Chunks | None = None
    shards: Chunks | None = None
    chunk_layout: ChunkLayout | None = None
    codec: object = None
    dtype: object = None
    fill_value: object = None

    @property
    def changes(self) -> list[str]:
        """The names of what is asked for."""
        return [name for name, value in zip(self._fields, self, strict=True) if value is not None]

    def check_names(self, labels: Collection[str]) -> None:
        """Refuse extents of dimensions that no array has.

        Raises SpecError: names the dimension, and those that there are.
        """
        for argument, extents in (("chunks", self.chunks), ("shards", self.shards)):
            for name in extents if isinstance(extents, Mapping) else ():
                if name not in labels:
                    there = ", ".join(f'"{label}"' for label in sorted(labels))
                    raise SpecError(
                        f'no dimension is named "{name}"; '
                        + (f"there are {there}" if there else "none has a name: give numbers"),
                        (argument,),
                    )


class TargetMetadata(NamedTuple):
    """How an array is to be made."""

    options: dict[str, object]
    attributes: JsonObject
    same_chunks: bool
    how: str


def target_metadata(
    source: SourceArray, form: HierarchyFormat | None, wanted: RequestedMetadata
) -> TargetMetadata:
    """What the copy of an array is to be like in a format; None: one without hierarchies.

    Raises SpecError, MismatchError: what is wanted does not fit the array.
    """
    changes = wanted.changes
    same_format = form is not None and source.form is form
    if same_format and not changes and source.document is not None:
        metadata = _plain_metadata(source.document, source.attributes)
        same = {"metadata": metadata, "dtype": source.array.dtype}
        return TargetMetadata(same, source.attributes, True, "chunks as they are")
    labels = source.array.domain.labels
    options: dict[str, object] = {
        "dtype": source.array.dtype if wanted.dtype is None else wanted.dtype,
        "domain": IndexDomain(shape=source.shape, labels=labels),
        "chunk_layout": _layout(source, form, wanted),
        "fill_value": _fill_value(source, form, wanted),
        "codec": _codec(source, form, wanted),
    }
    units = source.array.dimension_units
    if any(units):
        options["dimension_units"] = units
    if source.form is form and form is not None and source.document is not None:
        options.update(_kept_names(source.document))
    elif form is not None and form.driver == "zarr3" and wanted.dtype is None:
        options.update(_kept_record(source))
    attributes = source.attributes
    if form is not None and form.zarr_format != 2:
        attributes = plain_attributes(attributes, len(source.shape))
    if form is not None and source.form is not None and not same_format:
        changes = [f"{source.form.format_id} to {form.format_id}", *changes]
    how = ", ".join(changes) or "element by element"
    present = {name: value for name, value in options.items() if value is not None}
    return TargetMetadata(present, attributes, False, how)


def _plain_metadata(document: JsonObject, attributes: JsonObject) -> JsonObject:
    """An array's document without its attributes, which are given apart."""
    if "attributes" in document or "node_type" in document:
        return {name: value for name, value in document.items() if name != "attributes"}
    return {name: value for name, value in document.items() if name not in attributes}


def _kept_record(source: SourceArray) -> dict[str, object]:
    """The form of a record type that zarr-python reads, if the source is one of version 2."""
    document = source.document or {}
    if not isinstance(document.get("dtype"), list):
        return {}
    try:
        return {"metadata": {"data_type": data_type_in_version3(document)}}
    except SpecError:  # a new array says in its own way why it cannot be
        return {}


def _fill_value(
    source: SourceArray, form: HierarchyFormat | None, wanted: RequestedMetadata
) -> object:
    present = source.array.fill_value
    if wanted.fill_value is not None or present is None:
        return wanted.fill_value
    if (form is None or form.zarr_format is None) and not present.any():
        return None  # what is not stored is 0 anyway, and there may be no place to say it
    return present


def _kept_names(document: JsonObject) -> dict[str, object]:
    """How chunks are named stays, in a format that has a choice."""
    names = ("chunk_key_encoding", "dimension_separator")
    metadata = {name: document[name] for name in names if name in document}
    return {"metadata": metadata} if metadata else {}


def _layout(
    source: SourceArray, form: HierarchyFormat | None, wanted: RequestedMetadata
) -> ChunkLayout | None:
    if wanted.chunk_layout is not None:
        if wanted.chunks is not None or wanted.shards is not None:
            raise SpecError("chunks and shards are part of it; give one or the other",
                            ("chunk_layout",))  # fmt: skip
        return wanted.chunk_layout
    present = source.array.chunk_layout
    read, write = _sizes(present.read_chunk.shape), _sizes(present.write_chunk.shape)
    if wanted.chunks is not None:
        read = _resolved(source, "chunks", wanted.chunks, read)
        write = None
    if wanted.shards is not None:
        write = _resolved(source, "shards", wanted.shards, write)
    elif write is None or (form is not None and form.zarr_format != 3):
        write = read
    layout: dict[str, object] = {}
    if read is not None:
        layout["read_chunk"] = {"shape": list(read)}
    if write is not None:
        layout["write_chunk"] = {"shape": list(write)}
    if source.document is not None and present.inner_order is not None:
        layout["inner_order_soft_constraint"] = list(present.inner_order)
    return ChunkLayout(layout) if layout else None


def _sizes(shape: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    if shape is None or not any(shape):
        return None
    return tuple(size or 0 for size in shape)


def _resolved(
    source: SourceArray, name: str, wanted: Chunks, present: tuple[int, ...] | None
) -> tuple[int, ...]:
    """The extent along each dimension; what is not given stays, or is all of it."""
    shape, labels = source.shape, source.array.domain.labels
    kept = present or shape
    if isinstance(wanted, Mapping):
        found = [wanted.get(label, size) if label else size
                 for label, size in zip(labels, kept, strict=True)]  # fmt: skip
    elif isinstance(wanted, int):
        found = [wanted] * len(shape)
    else:
        found = list(wanted)
    if len(found) != len(shape):
        raise MismatchError(
            f'{name} has {len(found)} dimensions, but "/{source.path}" has {len(shape)}; give one '
            "number for all of them or extents by dimension name, or copy only some arrays "
            "(includes)"
        )
    if found != list(kept) and any(size < -1 or size == 0 for size in found):
        raise SpecError(f"expected positive extents, or -1 for all, but found {found}", (name,))
    return tuple(max(1, extent) if size == -1 else size
                 for size, extent in zip(found, shape, strict=True))  # fmt: skip


def _codec(source: SourceArray, form: HierarchyFormat | None, wanted: RequestedMetadata) -> object:
    """The codec for the new array, as `ts.open` takes it; None: the format's default."""
    if form is None:
        return wanted.codec
    if wanted.codec is not None:
        return CodecSpec.like(wanted.codec, form.driver)
    present = source.array.codec
    if present is None:
        return None
    json = present.to_json()
    codecs = json.get("codecs")
    if form.zarr_format == 3 and form.driver == "zarr3":
        if isinstance(codecs, list):
            return CodecSpec({"driver": "zarr3", "codecs": _inner_codecs(codecs, source, wanted)})
        if source.form is None or source.form.zarr_format != 2 or source.document is None:
            return None
        try:
            mapped: list[object] = [*codecs_in_version3(source.document, order=False)]
        except SpecError:  # then it has no counterpart, and the default has to do
            return None
        return CodecSpec({"driver": "zarr3", "codecs": _inner_codecs(mapped, source, wanted)})
    if form.zarr_format == 2 and form.driver == "zarr":
        if isinstance(codecs, list):
            return CodecSpec({"driver": "zarr", **codec_in_version2(codecs)})
        return present if present.driver in ("zarr", "zarr2") and wanted.dtype is None else None
    return present if source.form is form and wanted.dtype is None else None


def _inner_codecs(
    codecs: list[object], source: SourceArray, wanted: RequestedMetadata
) -> list[object]:
    """The codecs of a chain that say how a chunk is compressed, without those that say its form.

    Sharding and the order of elements are the layout's matter. What a codec tells of the element
    size is wrong once that changes, and so is what its serializer tells.
    """
    kept: list[object] = []
    for codec in codecs:
        name = codec.get("name") if isinstance(codec, Mapping) else codec
        stated = codec.get("configuration") if isinstance(codec, Mapping) else None
        configuration = dict(stated) if isinstance(stated, Mapping) else {}
        if name == "sharding_indexed":
            inner = configuration.get("codecs")
            return _inner_codecs(list(inner) if isinstance(inner, list) else [], source, wanted)
        if name == "transpose" or (wanted.dtype is not None and name in ("bytes", "packbits")):
            continue
        if name == "blosc" and wanted.dtype is not None:
            configuration.pop("typesize", None)
        kept.append({"name": name, "configuration": configuration} if configuration else name)
    return kept
