"""Metadata of one version of OME-Zarr, said in another one: JSON to JSON.

Version 0.5 has in one member, `ome`, what version 0.4 has among all other attributes, and says the
version once. Nothing else differs. What is not OME's stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from tensorstore_py.errors import UnsupportedError

__all__ = ["VERSIONS", "in_version", "is_ome", "version_of"]

Json: TypeAlias = Mapping[str, object]

#: By version, the version of Zarr that it is stored in.
VERSIONS: Final = {"0.4": 2, "0.5": 3}
_MEMBERS: Final = (
    "multiscales", "omero", "labels", "image-label", "plate", "well", "bioformats2raw.layout",
    "series",
)  # fmt: skip
#: Those that have a version of their own in version 0.4.
_VERSIONED: Final = ("plate", "well", "image-label")


def version_of(attributes: Json) -> str | None:
    """The version of a group's metadata, if it says any; None: it is not OME's.

    Example:
        >>> version_of({"ome": {"version": "0.5"}}), version_of({"unit": "nm"})
        ('0.5', None)
    """
    ome = attributes.get("ome")
    if isinstance(ome, Mapping):
        return str(ome.get("version"))
    if not is_ome(attributes):
        return None
    found = attributes.get("multiscales")
    entries = list(found) if isinstance(found, list) else []
    entries += [attributes.get(name) for name in _VERSIONED]
    said = [each["version"] for each in entries if isinstance(each, Mapping) and "version" in each]
    return str(said[0]) if said else "0.4"


def is_ome(attributes: Json) -> bool:
    """Whether a group's attributes have members of OME-Zarr, of any version."""
    return "ome" in attributes or any(name in attributes for name in _MEMBERS)


def in_version(attributes: Json, version: str) -> dict[str, object]:
    """The attributes of a group as another version has them.

    Args:
        attributes: of a group; any.
        version: `"0.4"` or `"0.5"`.

    Raises:
        UnsupportedError: they are of a version that is not known here.

    Example:
        >>> in_version({"labels": ["cells"], "mine": 1}, "0.5")
        {'mine': 1, 'ome': {'version': '0.5', 'labels': ['cells']}}
        >>> in_version({"ome": {"version": "0.5", "well": {"images": []}}}, "0.4")
        {'well': {'images': [], 'version': '0.4'}}
    """
    present = version_of(attributes)
    if present in (None, version):
        return dict(attributes)
    if present not in VERSIONS:
        raise UnsupportedError(
            f"metadata of version {present} of OME-Zarr cannot be converted; 0.4 and 0.5 can"
        )
    if version == "0.5":
        members = {name: _unversioned(attributes[name]) for name in _MEMBERS if name in attributes}
        left = {name: value for name, value in attributes.items() if name not in members}
        return {**left, "ome": {"version": "0.5", **members}}
    ome = attributes["ome"]
    assert isinstance(ome, Mapping)
    left = {name: value for name, value in attributes.items() if name != "ome"}
    return {**left, **{name: _versioned(name, ome[name]) for name in ome if name != "version"}}


def _unversioned(value: object) -> object:
    if isinstance(value, list):
        return [_unversioned(each) for each in value]
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if name != "version"}
    return value


def _versioned(name: str, value: object) -> object:
    if name == "multiscales" and isinstance(value, list):
        return [{**each, "version": "0.4"} if isinstance(each, Mapping) else each for each in value]
    if name in _VERSIONED and isinstance(value, Mapping):
        return {**value, "version": "0.4"}
    return value
