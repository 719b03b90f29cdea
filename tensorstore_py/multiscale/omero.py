"""`omero` metadata: how to show the channels of an image.

Windows are of the values of the smallest level: what is seen first, and read at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py.multiscale.axes import Axis

__all__ = ["channel_names", "omero_of", "with_windows"]

_COLORS: Final = ("00FF00", "FF00FF", "00FFFF", "FFFF00", "FF0000", "0000FF")


def channel_names(given: object, axes: tuple[Axis, ...], shape: tuple[int, ...]) -> list[str]:
    """The names of the channels.

    Args:
        given: True, or a list of names.
        axes: the axes.
        shape: extents along them.

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

    Example:
        >>> from tensorstore_py.multiscale.axes import as_axes
        >>> omero_of(["DAPI"], as_axes("yx", 2), (2, 2))["channels"][0]["label"]
        'DAPI'
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
    """The metadata with windows for the channels that have none.

    Args:
        omero: the metadata.
        axes: the axes.
        level: the elements of a level.
    """
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
