"""Array formats and views: one file or folder each, found by the registry, never by one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

__all__ = ["REGISTERED"]

#: By module, what it registers, by the kind of the registry.
REGISTERED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "array": {"driver": ("array",)},
    "auto": {"driver": ("auto",), "driver scheme": ("auto",)},
    "cast": {"driver": ("cast",), "driver scheme": ("cast",)},
    "downsample": {"driver": ("downsample",)},
    "json": {"driver": ("json",), "driver scheme": ("json",)},
    "n5": {
        "driver": ("n5",),
        "driver detecting": ("n5",),
        "driver scheme": ("n5",),
        "driver with a codec": ("n5",),
    },
    "stack": {"driver": ("stack",)},
    "zarr": {
        "driver": ("zarr",),
        "driver alias": ("zarr2",),
        "driver detecting": ("zarr",),
        "driver scheme": ("zarr2",),
        "driver with a codec": ("zarr",),
        "driver with a codec alias": ("zarr2",),
        "hierarchy format": ("zarr2",),
    },
    "zarr3": {
        "driver": ("zarr3",),
        "driver detecting": ("zarr3",),
        "driver scheme": ("zarr3",),
        "driver with a codec": ("zarr3",),
        "hierarchy format": ("zarr3",),
        "chunk grid": ("rectilinear", "regular"),
        "chunk key encoding": ("default", "v2"),
    },
}
