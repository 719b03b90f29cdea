"""Codecs in words: a line that tells how chunks are encoded, of the JSON that formats have.

What is off, or empty, is left out; nothing is looked up, so codecs of plug-ins are shown, too.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["codec_list", "codec_words"]

_NAMES = ("name", "id", "type")
#: Members of one format's codec spec, in the order in which they are applied.
_MEMBERS = ("filters", "codecs", "compressor", "compression")


def codec_words(json: Mapping[str, object]) -> str:
    """All codecs in one line.

    Example:
        >>> codec_words(
        ...     {
        ...         "driver": "zarr3",
        ...         "codecs": [
        ...             {"name": "bytes", "configuration": {"endian": "little"}},
        ...             {"name": "zstd", "configuration": {"level": 5}},
        ...         ],
        ...     }
        ... )
        'bytes (endian little), zstd (level 5)'
        >>> codec_words({"driver": "zarr", "compressor": None, "filters": None})
        'none'
    """
    words = [f"{name} ({what})" if what else name for name, what in codec_list(json)]
    return ", ".join(words) or "none"


def codec_list(json: Mapping[str, object]) -> list[tuple[str, str]]:
    """Each codec with its configuration in words."""
    found = [json[name] for name in _MEMBERS if json.get(name) is not None]
    each = [one for value in found for one in (value if isinstance(value, list) else [value])]
    return [_one(codec) for codec in each]


def _one(codec: object) -> tuple[str, str]:
    if not isinstance(codec, Mapping):
        return str(codec), ""
    name = next((str(codec[key]) for key in _NAMES if key in codec), "?")
    members = codec.get("configuration", {key: codec[key] for key in codec if key not in _NAMES})
    if not isinstance(members, Mapping):
        return name, str(members)
    if (
        "codecs" in members
    ):  # of a shard: how its chunks are encoded; their shape is shown elsewhere
        return name, codec_words({"codecs": members["codecs"]})
    return name, ", ".join(
        _member(key, value) for key, value in members.items() if value not in (None, False, [], {})
    )


def _member(name: str, value: object) -> str:
    if value is True:
        return name.replace("_", " ")
    shown = " × ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{name.replace('_', ' ')} {shown}"
