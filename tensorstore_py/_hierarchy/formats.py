"""Which formats have groups: those that are registered, made once each.

Whoever brings a driver brings its format along, built-in or not. The one invariant: the newest
version comes first, so that it is tried first and is what is created by default.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tensorstore_py._spec.registry import hierarchy_formats

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import HierarchyFormat

__all__ = ["format_of", "formats"]


def formats() -> list[HierarchyFormat]:
    """All formats that have groups, the newest first.

    Example:
        >>> [form.format_id for form in formats() if form.zarr_format]
        ['zarr3', 'zarr2']
    """
    return [_made(name) for name in reversed(hierarchy_formats.names())]


def format_of(driver: str) -> HierarchyFormat | None:
    """The format of a driver's arrays; None if it has no groups.

    Example:
        >>> format_of("zarr").zarr_format, format_of("array")
        (2, None)
    """
    return next((form for form in formats() if form.driver == driver), None)


@cache
def _made(name: str) -> HierarchyFormat:
    form: HierarchyFormat = hierarchy_formats.get(name)()  # type: ignore[assignment]
    return form
