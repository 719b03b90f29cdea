"""Codecs of Zarr version 3 said in version 2, as far as that has them.

Pure: JSON to JSON, for new arrays of version 2: chunks are encoded anew anyway, so what has no
counterpart is left out, and only how well chunks are compressed depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = ["codec_in_version2"]

_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def codec_in_version2(codecs: Iterable[object]) -> JsonObject:
    """The members of version 2's codec for a chain of version 3.

    Args:
        codecs: as in metadata; those inside of shards count.

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
            compressor = _blosc(configuration)
        elif isinstance(name, str) and name in ("numcodecs.zlib", "numcodecs.bz2", "numcodecs.lz4"):
            compressor = {"id": name.partition(".")[2], **configuration}
    return {"compressor": compressor}


def _blosc(configuration: Mapping[str, object]) -> JsonObject:
    return {
        "id": "blosc",
        "cname": configuration.get("cname", "lz4"),
        "clevel": configuration.get("clevel", 5),
        "shuffle": _SHUFFLES.get(str(configuration.get("shuffle")), -1),
        "blocksize": configuration.get("blocksize", 0),
    }
