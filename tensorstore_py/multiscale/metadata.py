"""What an image's metadata says: `ImageMetadata`, from the attributes of a group and to them.

Pure: nothing is read or stored here. Version 0.5 has in one member, `ome`, what version 0.4 has
among all other attributes, and says the version once; nothing else differs, and `in_version` says
one in the other. Older versions say less, and what they leave out is what was meant then. `omero`
metadata says how to show the channels; its windows are of the values of the smallest level, which
viewers show first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tensorstore_py.errors import NotFoundError, SpecError, UnsupportedError
from tensorstore_py.multiscale.axes import Axis, as_axes

__all__ = [
    "VERSIONS",
    "Dataset",
    "ImageMetadata",
    "channel_names",
    "image_attributes",
    "in_version",
    "is_ome",
    "ome_members",
    "omero_of",
    "parse_image",
    "version_of",
    "with_windows",
]


Json: TypeAlias = Mapping[str, object]
Path = tuple[str | int, ...]

#: The axes of images before version 0.3.
_OLD_AXES: Final = "tczyx"
_OLD: Final = frozenset({"0.1", "0.2", "0.3"})
_KNOWN: Final = frozenset({"0.4", "0.5"})


class Dataset(NamedTuple):
    """One level of an image.

    Attributes:
        path: of its array, below the image.
        scale: size of a pixel along each axis.
        translation: where the centre of the first pixel is.
    """

    path: str
    scale: tuple[float, ...]
    translation: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """As metadata has it."""
        transformations: list[object] = [{"type": "scale", "scale": list(self.scale)}]
        if any(self.translation):
            moved = {"type": "translation", "translation": list(self.translation)}
            transformations.append(moved)
        return {"path": self.path, "coordinateTransformations": transformations}


class ImageMetadata(NamedTuple):
    """What is said of an image.

    Attributes:
        version: of OME-Zarr.
        axes: its axes.
        datasets: its levels, the largest first.
        name: of the image; None: it has none.
        method: how levels were made, as its writer calls that; None: not said.
        omero: how to show it; None: not said.
        known_scales: whether scales are said; images before version 0.4 have none.
    """

    version: str
    axes: tuple[Axis, ...]
    datasets: tuple[Dataset, ...]
    name: str | None = None
    method: str | None = None
    omero: Mapping[str, Any] | None = None
    known_scales: bool = True


def ome_members(attributes: Json) -> tuple[str | None, Json, Path]:
    """The version, the members, and where they are in the attributes.

    Raises:
        SpecError: `ome` is no object, or has no version.
    """
    ome = attributes.get("ome")
    if ome is None:
        return None, attributes, ()
    members = _object(ome, ("ome",))
    return _text(members, "version", ("ome",)), members, ("ome",)


def parse_image(attributes: Json, where: str) -> ImageMetadata:
    """What the attributes of a group say of the image that it is.

    Raises:
        NotFoundError: they say nothing of an image.
        SpecError: something of it is wrong; has the JSON path.
        UnsupportedError: a version that is not known here.
    """
    version, members, path = ome_members(attributes)
    found = members.get("multiscales")
    if found is None:
        raise NotFoundError(f"no image is at {where}: {_instead(members)}")
    if not isinstance(found, list) or not found:
        raise SpecError(f"expected a list with an image, not {found!r:.60}", (*path, "multiscales"))
    path = (*path, "multiscales", 0)
    image = _object(found[0], path)
    if version is None:
        said = image.get("version", "0.4")
        version = said if isinstance(said, str) else str(said)
    if version not in _KNOWN | _OLD:
        raise UnsupportedError(
            f"the image at {where} is of version {version} of OME-Zarr; 0.1 to 0.5 are known here"
        )
    datasets = _list(image, "datasets", path)
    axes = _axes(image, version, path)
    outer = _transformations(image, len(axes), path, required=False)
    levels = tuple(
        _dataset(one, outer, len(axes), version, (*path, "datasets", number))
        for number, one in enumerate(datasets)
    )
    name, method, omero = (image.get("name"), image.get("type"), members.get("omero"))
    return ImageMetadata(
        version,
        axes,
        levels,
        name if isinstance(name, str) else None,
        method if isinstance(method, str) else None,
        omero if isinstance(omero, Mapping) else None,
        version not in _OLD,
    )


def image_attributes(image: ImageMetadata, more: Json | None = None) -> dict[str, object]:
    """The attributes of an image's group."""
    entry: dict[str, object] = {
        "axes": [axis.to_json() for axis in image.axes],
        "datasets": [dataset.to_json() for dataset in image.datasets],
    }
    if image.name is not None:
        entry["name"] = image.name
    if image.method is not None:
        entry["type"] = image.method
    entry.update(more or {})
    members: dict[str, object] = {"multiscales": [entry]}
    if image.omero is not None:
        members["omero"] = dict(image.omero)
    if image.version == "0.4":
        entry["version"] = "0.4"
        return members
    return {"ome": {"version": image.version, **members}}


