"""Keyword arguments by h5py's names, which zarr-python's `create_dataset` takes, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tensorstore_py.errors import did_you_mean
from tensorstore_py.zarr.codecs import Codec

__all__ = ["from_h5py"]

#: Compressors by name, each with the member that a number stands for.
_LEVELS = {
    "blosc": "clevel",
    "bz2": "level",
    "gzip": "level",
    "lz4": "acceleration",
    "lzma": "preset",
    "zlib": "level",
    "zstd": "level",
}


def from_h5py(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `create` for arguments that may have h5py's names.

    Args:
        arguments: `compression` is a name, a codec or None, `compression_opts` a level or a mapping
            of members, `fillvalue` is `fill_value`; the others are as they are.

    Raises:
        ValueError: no compressor has that name.

    Example:
        >>> from_h5py({"compression": "gzip", "compression_opts": 1, "fillvalue": 7})
        {'fill_value': 7, 'compressors': GZip(level=1)}
    """
    found = dict(arguments)
    compression = found.pop("compression", "default")
    options = found.pop("compression_opts", None)
    if "fillvalue" in found:
        found["fill_value"] = found.pop("fillvalue")
    if compression in (None, "none"):
        found["compressors"] = None
    elif isinstance(compression, str) and compression != "default":
        found["compressors"] = _named(compression, options)
    elif not isinstance(compression, str):
        found["compressors"] = compression
    return found


def _named(name: str, options: object) -> Codec:
    if name not in _LEVELS:
        raise ValueError(
            f"compression {name!r} is not known{did_you_mean(name, _LEVELS)}; pass compressors= "
            "with a codec"
        )
    if options is None:
        return Codec({"id": name, **({"level": 1} if _LEVELS[name] == "level" else {})})
    if isinstance(options, Mapping):
        return Codec({"id": name, **cast("Mapping[str, object]", options)})
    return Codec({"id": name, _LEVELS[name]: options})
