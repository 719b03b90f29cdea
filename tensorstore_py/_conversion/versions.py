"""Metadata of one version of Zarr said in another: JSON to JSON.

Version 1 in 2: chunks mean the same in both, under the same names. Version 1 has no hierarchies: an
array is a `meta` and an `attrs`, and chunks.

Version 2 in 3, so that stored chunks mean what they meant: what the chunks of version 3 cannot be
like is a `SpecError` that says why. A translation is not taken on trust: its callers open both
arrays and compare them.

Codecs of version 3 in 2, for new arrays: chunks are encoded anew, so what has no counterpart is
left out, and only how well chunks are compressed depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = [
    "LABELS",
    "array_in_version2",
    "array_in_version3",
    "codec_in_version2",
    "codecs_in_version3",
    "data_type_in_version3",
    "labels_in",
    "plain_attributes",
]


_KEPT = ("shape", "chunks", "dtype", "order")


def array_in_version2(meta: Mapping[str, object]) -> JsonObject:
    """The `.zarray` of an array whose `meta` this is.

    Raises SpecError: it is no such document, or version 2 cannot say it; names the member.

    Example:
        >>> meta = {"zarr_format": 1, "shape": [20], "chunks": [10], "dtype": "<i4", "order": "C"}
        >>> opts = {"compression": "zlib", "compression_opts": 1, "fill_value": 42}
        >>> array_in_version2({**meta, **opts})["compressor"]
        {'id': 'zlib', 'level': 1}
    """
    if meta.get("zarr_format") != 1:
        found = describe(meta.get("zarr_format"))
        raise SpecError(f"expected 1, but found {found}", ("zarr_format",))
    for name in _KEPT:
        if name not in meta:
            raise SpecError("this member is required", (name,))
    if meta["shape"] == []:
        raise SpecError("an array without dimensions has no chunks in version 1", ("shape",))
    return {
        "zarr_format": 2,
        **{name: meta[name] for name in _KEPT},
        "fill_value": _fill_value_in_2(meta.get("fill_value")),
        "compressor": _compressor_in_2(meta.get("compression"), meta.get("compression_opts")),
        "filters": None,
    }


def _fill_value_in_2(value: object) -> object:
    """Version 2 has words for what is no number in JSON."""
    if not isinstance(value, float) or value - value == 0:
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _compressor_in_2(name: object, options: object) -> JsonObject | None:
    if name in (None, "none"):
        return None
    stated: Mapping[str, object] = options if isinstance(options, Mapping) else {}
    if name == "blosc":
        shuffle = stated.get("shuffle", 1)
        return {
            "id": "blosc",
            "cname": stated.get("cname", "lz4"),
            "clevel": stated.get("clevel", 5),
            "shuffle": int(shuffle) if isinstance(shuffle, int) else shuffle,
            "blocksize": 0,
        }
    if name in ("zlib", "bz2"):
        level = options if isinstance(options, int) else stated.get("level", 1)
        return {"id": str(name), "level": level}
    if name == "lzma":
        return {
            "id": "lzma",
            "format": stated.get("format", 1),
            "check": stated.get("check", -1),
            "preset": stated.get("preset"),
            "filters": stated.get("filters"),
        }
    raise SpecError(f"compression {describe(name)} is not known", ("compression",))


_SHUFFLES_OF_3 = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def codec_in_version2(codecs: Iterable[object]) -> JsonObject:
    """The members of version 2's codec for a chain of version 3.

    Example:
        >>> codec_in_version2(["bytes", {"name": "gzip", "configuration": {"level": 6}}])
        {'compressor': {'id': 'gzip', 'level': 6}}
        >>> codec_in_version2(["bytes"])
        {'compressor': None}
    """
    compressor: JsonObject | None = None
    for codec in codecs:
        name = codec.get("name") if isinstance(codec, Mapping) else codec
        stated = codec.get("configuration") if isinstance(codec, Mapping) else None
        configuration: Mapping[str, object] = stated if isinstance(stated, Mapping) else {}
        if name == "sharding_indexed":
            inner = configuration.get("codecs")
            return codec_in_version2(inner if isinstance(inner, list | tuple) else ())
        if name == "gzip":
            compressor = {"id": "gzip", "level": configuration.get("level", 6)}
        elif name == "zstd":
            compressor = {"id": "zstd", "level": configuration.get("level", 0)}
        elif name == "blosc":
            compressor = _blosc_in_2(configuration)
        elif isinstance(name, str) and name in ("numcodecs.zlib", "numcodecs.bz2", "numcodecs.lz4"):
            compressor = {"id": name.partition(".")[2], **configuration}
    return {"compressor": compressor}


def _blosc_in_2(configuration: Mapping[str, object]) -> JsonObject:
    return {
        "id": "blosc",
        "cname": configuration.get("cname", "lz4"),
        "clevel": configuration.get("clevel", 5),
        "shuffle": _SHUFFLES_OF_3.get(str(configuration.get("shuffle")), -1),
        "blocksize": configuration.get("blocksize", 0),
    }


#: Where arrays of version 2 have the names of their dimensions.
LABELS: Final = "_ARRAY_DIMENSIONS"

#: Codecs of version 2 by what they make of what; those that only `numcodecs` has keep their form.
_OF_ARRAYS: Final = frozenset(
    ["astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize"]
)
_TO_BYTES: Final = frozenset(["pcodec", "zfpy"])
_OF_BYTES: Final = frozenset(
    ["adler32", "bz2", "crc32", "crc32c", "fletcher32", "jenkins_lookup3", "lz4", "lzma", "shuffle",
     "zlib"]
)  # fmt: skip
_OF_OBJECTS: Final = {"vlen-utf8": "string", "vlen-bytes": "variable_length_bytes"}
_SHUFFLES: Final = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}


def array_in_version3(document: Mapping[str, object], attributes: JsonObject) -> JsonObject:
    """The `zarr.json` of an array whose chunks stay where and as they are.

    Raises SpecError: chunks like these cannot be said in version 3; says why.

    Example:
        >>> old = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i2", "order": "C"}
        >>> new = array_in_version3({**old, "fill_value": None, "compressor": None}, {})
        >>> new["data_type"], new["fill_value"], new["codecs"]
        ('int16', 0, [{'name': 'bytes', 'configuration': {'endian': 'little'}}])
    """
    shape, chunks = _extents(document, "shape"), _extents(document, "chunks")
    if len(shape) != len(chunks):
        raise SpecError(f"shape has {len(shape)} dimensions, but chunks has {len(chunks)}")
    data_type = data_type_in_version3(document)
    separator = document.get("dimension_separator", ".")
    new: JsonObject = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [max(1, size) for size in chunks]},
        },
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": separator}},
        "fill_value": _fill_value(document.get("fill_value"), data_type),
        "codecs": codecs_in_version3(document),
        "attributes": plain_attributes(attributes, len(shape)),
    }
    labels = labels_in(attributes, len(shape))
    if labels is not None:
        new["dimension_names"] = labels
    return new


def data_type_in_version3(document: Mapping[str, object]) -> object:
    """The data type of a `.zarray`.

    Raises SpecError: version 3 has none with the same bytes.

    Example:
        >>> data_type_in_version3({"dtype": "|S3"})
        {'name': 'null_terminated_bytes', 'configuration': {'length_bytes': 3}}
    """
    dtype = document.get("dtype")
    return _OF_OBJECTS[_object_codec(document)] if dtype == "|O" else _named_type(dtype)


def codecs_in_version3(document: Mapping[str, object], *, order: bool = True) -> list[JsonObject]:
    """The codecs that read chunks of a `.zarray`, with that for the order of elements, or not.

    Raises SpecError: some codec has no counterpart; names it.
    """
    chunks = _extents(document, "chunks")
    of_arrays: list[JsonObject] = []
    of_bytes: list[JsonObject] = []
    to_bytes = _serializer(document)
    if order and document.get("order") == "F" and len(chunks) > 1:
        axes = list(range(len(chunks)))[::-1]
        of_arrays.append({"name": "transpose", "configuration": {"order": axes}})
    listed = document.get("filters") or []
    compressor = document.get("compressor")
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise SpecError(f"expected an array, but found {describe(listed)}", ("filters",))
    for codec in [*listed, *([compressor] if compressor else [])]:
        if not isinstance(codec, Mapping) or not isinstance(codec.get("id"), str):
            raise SpecError(f"{describe(codec)} is no codec")
        name = codec["id"]
        if name == to_bytes["name"]:
            continue  # it is the serializer
        new = _codec(codec, document)
        if name in _OF_ARRAYS and not of_bytes:
            of_arrays.append(new)
        elif name in _TO_BYTES and not of_bytes:
            to_bytes = new
        elif name not in _OF_ARRAYS | _TO_BYTES:
            of_bytes.append(new)
        else:
            raise SpecError(f'codec "{name}" comes after one that makes bytes')
    return [*of_arrays, to_bytes, *of_bytes]


def labels_in(attributes: Mapping[str, object], rank: int) -> list[str] | None:
    """The names of dimensions that attributes of version 2 hold; None if they hold none."""
    labels = attributes.get(LABELS)
    if not isinstance(labels, list) or len(labels) != rank or not rank:
        return None
    return labels if all(isinstance(label, str) for label in labels) else None


def plain_attributes(attributes: JsonObject, rank: int) -> JsonObject:
    """Attributes without the names of dimensions, which have a place of their own."""
    if labels_in(attributes, rank) is None:
        return attributes
    return {name: value for name, value in attributes.items() if name != LABELS}


def _codec(codec: Mapping[str, object], document: Mapping[str, object]) -> JsonObject:
    name = str(codec["id"])
    configuration = {member: value for member, value in codec.items() if member != "id"}
    if name == "gzip":
        return {"name": "gzip", "configuration": {"level": configuration.get("level", 1)}}
    if name == "zstd":
        level, checksum = configuration.get("level", 0), bool(configuration.get("checksum", False))
        return {"name": "zstd", "configuration": {"level": level, "checksum": checksum}}
    if name == "blosc":
        return {"name": "blosc", "configuration": _blosc(configuration, document)}
    if name in _OF_ARRAYS | _TO_BYTES | _OF_BYTES:
        return {"name": f"numcodecs.{name}", "configuration": configuration}
    raise SpecError(f'codec "{name}" has no counterpart in version 3')


def _blosc(codec: Mapping[str, object], document: Mapping[str, object]) -> JsonObject:
    item_bytes = _item_bytes(document)
    shuffle = codec.get("shuffle", 1)
    if shuffle == -1:  # whatever suits
        shuffle = 2 if item_bytes == 1 else 1
    if not isinstance(shuffle, int) or int(shuffle) not in _SHUFFLES:
        raise SpecError(f"expected 0, 1, 2 or -1, but found {describe(shuffle)}", ("shuffle",))
    return {
        "cname": codec.get("cname", "lz4"),
        "clevel": codec.get("clevel", 5),
        "shuffle": _SHUFFLES[int(shuffle)],
        "typesize": item_bytes,
        "blocksize": codec.get("blocksize", 0),
    }


def _serializer(document: Mapping[str, object]) -> JsonObject:
    if document.get("dtype") == "|O":
        name = _object_codec(document)
        return {"name": name, "configuration": {}}
    endian = _endian(document.get("dtype"))
    return {"name": "bytes", "configuration": {"endian": endian} if endian else {}}


def _object_codec(document: Mapping[str, object]) -> str:
    filters = document.get("filters")
    for codec in filters if isinstance(filters, list | tuple) else ():
        name = codec.get("id") if isinstance(codec, Mapping) else None
        if name in _OF_OBJECTS:
            return str(name)
        raise SpecError(f'objects that codec "{name}" stores have no data type in version 3')
    raise SpecError("objects need a codec among filters")


def _named_type(dtype: object) -> object:
    """The data type of version 3 with the same bytes."""
    if isinstance(dtype, list | tuple):
        return {"name": "structured", "configuration": {"fields": [_field(each) for each in dtype]}}
    found = _numpy(dtype)
    if found is None:
        return dtype  # both versions have the same names for types that NumPy lacks
    size, kind = found.itemsize, found.kind
    if kind in "biufc":
        return found.name
    if kind in "mM":
        unit, scale = np.datetime_data(found)  # type: ignore[arg-type]
        name = "numpy.datetime64" if kind == "M" else "numpy.timedelta64"
        return {"name": name, "configuration": {"unit": unit, "scale_factor": scale}}
    names = {"S": "null_terminated_bytes", "U": "fixed_length_utf32", "V": "raw_bytes"}
    if kind not in names or not size:
        raise SpecError(f'type "{dtype}" has no counterpart in version 3', ("dtype",))
    return {"name": names[kind], "configuration": {"length_bytes": size}}


def _field(json: object) -> list[object]:
    if not isinstance(json, list | tuple) or len(json) not in (2, 3):
        raise SpecError(f"expected [name, type], but found {describe(json)}", ("dtype",))
    if len(json) == 3 and json[2]:
        raise SpecError(
            f'field "{json[0]}" is an array, which a record in version 3 cannot hold', ("dtype",)
        )
    return [json[0], _named_type(json[1])]


def _endian(dtype: object) -> str | None:
    """The byte order of an element; None if it has none.

    Raises SpecError: fields differ.
    """
    if isinstance(dtype, list | tuple):
        found = {_endian(each[1]) for each in dtype} - {None}
        if len(found) > 1:
            raise SpecError("fields differ in byte order, which version 3 cannot say", ("dtype",))
        return found.pop() if found else None
    if isinstance(dtype, str) and dtype[:1] in "<>":
        return "little" if dtype[0] == "<" else "big"
    return "little" if _numpy(dtype) is None else None


def _numpy(dtype: object) -> np.dtype[np.generic] | None:
    """NumPy's type for a type string; None for names of types that it lacks."""
    if not isinstance(dtype, str):
        raise SpecError(f"expected a type, but found {describe(dtype)}", ("dtype",))
    if dtype[:1] not in "<>|":
        return None
    try:
        return np.dtype(dtype)
    except TypeError:
        raise SpecError(f'type "{dtype}" is not known', ("dtype",)) from None


def _item_bytes(document: Mapping[str, object]) -> int:
    dtype = document.get("dtype")
    if isinstance(dtype, list | tuple):
        return sum(_item_bytes({"dtype": each[1]}) for each in dtype)
    found = _numpy(dtype)
    return 1 if found is None or found.hasobject else max(1, found.itemsize)


def _fill_value(json: object, data_type: object) -> object:
    name = data_type["name"] if isinstance(data_type, dict) else data_type
    if name in ("string", "fixed_length_utf32"):
        return json if isinstance(json, str) else ""
    if json is not None:
        return json
    if isinstance(data_type, dict) and "length_bytes" in data_type["configuration"]:
        return ""
    if name in ("variable_length_bytes", "structured"):
        return ""
    text = str(name)
    if text == "bool":
        return False
    if text.startswith("complex"):
        return [0.0, 0.0]
    return 0.0 if "float" in text else 0


def _extents(document: Mapping[str, object], name: str) -> list[int]:
    found = document.get(name)
    if not isinstance(found, list | tuple) or not all(
        isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in found
    ):
        raise SpecError(f"expected an array of sizes, but found {describe(found)}", (name,))
    return list(found)
