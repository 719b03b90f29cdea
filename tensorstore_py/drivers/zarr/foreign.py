"""What other writers left in `.zarray`, in the words of the format.

Called only for a document that was refused, so one that keeps to the format is never touched. What
has one meaning is put right: members left out, null for what is not said, numbers as text, members
of compressors that only a writer needs. What could mean two things stays, and is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["standard"]

#: What a document that lacks a member means.
_UNSAID: Final[dict[str, object]] = {
    "compressor": None,
    "fill_value": None,
    "filters": None,
    "order": "C",
}
#: Names and codes of NumPy types without byte order: that of nearly all machines is meant.
_NAMED = re.compile(r"(bool|int|uint|float|complex)(|8|16|32|64|128)", re.ASCII)
_CODED = re.compile(r"[=|]?([biufc])(\d+)", re.ASCII)
_KINDS = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}
_SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
#: Members that say how to compress, not what was made of it.
_TUNING = ("nbWorkers", "nthreads", "typesize", "useZlib")
_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
_USUAL_LEVEL = {"gzip": 6, "zlib": 6}


def standard(document: Mapping[str, object]) -> dict[str, object]:
    """A document in the words of the format.

    Example:
        >>> found = standard({"dtype": "uint16", "fill_value": "0", "order": None})
        >>> found["dtype"], found["fill_value"], found["order"], found["filters"]
        ('<u2', 0, 'C', None)
    """
    found = {**_UNSAID, **document}
    if found["order"] is None:
        found["order"] = "C"
    if found.get("dimension_separator", "") is None:
        del found["dimension_separator"]
    dtype = found.get("dtype")
    if isinstance(dtype, str):
        found["dtype"] = dtype = _dtype(dtype)
        found["fill_value"] = _fill_value(found["fill_value"], dtype)
    found["compressor"] = _codec(found["compressor"])
    filters = found["filters"]
    if isinstance(filters, list):
        found["filters"] = [_codec(each) for each in filters]
    shape, chunks = found.get("shape"), found.get("chunks")
    if isinstance(shape, list) and isinstance(chunks, list) and len(shape) == len(chunks):
        # some made chunks of size 0 of dimensions of size 0
        pairs = zip(chunks, shape, strict=True)
        found["chunks"] = [size or 1 if extent == 0 else size for size, extent in pairs]
    return found


def _dtype(text: str) -> str:
    named = _NAMED.fullmatch(text)
    if named is not None and (named[1] == "bool") == (named[2] == ""):
        size = int(named[2] or 8) // 8
        return f"{'|' if size == 1 else '<'}{_KINDS[named[1]]}{size}"
    coded = _CODED.fullmatch(text)
    if coded is not None:
        return f"{'|' if coded[2] == '1' else '<'}{coded[1]}{coded[2]}"
    return text


def _fill_value(json: object, dtype: str) -> object:
    """A number that was written as text."""
    kind = dtype[1:2]
    if kind not in "iuf" or not isinstance(json, str):
        return json
    if kind == "f" and json.lower() in _SPECIAL:
        return _SPECIAL[json.lower()]
    try:
        return int(json) if kind in "iu" else float(json)
    except ValueError:
        return json


def _codec(json: object) -> object:
    """A compressor or filter without members that say nothing to a reader."""
    if not isinstance(json, Mapping):
        return json
    name = json.get("id")
    tuning = () if name == "gzip" and json.get("useZlib") is True else _TUNING
    found = {key: value for key, value in json.items() if key not in tuning}
    if name == "blosc":
        shuffle = found.get("shuffle")
        if isinstance(shuffle, bool):
            found["shuffle"] = int(shuffle)
        elif isinstance(shuffle, str) and shuffle in _SHUFFLES:
            found["shuffle"] = _SHUFFLES[shuffle]
        return {key: value for key, value in found.items() if value is not None}
    if isinstance(name, str) and name in _USUAL_LEVEL and found.get("level", 0) in (-1, None):
        found["level"] = _USUAL_LEVEL[name]
    return found
