"""What other writers left in `zarr.json`, in the words of the format.

Called only for a document that was refused, so one that keeps to the format is never touched. What
has one meaning is put right: null for what is not said, older names, other places. What could mean
two things stays, and is an error. Nothing here is accepted in a spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["standard"]

#: Members of a document that may say that nothing is said.
_MAY_BE_NULL = ("attributes", "dimension_names", "fill_value", "storage_transformers")
_BYTES: Final = {"name": "bytes", "configuration": {"endian": "little"}}
_LARGEST_TYPE = 255
#: Shards in shards; more are refused, and not looked at here.
_DEEPEST = 16
_UNITS = "dimension_units"
_NUMCODECS = "numcodecs."
#: Names that zarrs gave to codecs before they were registered.
_NAMES = {
    "bitround": "bitround",
    "bz2": "numcodecs.bz2",
    "crc32c": "crc32c",
    "fletcher32": "numcodecs.fletcher32",
    "pcodec": "numcodecs.pcodec",
    "vlen_bytes": "vlen-bytes",
    "vlen_utf8": "vlen-utf8",
    "zlib": "numcodecs.zlib",
}
_PREFIXES = ("https://codec.zarrs.dev/", "zarrs.")


def standard(document: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """A document in the words of the format, and what is kept, but is none of its members.

    Example:
        >>> standard({"dimension_names": None, "codecs": [], "extensions": []})
        ({'codecs': [{'name': 'bytes', 'configuration': {'endian': 'little'}}]}, {'extensions': []})
    """
    found: dict[str, object] = {}
    kept: dict[str, object] = {}
    shape = document.get("shape")
    for name, value in document.items():
        if name == "extensions" and value == []:
            kept[name] = value  # of a draft; none are asked for
        elif name == "attributes" and isinstance(value, Mapping):
            found[name], others = _attributes(value, shape)
            kept.update({name: others} if others else {})
        elif name == "chunk_grid" and isinstance(value, Mapping):
            found[name] = _chunk_grid(value, shape)
        elif name == "codecs" and isinstance(value, list):
            # without any, elements are stored as they are
            found[name] = [_codec(codec) for codec in value] or [_BYTES]
        elif name == "chunk_key_encoding" and isinstance(value, Mapping):
            found[name] = _key_encoding(value)
        elif value is not None or name not in _MAY_BE_NULL:
            found[name] = value
    return found, kept


def _attributes(
    json: Mapping[str, object], shape: object
) -> tuple[dict[str, object], dict[str, object]]:
    """The attributes without units that are not those of the dimensions, and these."""
    units = json.get(_UNITS, [])
    rank = len(shape) if isinstance(shape, list) else 0
    is_form = isinstance(units, list) and all(isinstance(unit, str | None) for unit in units)
    if _UNITS not in json or (is_form and len(units) == rank):  # type: ignore[arg-type]
        return dict(json), {}
    return {name: json[name] for name in json if name != _UNITS}, {_UNITS: units}


def _chunk_grid(json: Mapping[str, object], shape: object) -> dict[str, object]:
    """Chunks of size 0, as some have made them of dimensions of size 0."""
    configuration = json.get("configuration")
    if not isinstance(configuration, Mapping) or not isinstance(shape, list):
        return dict(json)
    sizes = configuration.get("chunk_shape")
    if not isinstance(sizes, list) or len(sizes) != len(shape):
        return dict(json)
    sizes = [size or 1 if extent == 0 else size for size, extent in zip(sizes, shape, strict=True)]
    return {**json, "configuration": {**configuration, "chunk_shape": sizes}}


def _key_encoding(json: Mapping[str, object]) -> dict[str, object]:
    """The separator was once a member of the object itself."""
    members = {name: value for name, value in json.items() if value is not None}
    separator = members.pop("separator", None)
    if separator is not None and "configuration" not in members:
        members["configuration"] = {"separator": separator}
    return members


def _codec(json: object, depth: int = 0) -> object:
    """A codec by the name that is registered, without members that say nothing."""
    if isinstance(json, str):
        json = {"name": json}
    if not isinstance(json, Mapping) or not isinstance(json.get("name"), str):
        return json
    codec = {name: value for name, value in json.items() if value is not None}
    name = codec["name"] = _registered_name(json["name"])
    configuration = codec.get("configuration", {})
    if isinstance(configuration, Mapping):
        codec["configuration"] = _configuration(name, configuration, depth)
    return codec


def _registered_name(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            last = name.rpartition("/")[2].removeprefix(prefix)
            return _NAMES.get(last, last)
    return name


def _configuration(name: str, json: Mapping[str, object], depth: int) -> dict[str, object]:
    nulls = name.startswith(_NUMCODECS)  # some of those mean something
    members = {key: value for key, value in json.items() if nulls or value is not None}
    if nulls and f"{_NUMCODECS}{members.get('id')}" == name:
        del members["id"]
    if name == "blosc":
        return _blosc(members)
    if name in ("bytes", "endian"):
        return {"endian": "little", **members}
    for inner in ("codecs", "index_codecs"):
        codecs = members.get(inner)
        if isinstance(codecs, list) and depth < _DEEPEST:
            members[inner] = [_codec(codec, depth + 1) for codec in codecs]
    return members


def _blosc(members: dict[str, object]) -> dict[str, object]:
    """Elements that are larger than the library has room for."""
    size = members.get("typesize")
    if type(size) is int and size > _LARGEST_TYPE:
        # The library then takes 1, with which no shuffle does anything.
        members["typesize"] = 1
    return members