def _axes(image: Json, version: str, path: Path) -> tuple[Axis, ...]:
    if version in ("0.1", "0.2"):
        return as_axes(_OLD_AXES, 5)
    given = _list(image, "axes", path)
    try:
        return as_axes(given, len(given))
    except SpecError as error:
        raise error.inside(*path) from None


def _dataset(found: object, outer: Dataset, rank: int, version: str, path: Path) -> Dataset:
    dataset = _object(found, path)
    where = _text(dataset, "path", path)
    inner = _transformations(dataset, rank, path, required=version not in _OLD)
    scale = [a * b for a, b in zip(inner.scale, outer.scale, strict=True)]
    moved = [
        at * factor + more
        for at, factor, more in zip(inner.translation, outer.scale, outer.translation, strict=True)
    ]
    return Dataset(where, tuple(scale), tuple(moved))


def _transformations(json: Json, rank: int, path: Path, *, required: bool) -> Dataset:
    """A scale and a translation, of 1 and 0 where none is said; they have no path."""
    scale, translation = (1.0,) * rank, (0.0,) * rank
    name = "coordinateTransformations"
    if name not in json and not required:
        return Dataset("", scale, translation)
    for number, one in enumerate(_list(json, name, path)):
        inner = (*path, name, number)
        found = _object(one, inner)
        kind = _text(found, "type", inner)
        if kind == "scale":
            factors = _numbers(found, "scale", rank, inner)
            scale = tuple(a * b for a, b in zip(scale, factors, strict=True))
            translation = tuple(a * b for a, b in zip(translation, factors, strict=True))
        elif kind == "translation":
            more = _numbers(found, "translation", rank, inner)
            translation = tuple(a + b for a, b in zip(translation, more, strict=True))
        elif kind != "identity":
            raise SpecError(
                f'expected "scale" or "translation", but found "{kind}"', (*inner, "type")
            )
    return Dataset("", scale, translation)


def _numbers(json: Json, name: str, rank: int, path: Path) -> tuple[float, ...]:
    if name not in json and "path" in json:
        raise SpecError("transformations that are arrays are not read here", (*path, "path"))
    found = _list(json, name, path)
    if len(found) != rank:
        raise SpecError(f"{len(found)} numbers for {rank} axes", (*path, name))
    for number, each in enumerate(found):
        if not isinstance(each, int | float) or isinstance(each, bool):
            raise SpecError(f"expected a number, but found {each!r:.60}", (*path, name, number))
    return tuple(float(each) for each in found)  # type: ignore[arg-type]  # they are numbers


def _object(found: object, path: Path) -> Json:
    if not isinstance(found, Mapping):
        raise SpecError(f"expected an object, but found {found!r:.60}", path)
    return found


def _list(json: Json, name: str, path: Path) -> list[object]:
    found = json.get(name)
    if not isinstance(found, list) or not found:
        what = "is required" if name not in json else f"found {found!r:.60}"
        raise SpecError(f"expected a list that is not empty; {what}", (*path, name))
    return found


