"""What other writers left in `attributes.json`, in the words of the format.

Called only for a document that was refused, so one that keeps to the format is never touched. The
first version of the format named its compression by a member; libraries write members that only a
writer needs, or names of their own. Attributes called `axes`, `units` or `resolution` that are not
what the format has under these names are attributes of the user's, which are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["standard"]

_OLD = "compressionType"
#: Members that say how to compress, not what was made of it.
_TUNING = ("nbWorkers", "nthreads")
#: Members of compressors in the words of z5.
_WORDS: Final[dict[str, dict[str, str]]] = {
    "blosc": {"codec": "cname", "level": "clevel"},
    "bzip2": {"level": "blockSize"},
}
_BLOSC: Final[dict[str, object]] = {"cname": "lz4", "clevel": 5, "shuffle": 1}


def standard(document: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """A document in the words of the format, and what is of the user's by a name of the format.

    Example:
        >>> standard({"compressionType": "raw", "units": "nm"})
        ({'compression': {'type': 'raw'}}, {'compressionType': 'raw', 'units': 'nm'})
    """
    found: dict[str, object] = {}
    kept: dict[str, object] = {}
    dimensions = document.get("dimensions")
    rank = len(dimensions) if isinstance(dimensions, list) else None
    for name, value in document.items():
        if name == _OLD or (name in _FORMS and not _is_form(value, _FORMS[name], rank)):
            kept[name] = value
        else:
            found[name] = value
    compression = found.get("compression", document.get(_OLD))
    if isinstance(compression, str):
        compression = {"type": compression}
    if isinstance(compression, Mapping):
        found["compression"] = _compression(compression)
    return found, kept


_FORMS: Final[dict[str, tuple[type, ...]]] = {
    "axes": (str,),
    "units": (str,),
    "resolution": (int, float),
}


def _is_form(value: object, types: tuple[type, ...], rank: int | None) -> bool:
    """Whether a member is what the format has under its name: one value for each dimension."""
    return (
        isinstance(value, list)
        and len(value) == rank
        and all(isinstance(each, types) and not isinstance(each, bool) for each in value)
    )


def _compression(json: Mapping[str, object]) -> dict[str, object]:
    name = json.get("type")
    words = _WORDS.get(name, {}) if isinstance(name, str) else {}
    found = {
        words.get(key, key): value
        for key, value in json.items()
        if value is not None and key not in _TUNING
    }
    return {**_BLOSC, **found} if name == "blosc" else found
