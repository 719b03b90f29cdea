"""Metadata of Zarr version 1 said in version 2: chunks mean the same in both, under the same names.

Pure: JSON to JSON. Version 1 has no hierarchies: an array is a `meta` and an `attrs`, and chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = ["array_in_version2"]

_KEPT = ("shape", "chunks", "dtype", "order")


def array_in_version2(meta: Mapping[str, object]) -> JsonObject:
    """The `.zarray` of an array whose `meta` this is.

    Raises:
        SpecError: it is no such document, or version 2 cannot say it; names the member.

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
        "fill_value": _fill_value(meta.get("fill_value")),
        "compressor": _compressor(meta.get("compression"), meta.get("compression_opts")),
        "filters": None,
    }


def _fill_value(value: object) -> object:
    """Version 2 has words for what is no number in JSON."""
    if not isinstance(value, float) or value - value == 0:
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _compressor(name: object, options: object) -> JsonObject | None:
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