def _text(json: Json, name: str, path: Path) -> str:
    found = json.get(name)
    if not isinstance(found, str):
        raise SpecError(f"expected a text, but found {found!r:.60}", (*path, name))
    return found


def _instead(members: Json) -> str:
    """What there is where no image is."""
    for name, what in (
        ("plate", 'it is a plate, whose wells have images, such as "A/1/0"'),
        ("well", 'it is a well; open one of its fields, such as "0"'),
        ("bioformats2raw.layout", 'it holds several images; open one of them, such as "0"'),
        ("labels", f"it holds label images; open one of {members.get('labels')!r:.200}"),
    ):
        if name in members:
            return what
    return "its attributes have no multiscales"


_COLORS: Final = ("00FF00", "FF00FF", "00FFFF", "FFFF00", "FF0000", "0000FF")


def channel_names(given: object, axes: tuple[Axis, ...], shape: tuple[int, ...]) -> list[str]:
    """The names of the channels.

    Raises:
        SpecError: not one name for each channel.
    """
    found = [size for axis, size in zip(axes, shape, strict=True) if axis.type == "channel"]
    count = found[0] if found else 1
    if given is True:
        return [f"Channel {number}" for number in range(count)]
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise SpecError(f"expected names of channels, not {given!r:.60}", ("omero",))
    names = list(given)
    if len(names) != count or not all(isinstance(name, str) for name in names):
        raise SpecError(f"expected {count} names of channels, not {names!r:.60}", ("omero",))
    return names


def omero_of(given: object, axes: tuple[Axis, ...], shape: tuple[int, ...]) -> dict[str, Any]:
    """The metadata that a caller asks for; windows are those of the data type's, until known.

    Args:
        given: it as it is to be stored, True for plain names, or a list of names.
        axes: the axes.
        shape: extents along them.

    Raises:
        SpecError: it has no channels.
    """
    if isinstance(given, Mapping):
        if not isinstance(given.get("channels"), list):
            raise SpecError("expected a list", ("omero", "channels"))
        return dict(given)
    names = channel_names(given, axes, shape)
    colors = ("FFFFFF",) if len(names) == 1 else _COLORS
    channels = [
        {"label": name, "color": colors[number % len(colors)], "active": True}
        for number, name in enumerate(names)
    ]
    greys = "greyscale" if len(names) == 1 else "color"
    return {"channels": channels, "rdefs": {"model": greys}}


def with_windows(
    omero: Mapping[str, Any], axes: tuple[Axis, ...], level: np.ndarray[Any, np.dtype[Any]]
) -> dict[str, Any]:
    """The metadata with windows for the channels that have none."""
    dims = [number for number, axis in enumerate(axes) if axis.type == "channel"]
    planes = np.moveaxis(level, dims[0], 0) if dims else level[np.newaxis]
    channels = [
        channel
        if "window" in channel
        else {**channel, "window": _window(planes[min(number, len(planes) - 1)])}
        for number, channel in enumerate(omero["channels"])
    ]
    return {**omero, "channels": channels}


def _window(plane: np.ndarray[Any, np.dtype[Any]]) -> dict[str, float]:
    """The range of a channel: what can be, or is, and what to show of it."""
    values = plane[np.isfinite(plane)] if plane.dtype.kind == "f" else plane
    low, high = (values.min(), values.max()) if values.size else (0, 1)
    start, end = (
        (np.percentile(values, 0.1), np.percentile(values, 99.9)) if values.size else (0, 1)
    )
    if plane.dtype.kind in "iu":
        info = np.iinfo(plane.dtype)
        low, high = info.min, info.max
    limits = {"min": float(low), "max": float(high), "start": float(start), "end": float(end)}
    if limits["end"] <= limits["start"]:
        limits["end"] = limits["start"] + 1
    return limits


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
